"""What a tool call shows in the chat while it runs: the last line of its output, how far a long checkpoint has come.

Both are told in the engine's thread, as fast as it pleases, and shown in the event loop: the latest, one at a time.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from gateway.render import one_line

SHOWN_CHARACTERS: Final = 120
"""How much of a call, and of the last line it wrote, progress shows."""

SLOW_S: Final = 2.0
"""How long a checkpoint takes in silence."""


class Latest:
    """Shows the latest of what is told, below the title of a call."""

    def __init__(self, show: Callable[[str], None], title: str) -> None:
        self._show = show
        self._title = title
        self._loop = asyncio.get_running_loop()
        self._latest = ""
        self._pending = False

    def tell(self, line: str) -> None:
        """Take a line; called in any thread."""
        self._latest = line
        if not self._pending:
            # One call into the loop is under way at a time, however fast there is something new.
            self._pending = True
            self._loop.call_soon_threadsafe(self._tell)

    def _tell(self) -> None:
        self._pending = False
        self._show(f"{self._title}\n{one_line(self._latest, SHOWN_CHARACTERS)}")


class Output:
    """Takes a command's output in its thread and shows the last line of it."""

    def __init__(self, latest: Latest) -> None:
        self._latest = latest

    def feed(self, text: str) -> None:
        """Take some output."""
        line = text.rstrip().rpartition("\n")[2]
        if line:
            self._latest.tell(line[: 4 * SHOWN_CHARACTERS])


class Reading:
    """Takes how far a checkpoint has come and shows it if it takes long; time counts from when this is made."""

    def __init__(self, latest: Latest, clock: Callable[[], float] = time.monotonic) -> None:
        self._latest = latest
        self._clock = clock
        self._began = clock()

    def hear(self, done: int, total: int) -> None:
        """Take how many files of how many have been read."""
        took_s = self._clock() - self._began
        if took_s >= SLOW_S:
            self._latest.tell(f"taking a checkpoint: {done:,} of {total:,} files read, {took_s:.0f} s")
