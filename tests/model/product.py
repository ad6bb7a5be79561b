"""The product under test: a gateway that runs in this process beside the test, and one that is killed in another."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from anyio.from_thread import BlockingPortal

from adapters.contract import Inbound, Place
from engine.model import Checkpoint
from gateway.config.settings import Settings
from gateway.state.turns import Turn
from tests.gateway.commands.kit import PLATFORM, Answered, Gateway, running_gateway

ROOT = Path(__file__).parents[2]


class Product:
    """A home with a running gateway. It is restarted by closing and opening it."""

    def __init__(self, portal: BlockingPortal, home: Path, settings: Settings) -> None:
        self.portal = portal
        self.home = home
        self.settings = settings
        self._running: AbstractContextManager[Gateway] | None = None
        self._gateway: Gateway | None = None

    @property
    def gateway(self) -> Gateway:
        assert self._gateway is not None
        return self._gateway

    def open(self) -> None:
        """Start the gateway; what a dead one left is settled, and what it never began is dealt with."""
        self._running = self.portal.wrap_async_context_manager(running_gateway(self.home, self.settings))
        self._gateway = self._running.__enter__()
        self.portal.call(self._quiet)

    def close(self) -> None:
        """Stop the gateway in order."""
        if self._running is not None:
            running, self._running = self._running, None
            running.__exit__(None, None, None)

    async def _quiet(self) -> None:
        await self.gateway.hub.idle()
        await self.gateway.delivery.idle()

    def say(self, chat: str, text: str) -> Answered:
        """Send a message and wait for all that is said to it."""
        return self.portal.call(self.gateway.chat(chat).say, text)

    def deliver_again(self, chat: str, event_id: str, text: str) -> None:
        """Hand in a message as a platform does that has no acknowledgement, and wait until all is dealt with."""
        self.portal.call(self.gateway.hub.receive, Inbound(Place(PLATFORM, chat), "ann", event_id, text))
        self.portal.call(self._quiet)

    def active(self, chat: str) -> list[Turn]:
        """The turns that a chat's conversation holds, newest first."""
        return self.portal.call(self._active, chat)

    async def _active(self, chat: str) -> list[Turn]:
        session = await self.gateway.memory.sessions.current(Place(PLATFORM, chat))
        return [] if session is None else await self.gateway.memory.turns.active(session.id)

    def turn(self, number: int) -> Turn:
        """A turn by its id."""
        return self.portal.call(self.gateway.memory.turns.get, number)

    def checkpoints(self, root: Path) -> list[Checkpoint]:
        """The checkpoints, oldest first."""
        return self.gateway.engine.checkpoints(self.gateway.engine.open_workspace(str(root)))[::-1]


class Nursery:
    """A process that forks gateways to be killed."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "tests.model.mortal"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, job: dict[str, object]) -> int:
        """Run a gateway over a home until it has dealt with one message or is killed; its exit code."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def close(self) -> None:
        self.process.communicate()


@contextmanager
def nursery() -> Iterator[Nursery]:
    """Keep a nursery for as long as the block runs."""
    opened = Nursery()
    try:
        yield opened
    finally:
        opened.close()
