"""The people, channels and messages that a Slack workspace consists of, and what people do in it."""

import itertools
import re
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

TEAM, BOT, BOT_ID = "T0TEAM", "U0BOT", "B0BOT"
Message = dict[str, Any]


@dataclass
class World:
    """A workspace. Whatever happens in it is given to ``happen``: its kind, and what Slack delivers of it."""

    happen: Callable[[str, dict[str, Any]], None]
    base: str = ""
    members: dict[str, set[str]] = field(default_factory=dict)
    messages: dict[tuple[str, str], Message] = field(default_factory=dict)
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    content: dict[str, bytes] = field(default_factory=dict)
    homes: dict[str, dict[str, Any]] = field(default_factory=dict)
    answers: dict[str, tuple[str, str, Message | None]] = field(default_factory=dict)
    last: dict[str, Any] = field(default_factory=dict)
    _numbers: Any = field(default_factory=lambda: itertools.count(1))

    def channel(self, name: str, *people: str, bot: bool = True) -> str:
        """A channel with these people in it, and the app if it was invited."""
        self.members[name] = {*people, *([BOT] if bot else [])}
        return name

    def dm(self, person: str) -> str:
        """The direct messages of a person and the app."""
        return self.channel(f"D{person[1:]}", person)

    def stamp(self) -> str:
        return f"17740000{next(self._numbers):02}.{next(self._numbers):06}"

    def say(
        self, person: str, text: str = "", *, channel: str | None = None, thread: str | None = None, **more: Any
    ) -> Message:
        """Let a person write a message; ``more`` are further fields of it."""
        where = channel or self.dm(person)
        message = self.write(where, thread, {"user": person, "text": text, "team": TEAM, **more})
        self.tell(message)
        return message

    def tell(self, message: Message, **more: Any) -> None:
        """Have an app that is in the channel know of a message; a mention is told twice."""
        channel = message["channel"]
        if BOT not in self.members[channel]:
            return
        kinds = ["message"]
        if f"<@{BOT}" in message["text"] and not channel.startswith("D"):
            kinds.append("app_mention")
        for kind in kinds:
            event = {**message, "type": kind, "event_ts": message["ts"], "channel_type": self.kind(channel), **more}
            self.event(event)

    def edit(self, message: Message, text: str) -> None:
        before = deepcopy(message)
        message |= {"text": text, "edited": {"user": message["user"], "ts": self.stamp()}}
        self.change(message, before)
        if f"<@{BOT}" in text and message["user"] != BOT:
            # A mention is told of once more, as itself.
            self.event({**message, "type": "app_mention", "event_ts": message["ts"]})

    def change(self, message: Message, before: Message) -> None:
        """Tell the app that a message is another than it was."""
        told = {
            "type": "message",
            "subtype": "message_changed",
            "hidden": True,
            "channel": message["channel"],
            "message": deepcopy(message),
            "previous_message": before,
            "ts": self.stamp(),
            "event_ts": self.stamp(),
            "channel_type": self.kind(message["channel"]),
        }
        self.event(told)

    def event(self, event: dict[str, Any], **more: Any) -> None:
        number = next(self._numbers)
        self.last = {
            "token": "verification",
            "team_id": TEAM,
            "api_app_id": "A0APP",
            "event": deepcopy(event),
            "type": "event_callback",
            "event_id": f"Ev{number:08}",
            "event_time": 1774000000,
            "is_ext_shared_channel": False,
            "authorizations": [{"team_id": TEAM, "user_id": BOT, "is_bot": True}],
            **more,
        }
        self.happen("events_api", self.last)

    def command(self, person: str, command: str, text: str = "", *, channel: str | None = None) -> dict[str, Any]:
        """Let a person give a slash command."""
        where = channel or self.dm(person)
        given = {
            "token": "verification",
            "team_id": TEAM,
            "team_domain": "team",
            "channel_id": where,
            "channel_name": "a-channel",
            "user_id": person,
            "user_name": person.lower(),
            "command": command,
            "text": text,
            "api_app_id": "A0APP",
            "is_enterprise_install": "false",
            "response_url": self.answer_url(where, person),
            "trigger_id": f"{next(self._numbers)}.{next(self._numbers)}.abc",
        }
        self.happen("slash_commands", given)
        return given

    def press(self, person: str, label: str, message: Message | None = None) -> dict[str, Any]:
        """Let a person press a button, of the newest message that has one so called."""
        messages = [message] if message is not None else reversed(self.messages.values())
        found, button = next(
            (message, button)
            for message in messages
            for button in buttons_of(message)
            if button["text"]["text"] == label
        )
        action = {key: button[key] for key in ("action_id", "value", "text", "type")}
        place = {"message_ts": found["ts"], "channel_id": found["channel"], "is_ephemeral": "only_for" in found}
        place |= {"thread_ts": found["thread_ts"]} if "thread_ts" in found else {}
        # Of one for a person alone the place is told, and not what it says.
        told = {} if "only_for" in found else {"message": deepcopy(found)}
        pressed = {
            "type": "block_actions",
            "user": {"id": person, "username": person.lower(), "team_id": TEAM},
            "api_app_id": "A0APP",
            "token": "verification",
            "container": {"type": "message", **place},
            "trigger_id": f"{next(self._numbers)}.{next(self._numbers)}.abc",
            "team": {"id": TEAM, "domain": "team"},
            "channel": {"id": found["channel"], "name": "a-channel"},
            **told,
            "response_url": self.answer_url(found["channel"], person, found),
            "actions": [{**action, "block_id": "b1", "action_ts": self.stamp()}],
        }
        self.happen("interactive", pressed)
        return pressed

    def open_home(self, person: str) -> None:
        self.event({"type": "app_home_opened", "user": person, "channel": self.dm(person), "tab": "home"})

    def answer_url(self, channel: str, person: str, pressed: Message | None = None) -> str:
        name = f"r{next(self._numbers)}"
        self.answers[name] = (channel, person, pressed)
        return f"{self.base}/response/{name}"

    def keep(self, name: str, content: bytes, **more: Any) -> dict[str, Any]:
        """Store a file; what Slack says of it."""
        number = f"F{next(self._numbers):06}"
        url = f"{self.base}/files-pri/{number}/{name}"
        file = {
            "id": number, "name": name, "title": name, "size": len(content), "mimetype": "text/plain",
            "url_private": url, "url_private_download": url, **more,
        }  # fmt: skip
        self.files[number], self.content[number] = file, content
        return file

    def write(self, channel: str, thread: str | None, content: dict[str, Any]) -> Message:
        """Put a message where it belongs."""
        message = {"type": "message", "ts": self.stamp(), "channel": channel, **content}
        if thread is not None:
            message["thread_ts"] = thread
        self.messages[channel, message["ts"]] = message
        return message

    def kind(self, channel: str) -> str:
        return {"D": "im", "C": "channel", "G": "mpim"}[channel[0]]

    def shown(self, channel: str, thread: str | None = None) -> list[Message]:
        """What the app wrote in a channel, or in a thread of it, and has not deleted."""
        return [
            message
            for (where, _), message in self.messages.items()
            if where == channel and message["user"] == BOT and message.get("thread_ts") == thread
        ]


def buttons_of(message: Message) -> list[dict[str, Any]]:
    return [
        element for block in message.get("blocks", ()) if block["type"] == "actions" for element in block["elements"]
    ]


def names_of(text: str) -> list[str]:
    return re.findall(r"<@(U\w+)>", text)
