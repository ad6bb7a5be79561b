"""What the Web API does and answers, method by method."""

import json
from typing import Any

from tests.adapters.slack.limits import Refusal, check_message
from tests.adapters.slack.world import BOT, BOT_ID, TEAM, Message, World

PAGE = 1000


class Answers:
    """Carries out calls in a world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.uploads: dict[str, dict[str, Any]] = {}
        self.tickets: list[str] = []

    def answer(self, method: str, given: dict[str, Any]) -> dict[str, Any]:
        name = "_" + "".join(f"_{mark.lower()}" if mark.isupper() else mark for mark in method.replace(".", "_"))
        known = getattr(self, name, None)
        if known is None:
            raise Refusal("unknown_method")
        try:
            found: dict[str, Any] = known(**given)
        except TypeError as error:
            raise Refusal("invalid_arguments", str(error)) from None
        return found

    def _auth_test(self) -> dict[str, Any]:
        return {"url": "https://team.example/", "team": "Team", "user": "takeback", "team_id": TEAM, "user_id": BOT,
                "bot_id": BOT_ID, "is_enterprise_install": False}  # fmt: skip

    def _apps_connections_open(self) -> dict[str, Any]:
        self.tickets.append(f"ticket{len(self.tickets)}")
        return {"url": f"{self.world.base.replace('http', 'ws')}/link?ticket={self.tickets[-1]}&app_id=A0APP"}

    def _chat_post_message(
        self,
        channel: str,
        text: str = "",
        blocks: Any = None,
        thread_ts: str | None = None,
        **flags: bool,
    ) -> dict[str, Any]:
        if not flags.keys() <= {"unfurl_links", "unfurl_media", "mrkdwn"}:
            raise Refusal("invalid_arguments", f"unknown: {flags}")
        self._check_place(channel, thread_ts)
        check_message(text, blocks)
        message = self._post(channel, thread_ts, text=text, blocks=blocks)
        return {"channel": channel, "ts": message["ts"], "message": message}

    def _post(self, channel: str, thread: str | None, **content: Any) -> Message:
        shown = {key: value for key, value in content.items() if value is not None}
        message = self.world.write(channel, thread, {"user": BOT, "bot_id": BOT_ID, "app_id": "A0APP", **shown})
        # An app is told of its own messages too.
        self.world.tell(message)
        return message

    def _chat_update(self, channel: str, ts: str, text: str = "", blocks: Any = None) -> dict[str, Any]:
        message = self._own(channel, ts)
        check_message(text, blocks, update=True)
        before = dict(message)
        message |= {"text": text, "blocks": blocks or [], "edited": {"user": BOT, "ts": self.world.stamp()}}
        self.world.change(message, before)
        return {"channel": channel, "ts": ts, "text": text}

    def _chat_delete(self, channel: str, ts: str) -> dict[str, Any]:
        self._own(channel, ts)
        del self.world.messages[channel, ts]
        return {"channel": channel, "ts": ts}

    def _chat_post_ephemeral(
        self, channel: str, user: str, text: str = "", blocks: Any = None, thread_ts: str | None = None
    ) -> dict[str, Any]:
        self._check_place(channel, thread_ts)
        check_message(text, blocks)
        if user not in self.world.members[channel]:
            raise Refusal("user_not_in_channel")
        message = self.world.write(channel, thread_ts, {"user": BOT, "text": text, "blocks": blocks, "only_for": user})
        return {"message_ts": message["ts"]}

    def _conversations_replies(self, channel: str, ts: str, limit: Any = 1000, cursor: str = "") -> dict[str, Any]:
        self._check_place(channel, None)
        found = [
            message
            for (where, own), message in self.world.messages.items()
            if where == channel and ts in {own, message.get("thread_ts")} and "only_for" not in message
        ]
        if not found:
            raise Refusal("thread_not_found")
        start = int(cursor or 0)
        end = start + min(int(limit), PAGE)
        following = str(end) if end < len(found) else ""
        return {
            "messages": found[start:end], "has_more": bool(following), "response_metadata": {"next_cursor": following}
        }  # fmt: skip

    def _views_publish(self, user_id: str, view: Any) -> dict[str, Any]:
        view = json.loads(view) if isinstance(view, str) else view
        if view.get("type") != "home" or not 1 <= len(view["blocks"]) <= 100:
            raise Refusal("invalid_arguments", "the view")
        check_message("a view has no text", view["blocks"])
        self.world.homes[user_id] = view
        return {"view": view}

    def _files_info(self, file: str) -> dict[str, Any]:
        return {"file": self.world.files[file]}

    def _files_get_upload_u_r_l_external(
        self, filename: str, length: Any, snippet_type: str | None = None
    ) -> dict[str, Any]:
        if not filename or int(length) < 1:
            raise Refusal("invalid_arguments", "an empty file")
        number = f"F{len(self.uploads):04}UP"
        self.uploads[number] = {"name": filename, "length": int(length), "snippet_type": snippet_type}
        return {"file_id": number, "upload_url": f"{self.world.base}/upload/{number}"}

    def _files_complete_upload_external(
        self, files: str, channel_id: str, thread_ts: str | None = None
    ) -> dict[str, Any]:
        self._check_place(channel_id, thread_ts)
        kept = []
        for given in json.loads(files):
            upload = self.uploads[given["id"]]
            if len(upload.get("content", b"")) != upload["length"]:
                raise Refusal("file_not_found", "not uploaded as announced")
            kept.append(self.world.keep(upload["name"], upload["content"], filetype=upload["snippet_type"]))
        self._post(channel_id, thread_ts, text="", files=kept)
        return {"files": [{"id": file["id"], "title": file["title"]} for file in kept]}

    def _check_place(self, channel: str, thread: str | None) -> None:
        if channel not in self.world.members:
            raise Refusal("channel_not_found")
        if BOT not in self.world.members[channel]:
            raise Refusal("not_in_channel")
        if thread is not None:
            parent = self.world.messages.get((channel, thread))
            if parent is None or parent.get("thread_ts") is not None:
                raise Refusal("invalid_thread_ts")

    def _own(self, channel: str, ts: str) -> Message:
        self._check_place(channel, None)
        message = self.world.messages.get((channel, ts))
        if message is None:
            raise Refusal("message_not_found")
        if message["user"] != BOT or "only_for" in message:
            raise Refusal("cant_update_message")
        return message
