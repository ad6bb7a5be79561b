"""What a running service tidies by itself: one pass after another, beside the chats and never in their way.

A pass forgets what nobody asks for any more, ends sessions in which nothing is said, looks at the store, reads some of
it again, and prunes it when its marker says that it is time. It begins only some time after the start, works in a
thread of its own, and stops between two steps when the service stops. What goes wrong in one part keeps no other from
being done.
"""

import logging
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

import anyio

from engine.errors import EngineError, StoreBusy
from engine.model import session_hash
from gateway.offload import Offload
from gateway.operation.measures import Note, Pruned, RowsExpired, StoreMeasured, Ticked, unnoted
from gateway.state.errors import StateError
from gateway.state.memory import Memory
from gateway.turns.enclosures import Enclosures

if TYPE_CHECKING:
    from engine.api import PrunePolicy, PruneReport

FIRST_S = 60.0
"""No pass before this: a start has other things to do."""

TICK_S = 15 * 60.0
"""Between two passes; whether a pass prunes is the marker's word."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Tidying:
    """What is tidied, and when.

    Sessions idle for ``idle``, and what ``policy`` drops, at most once in ``min_interval_hours``; without a policy
    nothing is pruned. The first pass begins after ``first_s``, every other ``tick_s`` after the one before.
    """

    idle: timedelta
    policy: "PrunePolicy | None" = None
    min_interval_hours: float = 24.0
    first_s: float = FIRST_S
    tick_s: float = TICK_S


@dataclass(slots=True)
class _Pass:
    """What one pass has done so far; ``done`` is what its line in the log says."""

    done: dict[str, object] = field(default_factory=dict)
    failures: int = 0


class Housekeeping:
    """The passes of one service."""

    def __init__(
        self,
        memory: Memory,
        offload: Offload,
        tidying: Tidying,
        *,
        note: Note = unnoted,
    ) -> None:
        self._memory = memory
        self._offload = offload
        self._tidying = tidying
        self._note = note

    async def run(self) -> None:
        """Tidy until cancelled."""
        await anyio.sleep(self._tidying.first_s)
        while True:
            await self.tick()
            await anyio.sleep(self._tidying.tick_s)

    async def tick(self) -> None:
        """Do one pass; what goes wrong in it is logged, and the next one tries again."""
        began = anyio.current_time()
        current = _Pass()
        for kind, expire in self._expiries().items():
            await self._part(current, f"{kind} not tidied", self._expire(current, kind, expire))
        await self._part(current, "the store was not looked at", self._measure(current))
        await self._part(current, "the store's objects were not read", self._sample(current))
        if self._tidying.policy is not None:
            await self._part(current, "the store was not pruned", self._prune_when_due(current, self._tidying.policy))
        seconds = anyio.current_time() - began
        self._note(Ticked(seconds, current.failures))
        _log.info("tidied", extra={**current.done, "failures": current.failures, "seconds": round(seconds, 3)})

    def _expiries(self) -> dict[str, Callable[[], Awaitable[int]]]:
        """What is forgotten or ended, by the kind of row."""
        return {
            "messages": self._memory.inbox.expire,
            "replies": self._memory.outbox.expire,
            "buttons": self._memory.buttons.expire,
            "sessions": lambda: self._memory.sessions.end_idle(self._tidying.idle),
            "outputs": self._offload.expire_outputs,
            "sent_files": Enclosures(self._memory, self._offload).expire,
        }

    async def _part(self, current: _Pass, failure: str, work: Awaitable[None]) -> None:
        try:
            await work
        except (EngineError, StateError) as error:
            current.failures += 1
            _log.warning("%s: %s", failure, error)
        except Exception:  # noqa: BLE001 - a pass that breaks must not end the service
            current.failures += 1
            _log.exception("%s", failure)

    async def _expire(self, current: _Pass, kind: str, expire: Callable[[], Awaitable[int]]) -> None:
        rows = await expire()
        current.done[f"expired_{kind}"] = rows
        self._note(RowsExpired(kind, rows))

    async def _measure(self, current: _Pass) -> None:
        status = await self._offload.store_status()
        if status.problem is not None:
            current.failures += 1
            _log.warning("the store is not well, look with gateway checkpoints verify: %s", status.problem)
            return
        checkpoints = sum(project.checkpoints for project in status.projects)
        current.done |= {"store_bytes": status.total_bytes, "checkpoints": checkpoints}
        self._note(StoreMeasured(status.total_bytes, len(status.projects), checkpoints))

    async def _sample(self, current: _Pass) -> None:
        try:
            sample = await self._offload.sample_store()
        except StoreBusy:
            return  # the next pass comes by again
        current.done["objects_read"] = sample.files
        if sample.broken:
            current.failures += 1
            _log.error(
                "%d files of the store are damaged; what the workspaces still hold is written anew before the next "
                "command, the rest is said by gateway checkpoints verify",
                len(sample.broken),
            )

    async def _prune_when_due(self, current: _Pass, policy: "PrunePolicy") -> None:
        if not await self._offload.prune_due(self._tidying.min_interval_hours):
            return
        ended = frozenset(map(session_hash, await self._memory.sessions.ended()))
        await self._prune(current, replace(policy, ended_sessions=ended))

    async def _prune(self, current: _Pass, policy: "PrunePolicy") -> None:
        report = await self._pruned(policy)
        for error in report.errors:
            _log.error("pruning: %s", error)
        for text in report.notes:
            _log.warning("pruning: %s", text)
        current.failures += len(report.errors)
        dropped = len(report.decisions)
        current.done |= {"dropped": dropped, "freed_bytes": report.freed_bytes, "prune_errors": len(report.errors)}
        if report.over_cap is not None:
            current.done["over_cap_bytes"] = report.over_cap.excess_bytes
        self._note(Pruned(report.outcome.value, dropped, report.freed_bytes, len(report.errors)))

    async def _pruned(self, policy: "PrunePolicy") -> "PruneReport":
        """Prune; when that is cancelled, have it stop between two steps."""
        stopping = threading.Event()
        result: PruneReport | EngineError
        async with anyio.create_task_group() as group:
            group.start_soon(_set_when_cancelled, stopping)
            # Caught here: the group would wrap it.
            try:
                result = await self._offload.prune(policy, cancelled=stopping.is_set)
            except EngineError as error:
                result = error
            group.cancel_scope.cancel()
        if isinstance(result, EngineError):
            raise result
        return result


async def _set_when_cancelled(stopping: threading.Event) -> None:
    try:
        await anyio.sleep_forever()
    finally:
        stopping.set()
