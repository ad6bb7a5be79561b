"""Turns a reply into text for a terminal or a pipe.

Names of files and outputs of commands may hold anything. Nothing here lets a control sequence reach a terminal,
or an unpaired surrogate reach an encoder.
"""

import re

from adapters.contract import Button, Outbound, Part, Style

CHOICES_SHOWN = 6
"""Buttons of one message that are written out."""

_BLOCKS = frozenset({Style.BLOCK, Style.DIFF})
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Controls but for tab and newline, and the characters that turn the direction of writing."""
_SURROGATE = re.compile("[\ud800-\udfff]")


def encodable(text: str) -> str:
    """Show bytes that are no UTF-8, which arrive as surrogates, as hexadecimal escapes."""
    return _SURROGATE.sub(lambda found: _escape(found.group()), text)


def printable(text: str) -> str:
    """Show whatever would steer a terminal as an escape; keeps tabs and newlines."""
    return _CONTROL.sub(lambda found: _escape(found.group()), encodable(text.replace("\r\n", "\n")))


def _escape(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # noqa: PLR2004 - where surrogateescape puts the bytes 0x80 to 0xFF
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}"  # noqa: PLR2004 - one byte


def separated(parts: tuple[Part, ...]) -> list[Part]:
    """Add the newlines that set blocks on lines of their own, and leave out empty parts."""
    kept: list[Part] = []
    for part in parts:
        if not part.text:
            continue
        is_edge = bool(kept) and (part.style in _BLOCKS or kept[-1].style in _BLOCKS)
        if is_edge and not kept[-1].text.endswith("\n") and not part.text.startswith("\n"):
            kept.append(Part("\n"))
        kept.append(part)
    return kept


def plain(message: Outbound) -> str:
    """The words of a reply without markup, without a newline at the end."""
    return "".join(part.text for part in separated(message.parts)).rstrip("\n")


def choices(buttons: tuple[Button, ...]) -> str:
    """What buttons offer, as commands to type; empty without buttons. Of many only the first: they show the form."""
    if not buttons:
        return ""
    more = "   …" if len(buttons) > CHOICES_SHOWN else ""
    return "  " + "   ".join(f"{button.label}: {button.command}" for button in buttons[:CHOICES_SHOWN]) + more


def shortened(text: str, limit: int) -> str:
    """The first ``limit`` lines of a text, with a word on how many were left out."""
    lines = text.rstrip("\n").split("\n")
    if len(lines) <= limit:
        return text
    return "\n".join([*lines[:limit], f"… {len(lines) - limit:,} more lines"])
