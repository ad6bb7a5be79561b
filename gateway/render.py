"""What the gateway says, as platform-neutral parts: no markup by hand, text from outside shown as valid text.

A `Reply` is an `Outbound` that does not know its place yet. The adapters render it. Long text keeps its head
in the message and goes along whole as a file.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from adapters.contract import Attachment, Button, Outbound, Part, Place, Style
from engine.host.paths import display, lowest
from engine.model import ChangeStats, DiffResult, PathNote

LISTED_ID = 7
"""Characters of a checkpoint's id in lists."""

SHORT_ID = 8
"""Characters of a checkpoint's id in sentences and in the commands behind buttons."""

NAMES_SHOWN = 10
"""How many names a sentence lists before it counts the rest."""

HEAD_LINES = 40
"""Lines of a long text that stand in the message."""

HEAD_CHARACTERS = 2_000
"""Characters of a long text that stand in the message; leaves room for what is said around it everywhere."""

TAIL_LINES = 15
"""How many of these lines are the end of a tool's output."""

LINE_CHARACTERS = 200
"""Characters of one line of a long text."""

STAT_LINES = 25
"""Lines of a stat summary that stand in the message."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer: marked-up text, files, and a few buttons."""

    parts: tuple[Part, ...]
    files: tuple[Attachment, ...] = ()
    buttons: tuple[Button, ...] = ()

    @property
    def plain_text(self) -> str:
        """The words without markup."""
        return "".join(part.text for part in self.parts)

    def to(self, place: Place, reply_to: str | None = None) -> Outbound:
        """Address the answer."""
        return Outbound(place, self.parts, self.files, self.buttons, reply_to)


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The head of a text, and how many of its lines were left out or cut short."""

    text: str
    lines_left_out: int
    lines_cut: int

    @property
    def whole(self) -> bool:
        """Whether nothing is missing."""
        return not (self.lines_left_out or self.lines_cut)


def say(text: str, *, buttons: tuple[Button, ...] = ()) -> Reply:
    """Answer with plain words."""
    return Reply((Part(text),), buttons=buttons)


def name(path: str) -> str:
    """Return a file's name as valid text on one line."""
    return display(path)


def readable(text: str) -> str:
    """Return text from outside with its lines, tabs and backslashes, and everything unprintable escaped."""
    return "\n".join("\t".join(_printable(piece) for piece in line.split("\t")) for line in text.split("\n"))


def one_line(text: str, limit: int) -> str:
    """Return text from outside on one line of at most ``limit`` characters."""
    line = readable(" ".join(text.split()))
    return line if len(line) <= limit else line[: limit - 1] + "…"


