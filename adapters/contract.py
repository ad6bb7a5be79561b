"""What every chat platform's adapter takes, gives and promises; knows nothing of gateway or engine.

An adapter turns platform events into `Inbound` values, hands each to ``receive`` and acknowledges it to the platform
only after ``receive`` has returned, renders `Outbound` values within its platform's limits, and never keeps state that
a restart would lose. Who may do what is not its business: it hands on everything, and shows what `Reception` says.
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
class Offered:
    """A file that a person sent and that is not fetched before it is known that they are admitted.

    ``size_bytes`` is what the platform says of it, if it does. ``fetch`` may be called once and raises `SendFailed`.
    """

    name: str
    size_bytes: int | None
    fetch: Callable[[], Awaitable[bytes]]


@dataclass(frozen=True, slots=True)
class Button:
    """A choice below a message; pressing it has the meaning of sending ``command``.

    ``token`` stands for the button on the wire: at most 32 letters and digits, made when the message is stored, and
    comes back in `Inbound.pressed`. An adapter without buttons shows what to type. ``confirm`` is the question that a
    platform with dialogues asks first.
    """

    label: str
    command: str
    token: str = ""
    confirm: str | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a message belongs: an adapter's name and the chat on its platform (channel and thread in one string)."""

    adapter: str
    chat: str


@dataclass(frozen=True, slots=True)
class Inbound:
    """One message from a person, or one press of a button.

    ``event_id`` is the platform's own and is the same when the platform delivers it again. ``user`` is the platform's
    stable id of the person, ``circles`` those of what they speak in and may be admitted by: a group, a team. A message
    in a group that names the bot, answers it or is a command for it is ``addressed``; one to the bot alone always is.
    ``private`` is a chat that nobody but this person and the bot can read. Names of the bot are taken out of ``text``,
    and commands for other bots are not handed on. ``pressed`` is a button's token; ``text`` is empty then.
    ``continues`` is the place that ``place`` was called until now, because the platform has given a chat another id;
    nobody says anything then, and it may be told more than once, under different event ids.
    """

    place: Place
    user: str
    event_id: str
    text: str
    edited: bool = False
    files: tuple[Attachment, ...] = ()
    offered: tuple[Offered, ...] = ()
    circles: tuple[str, ...] = ()
    addressed: bool = True
    pressed: str | None = None
    private: bool = False
    continues: Place | None = None


@dataclass(frozen=True, slots=True)
class Reception:
    """What became of an `Inbound` at once.

    ``notice`` is for this person alone and is not stored: a refusal, a code to be admitted with, a stale button. Where
    a platform can it is shown to nobody else. With a notice the message was not taken in, and `Adapter.finished` is not
    called for it. ``spent`` says that the buttons of the message pressed have had their use.
    """

    notice: str | None = None
    spent: bool = False


@dataclass(frozen=True, slots=True)
class MenuEntry:
    """A command as a platform's menu shows it."""

    name: str
    summary: str
    admin_only: bool = False


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


class ConnectionFailed(Exception):
    """An adapter cannot reach its platform or is refused by it.

    ``reason`` names what to do where a person has to; ``permanent`` says that trying again is of no use.
    """

    def __init__(self, reason: str, *, permanent: bool) -> None:
        self.reason = reason
        self.permanent = permanent
        super().__init__(reason)


Receive = Callable[[Inbound], Awaitable[Reception]]


class Adapter(Protocol):
    """A chat platform."""

    @property
    def name(self) -> str:
        """The key of this adapter in configuration and database."""
        ...

    @property
    def has_buttons(self) -> bool:
        """Whether people can press `Button`s here; where not, they are told what to type."""
        ...

    @property
    def connected(self) -> bool:
        """Whether messages are being taken in now."""
        ...

    async def run(self, receive: Receive) -> None:
        """Take in messages until cancelled or until the platform has no more to give.

        ``receive`` returns once the message is stored or refused; only then may it be acknowledged. Short troubles of
        the network are the adapter's own to overcome.

        Raises:
            ConnectionFailed: messages cannot be taken in; the caller starts it again later unless it is permanent.
        """
        ...

    async def send(self, message: Outbound) -> None:
        """Deliver one reply completely.

        Raises:
            SendFailed: it did not arrive; the caller tries again as told.
        """
        ...

    async def progress(self, place: Place, text: str) -> None:
        """Show what is going on now; best effort, may be dropped or merged. An empty text clears it.

        The first line says what is done, those below are the newest of what came of it. Below an empty first line
        stands the answer as far as it is written: its newest part is shown, as it is.
        """
        ...

    async def finished(self, place: Place, event_id: str) -> None:
        """Take note that the message has been dealt with completely: turn ended, state stored, replies sent."""
        ...
