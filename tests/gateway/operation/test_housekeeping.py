"""What a running service tidies by itself, on a store with real checkpoints."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import anyio
import pytest

from adapters.contract import Attachment, Place
from engine.api import Engine, PrunePolicy
from engine.host.locks import hold
from engine.model import ToolCall, TurnRef, Workspace
from gateway.config.settings import Checkpoints, Settings
from gateway.config.settings import Workspace as Configured
from gateway.offload import Offload
from gateway.operation.housekeeping import Housekeeping, Tidying
from gateway.operation.measures import Measure, Pruned, RowsExpired, StoreMeasured, Ticked
from gateway.pruning import make_prune_policy
from gateway.state.memory import Memory, open_memory
from gateway.state.sent import KEPT
from gateway.state.turns import TurnState
from gateway.turns.enclosures import Enclosures
from tests.gateway.state.kit import HERE, THERE, MovedClock, message


@pytest.fixture
def base(tmp_path) -> str:
    return str(tmp_path / "home" / "checkpoints")


@pytest.fixture
def engine(base, tmp_path) -> Engine:
    return Engine(base, user_home=str(tmp_path / "user"), search_path=os.environ["PATH"])


@pytest.fixture
def impatient(base) -> Engine:
    """The same store, for one that does not wait long for a lock."""
    return Engine(base, user_home="/nonexistent", search_path=os.environ["PATH"], lock_wait_s=0.05)


@pytest.fixture
def gitless(base) -> Engine:
    """The same store on a machine without git."""
    return Engine(base, user_home="/nonexistent", search_path="/nonexistent")


@pytest.fixture
def workspace(engine, tmp_path) -> Workspace:
    """A workspace with three checkpoints."""
    path = tmp_path / "project"
    path.mkdir()
    opened = engine.open_workspace(str(path))
    for number in range(3):
        (path / "file").write_text(str(number))
        engine.checkpoint(opened, f"number {number}")
    return opened


@pytest.fixture
async def memory(tmp_path, clock):
    async with open_memory(str(tmp_path / "home"), clock=clock) as memory:
        yield memory


@pytest.fixture
def clock() -> MovedClock:
    return MovedClock()


async def held(engine: Engine, workspace: Workspace) -> list[str]:
    """The reasons of a workspace's checkpoints, newest first."""
    return [checkpoint.reason for checkpoint in await Offload(engine).checkpoints(workspace)]


@contextmanager
def somebody_at_work(engine: Engine) -> Iterator[None]:
    """The store's lock is held by another thread of this machine, as by a gc."""
    begun, ended = threading.Event(), threading.Event()

    def work() -> None:
        lock = os.path.join(os.path.dirname(engine.upkeep.status().base), ".checkpoints.lock")
        with hold(lock, shared=False, wait_s=10, purpose="a gc"):
            begun.set()
            ended.wait()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert begun.wait(10)
        yield
    finally:
        ended.set()
        thread.join()


def housekeeping(memory: Memory, engine: Engine, seen: list[Measure], **tidying) -> Housekeeping:
    return Housekeeping(memory, Offload(engine), Tidying(**{"idle": timedelta(days=30), **tidying}), note=seen.append)


async def test_a_pass_prunes_when_it_is_time_and_not_again_before(memory, engine, workspace, tmp_path):
    seen: list[Measure] = []
    tidy = housekeeping(memory, engine, seen, policy=PrunePolicy(max_snapshots=1))

    await tidy.tick()
    first = await held(engine, workspace)
    (tmp_path / "project" / "file").write_text("later")
    await Offload(engine).checkpoint(workspace, "later")
    await tidy.tick()

    assert first == ["number 2"]
    assert len(await held(engine, workspace)) == 2
    (pruned,) = [measure for measure in seen if isinstance(measure, Pruned)]
    assert (pruned.outcome, pruned.dropped, pruned.errors) == ("done", 2, 0)