def counted(count: int, noun: str) -> str:
    """Return ``1 file`` or ``2 files``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def stats(change: ChangeStats) -> str:
    """Return ``1 file, +1/-0``."""
    return f"{counted(change.files, 'file')}, +{change.insertions}/-{change.deletions}"


def names(notes: Sequence[PathNote], limit: int = NAMES_SHOWN) -> str:
    """List paths with what there is to say of each; past ``limit`` the rest is counted as ``(+N)``."""
    listed = ", ".join(f"{name(note.path)} ({note.why})" if note.why else name(note.path) for note in notes[:limit])
    left = len(notes) - limit
    return f"{listed} (+{left})" if left > 0 else listed


def files_first(notes: Iterable[PathNote]) -> tuple[PathNote, ...]:
    """Put paths in order, and leave out directories that others of them lie in."""
    by_path = {note.path: note for note in notes}
    return tuple(by_path[path] for path in sorted(lowest(by_path)))


def excerpt(text: str, *, lines: int = HEAD_LINES, characters: int = HEAD_CHARACTERS) -> Excerpt:
    """Return the head of a text that is fit for a message: few lines, none of them endless."""
    every = text.removesuffix("\n").split("\n")
    head: list[str] = []
    room, cut = characters, 0
    for line in every[:lines]:
        # The slice bounds the work on a line of megabytes; escaping can only make it longer.
        shown = readable(line[: LINE_CHARACTERS + 1])
        if len(shown) > LINE_CHARACTERS:
            shown, cut = shown[:LINE_CHARACTERS] + "…", cut + 1
        if len(shown) > room:
            break
        room -= len(shown) + 1
        head.append(shown)
    return Excerpt("\n".join(head), len(every) - len(head), cut)


def block(text: str, style: Style, file_name: str) -> tuple[tuple[Part, ...], tuple[Attachment, ...]]:
    """Show a text as a block of its own; what is too long for a message goes along whole as ``file_name``."""
    if not text:
        return (), ()
    head = excerpt(text)
    parts = (Part(head.text + "\n", style),)
    if head.whole:
        return parts, ()
    return (*parts, Part(f"… {_missing(head)}, whole in {file_name}\n")), (_whole(file_name, text),)


def output(text: str, file_name: str) -> tuple[tuple[Part, ...], tuple[Attachment, ...]]:
    """Show what a tool wrote: its beginning and, where that is not all of it, its end, which tells how it went."""
    parts, files = block(text, Style.BLOCK, file_name)
    head = excerpt(text, lines=HEAD_LINES - TAIL_LINES, characters=HEAD_CHARACTERS // 2)
    if not files or head.lines_left_out <= TAIL_LINES:
        return parts, files
    every = text.removesuffix("\n").rsplit("\n", TAIL_LINES)
    tail = excerpt("\n".join(every[1:]), characters=HEAD_CHARACTERS // 2)
    left = Excerpt("", head.lines_left_out - TAIL_LINES + tail.lines_left_out, head.lines_cut + tail.lines_cut)
    said = Part(f"… {_missing(left)}, whole in {file_name}\n")
    return (Part(head.text + "\n", Style.BLOCK), said, Part(tail.text + "\n", Style.BLOCK)), files


def diff_parts(diff: DiffResult, file_name: str) -> tuple[tuple[Part, ...], tuple[Attachment, ...]]:
    """Show a comparison: its stat summary, then the diff; a long one goes along whole as ``file_name``."""
    summary = _stat_summary(diff.stat_text)
    parts, files = block(diff.patch, Style.DIFF, file_name)
    between = (Part("\n"),) if summary and parts else ()
    return (*summary, *between, *parts), files


def file_list(title: str, lines: Iterable[str], file_name: str) -> Attachment:
    """Make a text file that names what a sentence only counts."""
    text = "\n".join([title, "", *lines, ""])
    return _whole(file_name, text)


def _whole(file_name: str, text: str) -> Attachment:
    try:
        # Gives back the bytes of the workspace: the file is the text itself.
        content = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        content = text.encode("utf-8", "backslashreplace")
    return Attachment(file_name, content)


def _printable(piece: str) -> str:
    """Escape what cannot be printed, but leave backslashes single: code and commands are full of them."""
    if piece.isprintable():
        return piece
    return "\\".join(display(run, limit=12 * len(run) + 12) for run in piece.split("\\"))


def _missing(head: Excerpt) -> str:
    said = []
    if head.lines_left_out:
        said.append(f"{head.lines_left_out:,} more {'line' if head.lines_left_out == 1 else 'lines'}")
    if head.lines_cut:
        said.append(f"{counted(head.lines_cut, 'line')} cut short")
    return " and ".join(said)


def _stat_summary(stat_text: str) -> tuple[Part, ...]:
    head = excerpt(stat_text, lines=STAT_LINES)
    if not head.text:
        return ()
    every = stat_text.removesuffix("\n").split("\n")
    if head.lines_left_out:
        # The last line holds the totals.
        total = one_line(every[-1], LINE_CHARACTERS)
        return (Part(f"{head.text}\n", Style.BLOCK), Part(f"… {head.lines_left_out - 1:,} more\n{total}\n"))
    return (Part(f"{head.text}\n", Style.BLOCK),)
