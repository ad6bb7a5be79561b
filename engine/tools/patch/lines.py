"""Finding a run of lines in a file, byte for byte, and saying where it nearly fits.

A line holds its terminator; only a file's last line may lack one.
"""

import difflib
from collections import Counter
from collections.abc import Sequence

from engine.host.paths import display

_SHOWN_LINES = 12
_SHOWN_CHARACTERS = 160
_COMPARED_LINES = 5000  # difflib compares each of them; a file can be longer
_CLOSE = 0.5


def split_lines(content: bytes) -> list[bytes]:
    r"""Cut after each ``\n`` and nowhere else; ``b"".join`` gives the content back."""
    lines = [line + b"\n" for line in content.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def find_runs(lines: Sequence[bytes], wanted: Sequence[bytes], start: int = 0) -> list[int]:
    """Return every index from ``start`` on where the wanted lines stand; nothing for no wanted lines."""
    if not wanted:
        return []
    last = len(lines) - len(wanted)
    return [
        index
        for index in range(start, last + 1)
        if lines[index] == wanted[0] and lines[index : index + len(wanted)] == wanted
    ]


def adapt_newlines(lines: Sequence[bytes], file_lines: Sequence[bytes]) -> list[bytes]:
    r"""Give a patch's lines the line ends of the file, where that is of one kind throughout: all ``\r\n``, or none.

    That is the only difference between a patch and a file that is overlooked.
    """
    ended = [line for line in file_lines if line.endswith(b"\n")]
    windows = sum(line.endswith(b"\r\n") for line in ended)
    if ended and windows == len(ended):
        return [_with_carriage_return(line) for line in lines]
    if not windows:
        return [line[:-2] + b"\n" if line.endswith(b"\r\n") else line for line in lines]
    return list(lines)


def describe_nearest(lines: Sequence[bytes], wanted: Sequence[bytes]) -> str:
    """Say which lines of the file come nearest to the wanted ones, with their numbers."""
    start = _nearest(lines, wanted)
    if start is None:
        return "No line of the file resembles them."
    shown = lines[start : start + min(max(len(wanted), 1), _SHOWN_LINES)]
    width = len(str(start + len(shown)))
    numbered = [f"  {number:>{width}} | {show_line(line)}" for number, line in enumerate(shown, start + 1)]
    return "\n".join(["The nearest lines are:", *numbered])


def describe_places(runs: Sequence[int]) -> str:
    """Say at which line numbers something stands."""
    shown = ", ".join(str(index + 1) for index in runs[:5])
    return f"lines {shown}, …" if len(runs) > 5 else f"lines {shown}"  # noqa: PLR2004 - enough to see the pattern


def show_line(line: bytes) -> str:
    """Return one line as valid text."""
    text = line.rstrip(b"\n").decode("utf-8", "surrogateescape")
    # Tabs and backslashes are ordinary in source code; everything else odd is escaped as in names.
    return "\t".join(
        "\\".join(display(part, _SHOWN_CHARACTERS) for part in piece.split("\\")) for piece in text.split("\t")
    )


def _with_carriage_return(line: bytes) -> bytes:
    return line[:-1] + b"\r\n" if line.endswith(b"\n") and not line.endswith(b"\r\n") else line


def _nearest(lines: Sequence[bytes], wanted: Sequence[bytes]) -> int | None:
    """Return where most wanted lines stand at their distance, blanks apart, else where one line is like one of them."""
    places: dict[bytes, list[int]] = {}
    for offset, line in enumerate(wanted):
        if line.strip():
            places.setdefault(line.strip(), []).append(offset)
    votes: Counter[int] = Counter()
    for index, line in enumerate(lines):
        for offset in places.get(line.strip(), ())[:_SHOWN_LINES]:
            votes[max(index - offset, 0)] += 1
    if votes:
        return min(votes, key=lambda start: (-votes[start], start))
    return _nearest_single(lines[:_COMPARED_LINES], max(wanted, key=lambda line: len(line.strip()), default=b""))


def _nearest_single(lines: Sequence[bytes], wanted: bytes) -> int | None:
    texts = [line.strip().decode("latin-1") for line in lines]
    close = difflib.get_close_matches(wanted.strip().decode("latin-1"), texts, n=1, cutoff=_CLOSE)
    return texts.index(close[0]) if close else None
