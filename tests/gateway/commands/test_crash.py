"""Files and conversation after a crash in the middle of a restore, and when only one half succeeds."""

import errno
import logging
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from anyio import to_thread

from adapters.contract import Inbound, Place
from engine.api import Engine
from gateway.offload import Offload
from gateway.state import database, patience
from gateway.state.memory import open_memory
from gateway.state.restores import RestoreKind, RestoreState
from tests.gateway.commands.kit import (
    COMMAND_ENV,
    PLATFORM,
    plain_engine,
    rename,
    running_gateway,
    settings_for,
    tree_of,
)


class Killed(BaseException):
    """Stands for the end of the process: nothing catches it."""


def faulty_engine(fault: Callable[[str, str], None]) -> Callable[[str, str], Engine]:
    def make(home: str, user_home: str) -> Engine:
        return Engine(
            os.path.join(home, "checkpoints"),
            user_home=user_home,
            command_env=COMMAND_ENV,
            search_path=os.environ["PATH"],
            file_fault=fault,
        )

    return make


async def planned_restore(
    home: Path, app: Path, *, applied: bool = True, fault: Callable[[str, str], None] | None = None
) -> None:
    """Leave a home as a process leaves it that dies while it carries out ``/rollback 1`` for its chat.

    With ``fault`` it dies in the middle of the files; with ``applied`` false before the first one.
    """
    async with running_gateway(home, settings_for(app)) as gateway:
        await gateway.chat().say("/write app.py\nagent\n")
        await gateway.chat().say("$ echo agent > notes.md; echo agent > new.py")
        await gateway.chat().say("/rollback")
    make = faulty_engine(fault) if fault else plain_engine
    async with open_memory(str(home)) as memory:
        offload = Offload(await to_thread.run_sync(make, str(home), str(home.parent / "user")))
        place = Place(PLATFORM, "main")
        inbox_id = await memory.inbox.accept(Inbound(place, "ann", "crashed", "/rollback 2"))
        assert inbox_id is not None
        await memory.inbox.begin(inbox_id)
        session = await memory.sessions.current(place)
        assert session is not None
        workspace = await offload.open_workspace(str(app))
        plan = await offload.plan_restore(workspace, (await offload.checkpoints(workspace))[1].id)
        await memory.restores.plan(
            session.id,
            token=plan.token,
            kind=RestoreKind.ROLLBACK,
            checkpoint_id=plan.target.id,
            new_head=None,
            inbox_id=inbox_id,
        )
        if fault:
            with pytest.raises(Killed):
                await offload.apply_restore(plan)
        elif applied:
            await offload.apply_restore(plan)


def dies_at(count: int) -> Callable[[str, str], None]:
    """Make a fault that ends the process at the given file operation."""
    seen: list[str] = []

    def fault(operation: str, path: str) -> None:
        seen.append(path)
        if len(seen) == count:
            raise Killed

    return fault


async def test_crash_after_the_files_moves_the_conversation_at_the_next_start(home: Path, app: Path) -> None:
    await planned_restore(home, app)

    async with running_gateway(home, settings_for(app)) as gateway:
        said = await gateway.chat().told()

        assert await gateway.chat().head() is None
    assert tree_of(app) == {"app.py": b"one\ntwo\n", "notes.md": b"mine\n"}
    assert said.lines[0] == "Takeback was ended in the middle of this restore; it is finished now."
    assert said.lines[1].startswith("✅ Restored to checkpoint ")
    assert said.lines[-1] == "↩ Undid 2 turns. /redo brings files and turns back."


@pytest.mark.parametrize("count", [1, 2, 3])
async def test_crash_between_two_files_finishes_both_halves_at_the_next_start(
    home: Path, app: Path, count: int
) -> None:
    await planned_restore(home, app, fault=dies_at(count))

    async with running_gateway(home, settings_for(app)) as gateway:
        chat = gateway.chat()
        assert tree_of(app) == {"app.py": b"one\ntwo\n", "notes.md": b"mine\n"}
        assert await chat.head() is None
        await chat.say("/redo")

        assert tree_of(app) == {"app.py": b"agent\n", "notes.md": b"agent\n", "new.py": b"agent\n"}
        assert await chat.head() is not None


async def test_crash_before_the_files_has_the_command_carried_out_at_the_next_start(home: Path, app: Path) -> None:
    await planned_restore(home, app, applied=False)

    async with running_gateway(home, settings_for(app)) as gateway:
        said = await gateway.chat().answer_to("crashed")

        assert await gateway.chat().head() is None
    assert tree_of(app) == {"app.py": b"one\ntwo\n", "notes.md": b"mine\n"}
    assert said.lines[0].startswith("✅ Restored to checkpoint ")


