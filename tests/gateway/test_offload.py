"""The engine is called in order per workspace, and beside where nothing is written."""

import asyncio
from pathlib import Path

import anyio
import pytest

from engine.errors import EngineError, UnknownCheckpoint
from engine.model import Limits, ToolCall, TurnRef, Workspace
from gateway.offload import Offload
from tests.gateway.gateway_kit import make_engine


@pytest.fixture
def engine(clean_home: Path):
    return make_engine(clean_home)


@pytest.fixture
def offload(engine) -> Offload:
    return Offload(engine)


@pytest.fixture
async def workspace(offload: Offload, tmp_path: Path) -> Workspace:
    return await open_below(offload, tmp_path / "project")


async def open_below(offload: Offload, path: Path) -> Workspace:
    await anyio.Path(path).mkdir()
    await anyio.Path(path / "Makefile").touch()
    return await offload.open_workspace(str(path))


def call(workspace: Workspace, operation: str = "o1", *, guarded: bool = False) -> ToolCall:
    return ToolCall(workspace, TurnRef("console:here", "s-1", operation), guarded, operation)


async def test_calls_that_write_a_workspace_keep_their_order(offload: Offload, workspace: Workspace):
    async with anyio.create_task_group() as group:
        for number in range(5):
            command = f"echo begin {number} >> log; sleep 0.02; echo end {number} >> log"
            group.start_soon(offload.terminal, call(workspace, f"o{number}"), command)
            await anyio.wait_all_tasks_blocked()

    lines = (Path(workspace.root) / "log").read_text().splitlines()
    assert lines == [f"{word} {number}" for number in range(5) for word in ("begin", "end")]


async def test_workspaces_do_not_wait_for_each_other(offload: Offload, workspace: Workspace, tmp_path: Path):
    other = await open_below(offload, tmp_path / "other")
    wait = "touch mine; until [ -e {0}/mine ]; do sleep 0.01; done"

    async with anyio.create_task_group() as group:
        group.start_soon(offload.terminal, call(workspace, "o1"), wait.format(other.root))
        group.start_soon(offload.terminal, call(other, "o2"), wait.format(workspace.root))


async def test_what_only_reads_runs_beside_a_command(engine, workspace: Workspace):
    """Also when every thread for writing is taken."""
    offload = Offload(engine, writers=1)
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()
    async with anyio.create_task_group() as group:
        group.start_soon(
            lambda: offload.terminal(
                call(workspace),
                "echo begun; until [ -e over ]; do sleep 0.01; done",
                on_output=lambda _: loop.call_soon_threadsafe(begun.set),
            )
        )
        await begun.wait()

        assert await offload.checkpoints(workspace) == []
        assert (await offload.read_file(call(workspace, "o2"), "Makefile")).ok
        await anyio.Path(workspace.root, "over").touch()


async def test_stop_passes_every_queue(engine, workspace: Workspace):
    """The only thread for writing is taken by the command that is to be stopped, and another waits behind it."""
    offload = Offload(engine, writers=1, readers=1)
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()
    results = []

    async def run() -> None:
        results.append(
            await offload.terminal(
                call(workspace),
                "echo begun; sleep 1000",
                on_output=lambda _: loop.call_soon_threadsafe(begun.set),
            )
        )

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await begun.wait()
        group.start_soon(offload.write_file, call(workspace, "o2"), "a.txt", b"a")

        assert await offload.stop("o1")

    assert not results[0].ok
    assert (Path(workspace.root) / "a.txt").read_bytes() == b"a"
    assert not (await offload.write_file(call(workspace), "late.txt", b"late")).ok, "a stopped operation stays stopped"
    assert not (Path(workspace.root) / "late.txt").exists()


async def test_a_command_whose_caller_is_cancelled_by_asyncio_runs_to_its_end_first(
    offload: Offload, workspace: Workspace
):
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()
    task = asyncio.create_task(
        offload.terminal(
            call(workspace),
            "echo begun; until [ -e over ]; do sleep 0.01; done; touch done",
            on_output=lambda _: loop.call_soon_threadsafe(begun.set),
        )
    )
    await begun.wait()
    task.cancel()
    waiting = asyncio.create_task(offload.write_file(call(workspace, "o2"), "next.txt", b"x"))
    await anyio.wait_all_tasks_blocked()
    assert not task.done()
    assert not waiting.done(), "the workspace is still being written"

    await anyio.Path(workspace.root, "over").touch()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert (Path(workspace.root) / "done").exists()
    assert (await waiting).ok


async def test_the_engines_refusals_come_through(offload: Offload, workspace: Workspace):
    await offload.checkpoint(workspace, "a point")

    with pytest.raises(UnknownCheckpoint):
        await offload.find_checkpoint(workspace, "0000000")
    with pytest.raises(EngineError):
        await offload.open_workspace("/")


async def test_every_call_reaches_the_engine(offload: Offload, tmp_path: Path, workspace: Workspace):
    root = Path(workspace.root)
    turn = TurnRef("console:here", "s-1", "1")
    at = ToolCall(workspace, turn, guarded=True, operation="o1")
    assert await offload.availability() is None
    assert (await offload.open_workspace(str(root), Limits(max_snapshots=3))).limits.max_snapshots == 3
    await offload.begin_session(workspace, "s-1")

    written = await offload.write_file(at, "a.txt", b"one\n")
    patched = await offload.patch(at, "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n")
    assert (written.ok, patched.ok) == (True, True)

    (checkpoint,) = await offload.checkpoints(workspace)
    assert await offload.find_checkpoint(workspace, checkpoint.id[:8]) == checkpoint
    assert "two" in (await offload.diff(workspace, checkpoint.id)).patch
    assert await offload.turn_diff(workspace, "1") is not None
    assert await offload.session_diff(workspace, "s-1") is not None
    plan = await offload.plan_restore(workspace, checkpoint.id, turns=("1",), chat="console:here", token="t1")
    report = await offload.apply_restore(plan, turn=turn, replaced_head="1")
    assert [note.path for note in report.deleted] == ["a.txt"]
    assert not (root / "a.txt").exists()
    assert await offload.resume_restores(workspace) == []
    outcome = await offload.restore_outcome(workspace, "t1")
    assert outcome is not None
    assert await offload.restore_outcome(workspace, "none") is None


async def test_locks_of_workspaces_are_not_kept(offload: Offload, workspace: Workspace):
    await offload.write_file(call(workspace), "a.txt", b"a")

    assert len(offload._locks) == 0
