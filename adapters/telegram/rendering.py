"""Turns a reply into the messages that Telegram takes: marked up by entities, within its limits, nothing left out.

Text is never escaped by hand. Lengths are those of the platform: UTF-16 units, after entities.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

from aiogram.types import InlineKeyboardButton, InlineKeyboardMarkup, MessageEntity
from aiogram.utils.formatting import Bold, Code, ExpandableBlockQuote, Pre, Text

from adapters.contract import Attachment, Button, Outbound, Part, Style

LONGEST_TEXT = 4096
LONGEST_CAPTION = 1024
MOST_ENTITIES = 100
MOST_BUTTONS = 100
LARGEST_UPLOAD_BYTES = 50 * 1024 * 1024
"""Telegram's limits: core.telegram.org/bots/api and limits.tginfo.me."""

MOST_PAGES = 4
"""A reply of more messages than this goes along as a file, with its beginning as a message."""

FOLDED_LINES = 20
"""A block of more lines than this is shown folded."""

ROW_CHARACTERS = 20
"""What the labels of one row of buttons may come to, so that a phone shows them whole."""

_BLOCKS = frozenset({Style.BLOCK, Style.DIFF})
_ELEMENTS: dict[Style, Callable[[str], Text]] = {
    Style.BOLD: Bold,
    Style.CODE: Code,
    Style.BLOCK: Pre,
    Style.DIFF: partial(Pre, language="diff"),
}


@dataclass(frozen=True, slots=True)
class Piece:
    """One message to send: a text, or a file with its caption."""

    parts: tuple[Part, ...] = ()
    file: Attachment | None = None
    buttons: tuple[Button, ...] = ()

    def rendered(self) -> tuple[str, list[MessageEntity]]:
        """The text and what is marked up in it."""
        return Text(*map(_marked, self.parts)).render()

    def keyboard(self) -> InlineKeyboardMarkup | None:
        """The buttons in rows."""
        if not self.buttons:
            return None
        rows: list[list[InlineKeyboardButton]] = []
        for button in self.buttons:
            key = InlineKeyboardButton(text=button.label, callback_data=button.token)
            taken = sum(len(other.text) for other in rows[-1]) if rows else ROW_CHARACTERS
            if taken + len(button.label) > ROW_CHARACTERS:
                rows.append([])
            rows[-1].append(key)
        return InlineKeyboardMarkup(inline_keyboard=rows)


def compose(message: Outbound) -> list[Piece]:
    """Say which messages a reply becomes, in the order in which they are sent."""
    buttons = tuple(button for button in message.buttons if button.token)
    parts = [*message.parts, *_typed(button for button in message.buttons if not button.token)]
    parts += [Part(f"\n{_unsendable(file)}") for file in message.files if _unsendable(file)]
    files = [file for file in message.files if not _unsendable(file)]
    texts = pages(apart(parts))
    if len(texts) > MOST_PAGES:
        files.insert(0, _as_file(parts))
        texts = [(*_beginning(texts[0]), Part(f"\n… whole in {files[0].name}"))]
    if len(texts) == len(files) == 1 and units(_plain(texts[0])) <= LONGEST_CAPTION:
        pieces = [Piece(texts[0], files[0])]
    else:
        pieces = [*map(Piece, texts), *(Piece(file=file) for file in files)]
    return _with_buttons(pieces, buttons, max(len(texts) - 1, 0))


def apart(parts: list[Part]) -> list[Part]:
    """Set blocks on lines of their own, with the newlines outside of them, and leave out what is empty."""
    kept: list[Part] = []
    for part in parts:
        text = _valid(part.text)
        if part.style not in _BLOCKS:
            if text:
                kept.append(Part(text, part.style))
            continue
        if not text.strip():
            continue
        if kept and not kept[-1].text.endswith("\n"):
            kept.append(Part("\n"))
        kept += [Part(text.strip("\n"), part.style), Part("\n")]
    return kept