async def test_settled_restore_is_not_settled_again(home: Path, app: Path) -> None:
    await planned_restore(home, app)
    async with running_gateway(home, settings_for(app)) as gateway:
        await gateway.chat().say("/write app.py\nlater\n")

    async with running_gateway(home, settings_for(app)) as gateway:
        assert await gateway.memory.restores.planned() == []
        assert gateway.platform.sent == []
    assert (app / "app.py").read_bytes() == b"later\n"


async def test_conversation_alone_is_moved_at_the_next_start(home: Path, app: Path) -> None:
    async with running_gateway(home, settings_for(app)) as gateway:
        await gateway.chat().say("/read app.py")
    async with open_memory(str(home)) as memory:
        session = await memory.sessions.current(Place(PLATFORM, "main"))
        assert session is not None
        await memory.restores.plan(session.id, token="t", kind=RestoreKind.UNDO, checkpoint_id=None, new_head=None)

    async with running_gateway(home, settings_for(app)) as gateway:
        assert await gateway.chat().head() is None
        restore = await gateway.memory.restores.find("t")
        assert restore is not None
        assert restore.state is RestoreState.DONE


async def test_interrupted_restore_of_a_missing_directory_waits_for_it(home: Path, app: Path) -> None:
    await planned_restore(home, app)
    rename(app, "unmounted")
    async with running_gateway(home, settings_for(app)) as gateway:
        said = await gateway.chat().told()
        assert "which cannot be finished yet" in said.text
        assert str(app) in said.text
    rename(app.with_name("unmounted"), app.name)

    async with running_gateway(home, settings_for(app)) as gateway:
        assert await gateway.chat().head() is None


