"""Runs the gateway over given adapters: what starts first, what stops first, and nothing half-done in between.

Start: 1. memory, 2. what a dead process left is settled, 3. what shows how the gateway is, 4. delivery, 5. hub, 6.
adapters. Only then it is called ready. Stop, in reverse: adapters take nothing in any more, running turns are stored as
interrupted, what is to be said of them is sent, memory closes.
"""

import logging
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskGroup, TaskStatus

from adapters.contract import Adapter, Inbound, Place, Reception
from gateway.access.admission import Access, Rules
from gateway.access.door import Door
from gateway.access.welcomes import Welcomes
from gateway.agents.base import Agent
from gateway.chats import Hub
from gateway.conversations import Conversations, Services, Wishes
from gateway.delivery import Delivery
from gateway.logs import hidden
from gateway.offload import Offload
from gateway.operation import pulse
from gateway.operation.connections import Backoff, Connections
from gateway.operation.endpoints import Address, Endpoints, make_metrics
from gateway.operation.health import Health, Probe
from gateway.operation.housekeeping import Housekeeping, Tidying
from gateway.operation.measures import Levels, Note, unnoted
from gateway.operation.neighbours import Neighbours
from gateway.operation.recovery import recover
from gateway.operation.supervisor import Supervisor
from gateway.state.buttons import KEPT
from gateway.state.clock import Clock, utc_now
from gateway.state.errors import DatabaseUnusable, StateError
from gateway.state.memory import Memory, open_memory
from gateway.turns.running import TurnRunner
from gateway.turns.writers import Writers
from gateway.workspaces import Workspaces

if TYPE_CHECKING:
    from engine.api import Engine

FAREWELL_S = 3.0
"""How long last replies may take to be sent once the gateway is stopping."""

LAST_RESORT_S = 9.0
"""A stop that takes longer ends the process. Whatever it was doing, the next start settles it."""

_log = logging.getLogger(__name__)


def end_at_last() -> None:
    """See that the process ends in a while, even when a thread of it hangs, as on a dead network disk."""

    def end() -> None:
        _log.error("the gateway did not stop in time and is ended; the next start settles what it was doing")
        os._exit(1)

    timer = threading.Timer(LAST_RESORT_S, end)
    timer.daemon = True
    timer.start()


@dataclass(frozen=True, slots=True)
class Service:
    """What a run of the gateway consists of.

    ``rules`` say whom each adapter's platform admits; one without rules admits nobody. ``buttons_kept`` is how long a
    button can be pressed. ``open_workspaces`` gives the workspaces over the engine's door. ``drains`` is asked once the
    adapters have no more to give: whether what they gave is carried out first. ``signals`` end the run.

    ``stays`` is what makes a service of it: it keeps the run up then, and an adapter that fails is started again at its
    ``backoff``. ``housekeeping`` says what is tidied beside the chats, if anything is; ``http`` where it is shown how
    the gateway is, with ``secrets`` left out. ``guards`` is whether checkpoints are taken anywhere, so that it matters
    how the store is. ``last_resort`` is called when the run is told to stop.
    """

    home: str
    engine: "Engine"
    adapters: Sequence[Adapter]
    rules: Mapping[str, Rules]
    agents: dict[str, Agent]
    open_workspaces: Callable[[Offload], Workspaces]
    wishes: Wishes
    signals: Collection[signal.Signals]
    drains: Callable[[], bool]
    stays: bool = False
    backoff: Backoff = field(default_factory=Backoff)
    housekeeping: Tidying | None = None
    http: Address | None = None
    guards: bool = False
    secrets: Sequence[str] = ()
    supervisor: Supervisor = field(default_factory=lambda: Supervisor(None))
    clock: Clock = utc_now
    last_resort: Callable[[], None] = end_at_last
    buttons_kept: timedelta = KEPT


async def serve(service: Service) -> signal.Signals | None:
    """Run until the adapters have no more to give or a signal comes, which is returned.

    Raises:
        StateError: the memory cannot be opened.
        EndpointsUnusable: nobody can be shown how the gateway is.
        ConnectionFailed: an adapter cannot work, and the run is no service that would wait until it can.
    """
    # Before anything else: a signal that comes while the gateway starts is heeded as soon as it has started.
    with _heeded(service.signals) as heeded, anyio.open_signal_receiver(*heeded) as signals:
        async with open_memory(service.home, clock=service.clock, buttons_kept=service.buttons_kept) as memory:
            offload = Offload(service.engine)
            names = [adapter.name for adapter in service.adapters]
            taken = await recover(memory, offload, offload.open_workspace, names)
            _log.info("settled", extra={"turns": taken.turns, "messages": taken.messages, "replies": taken.replies})
            try:
                stopped_by = await _Run(service, memory, offload, signals).until_stopped()
            finally:
                with anyio.CancelScope(shield=True):
                    await offload.close()
        _log.info("stopped", extra={"by": stopped_by.name if stopped_by else "the end of input"})
        return stopped_by


@contextmanager
def _heeded(signals: Collection[signal.Signals]) -> Iterator[list[signal.Signals]]:
    """Give the signals that end the run: a hang-up does not where the program was started to outlive it (``nohup``).

    It is caught then, not ignored: what a program ignores, its commands would ignore too, and look as if they had been
    detached on purpose.
    """
    outlives = signal.SIGHUP in signals and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    if not outlives:
        yield [*signals]
        return
    signal.signal(signal.SIGHUP, lambda _number, _frame: None)
    try:
        yield [number for number in signals if number != signal.SIGHUP]
    finally:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)


