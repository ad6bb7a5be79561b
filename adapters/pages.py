"""Divides what a reply says into messages that a platform takes: nothing lost, cut where it reads well.

A page is what one message holds. Lengths are the platform's own: UTF-16 units, bytes, or characters after escaping.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from adapters.contract import Part, Style

BLOCKS = frozenset({Style.BLOCK, Style.DIFF})
"""The styles that stand on lines of their own."""

Page = tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Room:
    """How much one message holds.

    ``measure`` says what a part takes up of ``longest``: one or more for each of its characters, never less for a
    longer text. ``most_marked`` is how many parts may be marked up.
    """

    longest: int
    measure: Callable[[Part], int] = lambda part: len(part.text)
    most_marked: int | None = None

    def taken(self, page: Iterable[Part]) -> int:
        """What parts take up."""
        return sum(map(self.measure, page))

    def left(self, page: Sequence[Part]) -> int:
        """What a page has left for another part."""
        marked = sum(part.style is not Style.PLAIN for part in page)
        if self.most_marked is not None and marked >= self.most_marked:
            return 0
        return self.longest - self.taken(page)


def plain(parts: Iterable[Part]) -> str:
    """The words without markup."""
    return "".join(part.text for part in parts)


def valid(text: str) -> str:
    """Text that can be encoded; what is half of a character, or none at all, becomes a sign that something is there."""
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return joined.replace("\0", "\ufffd").replace("\r\n", "\n")


def apart(parts: Iterable[Part]) -> list[Part]:
    """Set blocks on lines of their own, with the newlines outside of them, and leave out what is empty."""
    kept: list[Part] = []
    for part in parts:
        text = valid(part.text)
        if part.style not in BLOCKS:
            if text:
                kept.append(Part(text, part.style))
            continue
        if not text.strip():
            continue
        if kept and not kept[-1].text.endswith("\n"):
            kept.append(Part("\n"))
        kept += [Part(text.strip("\n"), part.style), Part("\n")]
    return kept


def divide(parts: Iterable[Part], room: Room) -> list[Page]:
    """Share parts out over pages; cut at an empty line, else a line's end, else a space, else where it must be.

    Whatever has no character but white space becomes no page.
    """
    done: list[list[Part]] = []
    page: list[Part] = []
    for part in parts:
        rest = part.text
        while rest:
            head = _head(replace(part, text=rest), room, page)
            if head:
                page.append(replace(part, text=head))
                rest = rest[len(head) :]
                # A newline at the border is the border.
                rest = rest.removeprefix("\n") if part.style in BLOCKS else rest
            if rest:
                done.append(page)
                page = []
    done.append(page)
    return [_trimmed(kept) for kept in done if plain(kept).strip()]


def shorten(page: Page, room: Room) -> Page:
    """The beginning of a page that fits a smaller room."""
    short: list[Part] = []
    for part in page:
        left = room.left(short)
        if left <= 0:
            break
        short.append(replace(part, text=_head(part, replace(room, longest=left), ())))
        if short[-1].text != part.text:
            break
    return _trimmed(short)


def _head(part: Part, room: Room, page: Sequence[Part]) -> str:
    """The longest beginning of a part that a page still holds and that ends well; empty where the next does better."""
    text, left = part.text, room.left(page)
    # No character takes up less than one, so no more of them has to be measured.
    ends = range(1, min(len(text), max(left, 0)) + 1)
    end = bisect_right(ends, left, key=lambda end: room.measure(replace(part, text=text[:end])))
    if end == len(text):
        return text
    fitting = text[:end]
    for border in ("\n\n", "\n", " "):
        at = fitting.rfind(border)
        if at > end // 2:
            return fitting[: at + len(border)]
    # A page that would stay empty takes a character at least.
    return "" if page else text[: max(end, 1)]


def _trimmed(page: Sequence[Part]) -> Page:
    """A page without the newlines at its end."""
    while not page[-1].text.rstrip("\n"):
        page = page[:-1]
    return (*page[:-1], replace(page[-1], text=page[-1].text.rstrip("\n")))
