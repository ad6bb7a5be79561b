"""Marks a message up as Telegram takes it: by entities, never by hand, counted in UTF-16 units after them."""

from collections.abc import Callable
from functools import partial

from aiogram.types import InlineKeyboardButton, InlineKeyboardMarkup, MessageEntity
from aiogram.utils.formatting import Bold, Code, ExpandableBlockQuote, Pre, Text

from adapters.contract import Button, Part, Style
from adapters.pages import Page, Room
from adapters.replies import Limits
from adapters.telegram.places import button_data


def units(part: Part) -> int:
    """The length of a text as Telegram counts it."""
    return len(part.text.encode("utf-16-le")) // 2


LIMITS = Limits("Telegram", Room(4096, units, most_marked=100), buttons=100, file_bytes=50 * 1024 * 1024, caption=1024)
"""core.telegram.org/bots/api and limits.tginfo.me."""

FOLDED_LINES = 20
"""A block of more lines than this is shown folded, in a quote. It has its letters' widths then: a quote holds no code
(core.telegram.org/bots/api#formatting-options), and on a phone long lines in even width are broken all the same."""

ROW_CHARACTERS = 20
"""What the labels of one row of buttons may come to, so that a phone shows them whole."""

_ELEMENTS: dict[Style, Callable[[str], Text]] = {
    Style.BOLD: Bold,
    Style.CODE: Code,
    Style.BLOCK: Pre,
    Style.DIFF: partial(Pre, language="diff"),
}


def rendered(page: Page) -> tuple[str, list[MessageEntity]]:
    """The text of a message and what is marked up in it."""
    return Text(*map(_marked, page)).render()


def keyboard(buttons: tuple[Button, ...], topic: int | None = None) -> InlineKeyboardMarkup | None:
    """The buttons in rows."""
    if not buttons:
        return None
    rows: list[list[InlineKeyboardButton]] = []
    for button in buttons:
        key = InlineKeyboardButton(text=button.label, callback_data=button_data(button.token, topic))
        taken = sum(len(other.text) for other in rows[-1]) if rows else ROW_CHARACTERS
        if taken + len(button.label) > ROW_CHARACTERS:
            rows.append([])
        rows[-1].append(key)
    return InlineKeyboardMarkup(inline_keyboard=rows)


def _marked(part: Part) -> Text | str:
    folded = part.style is Style.BLOCK and part.text.count("\n") >= FOLDED_LINES
    if part.style is Style.PLAIN or not part.text.strip():
        return part.text
    return ExpandableBlockQuote(part.text) if folded else _ELEMENTS[part.style](part.text)
