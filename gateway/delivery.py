"""Brings stored replies to their platforms: in order within a chat, again until they arrive, each chat on its own.

A chat that has something to send gets a sender, which ends when nothing is left. A platform's own word on when to try
again holds for that chat only. Progress is best effort: only the latest is shown, never before a reply that is due.
"""

import logging
import random
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import anyio
from anyio.abc import TaskGroup, TaskStatus

from adapters.contract import Adapter, Outbound, Place, SendFailed
from gateway.operation.measures import Note, ReplyDelayed, ReplyLost, ReplySent, unnoted
from gateway.state.clock import Clock, utc_now
from gateway.state.outbox import Outbox, Reply
from gateway.state.patience import until_stored

LONGEST_DELAY_S = 60.0
"""The most that a growing delay grows to; a platform's own word may be longer."""

GIVE_UP_AFTER = timedelta(days=1)
"""A reply that still fails when it is this old is given up; one that never got a chance is tried first."""

PROGRESS_EVERY_S = 0.1
"""The least time between two shows of progress in one chat; a platform's own pace is its adapter's."""

SEND_LIMIT_S = 120.0
"""A platform that takes longer over one reply has lost it."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Line:
    """One chat's sender: what it has to show besides replies, and whether the outbox may hold some.

    ``due`` is when the reply that last failed is to be tried again, by a clock that nobody sets.
    """

    stored: bool = True
    due: tuple[int, float] = (0, 0.0)
    progress: str | None = None
    finished: deque[tuple[int, str]] = field(default_factory=deque)
    stirred: anyio.Event = field(default_factory=anyio.Event)


class Delivery:
    """Sends what the outbox holds through the adapters."""

    def __init__(
        self,
        outbox: Outbox,
        adapters: Sequence[Adapter],
        *,
        clock: Clock = utc_now,
        first_delay_s: float = 1.0,
        note: Note = unnoted,
    ) -> None:
        self._note = note
        self._outbox = outbox
        self._adapters = {adapter.name: adapter for adapter in adapters}
        self._clock = clock
        self._first_delay_s = first_delay_s
        self._lines: dict[Place, _Line] = {}
        self._unserved: list[tuple[Place, _Line]] = []
        self._called = anyio.Event()
        self._group: TaskGroup | None = None
        self._idle = anyio.Event()
        self._idle.set()

    def serves(self, adapter: str) -> bool:
        """Whether replies to a platform are sent by this process."""
        return adapter in self._adapters

    async def post(self, message: Outbound, *, inbox_id: int | None = None) -> None:
        """Store a reply and have it sent; durable once this returns."""
        await self._outbox.put(message, inbox_id=inbox_id)
        self.wake(message.place)

    def wake(self, place: Place) -> None:
        """Have the replies sent that were stored for a chat together with something else."""
        line = self._line(place)
        if line is not None:
            line.stored = True
            line.stirred.set()

    def progress(self, place: Place, text: str) -> None:
        """Show what is going on now; an empty text clears it. May be merged with what follows."""
        line = self._line(place)
        if line is not None:
            line.progress = text
            if not text:
                line.stirred.set()

    async def finished(self, place: Place, event_id: str) -> None:
        """Tell the adapter that a message is dealt with, once the replies stored so far have been sent."""
        newest = await self._outbox.newest(place)
        line = self._line(place)
        if line is not None:
            line.finished.append((newest, event_id))
            line.stirred.set()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Send until cancelled, beginning with what is left from earlier."""
        async with anyio.create_task_group() as group:
            self._group = group
            try:
                for place in await self._outbox.places():
                    self.wake(place)
                task_status.started()
                while True:
                    await self._called.wait()
                    self._called = anyio.Event()
                    while self._unserved:
                        group.start_soon(self._serve, *self._unserved.pop(0))
            finally:
                self._group = None

    async def idle(self) -> None:
        """Wait until nothing is left to send."""
        await self._idle.wait()

    def _line(self, place: Place) -> _Line | None:
        """Find the chat's line and see that somebody serves it; ``None`` while nobody can: the outbox keeps replies."""
        if self._group is None or place.adapter not in self._adapters:
            return None
        line = self._lines.get(place)
        if line is None:
            line = self._lines[place] = _Line()
            if self._idle.is_set():
                self._idle = anyio.Event()
            # Started by `run`: progress comes from callbacks of the event loop too, where no task can be started.
            self._unserved.append((place, line))
            self._called.set()
        return line

    async def _serve(self, place: Place, line: _Line) -> None:
        adapter = self._adapters[place.adapter]
        try:
            while await self._step(place, line, adapter):
                pass
        finally:
            # No await since the step that found nothing: whoever comes next starts a new sender.
            del self._lines[place]
            if not self._lines:
                self._idle.set()

    async def _step(self, place: Place, line: _Line, adapter: Adapter) -> bool:
        """Do the next thing; false when there is none."""
        reply = await self._next(place, line)
        if line.progress == "" or (reply is None and line.progress is not None):
            await self._show(place, line, adapter)
        elif line.finished and (reply is None or line.finished[0][0] < reply.id):
            _, event_id = line.finished.popleft()
            await self._best_effort(lambda: adapter.finished(place, event_id), place)
        elif reply is not None:
            await self._send(reply, line, adapter)
        else:
            return line.stored
        return True

    async def _next(self, place: Place, line: _Line) -> Reply | None:
        if not line.stored:
            return None
        # Cleared before asking: what is stored while the outbox is being asked sets it again.
        line.stored = False
        reply = await until_stored(lambda: self._outbox.next(place))
        line.stored |= reply is not None
        return reply

    async def _show(self, place: Place, line: _Line, adapter: Adapter) -> None:
        """Show the latest progress, then rest, unless something comes that does not wait."""
        text, line.progress = line.progress or "", None
        line.stirred = anyio.Event()
        await self._best_effort(lambda: adapter.progress(place, text), place)
        if text:
            with anyio.move_on_after(PROGRESS_EVERY_S):
                await line.stirred.wait()

    def _wait_s(self, reply: Reply, line: _Line) -> float:
        """How long a reply is not to be tried yet; a clock that was set back since does not make it longer."""
        if not reply.attempts:
            return 0.0
        failed, due = line.due
        if failed == reply.id:
            return due - anyio.current_time()
        now = self._clock()
        wait_s = (reply.next_attempt_at - now).total_seconds()
        return min(wait_s, LONGEST_DELAY_S) if now < reply.created_at else wait_s

    async def _send(self, reply: Reply, line: _Line, adapter: Adapter) -> None:
        await anyio.sleep(max(0.0, self._wait_s(reply, line)))
        try:
            with anyio.fail_after(SEND_LIMIT_S):
                await adapter.send(reply.message)
        except SendFailed as error:
            await self._not_sent(reply, line, error.reason, error.retry_after_s, again=error.retry_after_s is not None)
        except Exception as error:  # noqa: BLE001 - an adapter's mistake must not cost the reply nor the other chats
            _log.warning("a reply was not sent: %s", type(error).__name__, extra=_about(reply))
            await self._not_sent(reply, line, f"{type(error).__name__}: {error}", None, again=True)
        else:
            await until_stored(lambda: self._outbox.sent(reply.id))
            self._note(ReplySent(reply.message.place.adapter))

    async def _not_sent(self, reply: Reply, line: _Line, reason: str, delay_s: float | None, *, again: bool) -> None:
        now = self._clock()
        if not again or now - reply.created_at > GIVE_UP_AFTER:
            _log.error("a reply was given up after %d attempts", reply.attempts + 1, extra=_about(reply))
            await until_stored(lambda: self._outbox.failed(reply.id, reason))
            self._note(ReplyLost(reply.message.place.adapter))
            return
        self._note(ReplyDelayed(reply.message.place.adapter))
        delay_s = self._delay_s(reply.attempts) if delay_s is None else delay_s
        line.due = (reply.id, anyio.current_time() + delay_s)
        until = now + timedelta(seconds=delay_s)
        await until_stored(lambda: self._outbox.postpone(reply.id, until=until, error=reason))

    def _delay_s(self, attempts: int) -> float:
        """Double with every attempt; a random part keeps many chats from coming back at once."""
        grown = min(self._first_delay_s * 2.0 ** min(attempts, 16), LONGEST_DELAY_S)
        return grown * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, guards nothing

    async def _best_effort(self, show: Callable[[], Awaitable[None]], place: Place) -> None:
        try:
            with anyio.fail_after(SEND_LIMIT_S):
                await show()
        except Exception as error:  # noqa: BLE001 - progress is not worth a failure
            _log.info("progress was not shown: %s", type(error).__name__, extra={"adapter": place.adapter})


def _about(reply: Reply) -> dict[str, object]:
    return {"adapter": reply.message.place.adapter, "chat": reply.message.place.chat, "reply": reply.id}