async def test_without_a_policy_nothing_is_pruned(memory, engine, workspace):
    seen: list[Measure] = []

    await housekeeping(memory, engine, seen).tick()

    assert len(await held(engine, workspace)) == 3
    assert not any(isinstance(measure, Pruned) for measure in seen)


async def test_a_pass_leaves_one_line_and_its_numbers(memory, engine, workspace, clock, caplog):
    caplog.set_level("INFO", "gateway.operation.housekeeping")
    await memory.inbox.done(await memory.inbox.accept(message("hello", "e1")))
    clock.advance(timedelta(days=4))
    seen: list[Measure] = []

    await housekeeping(memory, engine, seen, policy=PrunePolicy()).tick()

    (line,) = [record for record in caplog.records if record.name == "gateway.operation.housekeeping"]
    assert line.getMessage() == "tidied"
    assert (line.expired_messages, line.expired_replies, line.checkpoints, line.dropped) == (1, 0, 3, 0)
    assert line.store_bytes > 0
    assert RowsExpired("messages", 1) in seen
    (measured,) = [measure for measure in seen if isinstance(measure, StoreMeasured)]
    assert (measured.workspaces, measured.checkpoints) == (1, 3)
    (ticked,) = [measure for measure in seen if isinstance(measure, Ticked)]
    assert ticked.failures == 0


async def test_a_cap_out_of_reach_is_logged_with_what_holds_the_space(memory, engine, workspace, caplog):
    caplog.set_level("INFO", "gateway.operation.housekeeping")

    await housekeeping(memory, engine, [], policy=PrunePolicy(max_size_bytes=100)).tick()

    warning, line = (record for record in caplog.records if record.name == "gateway.operation.housekeeping")
    assert warning.levelname == "WARNING"
    assert "no rule lets more go. It holds " in warning.getMessage()
    assert line.getMessage() == "tidied"
    assert line.over_cap_bytes == (await Offload(engine).store_status()).store_bytes - 100
    assert line.failures == 0


async def test_what_people_sent_goes_when_its_time_is_over(memory, engine, workspace, clock):
    session = await memory.sessions.start(HERE, workspace="p", root=workspace.root)
    turn = await memory.turns.begin(session.id, "look")
    await memory.turns.finish(turn.id, TurnState.DONE)
    offload = Offload(engine)
    call = ToolCall(workspace, TurnRef("chat", "session", str(turn.id)), guarded=False, operation="keeping")
    sent = [Attachment("notes.txt", b"mine"), Attachment("plan.txt", b"mine")]
    await Enclosures(memory, offload).keep(turn, call, sent)
    kept = Path(workspace.root) / offload.sent_path(f"{turn.id}-notes.txt")
    keeper = housekeeping(memory, engine, [])
    await keeper.tick()
    assert kept.exists()
    (kept.parent / "own.txt").write_text("a person's own")
    in_the_way = kept.with_name(f"{turn.id}-plan.txt")
    in_the_way.unlink()
    in_the_way.mkdir()

    clock.advance(KEPT + timedelta(hours=1))
    await keeper.tick()

    assert sorted(path.name for path in kept.parent.iterdir()) == [in_the_way.name, "own.txt"]
    assert await memory.sent.old() == {}


async def test_an_idle_session_ends_with_its_baseline_and_the_next_message_begins_another(
    memory, engine, workspace, clock
):
    idle = await memory.sessions.start(HERE, workspace="p", root=workspace.root)
    await Offload(engine).begin_session(workspace, idle.id)
    clock.advance(timedelta(days=31))
    busy = await memory.sessions.start(THERE, workspace="p", root=workspace.root)
    await Offload(engine).begin_session(workspace, busy.id)

    await housekeeping(memory, engine, [], policy=PrunePolicy(retention_days=None)).tick()

    assert await memory.sessions.current(HERE) is None
    assert await memory.sessions.current(THERE) == busy
    assert (await memory.sessions.get(idle.id)).ended_at == clock()
    assert await Offload(engine).session_diff(workspace, idle.id) is None
    assert await Offload(engine).session_diff(workspace, busy.id) is not None