class Refusing:
    """A fault that refuses to touch one path while it is switched on."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.on = False

    def __call__(self, _operation: str, path: str) -> None:
        if self.on and path == self.path:
            raise PermissionError(errno.EACCES, "Permission denied")


@pytest.mark.parametrize("command", ["/rollback 1", "/undo"])
async def test_half_of_the_files_leaves_the_conversation_and_says_so(home: Path, app: Path, command: str) -> None:
    fault = Refusing("notes.md")
    async with running_gateway(home, settings_for(app), make_engine=faulty_engine(fault)) as gateway:
        chat = gateway.chat()
        await chat.say("$ echo agent > notes.md; echo agent > app.py")
        head = await chat.head()
        fault.on = True

        said = await chat.say(command)

        assert said.lines[0].startswith(("⚠ Restored only in part", "⚠ Took back only a part of the last turn"))
        assert "  Restored: app.py" in said.lines
        assert "✗ Could not be restored, still as before: notes.md (" in said.text
        assert said.lines[-1] == (
            "⚠ Only files went back; the conversation was left as it is: not every file could be restored."
        )
        assert await chat.head() == head
        assert tree_of(app) == {"app.py": b"one\ntwo\n", "notes.md": b"agent\n"}

        fault.on = False
        again = await chat.say("/rollback 2" if command.startswith("/rollback") else command)

        assert tree_of(app) == {"app.py": b"one\ntwo\n", "notes.md": b"mine\n"}
        assert "↩ Undid 1 turn." in again.text
        assert await chat.head() is None


async def test_half_of_a_redo_can_be_asked_for_again(home: Path, app: Path) -> None:
    fault = Refusing("notes.md")
    async with running_gateway(home, settings_for(app), make_engine=faulty_engine(fault)) as gateway:
        chat = gateway.chat()
        await chat.say("$ echo agent > notes.md; echo agent > app.py")
        head = await chat.head()
        await chat.say("/undo")
        fault.on = True
        await chat.say("/redo")
        assert await chat.head() is None
        fault.on = False

        await chat.say("/redo")

        assert tree_of(app) == {"app.py": b"agent\n", "notes.md": b"agent\n"}
        assert await chat.head() == head


class Locking(logging.Handler):
    """Holds the database against the gateway from the first change of a file until it complains."""

    def __init__(self, home: Path) -> None:
        super().__init__()
        self.path = home / "gateway.db"
        self.on = False
        self.connection: sqlite3.Connection | None = None

    def __call__(self, _operation: str, _path: str) -> None:
        if self.on and self.connection is None:
            self.connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
            self.connection.execute("BEGIN IMMEDIATE")

    def emit(self, record: logging.LogRecord) -> None:
        assert "cannot be used" in record.getMessage()
        assert self.connection is not None
        self.connection.close()


@pytest.mark.parametrize("command", ["/rollback 1", "/undo", "/retry"])
async def test_conversation_that_could_not_follow_the_files_is_said_and_follows_at_the_next_start(
    home: Path, app: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 0.05)
    locking = Locking(home)
    async with running_gateway(home, settings_for(app), make_engine=faulty_engine(locking)) as gateway:
        chat = gateway.chat()
        await chat.say("$ echo agent >> app.py")
        head = await chat.head()
        logging.getLogger(patience.__name__).addHandler(locking)
        locking.on = True
        try:
            said = await chat.say(command)
        finally:
            logging.getLogger(patience.__name__).removeHandler(locking)

        assert "⚠ Only files went back; the conversation was left as it is: the database" in said.text
        assert tree_of(app) == {"app.py": b"one\ntwo\n", "notes.md": b"mine\n"}
        assert await chat.head() == head

    async with running_gateway(home, settings_for(app)) as gateway:
        told = await gateway.chat().told()

        assert told.lines[0] == "Takeback was ended in the middle of this restore; it is finished now."
        assert "↩ Undid 1 turn." in told.text
        assert await gateway.chat().head() is None
        assert tree_of(app) == {"app.py": b"one\ntwo\n", "notes.md": b"mine\n"}


async def test_retry_does_not_run_a_turn_whose_files_did_not_go_back(home: Path, app: Path) -> None:
    fault = Refusing("app.py")
    async with running_gateway(home, settings_for(app), make_engine=faulty_engine(fault)) as gateway:
        chat = gateway.chat()
        await chat.say("$ echo x >> app.py; echo y >> notes.md")
        fault.on = True

        await chat.say("/retry")

    assert (app / "app.py").read_bytes() == b"one\ntwo\nx\n"


async def test_failed_safety_checkpoint_means_nothing_is_restored(
    home: Path, app: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(*_arguments: object) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async with running_gateway(home, settings_for(app)) as gateway:
        chat = gateway.chat()
        await chat.say("/write app.py\nagent\n")
        head = await chat.head()
        with monkeypatch.context() as full:
            full.setattr("engine.checkpoints.history.write_commit", no_space)

            said = await chat.say("/rollback 1")

        assert said.text.startswith("Nothing was restored: the safety checkpoint that makes it undoable")
        assert "No space left on device" in said.text
        row = await gateway.memory.database.fetch_one("SELECT state FROM restores")
        assert row is not None
        assert row["state"] == RestoreState.REFUSED
        assert (app / "app.py").read_bytes() == b"agent\n"
        assert await chat.head() == head
        await chat.say("/rollback 1")
        assert (app / "app.py").read_bytes() == b"one\ntwo\n"


async def test_deleted_store_is_said_and_no_file_is_taken_for_absent(home: Path, app: Path) -> None:
    async with running_gateway(home, settings_for(app)) as gateway:
        chat = gateway.chat()
        await chat.say("/write app.py\nagent\n")
        await chat.say("/rollback")
        before, head = tree_of(app), await chat.head()
        shutil.rmtree(home / "checkpoints")

        said = await chat.say("/rollback 1")

        assert "is gone: the store holds no checkpoint of this workspace any more" in said.text
        assert tree_of(app) == before
        assert await chat.head() == head


@pytest.mark.parametrize("command", ["/rollback 1", "/undo"])
@pytest.mark.parametrize("kept", ["commit tree", ""])
async def test_missing_objects_are_said_and_no_file_is_taken_for_absent(
    home: Path, app: Path, command: str, kept: str
) -> None:
    async with running_gateway(home, settings_for(app)) as gateway:
        chat = gateway.chat()
        await chat.say("/write app.py\nagent\n")
        before, head = tree_of(app), await chat.head()
        damage(home / "checkpoints" / "store", kept.split())

        said = await chat.say(command)

        assert "gateway checkpoints verify" in said.text
        assert tree_of(app) == before
        assert await chat.head() == head


def damage(store: Path, kept: Sequence[str]) -> None:
    """Take objects out of a store, but for some kinds."""
    git = ["git", f"--git-dir={store}"]
    for pack in (store / "objects" / "pack").glob("*.pack"):
        content = pack.read_bytes()
        for path in pack.parent.glob(f"{pack.stem}.*"):
            path.unlink()
        subprocess.run([*git, "unpack-objects", "-q"], input=content, check=True, timeout=30)
    listed = subprocess.run(
        [*git, "cat-file", "--batch-check", "--batch-all-objects"],
        check=True,
        timeout=30,
        capture_output=True,
        text=True,
    )
    for oid, kind, _ in map(str.split, listed.stdout.splitlines()):
        if kind not in kept:
            (store / "objects" / oid[:2] / oid[2:]).unlink()
