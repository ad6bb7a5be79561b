"""A whole service in the test's own process, over platforms that a test writes to."""

import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from adapters.contract import Adapter, Inbound, Place, Receive
from engine.api import Engine
from gateway.access.admission import OWNED, Rules
from gateway.agents.direct import DirectAgent
from gateway.config.settings import Settings
from gateway.conversations import Wishes
from gateway.operation.connections import Backoff
from gateway.service import Service, serve
from gateway.workspaces import Workspaces
from tests.gateway.platform_kit import Platform

STOP = signal.SIGUSR1


@dataclass
class Phone(Platform):
    """A platform on which people write; ``ends`` are raised one by one by its connections before one holds."""

    ends: list[Exception] = field(default_factory=list)
    connected: bool = False
    has_buttons: bool = False
    _receive: Receive | None = None
    _count: int = 0

    async def run(self, receive: Receive) -> None:
        if self.ends:
            raise self.ends.pop(0)
        self._receive, self.connected = receive, True
        self._note("connected", Place(self.name, ""), "")
        try:
            await anyio.sleep_forever()
        finally:
            self._receive, self.connected = None, False
            self._note("disconnected", Place(self.name, ""), "")

    async def write(self, text: str, chat: str = "here", user: str = "u1") -> str:
        """Hand a message over; its event's id, by which `Platform.wait_finished` waits."""
        await self.wait_for(lambda _: self._receive is not None)
        assert self._receive is not None
        self._count += 1
        event_id = f"{self.name}-{self._count}"
        reception = await self._receive(Inbound(Place(self.name, chat), user, event_id, text))
        if reception.notice is not None:
            self._note("notice", Place(self.name, chat), reception.notice)
        return event_id

    async def ask(self, text: str, chat: str = "here") -> list[str]:
        """Write, and wait until that is dealt with; what was said in the chat meanwhile."""
        place = Place(self.name, chat)
        before = len(self.sent(place))
        await self.wait_finished(await self.write(text, chat))
        return self.sent(place)[before:]


async def make_service(
    directory: Path, *adapters: Adapter, checkpoints: bool = True, rules: Mapping[str, Rules] | None = None, **options
) -> Service:
    """A service whose chats work in ``project``."""
    home, project = directory / "home", directory / "project"
    await anyio.Path(project).mkdir(exist_ok=True)
    settings = Settings().with_workspace("project", str(project)).with_checkpoints(on=checkpoints)
    engine = await anyio.to_thread.run_sync(
        lambda: Engine(
            str(home / "checkpoints"),
            user_home=str(directory),
            search_path=os.environ["PATH"],
            command_env={"PATH": os.environ["PATH"]},
        )
    )
    given = {
        "home": str(home),
        "engine": engine,
        "adapters": adapters,
        "rules": rules if rules is not None else dict.fromkeys([adapter.name for adapter in adapters], OWNED),
        "agents": {"direct": DirectAgent()},
        "open_workspaces": lambda offload: Workspaces(settings, offload, "project"),
        "wishes": Wishes(),
        "signals": (STOP,),
        "drains": lambda: True,
        "stays": True,
        "backoff": Backoff(first_s=0.0, longest_s=0.0),
        "guards": checkpoints,
        "last_resort": lambda: None,
    }
    return Service(**(given | options))


@asynccontextmanager
async def serving(service: Service, *, limit_s: float = 60) -> AsyncIterator[None]:
    """Run a service until the block ends, then stop it as a service manager does."""
    async with anyio.create_task_group() as group:
        group.start_soon(serve, service)
        with anyio.fail_after(limit_s):
            yield
            os.kill(os.getpid(), STOP)