async def test_a_session_in_which_something_was_said_or_still_runs_goes_on(memory, engine, workspace, clock):
    spoken, running = Place("console", "spoken"), Place("console", "running")
    for place in (spoken, running):
        session = await memory.sessions.start(place, workspace="p", root=workspace.root)
        if place == running:
            await memory.turns.begin(session.id, "work", inbox_id=await memory.inbox.accept(message("", "e1", place)))
    clock.advance(timedelta(days=20))
    session = await memory.sessions.current(spoken)
    turn = await memory.turns.begin(session.id, "hello", inbox_id=await memory.inbox.accept(message("", "e2", spoken)))
    await memory.turns.finish(turn.id, TurnState.DONE, replies=(), inbox_id=None)
    clock.advance(timedelta(days=20))

    await housekeeping(memory, engine, []).tick()

    assert await memory.sessions.current(spoken) is not None
    assert await memory.sessions.current(running) is not None


async def test_a_busy_store_keeps_nothing_else_from_being_tidied(memory, engine, impatient, workspace, clock, caplog):
    """Somebody else works in the store for longer than the bounded wait."""
    await memory.inbox.done(await memory.inbox.accept(message("hello", "e1")))
    clock.advance(timedelta(days=4))
    seen: list[Measure] = []
    with somebody_at_work(engine):
        await housekeeping(memory, impatient, seen, policy=PrunePolicy(max_snapshots=1)).tick()

    assert RowsExpired("messages", 1) in seen
    assert "the store was not pruned" in caplog.text
    assert [measure.failures for measure in seen if isinstance(measure, Ticked)] == [1]
    assert len(await held(engine, workspace)) == 3


async def test_passes_begin_after_the_start_and_go_on_until_the_service_stops(memory, engine, workspace):
    offload = Offload(engine)
    tidying = Tidying(timedelta(days=30), PrunePolicy(max_snapshots=1), min_interval_hours=0, first_s=0.01, tick_s=0.01)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(Housekeeping(memory, offload, tidying).run)
            while len(await offload.checkpoints(workspace)) > 1:
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()

    assert (await anyio.to_thread.run_sync(engine.upkeep.verify)).healthy


async def test_a_store_that_cannot_be_pruned_is_logged_and_ends_nothing(memory, engine, gitless, workspace, caplog):
    await housekeeping(memory, gitless, [], policy=PrunePolicy()).tick()

    said = [record for record in caplog.records if record.name == "gateway.operation.housekeeping"]
    assert {record.levelname for record in said} <= {"ERROR", "WARNING"}
    assert "git cannot be used" in said[0].getMessage()
    assert len(await held(engine, workspace)) == 3


def test_a_workspace_that_is_not_pruned_by_itself_is_pruned_when_asked(engine, workspace):
    own = Configured(path=workspace.root, checkpoints=Checkpoints(auto_prune=False, max_snapshots=2))
    settings = Settings(workspaces={"p": own})

    by_itself = make_prune_policy(settings, engine, asked_for=False).rule_of(workspace.hash)
    asked_for = make_prune_policy(settings, engine, retention_days=3).rule_of(workspace.hash)

    assert (by_itself.retention_days, by_itself.max_snapshots) == (None, None)
    assert (asked_for.retention_days, asked_for.max_snapshots) == (3, 2)


async def test_a_part_that_breaks_is_logged_and_ends_nothing(memory, engine, workspace, monkeypatch, caplog):
    def breaks() -> None:
        raise PermissionError(13, "Permission denied", "store/objects")

    monkeypatch.setattr(engine.upkeep, "status", breaks)
    seen: list[Measure] = []

    await housekeeping(memory, engine, seen, policy=PrunePolicy(max_snapshots=1)).tick()

    assert [measure.failures for measure in seen if isinstance(measure, Ticked)] == [1]
    assert "PermissionError" in caplog.text
    assert len(await held(engine, workspace)) == 1
