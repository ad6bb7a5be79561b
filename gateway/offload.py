"""The only caller of the engine: every blocking call in a worker thread, in order per workspace, never lost sight of.

What writes a workspace waits its turn there; what only reads runs beside. A cancelled caller waits until its thread has
ended and is cancelled then, also when the cancellation is asyncio's own rather than anyio's, so no call ever goes on
unseen. ``stop`` passes all queues.
"""

import asyncio
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Generic, TypeVar
from weakref import WeakValueDictionary

import anyio
import anyio.lowlevel
from anyio import CapacityLimiter, to_thread

from engine.model import (
    WHOLE,
    Checkpoint,
    CheckpointResult,
    DiffResult,
    Limits,
    Lines,
    RestorePlan,
    RestoreReport,
    ToolCall,
    ToolResult,
    TurnRef,
    Understanding,
    Wanted,
    Workspace,
)

if TYPE_CHECKING:
    # Whoever makes the engine has imported it; asking for a list of commands does not need git.
    from engine.api import Engine, PrunePolicy, PruneReport, StoreStatus
    from engine.store.claims import Claim
    from engine.upkeep.sampling import Sample

T = TypeVar("T")

WRITERS = 16
"""Threads for calls that write, a long terminal command among them; at least as many as turns may run at once."""

READERS = 8
"""Threads of their own for calls that only read, so that a list never waits behind commands."""


