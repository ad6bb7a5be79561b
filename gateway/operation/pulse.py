"""The event loop's pulse: how late it comes to what is due, and a sign of life for whoever watches the process.

The sign comes from the loop itself, so that a loop that hangs gives none and the process is restarted.
"""

import anyio

from gateway.operation.measures import LoopLag, Note, unnoted
from gateway.operation.supervisor import Supervisor

EVERY_S = 1.0
SIGNS_IN_TIME = 3
"""So often within the time that the watcher waits; one may be late."""


async def beat(supervisor: Supervisor, note: Note = unnoted, *, every_s: float = EVERY_S) -> None:
    """Measure and give signs of life until cancelled."""
    if supervisor.watchdog_s is not None:
        every_s = min(every_s, supervisor.watchdog_s / SIGNS_IN_TIME)
    while True:
        supervisor.alive()
        due = anyio.current_time() + every_s
        await anyio.sleep_until(due)
        note(LoopLag(max(0.0, anyio.current_time() - due)))
