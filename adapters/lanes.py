"""Order among what happens: one thing after another within a lane, such as a chat; lanes do not wait for each other."""

from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio


class TurnLost(Exception):
    """What came before in the lane failed, so this must not happen yet: both come again, in their order."""

    def __init__(self) -> None:
        super().__init__("what came before it in its chat was not taken in")


@dataclass(eq=False, slots=True)
class _Lane:
    lock: anyio.Lock = field(default_factory=anyio.Lock)
    users: int = 0
    failures: int = 0


class Lanes:
    """Lets things happen in the order in which they asked for it."""

    def __init__(self) -> None:
        self._lanes: dict[Hashable, _Lane] = {}

    @asynccontextmanager
    async def turn(self, lane: Hashable) -> AsyncIterator[None]:
        """Wait for the turn in a lane, and have it for a block; one that fails takes everybody's turn who waits.

        Raises:
            TurnLost: the one before failed, or lost its own turn.
        """
        used = self._lanes.setdefault(lane, _Lane())
        used.users += 1
        before = used.failures
        try:
            async with used.lock:
                if used.failures != before:
                    # Whoever has come since that failure waits behind this one, and has to lose its turn too.
                    used.failures += 1
                    raise TurnLost
                try:
                    yield
                except BaseException:
                    used.failures += 1
                    raise
        finally:
            used.users -= 1
            if not used.users:
                del self._lanes[lane]
