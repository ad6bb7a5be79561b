"""Shows what goes on at the pace that a platform allows: in a place at most so often, the latest word, until it ends.

What takes less than a moment shows no words. A place that its platform asks to be left alone waits for itself only.
"""

import logging
import time
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import anyio
from anyio.abc import TaskGroup, TaskStatus

from adapters.contract import Part, Place, SendFailed, Style
from adapters.pages import Room, valid

FAREWELL_S = 2.0
"""How long what is still shown may take to go once the adapter stops."""

SAID_FROM_S = 5.0
"""What has gone on for less is not told its time."""

_log = logging.getLogger(__name__)


class Screen(Protocol):
    """Where one place shows what goes on. Each call may raise `SendFailed`."""

    every_s: float
    """The least time between two shows."""

    again_s: float
    """The longest time between two shows, even if nothing has changed: what fades is to be shown anew."""

    async def hint(self) -> None:
        """Show that something goes on, before there are words."""
        ...

    async def show(self, text: str) -> None:
        """Show a text instead of the one before, perhaps the same. It is never cut short."""
        ...

    async def clear(self) -> None:
        """Take away what is shown."""
        ...


def parts_of(text: str, watch: "Stopwatch", *, most_output: int, answer: Room) -> list[Part]:
    """What is shown of progress (see `Adapter.progress`): the newest characters of output, or end of an answer."""
    title, _, rest = text.partition("\n")
    if title:
        return [Part(watch.timed(title[:most_output])), Part(rest[-most_output:], Style.BLOCK)]
    return [Part(_ending(valid(rest), answer))]


def _ending(text: str, room: Room) -> str:
    """As much of a text's end as there is room for, from the beginning of a word where one is near."""
    if room.taken([Part(text)]) <= room.longest:
        return text
    # No character takes up less than one, so no more of them has to be measured.
    starts = range(max(len(text) - room.longest, 0), len(text))
    fits = bisect_left(starts, True, key=lambda start: room.taken([Part(text[start:])]) <= room.longest)
    end = text[starts[fits] :] if fits < len(starts) else ""
    word, _, rest = end.partition(" ")
    return f"… {rest if len(word) < len(end) // 2 else end}"


class Stopwatch:
    """Tells how long the same has been going on in one place."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._what = ""
        self._since = 0.0

    def timed(self, what: str) -> str:
        """What is done, and for how long already."""
        if what != self._what:
            self._what, self._since = what, self._clock()
        seconds = self._clock() - self._since
        if seconds < SAID_FROM_S:
            return what
        minutes, seconds = divmod(int(seconds), 60)
        return f"{what} · {minutes} min {seconds} s" if minutes else f"{what} · {seconds} s"


@dataclass(eq=False, slots=True)
class _Showing:
    """What one place is to show."""

    screen: Screen
    wanted: str
    changed: anyio.Event = field(default_factory=anyio.Event)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    ended: anyio.Event = field(default_factory=anyio.Event)


class Pacer:
    """The progress of every place in which something goes on; ``screen_of`` makes a screen each time it begins."""

    def __init__(self, screen_of: Callable[[Place], Screen]) -> None:
        self._screen_of = screen_of
        self._tasks: TaskGroup | None = None
        self._showings: dict[Place, _Showing] = {}
        self._used: set[Screen] = set()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Show what is wanted until cancelled, and take away what is shown then."""
        try:
            async with anyio.create_task_group() as self._tasks:
                task_status.started()
                await anyio.sleep_forever()
        finally:
            self._tasks = None
            self._showings.clear()
            with anyio.move_on_after(FAREWELL_S, shield=True):
                async with anyio.create_task_group() as tasks:
                    for screen in [*self._used]:
                        tasks.start_soon(self._clear, screen)
            self._used.clear()

    async def show(self, place: Place, text: str) -> None:
        """Show a text soon; an empty one ends it, and nothing of it appears any more once this has returned."""
        showing = self._showings.get(place)
        if not text:
            if showing is not None:
                await self._end(place, showing)
        elif showing is not None:
            showing.wanted = text
            showing.changed.set()
        elif self._tasks is not None:
            showing = self._showings[place] = _Showing(self._screen_of(place), text)
            self._used.add(showing.screen)
            self._tasks.start_soon(_keep, showing)

    async def _end(self, place: Place, showing: _Showing) -> None:
        del self._showings[place]
        showing.scope.cancel()
        await showing.ended.wait()
        if self._tasks is not None:
            # The reply does not wait for it.
            self._tasks.start_soon(self._clear, showing.screen)

    async def _clear(self, screen: Screen) -> None:
        """Take away what is shown; once more when the platform wants that to wait."""
        try:
            try:
                await screen.clear()
            except SendFailed as error:
                if error.retry_after_s is None:
                    raise
                await anyio.sleep(error.retry_after_s)
                await screen.clear()
        except SendFailed as error:
            _log.debug("progress was not taken away: %s", error)
        self._used.discard(screen)


async def _keep(showing: _Showing) -> None:
    """Show one place's progress at its pace until it is over."""
    screen = showing.screen
    try:
        with showing.scope:
            while True:
                showing.changed = anyio.Event()
                pause_s = screen.every_s
                try:
                    await screen.hint()
                    # What takes less than a moment is not worth a message.
                    await anyio.sleep(screen.every_s)
                    # Not cut short: what has arrived has to be known, to be taken away again.
                    with anyio.CancelScope(shield=True):
                        await screen.show(showing.wanted)
                except SendFailed as error:
                    _log.debug("progress was not shown: %s", error)
                    pause_s = max(pause_s, error.retry_after_s or 0)
                await anyio.sleep(pause_s)
                with anyio.move_on_after(screen.again_s - 2 * screen.every_s):
                    await showing.changed.wait()
    finally:
        showing.ended.set()
