"""What a running service tidies by itself: one pass after another, beside the chats and never in their way.

A pass prunes the store when its marker says that it is time. It begins only some time after the start, works in a
thread of its own, and stops between two steps when the service stops.
"""

import logging
import threading
from typing import TYPE_CHECKING

import anyio

from engine.errors import EngineError
from gateway.offload import Offload

if TYPE_CHECKING:
    from engine.api import PrunePolicy

FIRST_S = 60.0
"""No pass before this: a start has other things to do."""

TICK_S = 15 * 60.0
"""Between two passes; whether a pass prunes is the marker's word."""

_log = logging.getLogger(__name__)


class Housekeeping:
    """The passes of one service."""

    def __init__(
        self,
        offload: Offload,
        policy: "PrunePolicy",
        *,
        min_interval_hours: float,
        first_s: float = FIRST_S,
        tick_s: float = TICK_S,
    ) -> None:
        self._offload = offload
        self._policy = policy
        self._min_interval_hours = min_interval_hours
        self._first_s = first_s
        self._tick_s = tick_s

    async def run(self) -> None:
        """Tidy until cancelled."""
        await anyio.sleep(self._first_s)
        while True:
            await self.tick()
            await anyio.sleep(self._tick_s)

    async def tick(self) -> None:
        """Do one pass; what goes wrong in it is logged, and the next one tries again."""
        try:
            if await self._offload.prune_due(self._min_interval_hours):
                await self._prune()
        except EngineError as error:
            _log.warning("the store was not pruned: %s", error)

    async def _prune(self) -> None:
        stopping = threading.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(_set_when_cancelled, stopping)
            report = await self._offload.prune(self._policy, cancelled=stopping.is_set)
            group.cancel_scope.cancel()
        for error in report.errors:
            _log.error("pruning: %s", error)
        counts = {"dropped": len(report.decisions), "freed_bytes": report.freed_bytes, "errors": len(report.errors)}
        _log.info("pruned", extra=counts)


async def _set_when_cancelled(stopping: threading.Event) -> None:
    try:
        await anyio.sleep_forever()
    finally:
        stopping.set()
