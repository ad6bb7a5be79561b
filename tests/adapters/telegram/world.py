"""The people, chats and messages that a fake Telegram consists of, and what people do in it."""

import itertools
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from tests.adapters.telegram.limits import found_entities

NOW = 1_774_000_000
Message = dict[str, Any]


@dataclass
class World:
    """Chats with their messages, and the updates that come of what people do. ``changed`` is called each time."""

    bot: dict[str, Any]
    changed: Any = None
    chats: dict[int, dict[str, Any]] = field(default_factory=dict)
    topics: dict[int, set[int]] = field(default_factory=dict)
    moved: dict[int, int] = field(default_factory=dict)
    blocked: set[int] = field(default_factory=set)
    messages: dict[tuple[int, int], Message] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    queries: dict[str, Message] = field(default_factory=dict)
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    drafts: dict[int, dict[str, Any]] = field(default_factory=dict)
    updates: list[dict[str, Any]] = field(default_factory=list)
    commands: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    description: str = ""
    last: dict[str, Any] = field(default_factory=dict)
    story: list[dict[str, Any]] = field(default_factory=list)
    _numbers: Any = field(default_factory=lambda: itertools.count(1))

    def person(self, number: int, name: str) -> dict[str, Any]:
        return {"id": number, "is_bot": False, "first_name": name, "username": name.lower()}

    def group(self, number: int, *, topics: tuple[int, ...] = (), kind: str = "supergroup") -> dict[str, Any]:
        """A group; with topics, a forum, whose topics are named by the messages that began them."""
        chat = {"id": number, "type": kind, "title": f"Group {number}"}
        if topics:
            chat["is_forum"] = True
            self.topics[number] = set(topics)
        self.chats[number] = chat
        return chat

    def say(
        self,
        person: dict[str, Any],
        text: str = "",
        *,
        chat: dict[str, Any] | None = None,
        topic: int | None = None,
        reply_to: Message | None = None,
        **more: Any,
    ) -> Message:
        """Let a person write a message; ``more`` are further fields of it, such as a file."""
        message = self.message(chat or self.private(person), topic, person)
        if topic is not None and reply_to is None:
            # Telegram shows the message that began the topic as the one that is answered.
            reply_to = {
                **self.message(chat or {}, topic, self.bot),
                "message_id": topic,
                "forum_topic_created": {"name": "Topic", "icon_color": 7322096},
            }
        if reply_to is not None:
            message["reply_to_message"] = {key: reply_to[key] for key in reply_to if key != "reply_to_message"}
        if text:
            file = any(kind in more for kind in ("document", "photo"))
            message["caption" if file else "text"] = text
            if found := found_entities(text):
                message["caption_entities" if file else "entities"] = found
        message |= more
        self.messages[message["chat"]["id"], message["message_id"]] = message
        self.happen("message", message, who=person, text=text)
        return message

    def edit(self, message: Message, text: str) -> None:
        message |= {"text": text, "edit_date": NOW, "entities": found_entities(text)}
        self.happen("edited_message", dict(message), who=message["from"], text=text)

    def send_file(self, person: dict[str, Any], name: str, content: bytes, caption: str = "", **more: Any) -> Message:
        file = {**self.keep(content), "file_name": name, "mime_type": "application/octet-stream"}
        return self.say(person, caption, document=file, **more)

    def keep(self, content: bytes) -> dict[str, Any]:
        """Store a file; what Telegram says of it."""
        file_id = f"file{len(self.files) + 1}"
        self.files[file_id] = content
        return {"file_id": file_id, "file_unique_id": f"u{file_id}", "file_size": len(content)}

    def press(
        self, person: dict[str, Any], label: str, message: Message | None = None, *, told: Message | None = None
    ) -> str:
        """Let a person press a button, of the newest message that has one so called; its query's id.

        ``told`` is what is told of that message, where it is not all.
        """
        messages = [message] if message is not None else reversed(self.messages.values())
        found, data = next(
            (message, button["callback_data"])
            for message in messages
            for row in message.get("reply_markup", {}).get("inline_keyboard", ())
            for button in row
            if button["text"] == label
        )
        query = f"query{next(self._numbers)}"
        self.queries[query] = found
        event = {"id": query, "from": person, "message": told or found, "chat_instance": "1", "data": data}
        self.happen("callback_query", event, who=person, text=f"[{label}]")
        return query

    def stop_draft(self, person: dict[str, Any]) -> None:
        draft = self.drafts.pop(person["id"])
        stopped = {"chat": self.private(person), "draft_id": draft["draft_id"]}
        self.happen("stopped_message_generation", stopped, who=person, text="[Stop]")

    def happen(self, kind: str, event: dict[str, Any], *, who: dict[str, Any], text: str) -> None:
        self.last = {"update_id": 1000 + next(self._numbers), kind: deepcopy(event)}
        self.updates.append(self.last)
        self.story.append({"who": who["first_name"], "kind": kind, "text": text, "event": event})
        self.changed()

    def private(self, person: dict[str, Any]) -> dict[str, Any]:
        chat = {"id": person["id"], "type": "private", "first_name": person["first_name"]}
        return self.chats.setdefault(person["id"], chat)

    def message(self, chat: dict[str, Any], topic: int | None, sender: dict[str, Any]) -> Message:
        message: Message = {"message_id": next(self._numbers), "date": NOW, "chat": chat, "from": sender}
        if topic is not None:
            message |= {"message_thread_id": topic, "is_topic_message": True}
        return message

    def shown(self, chat: int, topic: int | None = None) -> list[Message]:
        """What the bot wrote in a chat and has not deleted."""
        return [
            message
            for (number, _), message in self.messages.items()
            if number == chat and message["from"] is self.bot and message.get("message_thread_id") == topic
        ]

    def texts(self, chat: int, topic: int | None = None) -> list[str]:
        return [message.get("text", message.get("caption", "")) for message in self.shown(chat, topic)]
