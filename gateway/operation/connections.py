"""Keeps the adapters running, each on its own: none that fails takes another down.

One that cannot reach its platform, or dies of a defect, is started again after a growing delay. One that its platform
refuses for good stays stopped, with what to do about it, until the gateway is started anew. They are started in the
order given and stopped in reverse, each having ended before the next is told to.
"""

import logging
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import anyio

from adapters.contract import Adapter, ConnectionFailed, Receive
from gateway.operation.measures import AdapterFailed, Note, unnoted

FIRST_DELAY_S = 1.0
LONGEST_DELAY_S = 120.0
STEADY_S = 60.0
"""An adapter that ran for this long before it failed begins again with the first delay."""

STOP_EACH_S = 2.0
"""How long one adapter's end is waited for before the next is told; all have ended when `Connections.run` returns."""

_log = logging.getLogger(__name__)


class Phase(StrEnum):
    """What an adapter is doing."""

    RUNNING = "running"
    WAITING = "waiting to be started again"
    STOPPED = "stopped"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Backoff:
    """How the delay before another start grows, in seconds."""

    first_s: float = FIRST_DELAY_S
    longest_s: float = LONGEST_DELAY_S
    steady_s: float = STEADY_S

    def delay_s(self, failures: int) -> float:
        """The delay after so many failures in a row; a random part keeps many from coming back at once."""
        grown = min(self.first_s * 2.0 ** min(failures - 1, 16), self.longest_s)
        return grown * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, guards nothing


@dataclass(eq=False, slots=True)
class _Watch:
    """One adapter, what it is doing, and why it last failed."""

    adapter: Adapter
    phase: Phase = Phase.WAITING
    reason: str = "it has not been started yet"
    scope: anyio.CancelScope = field(default_factory=lambda: anyio.CancelScope(shield=True))
    ended: anyio.Event = field(default_factory=anyio.Event)


class Connections:
    """The adapters of one run.

    ``persistent`` is whether a failed adapter is started again; without it any failure ends the run.
    """

    def __init__(
        self, adapters: Sequence[Adapter], *, persistent: bool, backoff: Backoff | None = None, note: Note = unnoted
    ) -> None:
        self._watches = [_Watch(adapter) for adapter in adapters]
        self._persistent = persistent
        self._backoff = backoff or Backoff()
        self._note = note

    async def run(self, receive: Receive) -> None:
        """Run every adapter until none has more to give; cancelled, stop them in order.

        Raises:
            ConnectionFailed, or whatever else an adapter died of: only where a failed one is not started again.
        """
        async with anyio.create_task_group() as tasks:
            for watch in self._watches:
                tasks.start_soon(self._keep, watch, receive)
            try:
                for watch in self._watches:
                    await watch.ended.wait()
            finally:
                with anyio.CancelScope(shield=True):
                    await self._stop()

    async def _stop(self) -> None:
        for watch in reversed(self._watches):
            watch.scope.cancel()
            with anyio.move_on_after(STOP_EACH_S) as patience:
                await watch.ended.wait()
            if patience.cancelled_caught:
                _log.warning("an adapter takes long to stop", extra={"adapter": watch.adapter.name})

    def unready(self, name: str) -> str | None:
        """Why an adapter does not take in messages now, ``None`` where it does or has no more to give."""
        watch = next(watch for watch in self._watches if watch.adapter.name == name)
        match watch.phase:
            case Phase.ENDED:
                return None
            case Phase.RUNNING:
                return None if watch.adapter.connected else f"not connected: {watch.reason}"
            case _:
                return f"{watch.phase.value}: {watch.reason}"

    def connected(self) -> Iterator[tuple[str, bool]]:
        """Every adapter by name, and whether it takes in messages now."""
        for watch in self._watches:
            yield watch.adapter.name, watch.phase is Phase.RUNNING and watch.adapter.connected

    async def _keep(self, watch: _Watch, receive: Receive) -> None:
        """Run one adapter until it has no more to give, or stays stopped."""
        try:
            # Shielded: `_stop` ends it when its turn has come.
            with watch.scope:
                failures = 0
                while True:
                    watch.phase, began = Phase.RUNNING, anyio.current_time()
                    if failures == 0:
                        watch.reason = "it has only just been started"
                    failure = await self._run_once(watch, receive)
                    if failure is None:
                        watch.phase = Phase.ENDED
                        return
                    steady = anyio.current_time() - began >= self._backoff.steady_s
                    failures = 1 if steady else failures + 1
                    if not await self._started_again(watch, failure, failures):
                        return
        finally:
            watch.ended.set()

    async def _run_once(self, watch: _Watch, receive: Receive) -> ConnectionFailed | None:
        """Let an adapter run; what it died of, as far as it is to be started again or to stay stopped."""
        try:
            await watch.adapter.run(receive)
        except Exception as error:
            if not self._persistent:
                raise
            failure = _connection_failure(error)
            if failure is None:
                _log.exception("an adapter failed", extra={"adapter": watch.adapter.name})
                failure = ConnectionFailed(f"it failed ({type(error).__name__}); the log says more", permanent=False)
            return failure
        return None

    async def _started_again(self, watch: _Watch, failure: ConnectionFailed, failures: int) -> bool:
        """Wait until an adapter is due again; false for one that stays stopped."""
        about = {"adapter": watch.adapter.name}
        watch.reason = failure.reason
        self._note(AdapterFailed(watch.adapter.name, again=not failure.permanent))
        if failure.permanent:
            watch.phase = Phase.STOPPED
            _log.error("an adapter stays stopped until the next start: %s", failure.reason, extra=about)
            return False
        delay_s = self._backoff.delay_s(failures)
        watch.phase = Phase.WAITING
        _log.warning("an adapter is started again in %.1f s: %s", delay_s, failure.reason, extra=about)
        await anyio.sleep(delay_s)
        return True


def _connection_failure(error: BaseException) -> ConnectionFailed | None:
    """The adapter's own word on why it ended, also from within the tasks that it ran."""
    if isinstance(error, ConnectionFailed):
        return error
    if isinstance(error, BaseExceptionGroup):
        return next((found for part in error.exceptions if (found := _connection_failure(part))), None)
    return None
