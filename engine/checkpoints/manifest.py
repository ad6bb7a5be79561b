"""What git's trees cannot say of a workspace, kept in the reserved directory of a checkpoint's tree.

``modes`` holds the permission bits that differ from the usual ones, and the empty directories.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from engine.model import Entry, EntryKind
from engine.store.layout import RESERVED
from engine.store.modes import EXECUTABLE, FALLBACKS, REGULAR, TREE, Modes
from engine.store.rows import Row, Rows

MODES_PATH = f"{RESERVED}/modes"

_SYMLINK = "120000"
_GITLINK = "160000"
_LINK_MODE = 0o777


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a tree cannot say.

    ``usual`` maps a git mode to the permission bits it stands for, ``modes`` holds the exceptions by path, and
    ``bare`` the empty directories with the directories above them: those that no file of the tree implies.
    """

    usual: Mapping[str, int]
    modes: Mapping[str, int]
    bare: frozenset[str]

    def entry(self, path: str, git_mode: str, oid: str) -> Entry | None:
        """Return what a path of the tree is, with all its permission bits; ``None`` for the mode of nothing."""
        if git_mode == _SYMLINK:
            return Entry(EntryKind.SYMLINK, _LINK_MODE, oid)
        if git_mode == _GITLINK:
            return Entry(EntryKind.REPOSITORY, 0, oid)
        if git_mode == TREE:
            return self.directory(path)
        if git_mode in self.usual:
            return Entry(EntryKind.FILE, self.modes.get(path, self.usual[git_mode]), oid)
        return None

    def directory(self, path: str) -> Entry:
        """Return a directory with its permission bits."""
        return Entry(EntryKind.DIRECTORY, self.modes.get(path, self.usual[TREE]), None)


def git_mode(entry: Entry) -> str | None:
    """Return the mode of an entry in a git tree, ``None`` for a directory, which trees only imply."""
    if entry.kind is EntryKind.FILE:
        return EXECUTABLE if entry.mode & 0o111 else REGULAR
    if entry.kind is EntryKind.SYMLINK:
        return _SYMLINK
    return _GITLINK if entry.kind is EntryKind.REPOSITORY else None


def encode_modes(rows: Mapping[str, Row]) -> bytes:
    """Return the content of ``modes`` for a capture."""
    return Modes.of(rows if isinstance(rows, Rows) else Rows.of(rows)).encode()


def decode_modes(content: bytes | None) -> Manifest:
    """Read ``modes``; ``None`` stands for a tree without one.

    Raises:
        ValueError: it is damaged.
    """
    value = json.loads(content) if content else {}
    usual = FALLBACKS | value.get("usual", {})
    bare = {directory for path in value.get("empty", ()) for directory in (path, *iter_parents(path))}
    return Manifest(usual, value.get("modes", {}), frozenset(bare))


def iter_parents(path: str) -> Iterator[str]:
    """Yield the directories above a path, nearest first."""
    parent = path.rpartition("/")[0]
    while parent:
        yield parent
        parent = parent.rpartition("/")[0]


def covers(paths: frozenset[str], path: str) -> bool:
    """Whether a path is one of these or below one."""
    if not paths:
        return False
    while path:
        if path in paths:
            return True
        path = path.rpartition("/")[0]
    return False