class Offload:
    """The engine, for async callers. Each method does what the engine's method of that name does."""

    def __init__(self, engine: "Engine", *, writers: int = WRITERS, readers: int = READERS) -> None:
        self._engine = engine
        self._writers = CapacityLimiter(writers)
        self._readers = CapacityLimiter(readers)
        self._stops = CapacityLimiter(math.inf)
        self._housekeepers = CapacityLimiter(1)
        # A lock lives as long as somebody holds or waits for it.
        self._locks: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()

    async def open_workspace(self, path: str, limits: Limits | None = None) -> Workspace:
        """Open a directory as a workspace."""
        if limits is None:
            return await self._read(lambda: self._engine.open_workspace(path))
        return await self._read(lambda: self._engine.open_workspace(path, limits))

    async def availability(self) -> str | None:
        """Say why git cannot be used, ``None`` when it can."""
        return await self._read(self._engine.availability)

    def claim(self, root: str, holder: str) -> "SharedClaim":
        """Return what has to be taken to be the only writer below a root, also between processes."""
        return SharedClaim(self._engine.claims.make(root, holder), self._stops)

    async def understand(self, workspace: Workspace, command: str) -> Understanding:
        """Say what a command would do, without running it."""
        return await self._read(lambda: self._engine.understand(workspace, command))

    async def read_file(self, call: ToolCall, path: str, lines: Lines = WHOLE) -> ToolResult:
        """Run the tool of that name."""
        return await self._read(lambda: self._engine.read_file(call, path, lines))

    async def list_files(self, call: ToolCall, path: str, pattern: str = "") -> ToolResult:
        """Run the tool of that name."""
        return await self._read(lambda: self._engine.list_files(call, path, pattern))

    async def search(self, call: ToolCall, wanted: Wanted, path: str) -> ToolResult:
        """Run the tool of that name."""
        return await self._read(lambda: self._engine.search(call, wanted, path))

    async def write_file(self, call: ToolCall, path: str, content: bytes) -> ToolResult:
        """Run the tool of that name."""
        return await self._write(call.workspace, lambda: self._engine.write_file(call, path, content))

    async def patch(self, call: ToolCall, text: str) -> ToolResult:
        """Run the tool of that name."""
        return await self._write(call.workspace, lambda: self._engine.patch(call, text))

    async def terminal(
        self,
        call: ToolCall,
        command: str,
        *,
        on_output: Callable[[str], None] | None = None,
        timeout_s: float | None = None,
        whole_output: bool = False,
    ) -> ToolResult:
        """Run the tool of that name; ``on_output`` is called in the worker thread."""
        return await self._write(
            call.workspace,
            lambda: self._engine.terminal(
                call, command, on_output=on_output, timeout_s=timeout_s, whole_output=whole_output
            ),
        )

    def sent_path(self, name: str) -> str:
        """Say where a file of a name is kept that was sent."""
        return self._engine.sent.path_of(name)

    async def keep_sent(self, call: ToolCall, path: str, content: bytes) -> None:
        """Keep a file that was sent."""
        await self._write(call.workspace, lambda: self._engine.sent.keep(call, path, content))

    async def read_sent(self, call: ToolCall, path: str) -> bytes | None:
        """Read a file that was sent."""
        return await self._read(lambda: self._engine.sent.read(call, path))

    async def remove_sent(self, root: str, paths: Sequence[str]) -> None:
        """Remove files that were sent below a root."""
        await self._read(lambda: self._engine.sent.remove(root, paths))

    def heard(self, workspace: Workspace, hear: Callable[[int, int], None]) -> AbstractContextManager[None]:
        """Have it told in the reading thread how far the reading of a workspace has come, for the length of a block."""
        return self._engine.readings.heard(workspace, hear)

    async def output(self, name: str) -> bytes:
        """Read the whole output of a command."""
        return await self._read(lambda: self._engine.outputs.read(name))

    async def expire_outputs(self) -> int:
        """Remove whole outputs that were kept long enough."""
        return await self._read(self._engine.outputs.expire)

    async def close(self) -> None:
        """Have the engine give back connections and containers."""
        await in_thread(self._engine.close, self._stops)

    async def stop(self, operation: str) -> bool:
        """End what an operation runs and refuse what it would still write; waits for no other call."""
        return await in_thread(lambda: self._engine.stop(operation), self._stops)

    async def checkpoint(
        self, workspace: Workspace, reason: str, *, turn: TurnRef | None = None, paths: Sequence[str] = ()
    ) -> CheckpointResult:
        """Take a checkpoint."""
        return await self._write(workspace, lambda: self._engine.checkpoint(workspace, reason, turn=turn, paths=paths))

    async def begin_session(self, workspace: Workspace, session: str) -> None:
        """Record where a session's changes begin."""
        await self._write(workspace, lambda: self._engine.begin_session(workspace, session))

    async def checkpoints(self, workspace: Workspace) -> list[Checkpoint]:
        """List checkpoints, newest first."""
        return await self._read(lambda: self._engine.checkpoints(workspace))

    async def damage(self, workspace: Workspace) -> tuple[str, ...]:
        """Say what the last list of checkpoints had to leave out."""
        return await self._read(lambda: self._engine.damage(workspace))

    async def find_checkpoint(self, workspace: Workspace, prefix: str) -> Checkpoint:
        """Find a checkpoint by the beginning of its id."""
        return await self._read(lambda: self._engine.find_checkpoint(workspace, prefix))

    async def diff(self, workspace: Workspace, checkpoint_id: str, selection: Sequence[str] = ()) -> DiffResult:
        """Compare a checkpoint with now."""
        return await self._read(lambda: self._engine.diff(workspace, checkpoint_id, selection))

    async def turn_diff(self, workspace: Workspace, turn: str) -> DiffResult | None:
        """Show what a turn changed."""
        return await self._read(lambda: self._engine.turn_diff(workspace, turn))

    async def session_diff(self, workspace: Workspace, session: str) -> DiffResult | None:
        """Show what a session changed."""
        return await self._read(lambda: self._engine.session_diff(workspace, session))

    async def plan_restore(
        self,
        workspace: Workspace,
        checkpoint_id: str,
        *,
        selection: Sequence[str] = (),
        everything: bool = False,
        turns: Sequence[str] = (),
        chat: str | None = None,
        token: str | None = None,
    ) -> RestorePlan:
        """Plan a restore; changes nothing."""
        return await self._read(
            lambda: self._engine.plan_restore(
                workspace,
                checkpoint_id,
                selection=selection,
                everything=everything,
                turns=turns,
                chat=chat,
                token=token,
            )
        )

    async def apply_restore(
        self, plan: RestorePlan, *, turn: TurnRef | None = None, replaced_head: str | None = None
    ) -> RestoreReport:
        """Do what a plan says."""
        return await self._write(
            plan.workspace,
            lambda: self._engine.apply_restore(plan, turn=turn, replaced_head=replaced_head),
        )

    async def settle(self, workspace: Workspace) -> tuple[str, ...]:
        """Account for tools whose end was not noted."""
        return await self._write(workspace, lambda: self._engine.settle(workspace))

    async def resume_restores(self, workspace: Workspace) -> list[RestoreReport]:
        """Finish restores that a crash cut off."""
        return await self._write(workspace, lambda: self._engine.resume_restores(workspace))

    async def restore_outcome(self, workspace: Workspace, token: str) -> RestoreReport | None:
        """Say what became of a restore."""
        return await self._read(lambda: self._engine.restore_outcome(workspace, token))

    async def prune_due(self, min_interval_hours: float) -> bool:
        """Say whether the last prune is longer ago than this."""
        return await self._read(lambda: self._engine.upkeep.prune_due(min_interval_hours))

    async def store_problem(self) -> str | None:
        """Say why the store cannot be read, ``None`` when it can or is not there yet."""
        return await self._read(self._engine.upkeep.problem)

    async def store_status(self) -> "StoreStatus":
        """Say what the store holds and how large it is, which may take seconds."""
        return await in_thread(self._engine.upkeep.status, self._housekeepers)

    async def sample_store(self) -> "Sample":
        """Read some of the store's files again, which may take seconds."""
        return await in_thread(self._engine.upkeep.sample, self._housekeepers)

    async def prune(self, policy: "PrunePolicy", *, cancelled: Callable[[], bool]) -> "PruneReport":
        """Drop what the policy says and reclaim the space; ``cancelled`` is asked in the thread, between two steps."""
        return await in_thread(lambda: self._engine.upkeep.prune(policy, cancelled=cancelled), self._housekeepers)

    async def _read(self, work: Callable[[], T]) -> T:
        return await in_thread(work, self._readers)

    async def _write(self, workspace: Workspace, work: Callable[[], T]) -> T:
        lock = self._locks.setdefault(workspace.root, anyio.Lock())
        # The place in line comes first: a waiting caller holds no thread.
        async with lock:
            return await in_thread(work, self._writers)