def pages(parts: list[Part]) -> list[tuple[Part, ...]]:
    """Share parts out over messages; cut at an empty line, else a line's end, else a space, else where it must be."""
    done: list[tuple[Part, ...]] = []
    page: list[Part] = []
    for part in parts:
        rest = part.text
        while rest:
            room = LONGEST_TEXT - units(_plain(page))
            if sum(piece.style is not Style.PLAIN for piece in page) >= MOST_ENTITIES:
                room = 0
            head = rest if units(rest) <= room else _head(rest, room, first=not page)
            if head:
                page.append(Part(head, part.style))
                rest = rest[len(head) :]
                # A newline at the border is the border.
                rest = rest.removeprefix("\n") if part.style in _BLOCKS else rest
            if rest:
                done.append(tuple(page))
                page = []
    done.append(tuple(page))
    return [_trimmed(kept) for kept in done if _plain(kept).strip()]


def _trimmed(page: tuple[Part, ...]) -> tuple[Part, ...]:
    """A page without the newlines at its end."""
    while not page[-1].text.rstrip("\n"):
        page = page[:-1]
    return (*page[:-1], replace(page[-1], text=page[-1].text.rstrip("\n")))


def units(text: str) -> int:
    """The length of a text as Telegram counts it."""
    return len(text.encode("utf-16-le")) // 2


def file_name(name: str) -> str:
    """A file's name that neither breaks the request nor means another directory."""
    return re.sub(r'[\x00-\x1f\x7f"\\/]', "_", _valid(name))[-120:] or "file"


def _head(text: str, room: int, *, first: bool) -> str:
    """The longest beginning within so many units that ends well; empty where a new message does better."""
    data = text.encode("utf-16-le")[: 2 * room]
    # Half of a surrogate pair at the end falls away.
    fitting = data.decode("utf-16-le", "ignore")
    for border in ("\n\n", "\n", " "):
        end = fitting.rfind(border)
        if end > len(fitting) // 2:
            return fitting[: end + len(border)]
    return fitting if first else ""


def _marked(part: Part) -> Text | str:
    folded = part.style is Style.BLOCK and part.text.count("\n") >= FOLDED_LINES
    if part.style is Style.PLAIN or not part.text.strip():
        return part.text
    return ExpandableBlockQuote(part.text) if folded else _ELEMENTS[part.style](part.text)


def _with_buttons(pieces: list[Piece], buttons: tuple[Button, ...], at: int) -> list[Piece]:
    """Put the buttons below the last text, and more than fit there below messages of their own."""
    if buttons and not pieces:
        pieces = [Piece((Part("⋯"),))]
    shares = [buttons[start : start + MOST_BUTTONS] for start in range(0, len(buttons), MOST_BUTTONS)]
    if shares:
        pieces[at] = replace(pieces[at], buttons=shares[0])
    more = [Piece((Part("⋯"),), buttons=share) for share in shares[1:]]
    return [*pieces[: at + 1], *more, *pieces[at + 1 :]]


def _typed(buttons: Iterable[Button]) -> list[Part]:
    """What is offered without a button, as commands to type."""
    return [part for button in buttons for part in (Part(f"\n{button.label}: "), Part(button.command, Style.CODE))]


def _unsendable(file: Attachment) -> str:
    if not file.content:
        return f"{_valid(file.name)} is empty."
    if len(file.content) > LARGEST_UPLOAD_BYTES:
        return f"{_valid(file.name)} is too large for Telegram ({len(file.content) // 1024 // 1024} MB)."
    return ""


def _as_file(parts: list[Part]) -> Attachment:
    text = _plain(apart(parts))
    in_diffs = sum(len(part.text) for part in parts if part.style is Style.DIFF)
    ending = "diff" if 2 * in_diffs > len(text) else "txt"
    return Attachment(f"reply.{ending}", text.encode())


def _beginning(page: tuple[Part, ...]) -> tuple[Part, ...]:
    """A page, shortened so that a sentence fits below it."""
    last = page[-1]
    room = LONGEST_TEXT - 100 - units(_plain(page[:-1]))
    return (*page[:-1], replace(last, text=_head(last.text, room, first=True))) if room > 0 else page[:-1]


def _plain(parts: tuple[Part, ...] | list[Part]) -> str:
    return "".join(part.text for part in parts)


def _valid(text: str) -> str:
    """Text that can be encoded; what is half of a character, or none at all, becomes a sign that something is there."""
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return joined.replace("\0", "\ufffd").replace("\r\n", "\n")
