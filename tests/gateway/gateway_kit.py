"""The gateway's middle put together for tests: real engine, real memory, turns run for a person in a workspace."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

from adapters.contract import Place
from engine.api import Engine
from engine.model import Workspace
from gateway.agents.base import Agent
from gateway.agents.direct import DirectAgent
from gateway.delivery import Delivery
from gateway.offload import Offload
from gateway.operation.neighbours import Neighbours
from gateway.state.memory import Memory, open_memory
from gateway.state.sessions import Session
from gateway.turns.running import TurnRequest, TurnRunner
from gateway.turns.writers import Writers
from tests.gateway.platform_kit import HERE, Platform, message


def make_engine(home: Path, *, git: str | None = None) -> Engine:
    return Engine(
        str(home / "checkpoints"),
        user_home=str(home),
        lock_path=str(home / ".checkpoints.lock"),
        git=git,
        search_path=os.environ["PATH"],
        command_env={"PATH": os.environ["PATH"], "HOME": str(home)},
    )


@dataclass
class Office:
    """One gateway process at work."""

    home: Path
    memory: Memory
    engine: Engine
    offload: Offload
    delivery: Delivery
    platform: Platform
    writers: Writers
    runner: TurnRunner
    group: TaskGroup
    count: int = field(default=0)

    async def workspace(self, path: Path) -> Workspace:
        await anyio.Path(path).mkdir(exist_ok=True)
        return await self.offload.open_workspace(str(path))

    async def request(
        self,
        text: str,
        path: Path,
        *,
        place: Place = HERE,
        agent: Agent | None = None,
        guarded: bool = True,
        session: Session | None = None,
    ) -> TurnRequest:
        """A message that was received and begun, and the turn it asks for."""
        self.count += 1
        inbox_id = await self.memory.inbox.accept(message(text, f"e{self.count}", place))
        assert inbox_id is not None
        received = await self.memory.inbox.begin(inbox_id)
        assert received is not None
        workspace = await self.workspace(path)
        session = session or await self.memory.sessions.current(place)
        if session is None:
            session = await self.memory.sessions.start(place, workspace=path.name, root=workspace.root)
        return TurnRequest(received, session, workspace, agent or DirectAgent(), text, guarded)

    async def states(self) -> list[str]:
        return [row["state"] for row in await self.memory.database.fetch_all("SELECT state FROM turns ORDER BY id")]

    async def open_messages(self) -> int:
        return len(await self.memory.database.fetch_all("SELECT 1 FROM inbox WHERE state <> 'done'"))

    async def wait_output(self, line: str, place: Place = HERE) -> None:
        """Wait until progress has shown a line of a command's output (below its title)."""
        await self.platform.wait_for(
            lambda seen: any(
                what == "progress" and where == place and text.endswith(f"\n{line}") for what, where, text in seen.seen
            )
        )


@asynccontextmanager
async def open_office(home: Path, *, git: str | None = None, max_turns: int = 4) -> AsyncIterator[Office]:
    engine = await anyio.to_thread.run_sync(partial(make_engine, home, git=git))
    platform = Platform()
    async with open_memory(str(home)) as memory, anyio.create_task_group() as group:
        offload = Offload(engine)
        delivery = Delivery(memory.outbox, [platform])
        writers = Writers(offload.claim, said_after_s=0.0)
        neighbours = Neighbours(memory, offload, serves=delivery.serves, wake=delivery.wake)
        runner = TurnRunner(memory, offload, delivery, writers, neighbours, max_turns=max_turns)
        await group.start(delivery.run)
        yield Office(home, memory, engine, offload, delivery, platform, writers, runner, group)
        with anyio.fail_after(30):
            await delivery.idle()
        group.cancel_scope.cancel()
