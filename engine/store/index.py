"""The stat cache of a workspace on disk: the rows of one capture, the *base*, a directory at a time.

It is a cache with one duty: never to say "unchanged" of something that changed. A row is believed only when device,
inode, size, mode, mtime and ctime are the same *and* the row was read clearly later than the file's last change;
otherwise the file is read again. Losing the file costs time, never data.
"""

import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing, suppress
from dataclasses import dataclass, field

from engine.store.modes import Modes
from engine.store.row_pages import decode_inside, encode_inside
from engine.store.rows import Draft, Rows

SCHEMA_VERSION = 2
_SCHEMA = """
CREATE TABLE IF NOT EXISTS directories (path BLOB PRIMARY KEY, rows BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""
_FORMER_TABLE, _FORMER_LIST = "rows", ".sieve"  # of the first schema, and what stood beside it


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
            for directory, inside in connection.execute("SELECT path, rows FROM directories"):
                draft.own(_text(directory)).update(decode_inside(inside))
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
    """Forget an index."""
    for suffix in ("", "-journal", _FORMER_LIST):
        with suppress(FileNotFoundError):
            os.unlink(path + suffix)


def _save(path: str, index: Index, changed: Iterable[str] | None) -> None:
    with closing(_connect(path)) as connection, connection:
        connection.executescript(_SCHEMA)
        connection.execute("BEGIN IMMEDIATE")
        if changed is None:
            connection.execute(f"DROP TABLE IF EXISTS {_FORMER_TABLE}")
            connection.execute("DELETE FROM directories")
            directories = {directory for directory, _inside in index.rows.iter_directories()}
        else:
            directories = {path.rpartition("/")[0] for path in changed}
        _write_directories(connection, index.rows, directories)
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
    with suppress(FileNotFoundError):
        os.unlink(path + _FORMER_LIST)
    os.chmod(path, 0o600)


def _write_directories(connection: sqlite3.Connection, rows: Rows, directories: Iterable[str]) -> None:
    found = {directory: rows.inside(directory) for directory in sorted(directories)}
    gone = [(_bytes(directory),) for directory, inside in found.items() if not inside]
    written = [(_bytes(directory), encode_inside(inside)) for directory, inside in found.items() if inside]
    connection.executemany("DELETE FROM directories WHERE path = ?", gone)
    connection.executemany("INSERT OR REPLACE INTO directories VALUES (?, ?)", written)


def _connect(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=10, isolation_level=None)
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection


def _bytes(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")


def _text(raw: object) -> str:
    return bytes(raw).decode("utf-8", "surrogateescape")  # type: ignore[call-overload,no-any-return]
