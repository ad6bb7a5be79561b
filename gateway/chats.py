"""Handles every chat's messages: one at a time and in order, chats beside each other.

A message is stored before `Hub.receive` returns. A chat with something to do has a worker, which ends when nothing is
left. What a message is, is decided once, when it arrives:

- ``IMMEDIATE`` is handled at once, beside everything else;
- ``BESIDE`` waits a moment for the turn that runs in its chat, then is handled beside it;
- ``ALONE`` waits a moment for it, then is refused as busy;
- ``TURN`` waits for it as long as it takes, and says so once.
"""

import logging
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Protocol

import anyio
from anyio.abc import TaskGroup, TaskStatus

from adapters.contract import Inbound, Outbound, Part, Place, Reception
from gateway.access import refusals
from gateway.access.door import Door
from gateway.delivery import Delivery
from gateway.state.errors import ButtonSpent, DatabaseUnusable
from gateway.state.inbox import Inbox, Received
from gateway.state.patience import until_stored

MOMENT_S = 2.0
"""How long a command waits for a running turn."""

SAID_AFTER_S = 1.0
"""A wait shorter than this is not worth a message."""

BUSY = "busy: a turn is running, /stop first"

STOPPING = "⏹ Stopping, although this could not be noted: {error}"

BROKEN = (
    "Something went wrong inside Takeback while it handled this message; its log has the details. "
    "/status shows where things stand."
)

_log = logging.getLogger(__name__)


class Manner(StrEnum):
    """How a message stands to the turn that runs in its chat."""

    IMMEDIATE = "immediate"
    BESIDE = "beside"
    ALONE = "alone"
    TURN = "turn"


Turn = Callable[[], Awaitable[None]]
"""Runs a turn to its end. It stores the turn's end, its replies and that its message is dealt with by itself."""


@dataclass(frozen=True, slots=True)
class Handled:
    """What came of a message: replies, and the turn that is to be run for it, if any."""

    replies: tuple[Outbound, ...] = ()
    turn: Turn | None = None


class Handler(Protocol):
    """What decides about and answers messages; given by the composition root."""

    async def manner(self, inbound: Inbound) -> Manner:
        """How a message is to be ordered; called once, when it arrives. Must not change anything."""
        ...

    async def stop_unstored(self, inbound: Inbound) -> bool:
        """End the turn that a message which cannot be stored asks to stop; whether it asks that and one ends now."""
        ...

    async def handle(self, received: Received) -> Handled:
        """Do what a message asks for and give what is to be said; a turn is given back, not run.

        A command that restores passes ``received.id`` as ``inbox_id`` to `Restores.plan`; a turn passes it to
        `Turns.begin`. What has neither may be handled again after a crash.
        """
        ...


@dataclass(eq=False, slots=True)
class _Waiting:
    """A message in its chat's queue; ``notice`` ends the wait after which its place is said."""

    inbox_id: int
    event_id: str
    manner: Manner
    notice: anyio.CancelScope = field(default_factory=anyio.CancelScope)


@dataclass(eq=False, slots=True)
class _Line:
    """One chat's queue, and the end of the turn that runs in it."""

    queue: deque[_Waiting] = field(default_factory=deque)
    working: bool = False
    turn_ended: anyio.Event | None = None

    @property
    def over(self) -> bool:
        """Whether nothing is left to do."""
        return not (self.queue or self.working or self.turn_ended)


