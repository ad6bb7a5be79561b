"""The other Takeback processes over the same home: their turns are waited for, and what a dead one left is settled.

A start settles everything (`gateway.operation.recovery`). A process that goes on working settles what dies beside it
when it is next asked for something that may depend on it: restores it was in the middle of, and turns it was running.
"""

from collections.abc import Callable

import anyio

from adapters.contract import Place
from gateway.commands.base import Declined
from gateway.commands.settling import settle_restores
from gateway.offload import Offload
from gateway.operation.recovery import tell
from gateway.state.memory import Memory
from gateway.state.sessions import Session

MOMENT_S = 2.0
"""How long a command that cannot go beside a turn waits for another process's, as for one of this process."""

ASKED_EVERY_S = 0.1
"""How often it is asked meanwhile whether that turn has ended."""


class Neighbours:
    """What this process has to know of the others.

    ``serves`` says whether replies to a platform are sent here; ``wake`` has those of a chat sent.
    """

    def __init__(
        self, memory: Memory, engine: Offload, *, serves: Callable[[str], bool], wake: Callable[[Place], None]
    ) -> None:
        self._memory = memory
        self._engine = engine
        self._serves = serves
        self._wake = wake
        self._settling = anyio.Lock()
        # Restores that could not be finished are tried again by the next start, and not at every message until then.
        self._tried: set[str] = set()

    async def settle(self) -> None:
        """Bring to its end what dead processes were doing; of live ones nothing is touched.

        Raises:
            StateError: it could not be stored; it is tried again the next time.
        """
        if not await self._memory.takeover.left_by_dead():
            return
        async with self._settling:
            planned = {restore.token for restore in await self._memory.restores.planned()}
            settled = await settle_restores(
                self._memory, self._engine, self._engine.open_workspace, but=frozenset(self._tried)
            )
            self._tried |= planned
            for one in settled:
                await tell(self._memory, one)
                self._wake(one.place)
            await self.interrupt_turns()

    async def interrupt_turns(self) -> None:
        """Store the turns of dead processes as interrupted."""
        for place in await self._memory.takeover.interrupt(self._serves):
            self._wake(place)

    async def wait_for_turn(self, session: Session) -> None:
        """Wait a moment for a turn that another process runs in a session.

        Raises:
            Declined: it goes on; the message says who runs it.
        """
        with anyio.move_on_after(MOMENT_S):
            while await self._memory.turns.running(session.id) is not None:
                await anyio.sleep(ASKED_EVERY_S)
                await self.settle()
        if await self._memory.turns.running(session.id) is not None:
            holder = await self._engine.claim(session.root, "").find_holder()
            raise Declined(
                f"busy: {holder or 'another Takeback process'} runs a turn in this chat. /stop it there first."
            )
