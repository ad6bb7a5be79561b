"""The rows of a workspace: what each path held when it was last read, and how to see that it still does.

Row sets are values: one is never changed once it is made, the next is drafted from it and shares with it every
directory that stayed as it was. So keeping one and making the next costs what changed, and two are compared by their
directories.
"""

import os
from collections.abc import ItemsView, Iterable, Iterator, Mapping, ValuesView
from dataclasses import dataclass
from types import MappingProxyType

from engine.model import Entry, EntryKind

# The kernel stamps files with a clock that may lag by a tick (1/100 s at worst on Linux) and some file systems keep
# coarser times; what changed this shortly before it was read could change again within the same stamp.
RACY_NS = 20_000_000

LOST_OID = "0" * 40
"""Stands for content that the base should hold and cannot give back: what is there is read and written anew."""

_CONTENT_KINDS = (EntryKind.FILE, EntryKind.SYMLINK)


@dataclass(frozen=True, slots=True)
class Row:
    """One path as it was last read.

    ``trusted`` is false where the same stat data could hide a change. ``older`` says that ``oid`` is the content
    captured last although today's could not be captured. An ``oid`` of `LOST_OID` is known to be of no use.
    """

    entry: Entry
    size: int = 0
    mtime_ns: int = 0
    ctime_ns: int = 0
    ino: int = 0
    dev: int = 0
    trusted: bool = True
    older: bool = False

    def describes(self, stat: os.stat_result) -> bool:
        """Whether what ``stat`` saw is certainly still what was read."""
        return (
            self.trusted
            and self.mtime_ns == stat.st_mtime_ns
            and self.ctime_ns == stat.st_ctime_ns
            and self.size == stat.st_size
            and self.ino == stat.st_ino
            and self.dev == stat.st_dev
            and self.entry.mode == stat.st_mode & 0o7777
        )


def is_racy(stat: os.stat_result, read_at_ns: int) -> bool:
    """Whether a file read at ``read_at_ns`` changed so shortly before (or "later") that its stamp proves nothing."""
    return max(stat.st_mtime_ns, stat.st_ctime_ns) >= read_at_ns - RACY_NS


Inside = Mapping[str, Row]
"""What one directory holds, by name."""

_NOTHING: Inside = MappingProxyType({})
_NO_DIRECTORIES: Mapping[str, Inside] = MappingProxyType({})


class Rows(Mapping[str, Row]):
    """The rows of one capture by path; ``files`` counts the files and symlinks among them."""

    __slots__ = ("_directories", "_length", "files")

    def __init__(self, directories: Mapping[str, Inside] = _NO_DIRECTORIES, length: int = 0, files: int = 0) -> None:
        self._directories = directories
        self._length = length
        self.files = files

    @classmethod
    def of(cls, rows: Mapping[str, Row]) -> "Rows":
        """Make a row set of any mapping."""
        draft = Draft(cls(), anew=True)
        for path, row in rows.items():
            draft.put(path, row)
        return draft.rows()

    def __getitem__(self, path: str) -> Row:
        directory, _slash, name = path.rpartition("/")
        try:
            return self._directories[directory][name]
        except KeyError:
            raise KeyError(path) from None

    def find(self, path: str) -> Row | None:
        """Return the row of a path, ``None`` where there is none; `get` without what an exception costs."""
        directory, _slash, name = path.rpartition("/")
        return self._directories.get(directory, _NOTHING).get(name)

    def __contains__(self, path: object) -> bool:
        directory, _slash, name = str(path).rpartition("/")
        return name in self._directories.get(directory, _NOTHING)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[str]:
        return (path for path, _row in self._iter_items())

    def items(self) -> ItemsView[str, Row]:
        """Return paths with their rows, directory by directory."""
        return _Items(self)

    def values(self) -> ValuesView[Row]:
        """Return the rows, directory by directory."""
        return _Values(self)

    def iter_directories(self) -> Iterator[tuple[str, Inside]]:
        """Yield the directories that hold something, each with what it holds by name."""
        return iter(self._directories.items())

    def _iter_items(self) -> Iterator[tuple[str, Row]]:
        for directory, inside in self._directories.items():
            prefix = f"{directory}/" if directory else ""
            for name, row in inside.items():
                yield prefix + name, row

    def inside(self, directory: str) -> Inside:
        """Return what a directory holds, by name."""
        return self._directories.get(directory, _NOTHING)

    def iter_below(self, directory: str) -> Iterator[str]:
        """Yield every path below a directory."""
        waiting = [directory]
        while waiting:
            above = waiting.pop()
            for name in self.inside(above):
                path = f"{above}/{name}" if above else name
                yield path
                if path in self._directories:
                    waiting.append(path)

    def differing(self, other: "Rows", directories: Iterable[str] | None = None) -> set[str]:
        """Return the paths whose row is another one in ``other``, or is in one of the two alone.

        ``directories`` are the only ones in which there can be any.
        """
        found: set[str] = set()
        if directories is None:
            directories = self._directories.keys() | other._directories.keys()  # noqa: SLF001 - another one of these
        for directory in directories:
            ours, theirs = self.inside(directory), other.inside(directory)
            # What neither touched is the same object in both.
            if ours is not theirs and ours != theirs:
                prefix = f"{directory}/" if directory else ""
                names = ours.keys() | theirs.keys()
                found.update(prefix + name for name in names if ours.get(name) != theirs.get(name))
        return found


