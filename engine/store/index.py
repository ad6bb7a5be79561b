"""The stat cache of a workspace: what each path held when it was last read, and how to see that it still does.

It is a cache with one duty: never to say "unchanged" of something that changed. A row is believed only when device,
inode, size, mode, mtime and ctime are the same *and* the row was read clearly later than the file's last change;
otherwise the file is read again. A row set always mirrors one capture, the *base*; losing the file costs time, never
data.
"""

import os
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field

from engine.model import Entry, EntryKind

SCHEMA_VERSION = 1
# The kernel stamps files with a clock that may lag by a tick (1/100 s at worst on Linux) and some file systems keep
# coarser times; what changed this shortly before it was read could change again within the same stamp.
RACY_NS = 20_000_000

LOST_OID = "0" * 40
"""Stands for content that the base should hold and cannot give back: what is there is read and written anew."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS rows (
    path BLOB PRIMARY KEY, kind TEXT NOT NULL, mode INTEGER NOT NULL, oid TEXT,
    size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL,
    ino INTEGER NOT NULL, dev INTEGER NOT NULL, trusted INTEGER NOT NULL, older INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""
_COLUMNS = "path, kind, mode, oid, size, mtime_ns, ctime_ns, ino, dev, trusted, older"


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


@dataclass(slots=True)
class Index:
    """The rows of one workspace and the commit they mirror (``None``: nothing captured yet).

    ``modes_oid`` is the blob of that commit that holds what git's trees cannot say.
    """

    rows: dict[str, Row] = field(default_factory=dict)
    base: str | None = None
    base_tree: str | None = None
    modes_oid: str | None = None


def load_index(path: str) -> Index:
    """Read an index; a missing, foreign or damaged one is an empty one."""
    if not os.path.exists(path):
        return Index()
    try:
        with closing(_connect(path)) as connection:
            facts = dict(connection.execute("SELECT name, value FROM facts"))
            if facts.get("schema") != str(SCHEMA_VERSION):
                return Index()
            rows = {_text(record[0]): _row(record) for record in connection.execute(f"SELECT {_COLUMNS} FROM rows")}  # noqa: S608 - a constant
            return Index(rows, facts.get("base"), facts.get("base_tree"), facts.get("modes_oid"))
    except (sqlite3.DatabaseError, ValueError):
        return Index()


def save_index(path: str, index: Index, changed: Iterable[str] | None) -> None:
    """Write an index; ``changed`` names the rows that are new, different or gone (``None``: all are).

    A damaged file is replaced. A failure to write leaves a stale or no cache, which only costs time.
    """
    try:
        _save(path, index, changed)
    except (sqlite3.DatabaseError, OSError):
        _replace(path, index)


def _replace(path: str, index: Index) -> None:
    try:
        drop_index(path)
        _save(path, index, None)
    except (sqlite3.DatabaseError, OSError):
        with suppress(OSError):
            drop_index(path)


def drop_index(path: str) -> None:
    """Forget an index."""
    for suffix in ("", "-journal"):
        try:
            os.unlink(path + suffix)
        except FileNotFoundError:
            continue


def _save(path: str, index: Index, changed: Iterable[str] | None) -> None:
    with closing(_connect(path)) as connection, connection:
        connection.executescript(_SCHEMA)
        connection.execute("BEGIN IMMEDIATE")
        if changed is None:
            connection.execute("DELETE FROM rows")
            changed = index.rows
        _write_rows(connection, index.rows, changed)
        facts = {
            "schema": str(SCHEMA_VERSION),
            "base": index.base,
            "base_tree": index.base_tree,
            "modes_oid": index.modes_oid,
        }
        connection.execute("DELETE FROM facts")
        connection.executemany(
            "INSERT INTO facts VALUES (?, ?)", [(name, value) for name, value in facts.items() if value is not None]
        )
    os.chmod(path, 0o600)


def _write_rows(connection: sqlite3.Connection, rows: Mapping[str, Row], changed: Iterable[str]) -> None:
    gone, written = [], []
    for path in changed:
        row = rows.get(path)
        if row is None:
            gone.append((_bytes(path),))
        else:
            entry = row.entry
            stamps = (row.size, row.mtime_ns, row.ctime_ns, _signed(row.ino), _signed(row.dev))
            written.append((_bytes(path), entry.kind.value, entry.mode, entry.oid, *stamps, row.trusted, row.older))
    connection.executemany("DELETE FROM rows WHERE path = ?", gone)
    connection.executemany("INSERT OR REPLACE INTO rows VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", written)


def _connect(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=10, isolation_level=None)
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection


def _row(record: tuple[object, ...]) -> Row:
    _path, kind, mode, oid, size, mtime_ns, ctime_ns, ino, dev, trusted, older = record
    entry = Entry(EntryKind(str(kind)), int(mode), None if oid is None else str(oid))  # type: ignore[call-overload]
    numbers = (int(size), int(mtime_ns), int(ctime_ns), _unsigned(int(ino)), _unsigned(int(dev)))  # type: ignore[call-overload]
    return Row(entry, *numbers, trusted=bool(trusted), older=bool(older))


def _signed(number: int) -> int:
    """SQLite's integers are signed; inode numbers of some file systems are not."""
    return number - (1 << 64) if number >= 1 << 63 else number


def _unsigned(number: int) -> int:
    return number + (1 << 64) if number < 0 else number


def _bytes(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")


def _text(raw: object) -> str:
    return bytes(raw).decode("utf-8", "surrogateescape")  # type: ignore[call-overload,no-any-return]
