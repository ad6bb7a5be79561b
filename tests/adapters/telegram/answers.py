"""What the Bot API does and answers, method by method."""

from typing import Any

from tests.adapters.telegram import limits
from tests.adapters.telegram.parameters import Refusal, bad
from tests.adapters.telegram.world import Message, World

ACTIONS = {"typing", "upload_document", "upload_photo"}
LARGEST_DOWNLOAD = 20 * 1024 * 1024
LARGEST_UPLOAD = 50 * 1024 * 1024


class Answers:
    """Carries out calls in a world. ``has_drafts`` and ``has_ephemeral`` are whether this server knows these."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.has_drafts = True
        self.has_ephemeral = True

    def answer(self, method: str, given: dict[str, Any]) -> Any:
        name = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in method)
        return getattr(self, f"_{name}")(**given)

    def _get_me(self) -> Any:
        return self.world.bot

    def _send_message(self, text: str, entities: Any = None, **where: Any) -> Message:
        limits.check_text(text, limits.LONGEST_TEXT, "message")
        limits.check_entities(text, entities or [])
        if not text.strip():
            raise bad("message text is empty")
        return self._post({"text": text, **({"entities": entities} if entities else {})}, **where)

    def _send_document(self, document: Any, caption: str = "", caption_entities: Any = None, **where: Any) -> Message:
        name, content = document
        limits.check_file(content, LARGEST_UPLOAD)
        limits.check_text(caption, limits.LONGEST_CAPTION, "message caption")
        limits.check_entities(caption, caption_entities or [])
        said = {"caption": caption, "caption_entities": caption_entities or []} if caption else {}
        return self._post({"document": {**self.world.keep(content), "file_name": name}, **said}, **where)

    def _post(
        self,
        content: dict[str, Any],
        *,
        chat_id: int,
        message_thread_id: int | None = None,
        reply_parameters: Any = None,
        reply_markup: Any = None,
        ephemeral_message_parameters: Any = None,
        parse_mode: str | None = None,
        reply_to_message_id: int | None = None,
        **_: Any,
    ) -> Message:
        if parse_mode is not None:
            raise bad("markup is not parsed here; give entities")
        chat = self._chat(chat_id, message_thread_id)
        message = {**self.world.message(chat, message_thread_id, self.world.bot), **content}
        answered = reply_parameters or ({"message_id": reply_to_message_id} if reply_to_message_id else None)
        if answered:
            original = self.world.messages.get((chat_id, answered["message_id"]))
            if original is not None:
                message["reply_to_message"] = {key: original[key] for key in original if key != "reply_to_message"}
            elif not answered.get("allow_sending_without_reply"):
                raise bad("message to be replied not found")
        if reply_markup is not None:
            limits.check_buttons(reply_markup)
            message["reply_markup"] = reply_markup
        if ephemeral_message_parameters is not None:
            if not self.has_ephemeral or chat["type"] == "private":
                raise bad("ephemeral messages can't be sent here")
            message["only_for"] = ephemeral_message_parameters["receiver_user_id"]
        self.world.messages[chat_id, message["message_id"]] = message
        self.world.drafts.pop(chat_id, None)
        self.world.story.append({"who": None, "kind": "message", "event": message})
        return {key: value for key, value in message.items() if key != "only_for"}

    def _chat(self, number: int, topic: int | None) -> dict[str, Any]:
        if number in self.world.moved:
            moved = self.world.moved[number]
            raise Refusal(400, "Bad Request: group chat was upgraded to a supergroup chat", migrate_to_chat_id=moved)
        if number not in self.world.chats:
            raise bad("chat not found")
        if number in self.world.blocked:
            raise Refusal(403, "Forbidden: bot was blocked by the user")
        # The general topic has no number here either: Telegram refuses its 1.
        if topic is not None and topic not in self.world.topics.get(number, ()):
            raise bad("message thread not found")
        return self.world.chats[number]

    def _send_message_draft(
        self,
        chat_id: int,
        draft_id: int,
        text: str = "",
        entities: Any = None,
        message_thread_id: int | None = None,
        **more: Any,
    ) -> bool:
        if not self.has_drafts:
            raise Refusal(404, "Not Found: method not found")
        if self._chat(chat_id, message_thread_id)["type"] != "private" or not draft_id:
            raise bad("a draft needs a private chat and a number")
        limits.check_text(text, limits.LONGEST_TEXT, "message")
        limits.check_entities(text, entities or [])
        self.world.drafts[chat_id] = {"draft_id": draft_id, "text": text, **more}
        return True

    def _send_chat_action(self, chat_id: int, action: str, message_thread_id: int | None = None) -> bool:
        self._chat(chat_id, message_thread_id)
        if action not in ACTIONS:
            raise bad("wrong parameter action in request")
        return True

    def _edit_message_text(
        self, chat_id: int, message_id: int, text: str, entities: Any = None, reply_markup: Any = None, **_: Any
    ) -> Message:
        message = self._own(chat_id, message_id, "edit")
        limits.check_text(text, limits.LONGEST_TEXT, "message")
        limits.check_entities(text, entities or [])
        return self._change(message, {"text": text, "entities": entities or [], "reply_markup": reply_markup})

    def _edit_message_reply_markup(self, chat_id: int, message_id: int, reply_markup: Any = None) -> Message:
        message = self._own(chat_id, message_id, "edit")
        if reply_markup is not None:
            limits.check_buttons(reply_markup)
        return self._change(message, {"reply_markup": reply_markup})

    def _change(self, message: Message, wanted: dict[str, Any]) -> Message:
        if all((message.get(key) or None) == (value or None) for key, value in wanted.items()):
            raise bad("message is not modified: specified new message content and reply markup are exactly the same")
        message |= wanted
        for key in [key for key in wanted if not message[key]]:
            del message[key]
        return message

    def _delete_message(self, chat_id: int, message_id: int) -> bool:
        self._own(chat_id, message_id, "delete")
        del self.world.messages[chat_id, message_id]
        return True

    def _own(self, chat_id: int, message_id: int, doing: str) -> Message:
        self._chat(chat_id, None)
        message = self.world.messages.get((chat_id, message_id))
        if message is None:
            raise bad(f"message to {doing} not found")
        if message["from"] is not self.world.bot:
            raise bad(f"message can't be {doing}ed")
        return message

    def _answer_callback_query(self, callback_query_id: str, text: str = "", **more: Any) -> bool:
        if self.world.queries.pop(callback_query_id, None) is None:
            raise bad("query is too old and response timeout expired or query ID is invalid")
        limits.check_text(text, 200, "MESSAGE")
        self.world.answers[callback_query_id] = {"text": text, **more}
        self.world.story.append({"who": None, "kind": "answer", "text": text})
        return True

    def _get_file(self, file_id: str) -> dict[str, Any]:
        if file_id not in self.world.files:
            raise bad("wrong file_id or the file is temporarily unavailable")
        size = len(self.world.files[file_id])
        if size > LARGEST_DOWNLOAD:
            raise bad("file is too big")
        return {
            "file_id": file_id,
            "file_unique_id": f"u{file_id}",
            "file_size": size,
            "file_path": f"documents-{file_id}",
        }

    def _set_my_commands(self, commands: Any, scope: Any = None, **_: Any) -> bool:
        limits.check_commands(commands)
        self.world.commands[self._scope(scope)] = commands
        return True

    def _get_my_commands(self, scope: Any = None, **_: Any) -> Any:
        return self.world.commands.get(self._scope(scope), [])

    def _scope(self, scope: Any) -> str:
        kind = (scope or {}).get("type", "default")
        if kind not in {"default", "all_private_chats", "all_group_chats", "all_chat_administrators", "chat"}:
            raise bad("unknown bot command scope")
        return f"chat {self._chat(int(scope['chat_id']), None)['id']}" if kind == "chat" else kind

    def _set_my_description(self, description: str = "", **_: Any) -> bool:
        limits.check_text(description, 512, "description")
        self.world.description = description
        return True

    def _get_my_description(self, **_: Any) -> dict[str, Any]:
        return {"description": self.world.description}

    def _set_my_short_description(self, short_description: str = "", **_: Any) -> bool:
        limits.check_text(short_description, 120, "short description")
        return True
