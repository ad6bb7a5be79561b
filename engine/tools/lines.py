"""Part of a text file, by the numbers of its lines: read as far as is needed and no further."""

from collections.abc import Iterator
from typing import BinaryIO, Final

from engine.errors import ToolRefused
from engine.host.paths import display
from engine.model import Lines

LONGEST_BYTES: Final = 64 * 1024 * 1024
"""How far into a file lines are counted."""


def read_lines(file: BinaryIO, path: str, lines: Lines, *, limit_bytes: int) -> str:
    r"""Return some lines, and say which they are and what is missing of them.

    Bytes that are no UTF-8 are shown as ``\xff``. Raises ``ToolRefused`` where there are no such lines.
    """
    begin, last = 1 if lines.first is None else lines.first, lines.last
    if begin < 1 or (last is not None and last < begin):
        raise ToolRefused(display(path), f"has no lines {begin} to {last}; they are counted from 1")
    wanted: list[bytes] = []
    number = size = 0
    for number, line in enumerate(_lines(file), 1):
        if number < begin:
            continue
        size += len(line)
        if size > limit_bytes and wanted:
            return _shown(wanted, f"[lines {begin} to {number - 1}; cut: ask for line {number} and what follows]")
        if size > limit_bytes:
            return _shown([line[:limit_bytes]], f"[line {number}, cut: its first {limit_bytes} bytes are shown]")
        wanted.append(line)
        if number == last:
            return _shown(wanted, f"[lines {begin} to {last}]")
    if file.read(1):
        raise ToolRefused(display(path), f"is so large that its lines are counted to {number} and no further")
    if not wanted:
        raise ToolRefused(display(path), f"has only {number} lines")
    return _shown(wanted, f"[lines {begin} to {number}, the end of the file]")


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield a file's lines as far as they are counted."""
    left = LONGEST_BYTES
    while left > 0 and (line := file.readline(left)):
        left -= len(line)
        yield line


def _shown(lines: list[bytes], end: str) -> str:
    text = b"".join(lines).decode("utf-8", "backslashreplace")
    return f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{end}\n"
