"""Turns the pages of a reply into blocks that Slack takes.

They are rich text: what stands in it means nothing but itself, so that no file's name becomes bold. The plain text
that goes along, for notifications and for readers without blocks, is escaped.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from adapters.contract import Button, Part, Style
from adapters.pages import BLOCKS, Page, Room, plain
from adapters.replies import Limits
from adapters.slack.markup import escape

ROW = 5
MOST_BUTTONS = 25
MOST_BLOCKS = 100
LONGEST_LABEL = 75
LONGEST_TITLE = 100
LONGEST_QUESTION = 300
LONGEST_CHOICE = 30
"""Slack's limits: docs.slack.dev/reference/block-kit."""

ROOM = Room(3000, lambda part: len(escape(part.text).encode()), most_marked=100)
"""Slack shows about 13,000 characters of blocks, but changes only messages of less than 4,000 bytes."""

LIMITS = Limits("Slack", ROOM, MOST_BUTTONS, 1024**3)

Block = dict[str, Any]
_MARKS = {Style.BOLD: {"bold": True}, Style.CODE: {"code": True}}


def said(page: Page, buttons: Sequence[Button] = ()) -> dict[str, Any]:
    """A message's arguments: its blocks, and its plain text."""
    return {
        "text": escape(plain(page)),
        "blocks": [{"type": "rich_text", "elements": [*_elements(page)]}, *_rows(buttons)],
    }


def without_buttons(blocks: Iterable[Block]) -> list[Block]:
    """The blocks of a message whose buttons have had their use."""
    return [block for block in blocks if block.get("type") != "actions"]


def _elements(page: Page) -> Iterator[Block]:
    after_block = False
    for is_block, run in groupby(page, key=lambda part: part.style in BLOCKS):
        parts = [*run]
        if is_block:
            yield from ({"type": "rich_text_preformatted", "elements": [_text(part)]} for part in parts)
        else:
            yield from _section(parts, after_block=after_block)
        after_block = is_block


def _section(parts: Sequence[Part], *, after_block: bool) -> Iterator[Block]:
    """A run of text; the newline that sets it apart from a block above is the border itself."""
    first = parts[0].text.removeprefix("\n") if after_block else parts[0].text
    texts = [Part(first, parts[0].style), *parts[1:]]
    if elements := [_text(part) for part in texts if part.text]:
        yield {"type": "rich_text_section", "elements": elements}


def _text(part: Part) -> Block:
    marks = _MARKS.get(part.style)
    return {"type": "text", "text": part.text, **({"style": marks} if marks and part.text.strip() else {})}


def _rows(buttons: Sequence[Button]) -> Iterator[Block]:
    for start in range(0, len(buttons), ROW):
        yield {"type": "actions", "elements": [_button(button) for button in buttons[start : start + ROW]]}


def _button(button: Button) -> Block:
    shown = {"text": _plain(button.label, LONGEST_LABEL), "action_id": button.token, "value": button.token}
    if button.confirm is None:
        return {"type": "button", **shown}
    question = {
        "title": _plain(button.label, LONGEST_TITLE),
        "text": _plain(button.confirm, LONGEST_QUESTION),
        "confirm": _plain(button.label, LONGEST_CHOICE),
        "deny": _plain("Cancel", LONGEST_CHOICE),
    }
    return {"type": "button", **shown, "confirm": question}


def _plain(text: str, longest: int) -> Block:
    return {"type": "plain_text", "text": text if len(text) <= longest else text[: longest - 1] + "…", "emoji": False}
