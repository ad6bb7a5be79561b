"""The one owner of the connection: all or nothing, sound or said, and never left open."""

import asyncio
import gc
import os
import sqlite3
import stat
import threading
from pathlib import Path

import anyio
import pytest

from gateway.state.database import CHECKED_ON_OPEN_BYTES, Database, open_database
from gateway.state.errors import DatabaseDamaged, DatabaseTooNew, DatabaseUnusable
from gateway.state.migrations import MIGRATIONS

ADD = "INSERT INTO chats (adapter, chat, created_at) VALUES ('a', ?, '')"


@pytest.fixture
async def database(tmp_path: Path):
    async with open_database(str(tmp_path / "gateway.db")) as database:
        yield database


async def chats(database: Database) -> list[str]:
    return [row["chat"] for row in await database.fetch_all("SELECT chat FROM chats ORDER BY id")]


async def test_a_new_home_is_private(tmp_path: Path):
    path = tmp_path / "home" / "gateway.db"
    async with open_database(str(path)):
        modes = {name: stat.S_IMODE((path.parent / name).stat().st_mode) for name in os.listdir(path.parent)}

        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert modes.pop("gateway.db") == 0o600
        assert set(modes.values()) == {0o600}, "the write-ahead log is as private as the database"


async def test_a_file_that_others_could_read_is_made_private(tmp_path: Path):
    path = tmp_path / "gateway.db"
    path.touch(0o644)

    async with open_database(str(path)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_settings_survive_power_cuts_and_keep_references_whole(database: Database):
    found = {name: (await database.fetch_all(f"PRAGMA {name}"))[0][0] for name in ("journal_mode", "synchronous")}

    assert found == {"journal_mode": "wal", "synchronous": 2}
    with pytest.raises(sqlite3.IntegrityError):
        await write(database, ADD, "UPDATE chats SET session_id = 'none' WHERE chat = ?")


async def test_only_what_may_be_lost_in_a_power_cut_is_spared_the_disk(database: Database):
    async def synchronous(**options: bool) -> int:
        async with database.transaction(**options) as tx:
            row = await tx.fetch_one("PRAGMA synchronous")
        assert row is not None
        return int(row[0])

    assert [await synchronous(), await synchronous(durable=False), await synchronous(durable=False)] == [2, 1, 1]
    assert await synchronous() == 2


async def test_a_change_of_durability_that_was_cut_off_is_made_again(database: Database):
    async def write() -> None:
        async with database.transaction(durable=False) as tx:
            await tx.execute(ADD, "x")

    for steps in range(4):
        task = asyncio.create_task(write())
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

        async with database.transaction() as tx:
            row = await tx.fetch_one("PRAGMA synchronous")
        assert row is not None
        assert row[0] == 2


async def test_a_transaction_that_raises_stores_nothing(database: Database):
    with pytest.raises(sqlite3.OperationalError):
        await write(database, ADD, "this is no SQL")

    await write(database, ADD)
    assert await chats(database) == ["x"]


async def write(database: Database, *statements: str) -> None:
    async with database.transaction() as tx:
        for statement in statements:
            await tx.execute(statement, "x")


@pytest.mark.parametrize("how", ["anyio", "asyncio"])
async def test_a_cancelled_transaction_stores_nothing_and_leaves_none_open(database: Database, how: str):
    written = anyio.Event()

    async def write() -> None:
        async with database.transaction() as tx:
            await tx.execute(ADD, "lost")
            written.set()
            await anyio.sleep_forever()

    if how == "anyio":
        async with anyio.create_task_group() as group:
            group.start_soon(write)
            await written.wait()
            group.cancel_scope.cancel()
    else:
        task = asyncio.create_task(write())
        await written.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async with database.transaction() as tx:
        await tx.execute(ADD, "kept")
    assert await chats(database) == ["kept"]


@pytest.mark.parametrize("steps", range(8))
async def test_a_cancellation_at_any_step_leaves_no_transaction_open(database: Database, steps: int):
    async def write() -> None:
        async with database.transaction() as tx:
            await tx.execute(ADD, "one")
            await tx.execute(ADD, "two")

    task = asyncio.create_task(write())
    await asyncio.sleep(0)
    for _ in range(steps):
        # Each wake-up of the loop takes the task one step further; where exactly it stands does not matter.
        await database_step(database)
    task.cancel()
    await asyncio.wait([task])

    assert await chats(database) in ([], ["one", "two"])
    async with database.transaction() as tx:
        await tx.execute(ADD, "kept")
    assert (await chats(database))[-1] == "kept"


async def database_step(database: Database) -> None:
    """Let the connection's thread do one thing, and the loop take note of it."""
    await database._connection.execute_fetchall("SELECT 1")


async def test_writers_wait_for_each_other(database: Database):
    async def write(number: int) -> None:
        async with database.transaction() as tx:
            before = await tx.fetch_one("SELECT count(*) AS n FROM chats")
            await anyio.lowlevel.checkpoint()
            assert before is not None
            await tx.execute(ADD, f"{before['n']}")

    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(write, number)

    assert await chats(database) == [str(number) for number in range(20)]


async def test_another_process_that_writes_is_waited_for(database: Database):
    def hold(begun: threading.Event, go_on: threading.Event) -> None:
        other = sqlite3.connect(database.path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        other.execute(ADD, ("theirs",))
        begun.set()
        go_on.wait()
        other.execute("COMMIT")
        other.close()

    begun, go_on = threading.Event(), threading.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(anyio.to_thread.run_sync, hold, begun, go_on)
        await anyio.to_thread.run_sync(begun.wait)
        async with anyio.create_task_group() as inner:
            inner.start_soon(write_ours, database)
            await anyio.wait_all_tasks_blocked()
            go_on.set()

    assert await chats(database) == ["theirs", "ours"]


async def write_ours(database: Database) -> None:
    async with database.transaction() as tx:
        await tx.execute(ADD, "ours")


async def test_a_commit_that_fails_is_rolled_back_and_said(database: Database):
    pages = (await database.fetch_all("PRAGMA page_count"))[0][0]
    await database.fetch_all(f"PRAGMA max_page_count = {pages}")

    with pytest.raises(DatabaseUnusable, match=r"full.*Nothing was stored"):
        async with database.transaction() as tx:
            await tx.execute(ADD, "x" * 100_000)

    await database.fetch_all("PRAGMA max_page_count = 100000")
    async with database.transaction() as tx:
        await tx.execute(ADD, "kept")
    assert await chats(database) == ["kept"]


@pytest.mark.parametrize(
    "text",
    ["", "plain", '"quoted"', '"', "\udcff\udc80.txt", "nul\0inside", "表\U0001f4f8", '"\udcff', "[1]", "\ud83d"],
)
async def test_every_string_comes_back_as_it_was(database: Database, text: str):
    async with database.transaction() as tx:
        await tx.execute(ADD, text)

    assert await chats(database) == [text]
    found = await database.fetch_all("SELECT chat FROM chats WHERE chat = ?", text)
    assert len(found) == 1


async def test_bytes_stay_bytes(database: Database):
    rows = await database.fetch_all("SELECT ? AS b", b'"\xff\x00')

    assert rows[0]["b"] == b'"\xff\x00'


async def test_a_file_that_is_no_database_is_said_and_left_alone(tmp_path: Path):
    path = tmp_path / "gateway.db"
    path.write_bytes(b"these are my notes, not a database " * 100)

    with pytest.raises(DatabaseDamaged, match=r"left as it is.*recover"):
        async with open_database(str(path)):
            pass

    assert path.read_bytes().startswith(b"these are my notes")


async def test_a_damaged_page_is_found_on_open(tmp_path: Path):
    path = tmp_path / "gateway.db"
    async with open_database(str(path)) as database, database.transaction() as tx:
        for number in range(500):
            await tx.execute(ADD, f"{number}" * 50)
    whole = bytearray(path.read_bytes())
    middle = len(whole) // 2 // 4096 * 4096
    whole[middle : middle + 4096] = b"\x5a" * 4096
    path.write_bytes(whole)

    with pytest.raises(DatabaseDamaged, match="damaged"):
        async with open_database(str(path)):
            pass

    assert path.read_bytes() == bytes(whole)
    assert len(whole) < CHECKED_ON_OPEN_BYTES


async def test_check_names_rows_that_point_nowhere(database: Database):
    assert await database.check() == []
    await database.fetch_all("PRAGMA foreign_keys = OFF")
    async with database.transaction() as tx:
        await tx.execute(ADD, "x")
        await tx.execute("UPDATE chats SET session_id = 's-none'")

    assert await database.check() == ["row 1 of chats points to a missing row of sessions"]


async def test_a_database_of_a_newer_version_is_refused(tmp_path: Path):
    path = str(tmp_path / "gateway.db")
    async with open_database(path) as database:
        await database.fetch_all(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")

    with pytest.raises(DatabaseTooNew, match="Upgrade takeback"):
        async with open_database(path):
            pass


async def test_a_migration_that_fails_leaves_the_version_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = str(tmp_path / "gateway.db")
    broken = (*MIGRATIONS, ("CREATE TABLE half (id INTEGER)", "CREATE TABLE chats (id INTEGER)"))
    monkeypatch.setattr("gateway.state.database.MIGRATIONS", broken)

    with pytest.raises(sqlite3.OperationalError):
        async with open_database(path):
            pass

    monkeypatch.undo()
    async with open_database(path) as database:
        assert (await database.fetch_all("PRAGMA user_version"))[0][0] == len(MIGRATIONS)
        assert await database.fetch_all("SELECT 1 FROM sqlite_schema WHERE name = 'half'") == []


async def test_opening_again_keeps_what_is_there(tmp_path: Path):
    path = str(tmp_path / "gateway.db")
    async with open_database(path) as database, database.transaction() as tx:
        await tx.execute(ADD, "kept")

    async with open_database(path) as database:
        assert await chats(database) == ["kept"]


async def test_two_processes_may_migrate_at_once(tmp_path: Path):
    path = str(tmp_path / "gateway.db")

    async def open_and_close() -> None:
        async with open_database(path) as database:
            assert await database.check() == []

    async with anyio.create_task_group() as group:
        for _ in range(4):
            group.start_soon(open_and_close)


async def test_a_directory_that_cannot_be_made_is_said(tmp_path: Path):
    (tmp_path / "file").write_text("")

    with pytest.raises(DatabaseUnusable, match="file is not a directory"):
        async with open_database(str(tmp_path / "file" / "gateway.db")):
            pass


@pytest.mark.parametrize("failing", ["body", "open", "cancelled"])
async def test_the_connections_thread_always_ends(tmp_path: Path, failing: str):
    path = tmp_path / "gateway.db"
    if failing == "open":
        path.write_bytes(b"no database" * 100)

    with anyio.CancelScope() as scope:
        with pytest.raises(ZeroDivisionError) if failing == "body" else anyio.CancelScope():
            try:
                async with open_database(str(path)):
                    if failing == "body":
                        raise ZeroDivisionError
                    scope.cancel()
                    await anyio.sleep_forever()
            except DatabaseDamaged:
                assert failing == "open"
    gc.collect()

    for thread in threading.enumerate():
        if "_connection_worker_thread" in thread.name:
            await anyio.to_thread.run_sync(thread.join, 10)
            assert not thread.is_alive()


async def test_a_file_that_is_gone_or_another_is_not_proved_writable(database: Database):
    """The open file can still be written; nobody will find again what is."""
    path = anyio.Path(database.path)
    kept = await path.rename(f"{path}.kept")
    with pytest.raises(DatabaseUnusable, match="removed or replaced"):
        await database.prove_writable()

    await path.write_bytes(b"")
    with pytest.raises(DatabaseUnusable, match="removed or replaced"):
        await database.prove_writable()

    await kept.rename(path)
    await database.prove_writable()


async def test_it_is_proved_writable_by_writing(database: Database):
    log = anyio.Path(f"{database.path}-wal")
    before = (await log.stat()).st_size

    await database.prove_writable()

    assert (await log.stat()).st_size > before
    await database.fetch_all("PRAGMA query_only = 1")
    with pytest.raises(DatabaseUnusable):
        await database.prove_writable()
