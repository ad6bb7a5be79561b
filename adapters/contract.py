"""What every chat platform's adapter takes, gives and promises; knows nothing of gateway or engine.

An adapter turns platform events into `Inbound` values, hands each to ``receive`` and acknowledges it to the platform
only after ``receive`` has returned, renders `Outbound` values within its platform's limits, and never keeps state that
a restart would lose.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Style(StrEnum):
    """How a part of a text is marked up; an adapter without the means shows it plain."""

    PLAIN = "plain"
    BOLD = "bold"
    CODE = "code"
    BLOCK = "block"
    DIFF = "diff"


@dataclass(frozen=True, slots=True)
class Part:
    """A run of text in one style. ``BLOCK`` and ``DIFF`` stand on lines of their own."""

    text: str
    style: Style = Style.PLAIN


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that goes with a message."""

    name: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Button:
    """A choice below a message; pressing it has the meaning of sending ``command``."""

    label: str
    command: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where a message belongs: an adapter's name and the chat on its platform (channel and thread in one string)."""

    adapter: str
    chat: str


@dataclass(frozen=True, slots=True)
class Inbound:
    """One message from a person.

    ``event_id`` is the platform's own and is the same when the platform delivers it again. ``user`` is the platform's
    stable id.
    """

    place: Place
    user: str
    event_id: str
    text: str
    edited: bool = False
    files: tuple[Attachment, ...] = ()


@dataclass(frozen=True, slots=True)
class Outbound:
    """One reply, platform-neutral. ``reply_to`` is the ``event_id`` it answers."""

    place: Place
    parts: tuple[Part, ...]
    files: tuple[Attachment, ...] = ()
    buttons: tuple[Button, ...] = ()
    reply_to: str | None = None

    @property
    def plain_text(self) -> str:
        """The words without markup."""
        return "".join(part.text for part in self.parts)


class SendFailed(Exception):
    """A message did not reach the platform; ``retry_after_s`` is the platform's own word, ``None`` means never."""

    def __init__(self, reason: str, *, retry_after_s: float | None) -> None:
        self.reason = reason
        self.retry_after_s = retry_after_s
        super().__init__(reason)


Receive = Callable[[Inbound], Awaitable[None]]


class Adapter(Protocol):
    """A chat platform."""

    @property
    def name(self) -> str:
        """The key of this adapter in configuration and database."""
        ...

    async def run(self, receive: Receive) -> None:
        """Take in messages until cancelled or until the platform has no more to give.

        ``receive`` returns once the message is stored; only then may it be acknowledged.
        """
        ...

    async def send(self, message: Outbound) -> None:
        """Deliver one reply completely.

        Raises:
            SendFailed: it did not arrive; the caller tries again as told.
        """
        ...

    async def progress(self, place: Place, text: str) -> None:
        """Show what is going on now; best effort, may be dropped or merged. An empty text clears it."""
        ...

    async def finished(self, place: Place, event_id: str) -> None:
        """Take note that the message has been dealt with completely: turn ended, state stored, replies sent."""
        ...