class Hub:
    """The chats' queues and workers."""

    def __init__(
        self,
        inbox: Inbox,
        delivery: Delivery,
        handler: Handler,
        door: Door,
        *,
        moment_s: float = MOMENT_S,
        said_after_s: float = SAID_AFTER_S,
    ) -> None:
        self._inbox = inbox
        self._delivery = delivery
        self._handler = handler
        self._door = door
        self._moment_s = moment_s
        self._said_after_s = said_after_s
        self._lines: dict[Place, _Line] = {}
        self._beside = 0
        self._group: TaskGroup | None = None
        self._idle = anyio.Event()
        self._idle.set()

    async def receive(self, inbound: Inbound) -> Reception:
        """Take a message in, if it passes the door; it is stored once this returns, and handled later, once.

        One that asks to stop a turn does so even where it cannot be stored.

        Raises:
            DatabaseUnusable: it could not be stored and must not be acknowledged.
        """
        entry = await self._door.enter(inbound)
        if isinstance(entry, Reception):
            return entry
        inbound = entry.inbound
        manner = await self._manner(inbound)
        try:
            inbox_id = await self._inbox.accept(inbound, remarks=entry.remarks, spends=entry.spends)
        except ButtonSpent:
            return Reception(refusals.USED_BUTTON, spent=True)
        except DatabaseUnusable as error:
            # What is to be stopped may be what fills the disk.
            if not await self._handler.stop_unstored(inbound):
                raise
            return Reception(STOPPING.format(error=error))
        # No await from here: messages are queued in the order in which they were stored.
        if inbox_id is not None and self._group is not None:
            self._queue(self._group, inbound.place, _Waiting(inbox_id, inbound.event_id, manner))
        if entry.remarks:
            self._delivery.wake(inbound.place)
        return Reception(spent=entry.spends is not None)

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Handle messages until cancelled, beginning with those that were stored and never begun.

        Cancelled, it interrupts the running turns and ends when each is stored.
        """
        async with anyio.create_task_group() as group:
            self._group = group
            try:
                for received in await self._inbox.waiting():
                    manner = await self._manner(received.inbound)
                    event_id = received.inbound.event_id
                    self._queue(group, received.inbound.place, _Waiting(received.id, event_id, manner))
                task_status.started()
                await anyio.sleep_forever()
            finally:
                self._group = None

    async def idle(self) -> None:
        """Wait until every message taken in so far has been dealt with."""
        await self._idle.wait()

    def waiting(self, place: Place) -> int:
        """Count a chat's messages that have not been begun."""
        line = self._lines.get(place)
        return len(line.queue) if line is not None else 0

    def waiting_in_all(self) -> int:
        """Count every chat's messages that have not been begun."""
        return sum(len(line.queue) for line in self._lines.values())

    async def _manner(self, inbound: Inbound) -> Manner:
        try:
            return await self._handler.manner(inbound)
        except Exception:  # noqa: BLE001 - one message's trouble must not end the service
            # The message is kept, and whatever is wrong with it shows when it is handled.
            _log.exception("a message could not be understood")
            return Manner.TURN

    def _queue(self, group: TaskGroup, place: Place, item: _Waiting) -> None:
        if self._idle.is_set():
            self._idle = anyio.Event()
        if item.manner is Manner.IMMEDIATE:
            self._beside += 1
            group.start_soon(self._work_beside, group, place, item)
            return
        line = self._lines.setdefault(place, _Line())
        if not line.over:
            group.start_soon(self._say_place, place, line, item)
        line.queue.append(item)
        if not line.working:
            line.working = True
            group.start_soon(self._work, group, place, line)

    async def _work(self, group: TaskGroup, place: Place, line: _Line) -> None:
        """Handle a chat's queue until it is empty."""
        try:
            while line.queue:
                item = line.queue[0]
                busy = await _turn_outlasts(line, None if item.manner is Manner.TURN else self._moment_s)
                line.queue.popleft()
                item.notice.cancel()
                received = await until_stored(partial(self._inbox.begin, item.inbox_id))
                if received is None:
                    continue
                if busy and item.manner is Manner.ALONE:
                    await self._done(received, (_words(received, BUSY),))
                else:
                    await self._handle(group, received)
        finally:
            line.working = False
            self._tidy(place)

    async def _work_beside(self, group: TaskGroup, place: Place, item: _Waiting) -> None:
        try:
            received = await until_stored(lambda: self._inbox.begin(item.inbox_id))
            if received is not None:
                await self._handle(group, received)
        finally:
            self._beside -= 1
            self._tidy(place)

    async def _handle(self, group: TaskGroup, received: Received) -> None:
        # Asked again: since the message was stored, its sender may have been removed.
        role = await until_stored(lambda: self._door.role(received.inbound))
        if role is None:
            await self._done(received, (_words(received, refusals.REMOVED),))
            return
        received = replace(received, role=role)
        try:
            handled = await self._handler.handle(received)
        except Exception:  # noqa: BLE001 - one message's trouble must not end the service
            _log.exception("a message was not handled", extra=_about(received))
            handled = Handled((_words(received, BROKEN),))
        if handled.turn is None:
            await self._done(received, handled.replies)
            return
        for reply in handled.replies:
            await until_stored(partial(self._delivery.post, reply, inbox_id=received.id))
        await self._start_turn(group, received, handled.turn)

    async def _start_turn(self, group: TaskGroup, received: Received, turn: Turn) -> None:
        while (line := self._lines.setdefault(received.inbound.place, _Line())).turn_ended is not None:
            await line.turn_ended.wait()
        line.turn_ended = anyio.Event()
        group.start_soon(self._run_turn, line, line.turn_ended, received, turn)

    async def _run_turn(self, line: _Line, ended: anyio.Event, received: Received, turn: Turn) -> None:
        try:
            try:
                await turn()
            except Exception:  # noqa: BLE001 - one message's trouble must not end the service
                _log.exception("a turn was not stored", extra=_about(received))
                await self._done(received, (_words(received, BROKEN),))
            else:
                await self._tell(received)
        finally:
            line.turn_ended = None
            ended.set()
            self._tidy(received.inbound.place)

    async def _done(self, received: Received, replies: tuple[Outbound, ...]) -> None:
        await until_stored(lambda: self._inbox.done(received.id, replies))
        await self._tell(received)

    async def _tell(self, received: Received) -> None:
        """Have the stored replies sent, and the adapter told that this was all."""
        place = received.inbound.place
        self._delivery.wake(place)
        await until_stored(lambda: self._delivery.finished(place, received.inbound.event_id))

    async def _say_place(self, place: Place, line: _Line, item: _Waiting) -> None:
        """Say once that a message has to wait, unless it is a command that is at its moment's wait already."""
        with item.notice:
            await anyio.sleep(self._said_after_s)
            if item not in line.queue:
                # Begun in the very moment in which the wait was over: too late to be cancelled.
                return
            number = line.queue.index(item) + 1
            if item.manner is Manner.TURN or number > 1:
                text = f"⏳ Queued, place {number}. /stop ends what is running."
                message = Outbound(place, (Part(text),), reply_to=item.event_id)
                await until_stored(lambda: self._delivery.post(message))

    def _tidy(self, place: Place) -> None:
        line = self._lines.get(place)
        if line is not None and line.over:
            del self._lines[place]
        if not (self._lines or self._beside):
            self._idle.set()


async def _turn_outlasts(line: _Line, bound_s: float | None) -> bool:
    """Wait for the running turn, at most so long; whether one still runs."""
    with anyio.move_on_after(bound_s):
        while line.turn_ended is not None:
            await line.turn_ended.wait()
    return line.turn_ended is not None


def _words(received: Received, text: str) -> Outbound:
    return Outbound(received.inbound.place, (Part(text),), reply_to=received.inbound.event_id)


def _about(received: Received) -> dict[str, object]:
    place = received.inbound.place
    return {"adapter": place.adapter, "chat": place.chat, "inbox": received.id}