class SharedClaim:
    """A claim to a workspace, for async callers; it waits for no other call."""

    def __init__(self, claim: "Claim", limiter: CapacityLimiter) -> None:
        self._claim = claim
        self._limiter = limiter

    async def take(self) -> str | None:
        """Take it without waiting; return who is in the way, ``None`` when it is taken."""
        return await in_thread(self._claim.take, self._limiter)

    async def give_back(self) -> None:
        """Let the next one write."""
        await in_thread(self._claim.give_back, self._limiter)

    async def find_holder(self) -> str | None:
        """Return who writes there now."""
        return await in_thread(self._claim.find_holder, self._limiter)


async def in_thread(work: Callable[[], T], limiter: CapacityLimiter) -> T:
    """Run blocking work in a worker thread; however it is cancelled, return or raise only once the thread has ended.

    A cancelled caller does not learn what the work returned; work that has not begun by then never begins.
    """
    async with limiter:
        run = _Run(work)
        try:
            # The limit is ours and outlasts the thread: anyio gives its own back when asyncio cancels the wait.
            result = await to_thread.run_sync(run, limiter=CapacityLimiter(math.inf))
        except asyncio.CancelledError:
            await run.wait_for_end()
            raise
    await anyio.lowlevel.checkpoint_if_cancelled()
    return result


class _Run(Generic[T]):
    """One call of blocking work, begun at most once, whose end can be waited for."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        # Taken by whoever comes first, the thread that begins or the caller that gives up; popping is atomic.
        self._claim = [None]

    def __call__(self) -> T:
        self._claim.pop()
        try:
            return self._work()
        finally:
            self._loop.call_soon_threadsafe(self._ended.set)

    async def wait_for_end(self) -> None:
        """Keep the work from beginning, or wait until it has ended, whatever cancels the wait."""
        try:
            self._claim.pop()
        except IndexError:
            with anyio.CancelScope(shield=True):
                while not self._ended.is_set():
                    with suppress(asyncio.CancelledError):
                        await self._ended.wait()
