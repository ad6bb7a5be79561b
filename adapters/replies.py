"""Turns a reply into the messages that a platform takes, in the order in which they are sent, nothing left out.

What goes with a reply and cannot be sent is said in it: a file that is too large or is refused, a button that stands
for nothing yet.
A reply that becomes several messages may fail at one of them; the next attempt goes on there.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from adapters.contract import Attachment, Button, Outbound, Part, Place, SendFailed, Style
from adapters.pages import Page, Room, apart, divide, plain, shorten, valid

MOST_PAGES = 4
"""A reply of more messages than this goes along as a file, with its beginning as a message."""

REMARK = 100
"""What the words take up that lead from the beginning of a reply to its file."""

LONGEST_REASON = 300
"""Characters of a platform's word on why it refuses a file."""

FILLER = (Part("⋯"),)
"""What a message says that is there for its buttons."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a platform takes: ``caption`` is what fits in the message of a file, ``buttons`` how many go below one.

    Where nothing fits in the message of a file, no button goes below it.
    """

    platform: str
    text: Room
    buttons: int
    file_bytes: int
    caption: int = 0


@dataclass(frozen=True, slots=True)
class Piece:
    """One message to send: a text, or a file with its caption."""

    parts: Page = ()
    file: Attachment | None = None
    buttons: tuple[Button, ...] = ()


def compose(message: Outbound, limits: Limits) -> list[Piece]:
    """Say which messages a reply becomes. Each has some text or a file; buttons stand below the last text."""
    buttons = tuple(button for button in message.buttons if button.token)
    faults = [(file, _fault(file, limits)) for file in message.files]
    files = [file for file, fault in faults if not fault]
    parts = [*message.parts, *_typed(button for button in message.buttons if not button.token)]
    parts = apart([*parts, *(Part(f"\n{fault}") for _, fault in faults if fault)])
    texts = divide(parts, limits.text)
    if len(texts) > MOST_PAGES:
        files.insert(0, _as_file(parts))
        beginning = shorten(texts[0], replace(limits.text, longest=limits.text.longest - REMARK))
        texts = [(*beginning, Part(f"\n… whole in {files[0].name}"))]
    if len(texts) == len(files) == 1 and limits.text.taken(texts[0]) <= limits.caption:
        pieces = [Piece(texts[0], files[0])]
    else:
        pieces = [*map(Piece, texts), *(Piece(file=file) for file in files)]
    if buttons and not (texts or (files and limits.caption)):
        # Nothing is there to stand below: what has no room for words beside a file has none for buttons.
        texts, pieces = [FILLER], [Piece(FILLER), *pieces]
    return _with_buttons(pieces, buttons, max(len(texts) - 1, 0), limits.buttons)


class Deliveries:
    """How far replies got, as long as this process lives."""

    def __init__(self) -> None:
        self._begun: dict[Place, tuple[Outbound, int]] = {}

    async def deliver(
        self, message: Outbound, pieces: Sequence[Piece], send: Callable[[int, Piece], Awaitable[None]]
    ) -> None:
        """Send each piece, with its number, after the one before has arrived; not those that the last attempt sent.

        ``send`` raises `SendFailed`. A file that is refused for good does not take along what is said with it.

        Raises:
            SendFailed: a piece has not arrived.
        """
        begun, sent = self._begun.get(message.place, (None, 0))
        for number in range(sent if begun == message else 0, len(pieces)):
            self._begun[message.place] = (message, number)
            await self._send(number, pieces[number], send)
        self._begun.pop(message.place, None)

    async def _send(self, number: int, piece: Piece, send: Callable[[int, Piece], Awaitable[None]]) -> None:
        try:
            await send(number, piece)
        except SendFailed as error:
            if piece.file is None or error.retry_after_s is not None:
                raise
            await send(number, _without_file(piece, piece.file, error.reason))


def file_name(name: str) -> str:
    """A file's name that neither breaks a request nor means another directory."""
    return re.sub(r'[\x00-\x1f\x7f"\\/]', "_", valid(name))[-120:] or "file"


def _typed(buttons: Iterable[Button]) -> list[Part]:
    """What is offered without a button, as commands to type."""
    return [part for button in buttons for part in (Part(f"\n{button.label}: "), Part(button.command, Style.CODE))]


def _fault(file: Attachment, limits: Limits) -> str:
    """Why a file cannot be sent; empty where it can."""
    if not file.content:
        return f"{file.name} is empty."
    if len(file.content) > limits.file_bytes:
        return f"{file.name} is too large for {limits.platform} ({len(file.content) // 1024 // 1024} MB)."
    return ""


def _without_file(piece: Piece, file: Attachment, reason: str) -> Piece:
    """What is sent instead of a file that was refused."""
    border = (Part("\n"),) if piece.parts else ()
    remark = Part(f"⚠ {file_name(file.name)} could not be sent: {reason[:LONGEST_REASON]}")
    return replace(piece, parts=(*piece.parts, *border, remark), file=None)


def _as_file(parts: Sequence[Part]) -> Attachment:
    text = plain(parts)
    in_diffs = sum(len(part.text) for part in parts if part.style is Style.DIFF)
    ending = "diff" if 2 * in_diffs > len(text) else "txt"
    return Attachment(f"reply.{ending}", text.encode())


def _with_buttons(pieces: list[Piece], buttons: tuple[Button, ...], at: int, most: int) -> list[Piece]:
    """Put the buttons below the last text, and more than fit there below messages of their own."""
    shares = [buttons[start : start + most] for start in range(0, len(buttons), most)]
    if shares:
        pieces[at] = replace(pieces[at], buttons=shares[0])
    return [*pieces[: at + 1], *(Piece(FILLER, buttons=share) for share in shares[1:]), *pieces[at + 1 :]]
