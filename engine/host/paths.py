"""Paths below a workspace root: what may be named, how a typed name becomes one, how one is shown.

Nothing here changes a file. ``validate`` is the gate that every path passes before ``files.Tree`` touches
anything. A path is ``str`` in the file system encoding with ``surrogateescape``, so that names of any bytes
have one.
"""

import os
from collections.abc import Iterable, Iterator

DISPLAY_LIMIT = 200
"""Characters of a path that are shown to people unless the caller asks otherwise."""

# HFS+ drops these code points when it compares names (TN1150, "Unicode Subtleties"), so that ``.g<U+200C>it``
# opens ``.git`` there. No honest file name needs them next to these letters, so they count as absent
# everywhere.
_IGNORABLE = dict.fromkeys(
    [*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF],
)
_SIMPLE_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


class PathUnsafe(Exception):
    """A path that is never touched: outside, in ``.git``, malformed, or reached through a symlink."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{display(path)}: {reason}")


def validate(path: str) -> tuple[str, ...]:
    """Check a path below a root and return its parts; raises ``PathUnsafe``."""
    if not path:
        raise PathUnsafe(path, "an empty path names nothing")
    if path.startswith("/"):
        raise PathUnsafe(path, "is absolute; name it relative to the workspace")
    if "\0" in path:
        raise PathUnsafe(path, "holds a NUL character, which no file name can")
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise PathUnsafe(path, "cannot be written in this system's file name encoding") from None
    parts = tuple(path.split("/"))
    for part in parts:
        _validate_part(path, part)
    return parts


def is_repository_part(part: str) -> bool:
    """Whether one part of a path is ``.git`` in a spelling that some file system takes for it."""
    if part.isascii():
        return len(part) == 4 and part.casefold() == ".git"  # noqa: PLR2004 - the length of ".git"
    return part.translate(_IGNORABLE).casefold() == ".git"


def display(path: str, limit: int = DISPLAY_LIMIT) -> str:
    r"""Return valid one-line text for people.

    Control characters become ``\n``, ``\t`` or ``\x1b``, bytes that are no text ``\xff``, other unprintable
    characters (also those that turn the writing direction) ``\u202e``, a backslash ``\\``. What is longer
    than ``limit`` loses its middle.
    """
    shown = list(_escaped(path))
    if sum(map(len, shown)) <= limit:
        return "".join(shown)
    room = max(limit - 1, 2)
    tail = _fitting(reversed(shown), room // 2)
    head = _fitting(iter(shown), room - sum(map(len, tail)))
    return "".join([*head, "…", *reversed(tail)])


def within(path: str, root: str) -> bool:
    """Whether an absolute path is ``root`` or below it, by its text alone; hand in real paths."""
    return path == root or path.startswith(root.rstrip("/") + "/")


def lowest(paths: Iterable[str]) -> frozenset[str]:
    """Return those paths that no other one lies below: where files are named, their directories go without saying."""
    found = set(paths)
    above = set()
    for path in found:
        parent = path.rpartition("/")[0]
        while parent and parent not in above:
            above.add(parent)
            parent = parent.rpartition("/")[0]
    return frozenset(found - above)


def resolve_inside(root: str, cwd: str, named: str) -> str:
    """Turn a name typed by an agent or a person into a path below ``root``; ``""`` is the root itself.

    ``root`` and ``cwd`` are absolute. A relative name starts at ``cwd``; an absolute one is accepted when it
    lies below the root. Symlinks among the parents are resolved and must not lead outside; the last part is
    left as it is, so that a link can be named. Raises ``PathUnsafe``. The answer can be out of date at once:
    ``files.Tree`` checks again.
    """
    require_name(named)
    real_root = os.path.realpath(root)
    parent, last = os.path.split(os.path.join(cwd, named).rstrip("/") or "/")
    if last in {"", ".", ".."}:
        real = os.path.realpath(os.path.join(parent, last))
    else:
        real = os.path.join(os.path.realpath(parent), last)
    if not within(real, real_root):
        raise PathUnsafe(named, "is outside the workspace")
    if real == real_root:
        return ""
    below = real[len(real_root.rstrip("/")) + 1 :]
    for part in (*below.split("/"), *named.split("/")):
        if is_repository_part(part):
            raise PathUnsafe(named, "belongs to git, which is never touched")
    validate(below)
    return below


def _validate_part(path: str, part: str) -> None:
    if not part:
        raise PathUnsafe(path, "has an empty part; write single slashes and none at the end")
    if part in {".", ".."}:
        raise PathUnsafe(path, f"has a part {part!r}; name the file directly")
    if is_repository_part(part):
        raise PathUnsafe(path, "belongs to git, which is never touched")


def require_name(named: str) -> None:
    """Raise ``PathUnsafe`` unless a typed text can be the name of a file, wherever that lies."""
    if not named:
        raise PathUnsafe(named, "no path was given")
    if "\0" in named:
        raise PathUnsafe(named, "holds a NUL character, which no file name can")
    if named == "~" or named.startswith("~/"):
        raise PathUnsafe(named, "~ is not expanded; name the file relative to the workspace")
    _encodable(named)


def _encodable(named: str) -> None:
    try:
        os.fsencode(named)
    except UnicodeEncodeError:
        raise PathUnsafe(named, "cannot be written in this system's file name encoding") from None


def _escaped(text: str) -> Iterator[str]:
    for char in text:
        code = ord(char)
        if char in _SIMPLE_ESCAPES:
            yield _SIMPLE_ESCAPES[char]
        elif char.isprintable():
            yield char
        elif 0xDC80 <= code <= 0xDCFF:  # noqa: PLR2004 - the range of surrogateescape, PEP 383
            yield f"\\x{code - 0xDC00:02x}"
        elif code < 0x80:  # noqa: PLR2004 - ASCII
            yield f"\\x{code:02x}"
        else:
            yield f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 - the first plane


def _fitting(units: Iterator[str], room: int) -> list[str]:
    """Take whole units, so that no escape is cut in two."""
    taken: list[str] = []
    for unit in units:
        if len(unit) > room:
            break
        room -= len(unit)
        taken.append(unit)
    return taken
