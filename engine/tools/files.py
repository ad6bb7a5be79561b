"""The tools ``read_file`` and ``write_file``: reading for an agent, and preparing a write.

Nothing here changes a file; ``edits.apply_edits`` does, so that a checkpoint fits in between.
"""

import codecs
from dataclasses import dataclass
from typing import BinaryIO, Final

from engine.errors import ToolRefused
from engine.host.files import TEMP_PREFIX, Signature
from engine.host.paths import display
from engine.model import WHOLE, Lines
from engine.tools.edits import FileEdit, find_target, follow_link
from engine.tools.filetree import FileTree
from engine.tools.lines import read_lines

READ_LIMIT_BYTES: Final = 256 * 1024
"""How much of a file is read for an agent unless it asks otherwise."""

LIST_LIMIT: Final = 1000
"""How many names of a directory are listed."""

NEW_FILE_MODE: Final = 0o644
UMASK: Final = 0o022

_SNIFFED_BYTES = 8000  # git's rule for "binary": a NUL byte in the first 8000 (xdiff-interface.c)


@dataclass(frozen=True, slots=True)
class ReadResult:
    """What there is to read at a path; ``text`` is for the agent and says itself what was cut or is not text."""

    text: str
    size_bytes: int
    cut_bytes: int = 0
    binary: bool = False
    directory: bool = False


def read_file(tree: FileTree, path: str, lines: Lines = WHOLE, *, limit_bytes: int = READ_LIMIT_BYTES) -> ReadResult:
    r"""Read a file or a part of it, or list a directory (``""`` is the root).

    Bytes that are no UTF-8 are shown as ``\xff``. Symlinks are followed inside the tree. Raises ``ToolRefused`` where
    there is nothing to read, ``PathUnsafe`` for a malformed path, ``OSError`` from the system.
    """
    target = follow_link(tree, path)
    found = tree.signature(target)
    if found is None:
        raise ToolRefused(display(path), "there is no such file")
    if found.is_directory:
        return _list(tree, target)
    if not found.is_file:
        raise ToolRefused(display(path), "is neither a file nor a directory")
    with tree.open_file(target) as file:
        if lines != WHOLE and not is_binary(file):
            return ReadResult(read_lines(file, path, lines, limit_bytes=limit_bytes), found.size)
        data = file.read(limit_bytes + 1)
    # More may be there than was signed, if somebody is writing to it.
    size_bytes = max(found.size, len(data))
    return _show(display(path), data[:limit_bytes], size_bytes)


def prepare_write(tree: FileTree, path: str, content: bytes, *, umask: int = UMASK) -> FileEdit:
    """Prepare writing a file whole; an existing one keeps its mode, a symlink is followed inside the tree.

    Raises ``ToolRefused`` where no file can be written, ``PathUnsafe`` for a malformed path.
    """
    target, before = find_target(tree, path)
    return FileEdit(target, before, content, NEW_FILE_MODE & ~umask if before is None else before.mode)


def is_binary(file: BinaryIO) -> bool:
    """Whether git would take a file for binary; it stands at its beginning before and afterwards."""
    sniffed = file.read(_SNIFFED_BYTES)
    file.seek(0)
    return is_binary_content(sniffed)


def is_binary_content(content: bytes) -> bool:
    """Whether git would take content for binary."""
    return b"\0" in content[:_SNIFFED_BYTES]


def _show(name: str, data: bytes, size_bytes: int) -> ReadResult:
    cut_bytes = size_bytes - len(data)
    if is_binary_content(data):
        return ReadResult(f"{name} is a binary file of {size_bytes} bytes; it is not shown.", size_bytes, binary=True)
    # An incremental decoder keeps back a character that the limit cut in two.
    text = codecs.getincrementaldecoder("utf-8")("backslashreplace").decode(data, final=not cut_bytes)
    if cut_bytes:
        end = "" if text.endswith("\n") else "\n"
        text += f"{end}[cut: the first {len(data)} of {size_bytes} bytes are shown]\n"
    return ReadResult(text, size_bytes, cut_bytes=cut_bytes)


def _list(tree: FileTree, path: str) -> ReadResult:
    entries = [entry for entry in tree.entries(path) if not entry[0].startswith(TEMP_PREFIX)]
    lines = [_entry_line(tree, path, name, found) for name, found in entries[:LIST_LIMIT]]
    if len(entries) > LIST_LIMIT:
        lines.append(f"[cut: {LIST_LIMIT} of {len(entries)} names are shown]")
    text = "".join(f"{line}\n" for line in lines) or "[the directory is empty]\n"
    return ReadResult(text, size_bytes=0, directory=True)


def _entry_line(tree: FileTree, directory: str, name: str, found: Signature) -> str:
    shown = display(name)
    if found.is_directory:
        return f"{shown}/"
    if found.is_link:
        return f"{shown} -> {_link_target(tree, directory, name)}"
    return f"{shown} ({found.size} bytes)" if found.is_file else f"{shown} (neither file nor directory)"


def _link_target(tree: FileTree, directory: str, name: str) -> str:
    try:
        return display(tree.read_link(f"{directory}/{name}" if directory else name).decode("utf-8", "surrogateescape"))
    except OSError:  # gone since it was listed
        return "?"