class _Run:
    """One run: the parts that are alive at the same time."""

    def __init__(
        self, service: Service, memory: Memory, offload: Offload, signals: AsyncIterator[signal.Signals]
    ) -> None:
        self._service = service
        self._memory = memory
        self._signals = signals
        self._stopped_by: signal.Signals | None = None
        self._metrics = make_metrics() if service.http is not None else None
        note: Note = self._metrics.note if self._metrics is not None else unnoted
        self._note = note
        self._delivery = Delivery(memory.outbox, service.adapters, clock=service.clock, note=note)
        self._connections = Connections(service.adapters, persistent=service.stays, backoff=service.backoff, note=note)
        self._health = Health(self._probes(offload), hide=lambda text: hidden(text, service.secrets))
        writers = Writers(offload.claim)
        neighbours = Neighbours(memory, offload, serves=self._delivery.serves, wake=self._delivery.wake)
        self._runner = runner = TurnRunner(
            memory, offload, self._delivery, writers, neighbours, note=note, secrets=service.secrets
        )
        services = Services(
            memory=memory,
            offload=offload,
            runner=runner,
            writers=writers,
            neighbours=neighbours,
            workspaces=service.open_workspaces(offload),
            agents=service.agents,
            waiting=self._waiting,
        )
        self._housekeeping: Housekeeping | None = None
        if service.housekeeping is not None:
            self._housekeeping = Housekeeping(memory, offload, service.housekeeping, note=note)
        access = Access(memory.admissions, service.rules)
        door = Door(access, memory.admissions, memory.buttons, memory.moves, note=note)
        self._hub = Hub(memory.inbox, self._delivery, Conversations(services, service.wishes), door)
        names = [adapter.name for adapter in service.adapters]
        self._welcomes = Welcomes(memory, self._delivery, [name for name in names if not access.rules(name).owned])
        self._hub_scope = anyio.CancelScope()
        self._hub_ended = anyio.Event()

    def _waiting(self, place: Place) -> int:
        return self._hub.waiting(place)

    async def _levels(self) -> Levels:
        """What stands where now."""
        return Levels(
            turns_running=self._runner.running_in_all(),
            messages_waiting=self._hub.waiting_in_all(),
            replies_waiting=await self._memory.outbox.waiting(),
            connected=dict(self._connections.connected()),
        )

    def _probes(self, offload: Offload) -> dict[str, Probe]:
        """What has to be well for the gateway to be ready."""

        async def database() -> str | None:
            try:
                await self._memory.database.prove_writable()
            except StateError as error:
                return str(error)
            return None

        async def store() -> str | None:
            return await offload.availability() or await offload.store_problem()

        def adapter(name: str) -> Probe:
            async def probe() -> str | None:
                return self._connections.unready(name)

            return probe

        probes: dict[str, Probe] = {"database": database}
        if self._service.guards:
            probes["store"] = store
        return probes | {f"adapter {adapter_.name}": adapter(adapter_.name) for adapter_ in self._service.adapters}

    async def until_stopped(self) -> signal.Signals | None:
        """Start everything, and stop it in order."""
        async with anyio.create_task_group() as tasks:
            if self._service.http is not None and self._metrics is not None:
                endpoints = Endpoints(self._service.http, self._health, self._metrics, self._levels)
                await tasks.start(endpoints.run)
            await tasks.start(self._delivery.run)
            await tasks.start(self._run_hub)
            tasks.start_soon(self._welcomes.run)
            tasks.start_soon(self._tidy if self._housekeeping is None else self._housekeeping.run)
            if self._service.stays:
                tasks.start_soon(pulse.beat, self._service.supervisor, self._note)
            _log.info("started", extra={"adapters": ",".join(adapter.name for adapter in self._service.adapters)})
            await self._take_in()
            if self._stopped_by is None and self._service.drains():
                await self._hub.idle()
                await self._delivery.idle()
            else:
                await self._interrupt()
            tasks.cancel_scope.cancel()
        return self._stopped_by

    async def _take_in(self) -> None:
        """Let the adapters run until they have no more to give or a signal comes."""
        async with anyio.create_task_group() as intake:
            intake.start_soon(self._watch_signals, intake)
            self._service.supervisor.ready()
            await self._connections.run(self._hub.receive if self._service.stays else self._receive_or_say)
            if self._service.stays:
                await anyio.sleep_forever()
            intake.cancel_scope.cancel()

    async def _receive_or_say(self, inbound: Inbound) -> Reception:
        """Say what a platform would deliver again: at a terminal the next word is the person's, and turns go on."""
        try:
            return await self._hub.receive(inbound)
        except DatabaseUnusable as error:
            return Reception(f"✖ This was not taken in: {error}")

    async def _watch_signals(self, intake: TaskGroup) -> None:
        self._stopped_by = await anext(self._signals)
        _log.info("stopping", extra={"signal": self._stopped_by.name})
        self._health.stopping()
        self._service.supervisor.stopping()
        self._service.last_resort()
        intake.cancel_scope.cancel()

    async def _run_hub(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        with self._hub_scope:
            await self._hub.run(task_status=task_status)
        self._hub_ended.set()

    async def _interrupt(self) -> None:
        """End running turns, and send what there is to say of them."""
        self._hub_scope.cancel()
        await self._hub_ended.wait()
        with anyio.move_on_after(FAREWELL_S):
            await self._delivery.idle()

    async def _tidy(self) -> None:
        """Forget what nobody asks for any more; a failure is no reason to end."""
        try:
            await self._memory.inbox.expire()
            await self._memory.outbox.expire()
            await self._memory.buttons.expire()
        except StateError as error:
            _log.warning("old messages were not removed: %s", error)
