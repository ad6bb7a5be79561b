"""The stat cache of a workspace on disk: the rows of one capture, the *base*.

It is a cache with one duty: never to say "unchanged" of something that changed. A row is believed only when device,
inode, size, mode, mtime and ctime are the same *and* the row was read clearly later than the file's last change;
otherwise the file is read again. Losing the file costs time, never data.
"""

import os
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field

from engine.model import Entry, EntryKind
from engine.store.layout import SIEVE_SUFFIX
from engine.store.modes import Modes
from engine.store.rows import Draft, Row, Rows

SCHEMA_VERSION = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS rows (
    path BLOB PRIMARY KEY, kind TEXT NOT NULL, mode INTEGER NOT NULL, oid TEXT,
    size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL,
    ino INTEGER NOT NULL, dev INTEGER NOT NULL, trusted INTEGER NOT NULL, older INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""
_COLUMNS = "path, kind, mode, oid, size, mtime_ns, ctime_ns, ino, dev, trusted, older"


@dataclass(slots=True)
class Index:
    """The rows of one workspace and the commit they mirror (``None``: nothing captured yet).

    ``modes_oid`` is the blob of that commit that holds what git's trees cannot say, ``modes`` what it says, where that
    has been added up.
    """

    rows: Rows = field(default_factory=Rows)
    base: str | None = None
    base_tree: str | None = None
    modes_oid: str | None = None
    modes: Modes | None = None


def load_index(path: str) -> Index:
    """Read an index; a missing, foreign or damaged one is an empty one."""
    if not os.path.exists(path):
        return Index()
    try:
        with closing(_connect(path)) as connection:
            facts = dict(connection.execute("SELECT name, value FROM facts"))
            if facts.get("schema") != str(SCHEMA_VERSION):
                return Index()
            draft = Draft(Rows())
            for record in connection.execute(f"SELECT {_COLUMNS} FROM rows"):  # noqa: S608 - a constant
                draft.put(_text(record[0]), _row(record))
            return Index(draft.rows(), facts.get("base"), facts.get("base_tree"), facts.get("modes_oid"))
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
    """Forget an index, and the sieve that was made of it."""
    for suffix in ("", "-journal", SIEVE_SUFFIX):
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
