"""What git's trees cannot say of a workspace: permission bits that are not the usual ones, and empty directories.

It is added up once and then follows from one row set to the next by what differs between them.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from engine.model import EntryKind
from engine.store.rows import Row, Rows

REGULAR = "100644"
EXECUTABLE = "100755"
TREE = "040000"
FALLBACKS = {REGULAR: 0o644, EXECUTABLE: 0o755, TREE: 0o755}

_Counts = dict[tuple[str, int], int]


@dataclass(frozen=True, slots=True)
class Modes:
    """The sum over one row set.

    ``counts`` is how many paths there are of a git mode and permission bits, ``usual`` the most frequent bits of a git
    mode, ``unusual`` the paths that have others, ``empty`` the directories that hold nothing.
    """

    counts: Mapping[tuple[str, int], int]
    usual: Mapping[str, int]
    unusual: Mapping[str, int]
    empty: frozenset[str]

    @classmethod
    def of(cls, rows: Rows) -> "Modes":
        """Add up a row set."""
        counts: _Counts = {}
        for row in rows.values():
            _count(counts, row, 1)
        usual = _usual(counts)
        unusual: dict[str, int] = {}
        empty = set()
        for path, row in rows.items():
            _note_unusual(unusual, usual, path, row)
            if _is_empty(rows, path, row):
                empty.add(path)
        return cls(counts, usual, unusual, frozenset(empty))

    def then(self, before: Rows, after: Rows, differing: Iterable[str]) -> "Modes":
        """Return the sum over the set after, given the paths in which it differs from the one before."""
        differing = {path for path in differing if _shape(before.find(path)) != _shape(after.find(path))}
        if not differing:
            return self
        counts = dict(self.counts)
        for path in differing:
            _count(counts, before.find(path), -1)
            _count(counts, after.find(path), 1)
        usual = _usual(counts)
        if usual != self.usual:
            return Modes.of(after)
        unusual, empty = dict(self.unusual), set(self.empty)
        for path in differing:
            unusual.pop(path, None)
            _note_unusual(unusual, usual, path, after.find(path))
        for path in differing | {path.rpartition("/")[0] for path in differing}:
            empty.discard(path)
            if _is_empty(after, path, after.find(path)):
                empty.add(path)
        return Modes(counts, usual, unusual, frozenset(empty))

    def encode(self) -> bytes:
        """Return it as a checkpoint holds it; equal workspaces have equal ones."""
        value = {"usual": self.usual, "modes": dict(sorted(self.unusual.items())), "empty": sorted(self.empty)}
        return json.dumps(value, indent=1).encode("ascii")


def _class_of(row: Row) -> str | None:
    """Return the git mode whose permission bits a row's belong to, ``None`` where there are none to keep."""
    if row.entry.kind is EntryKind.DIRECTORY:
        return TREE
    if row.entry.kind is EntryKind.FILE:
        return EXECUTABLE if row.entry.mode & 0o111 else REGULAR
    return None


def _count(counts: _Counts, row: Row | None, step: int) -> None:
    name = None if row is None else _class_of(row)
    if row is not None and name is not None:
        key = (name, row.entry.mode)
        counts[key] = counts.get(key, 0) + step


def _usual(counts: Mapping[tuple[str, int], int]) -> dict[str, int]:
    """Return the most frequent bits per git mode, the smallest of several, so that equal workspaces have equal sums."""
    usual = {}
    for name, fallback in FALLBACKS.items():
        found = [(-count, mode) for (of, mode), count in counts.items() if of == name and count]
        usual[name] = min(found)[1] if found else fallback
    return usual


def _shape(row: Row | None) -> tuple[EntryKind, int] | None:
    return None if row is None else (row.entry.kind, row.entry.mode)


def _note_unusual(unusual: dict[str, int], usual: Mapping[str, int], path: str, row: Row | None) -> None:
    name = None if row is None else _class_of(row)
    if row is not None and name is not None and row.entry.mode != usual[name]:
        unusual[path] = row.entry.mode


def _is_empty(rows: Rows, path: str, row: Row | None) -> bool:
    return row is not None and row.entry.kind is EntryKind.DIRECTORY and not rows.inside(path)
