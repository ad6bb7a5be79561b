"""The one owner of the SQLite connection.

Everything that is remembered goes through `Database.transaction`: one connection, one writer at a time, committed as a
whole or not at all, also when the caller is cancelled. WAL with ``synchronous=FULL``: a message is acknowledged to a
platform once its commit has returned, so a commit has to survive a power cut as well as a crash. What may be lost in a
power cut, never in a crash, says so and is spared the wait for the disk.

Any ``str`` can be stored. What UTF-8 cannot hold (file names of odd bytes arrive as lone surrogates) is kept
JSON-escaped and comes back as it was; callers need not know.
"""

import json
import os
import sqlite3
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager

import aiosqlite
import anyio
from anyio import to_thread

from gateway.state.errors import DatabaseDamaged, DatabaseTooNew, DatabaseUnusable
from gateway.state.migrations import MIGRATIONS

Row = sqlite3.Row
"""A row by column name; strings are as they were stored."""

Value = str | int | float | bytes | None

BUSY_TIMEOUT_S = 10.0
"""How long another process's write transaction is waited for; ours take milliseconds."""

CHECKED_ON_OPEN_BYTES = 64 * 1024 * 1024
"""Up to this size every page is checked on open (tens of milliseconds); larger files are left to `Database.check`."""

_GONE = "its file was removed or replaced while it was open, and what is kept since ends with this process"

_Identity = tuple[int, int]

_DAMAGE = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_FORMAT")


class Transaction:
    """What may be done between BEGIN and COMMIT; only valid inside its ``async with`` block."""

    def __init__(self, connection: aiosqlite.Connection) -> None:
        self._connection = connection

    async def execute(self, sql: str, *parameters: Value) -> int:
        """Run one statement; returns how many rows it changed."""
        cursor = await self._connection.execute(sql, _bind(parameters))
        return cursor.rowcount

    async def insert(self, sql: str, *parameters: Value) -> int:
        """Run one INSERT; returns the new row's id."""
        cursor = await self._connection.execute(sql, _bind(parameters))
        if cursor.lastrowid is None:
            raise AssertionError(f"not an insert: {sql}")
        return cursor.lastrowid

    async def fetch_all(self, sql: str, *parameters: Value) -> list[Row]:
        """Every row of a query, or of a statement with RETURNING."""
        return list(await self._connection.execute_fetchall(sql, _bind(parameters)))

    async def fetch_one(self, sql: str, *parameters: Value) -> Row | None:
        """The first row, or ``None``."""
        rows = await self.fetch_all(sql, *parameters)
        return rows[0] if rows else None


