"""Turns what Slack delivers into messages of the contract, and leaves out what is none.

Left out are messages of other apps, messages without text or file, and everything that Slack says about a channel: who
comes and goes, what was pinned. The app's own messages do not come here: slack-bolt leaves them out.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from adapters.contract import Inbound, Offered
from adapters.slack.client import Me
from adapters.slack.downloads import Downloads
from adapters.slack.markup import read, without_names
from adapters.slack.places import HOME, Address

UMBRELLA = "/takeback"
"""A command that holds the others, for the names that Slack keeps to itself."""

LOOKED = "/status all"
"""What it means that somebody opens the app's page."""

_SAID = frozenset({"", "file_share", "thread_broadcast", "me_message"})
"""The kinds of messages that are something a person says."""

Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Event:
    """A message, a command or a press, and what is needed to show what became of it.

    ``pressed`` is the message that has the button; ``answer_url`` is where an answer to this person alone is taken.
    """

    inbound: Inbound
    address: Address
    pressed: Body | None = None
    answer_url: str | None = None


class Reader:
    """Reads what is delivered to the app that it is. ``is_command`` knows a command with its arguments, as ``/…``."""

    def __init__(self, me: Me, downloads: Downloads, is_command: Callable[[str], bool]) -> None:
        self._me = me
        self._downloads = downloads
        self._is_command = is_command

    def read(self, body: Body) -> Event | None:
        """Understand what was delivered; ``None`` for what is nothing to hand on."""
        if body.get("type") == "block_actions":
            return self._pressed(body)
        if "command" in body:
            return self._commanded(body)
        event = body.get("event") or {}
        if event.get("type") == "app_home_opened" and event.get("tab") == "home":
            return self._looked(body, event)
        if event.get("type") not in {"message", "app_mention"}:
            return None
        if event.get("edited"):
            # A mention is told once more, as a mention, when it is edited.
            return self._edited(body, {"channel": event.get("channel"), "message": event})
        changed = event.get("subtype") == "message_changed"
        return self._edited(body, event) if changed else self._said(body, event, event)

    def _pressed(self, body: Body) -> Event | None:
        # Of a message for one person alone only the place is told.
        message, action = body.get("message") or {}, body["actions"][0]
        if not action.get("value"):
            return None
        channel = str(body["channel"]["id"])
        thread = _thread(message or body.get("container") or {})
        address = Address(self._me.team, channel, None if thread == message.get("ts") else thread)
        inbound = self._inbound(address, body["user"], str(body["trigger_id"]), text="", pressed=str(action["value"]))
        return Event(inbound, address, pressed=message, answer_url=body.get("response_url"))

    def _commanded(self, body: Body) -> Event:
        command, text = str(body["command"]), str(body.get("text") or "").strip()
        if command == UMBRELLA:
            command, text = f"/{text.removeprefix('/') or 'help'}", ""
        address = Address(self._me.team, str(body["channel_id"]))
        person = {"id": body["user_id"], "team_id": body.get("team_id")}
        inbound = self._inbound(address, person, str(body["trigger_id"]), text=read(f"{command} {text}".strip()))
        return Event(inbound, address, answer_url=body.get("response_url"))

    def _looked(self, body: Body, event: Body) -> Event:
        address = Address(self._me.team, HOME, str(event["user"]))
        person = {"id": event["user"], "team_id": body.get("team_id")}
        return Event(self._inbound(address, person, str(body["event_id"]), LOOKED), address)

    def _edited(self, body: Body, event: Body) -> Event | None:
        message, before = event.get("message") or {}, event.get("previous_message") or {}
        if not message.get("edited") or message.get("text") == before.get("text"):
            return None  # Slack itself adds to a message, for example what a link leads to
        said = self._said(body, {"channel": event.get("channel")}, message)
        if said is None:
            return None
        key = f"{message['ts']}/{message['edited']['ts']}"
        return replace(said, inbound=replace(said.inbound, edited=True, event_id=said.address.event(key)))

    def _said(self, body: Body, event: Body, message: Body) -> Event | None:
        if message.get("bot_id") or message.get("subtype", "") not in _SAID or not message.get("user"):
            return None
        files = tuple(self._files(message))
        bare, named, leads = without_names(str(message.get("text") or ""), self._me.user)
        text = read(bare)
        if not (text or files):
            return None
        ts, thread = str(message["ts"]), _thread(message)
        address = Address(self._me.team, str(event["channel"]), thread)
        if not address.is_private:
            # A message that stands in the channel itself begins a thread.
            address = replace(address, thread=thread or ts)
        if leads and self._is_command(f"/{text}"):
            text = f"/{text}"
        commands = thread is not None and text.startswith("!") and self._is_command(f"/{text[1:]}")
        person = {"id": message["user"], "team_id": _team(body, message)}
        inbound = self._inbound(address, person, ts, text, addressed=address.is_private or named or commands)
        return Event(replace(inbound, offered=files), address)

    def _inbound(
        self,
        address: Address,
        person: Body,
        key: str,
        text: str,
        *,
        addressed: bool = True,
        pressed: str | None = None,
    ) -> Inbound:
        team = (str(person["team_id"]),) if person.get("team_id") else ()
        return Inbound(
            place=address.place,
            user=str(person["id"]),
            event_id=address.event(key),
            text=text,
            circles=team if address.is_home else (*team, address.channel),
            addressed=addressed,
            pressed=pressed,
            private=address.is_private,
        )

    def _files(self, message: Body) -> Iterator[Offered]:
        for file in message.get("files") or ():
            name = str(file.get("name") or file.get("title") or file.get("id") or "file")
            size = file.get("size")
            yield Offered(name, size if isinstance(size, int) else None, self._downloads.of(file, name))


def _thread(message: Body) -> str | None:
    thread = message.get("thread_ts")
    return str(thread) if thread else None


def _team(body: Body, message: Body) -> str | None:
    """The team that a person belongs to; in a channel shared with others it need not be the app's."""
    own = message.get("user_team") or message.get("team")
    shared = bool(body.get("is_ext_shared_channel"))
    return own or (None if shared else body.get("team_id"))