class _Items(ItemsView[str, Row]):
    """The items of a row set without looking each path up."""

    _mapping: Rows

    def __iter__(self) -> Iterator[tuple[str, Row]]:
        return self._mapping._iter_items()  # noqa: SLF001 - its own view


class _Values(ValuesView[Row]):
    """The rows of a row set without looking each path up."""

    _mapping: Rows

    def __iter__(self) -> Iterator[Row]:
        return (row for _directory, inside in self._mapping.iter_directories() for row in inside.values())


class Draft:
    """The next row set in the making.

    Args:
        before: the set before, with which it shares what is the same.
        anew: begin with nothing instead of all that the set before holds.
    """

    def __init__(self, before: Rows, *, anew: bool = False) -> None:
        self._before = before
        self._begun = Rows() if anew else before
        self._directories: dict[str, Inside] = dict(self._begun._directories)  # noqa: SLF001 - its own draft
        self._copied: dict[str, dict[str, Row]] = {}

    def get(self, path: str) -> Row | None:
        """Return the row of a path so far."""
        directory, _slash, name = path.rpartition("/")
        return self.inside(directory).get(name)

    def inside(self, directory: str) -> Inside:
        """Return what a directory holds so far, by name."""
        return self._directories.get(directory, _NOTHING)

    def put(self, path: str, row: Row) -> None:
        """Set the row of a path."""
        directory, _slash, name = path.rpartition("/")
        self.own(directory)[name] = row

    def own(self, directory: str) -> dict[str, Row]:
        """Return what a directory holds so far, to be changed."""
        inside = self._copied.get(directory)
        if inside is None:
            inside = self._copied[directory] = dict(self.inside(directory))
            self._directories[directory] = inside
        return inside

    def remove(self, path: str) -> None:
        """Remove a path and all below it, as far as there is anything."""
        if path in self._directories:
            for below in list(Rows(self._directories).iter_below(path)):
                self._remove(below)
        self._remove(path)

    def _remove(self, path: str) -> None:
        directory, _slash, name = path.rpartition("/")
        if name in self.inside(directory):
            del self.own(directory)[name]

    def finish(self) -> tuple[Rows, frozenset[str]]:
        """Return the finished set and the paths in which it differs from the one before; the draft is at its end."""
        rows = self.rows()
        if self._begun is not self._before:
            return rows, frozenset(rows.differing(self._before))
        return rows, frozenset(rows.differing(self._before, self._copied))

    def rows(self) -> Rows:
        """Return the finished set; the draft is at its end."""
        length, files = len(self._begun), self._begun.files
        for directory, inside in self._copied.items():
            begun, before = self._begun.inside(directory), self._before.inside(directory)
            length += len(inside) - len(begun)
            files += _count_files(inside) - _count_files(begun)
            if not inside:
                del self._directories[directory]
            elif inside == before:  # read anew and the same: shared again, so that comparing stays cheap
                self._directories[directory] = before
        return Rows(self._directories, length, files)


def _count_files(inside: Inside) -> int:
    return sum(row.entry.kind in _CONTENT_KINDS for row in inside.values())