class Database:
    """An open database; made by `open_database`, which also closes it."""

    def __init__(self, path: str, connection: aiosqlite.Connection, identity: _Identity | None) -> None:
        self.path = path
        self._connection = connection
        self._identity = identity
        self._lock = anyio.Lock()
        self._durable: bool | None = True

    @asynccontextmanager
    async def transaction(self, *, durable: bool = True) -> AsyncIterator[Transaction]:
        """All or nothing: commits when the block ends, rolls back when it raises or is cancelled.

        One transaction at a time; do not wait for anything but the database inside, and do not nest. Transactions are
        kept in order: once a durable one has returned, all before it are durable. One that is not survives a crash of
        the process, not a power cut.

        Raises:
            DatabaseUnusable: it could not be written; nothing of the block is stored.
            DatabaseDamaged: the file turned out to be unsound.
        """
        async with self._lock:
            try:
                with _translated(self.path):
                    await self._set_durable(durable)
                    await self._connection.execute("BEGIN IMMEDIATE")
                with _translated(self.path):
                    yield Transaction(self._connection)
                # Once COMMIT is on its way it is waited for, so that the caller knows what became of it.
                with _translated(self.path), anyio.CancelScope(shield=True):
                    await self._connection.execute("COMMIT")
            except BaseException:
                # The connection's thread works in order: even when this wait is cancelled as well, the rollback runs
                # before any later BEGIN. It does nothing when no transaction is open, and also ends one whose COMMIT
                # failed.
                with anyio.CancelScope(shield=True):
                    await self._connection.rollback()
                raise

    async def _set_durable(self, durable: bool) -> None:  # noqa: FBT001 - a state to take on
        if durable is not self._durable:
            # Unknown until it is done, so that a cancelled change is made again.
            self._durable = None
            await self._connection.execute_fetchall(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._durable = durable

    async def fetch_all(self, sql: str, *parameters: Value) -> list[Row]:
        """Every row of one read."""
        async with self._lock:
            with _translated(self.path):
                return list(await self._connection.execute_fetchall(sql, _bind(parameters)))

    async def fetch_one(self, sql: str, *parameters: Value) -> Row | None:
        """The first row of one read, or ``None``."""
        rows = await self.fetch_all(sql, *parameters)
        return rows[0] if rows else None

    async def prove_writable(self) -> None:
        """Write what is there already, so that a page goes to the disk, to the file that the next start will open.

        Raises:
            DatabaseUnusable: it could not be written, or the file was removed or replaced while it was open.
            DatabaseDamaged: the file turned out to be unsound.
        """
        if await to_thread.run_sync(_identity, self.path) != self._identity:
            raise DatabaseUnusable(self.path, _GONE)
        async with self.transaction(durable=False) as tx:
            row = await tx.fetch_one("PRAGMA user_version")
            await tx.execute(f"PRAGMA user_version = {int(row[0]) if row is not None else 0}")

    async def check(self) -> list[str]:
        """What is unsound in the file, as sentences; empty when all is well. Reads every page."""
        found = [str(row[0]) for row in await self.fetch_all("PRAGMA integrity_check")]
        orphans = await self.fetch_all("PRAGMA foreign_key_check")
        return [line for line in found if line != "ok"] + [
            f"row {row['rowid']} of {row['table']} points to a missing row of {row['parent']}" for row in orphans
        ]


@asynccontextmanager
async def open_database(path: str) -> AsyncIterator[Database]:
    """Open the database at ``path``, bring it up to date, and close it when the block ends.

    A missing directory is made with mode 0700 and a missing file with 0600. Nothing is ever deleted or replaced.

    Raises:
        DatabaseUnusable: no permission, no space, not a directory.
        DatabaseDamaged: the file is not a sound SQLite database.
        DatabaseTooNew: a newer version has written it.
    """
    size_bytes = await to_thread.run_sync(_prepare, path)
    identity = await to_thread.run_sync(_identity, path)
    connection = aiosqlite.connect(path, isolation_level=None, timeout=BUSY_TIMEOUT_S)
    with _translated(path):
        # Its thread has started once this returns; from here on it is always closed.
        await connection
    try:
        connection.row_factory = sqlite3.Row
        connection.text_factory = _load_text
        with _translated(path):
            await _configure(connection, path, check=size_bytes <= CHECKED_ON_OPEN_BYTES)
        database = Database(path, connection, identity)
        await _migrate(database)
        yield database
    finally:
        with anyio.CancelScope(shield=True):
            await connection.close()


def _prepare(path: str) -> int:
    """Make directory and file with their modes; returns the size of the file."""
    try:
        directory = os.path.dirname(path) or "."
        os.makedirs(directory, mode=0o700, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(descriptor, 0o600)
            return os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)
    except FileExistsError as error:
        raise DatabaseUnusable(path, f"{error.filename} is not a directory") from error
    except OSError as error:
        raise DatabaseUnusable(path, error.strerror or str(error)) from error


def _identity(path: str) -> _Identity | None:
    """Which file has the name now."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


async def _configure(connection: aiosqlite.Connection, path: str, *, check: bool) -> None:
    await connection.execute_fetchall("PRAGMA journal_mode = WAL")
    await connection.execute_fetchall("PRAGMA synchronous = FULL")
    await connection.execute_fetchall("PRAGMA foreign_keys = ON")
    # Words that are taken out, as of a message that has been dealt with, are not left behind in the file.
    await connection.execute_fetchall("PRAGMA secure_delete = FAST")
    if check:
        rows = list(await connection.execute_fetchall("PRAGMA quick_check(1)"))
        if rows[0][0] != "ok":
            raise DatabaseDamaged(path, str(rows[0][0]).replace("\n", " "))


async def _migrate(database: Database) -> None:
    """Apply what is missing, each migration in a transaction of its own together with its number."""
    while True:
        async with database.transaction() as tx:
            row = await tx.fetch_one("PRAGMA user_version")
            version = int(row[0]) if row is not None else 0
            if version > len(MIGRATIONS):
                raise DatabaseTooNew(database.path, found=version, known=len(MIGRATIONS))
            if version == len(MIGRATIONS):
                return
            for statement in MIGRATIONS[version]:
                await tx.execute(statement)
            await tx.execute(f"PRAGMA user_version = {version + 1}")


@contextmanager
def _translated(path: str) -> Iterator[None]:
    """Turn SQLite's errors into ours; mistakes in our own statements stay what they are."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = str(getattr(error, "sqlite_errorname", ""))
        if code.startswith(_DAMAGE):
            raise DatabaseDamaged(path, str(error)) from error
        if code.startswith(("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_BUSY")):
            raise DatabaseUnusable(path, str(error)) from error
        raise


def _bind(parameters: Sequence[Value]) -> Iterable[Value]:
    return [_dump_text(value) if isinstance(value, str) else value for value in parameters]


def _dump_text(text: str) -> str:
    """A string that UTF-8 can hold. The rare one that it cannot, or that looks escaped already, is JSON-escaped."""
    if not text.startswith('"'):
        try:
            text.encode()
        except UnicodeEncodeError:
            pass
        else:
            return text
    return json.dumps(text)


def _load_text(stored: bytes) -> str:
    text = stored.decode()
    return str(json.loads(text)) if text.startswith('"') else text
