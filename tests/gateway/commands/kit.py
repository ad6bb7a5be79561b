"""A gateway in this process, with a real engine and database, and people who write to it.

Only the platform is ours: it hands messages in and keeps what is sent.
"""

import os
import secrets
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from anyio import to_thread

from adapters.contract import Attachment, Button, Inbound, Outbound, Place, Receive
from engine.api import Engine
from gateway.access.admission import OWNED, Access, Rules
from gateway.access.door import Door
from gateway.agents.base import Agent
from gateway.agents.direct import DirectAgent
from gateway.chats import Hub
from gateway.config.settings import Settings
from gateway.conversations import Conversations, Services, Wishes
from gateway.delivery import Delivery
from gateway.offload import Offload
from gateway.operation.neighbours import Neighbours
from gateway.operation.recovery import recover
from gateway.state.memory import Memory, open_memory
from gateway.turns.running import TurnRunner
from gateway.turns.writers import Writers
from gateway.workspaces import Workspaces

PLATFORM = "test"
COMMAND_ENV = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LC_ALL": "C.UTF-8"}
PATIENCE_S = 30.0
NO_WISHES = Wishes()


@dataclass
class Platform:
    """An adapter that remembers what it was given, by the message it answers."""

    name: str = PLATFORM
    sent: list[Outbound] = field(default_factory=list)
    ended: dict[str, anyio.Event] = field(default_factory=dict)
    shown: list[str] = field(default_factory=list)
    stirred: anyio.Event = field(default_factory=anyio.Event)

    async def run(self, _receive: Receive) -> None:
        await anyio.sleep_forever()

    async def send(self, message: Outbound) -> None:
        self.sent.append(message)
        self._stir()

    async def progress(self, _place: Place, text: str) -> None:
        self.shown.append(text)
        self._stir()

    async def until_shown(self, text: str) -> None:
        """Wait until progress has shown a text."""
        with anyio.fail_after(PATIENCE_S):
            while not any(text in shown for shown in self.shown):
                await self.stirred.wait()

    async def until_sent(self, text: str) -> Outbound:
        """Wait until a message with a text has been sent, and return it."""
        with anyio.fail_after(PATIENCE_S):
            while not (found := [message for message in self.sent if text in message.plain_text]):
                await self.stirred.wait()
        return found[-1]

    def _stir(self) -> None:
        self.stirred.set()
        self.stirred = anyio.Event()

    async def finished(self, _place: Place, event_id: str) -> None:
        self.ended.setdefault(event_id, anyio.Event()).set()


@dataclass(frozen=True)
class Answered:
    """All replies to one message."""

    replies: tuple[Outbound, ...]

    @property
    def text(self) -> str:
        return "".join(reply.plain_text for reply in self.replies)

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @property
    def files(self) -> list[Attachment]:
        return [file for reply in self.replies for file in reply.files]

    @property
    def buttons(self) -> list[Button]:
        return [button for reply in self.replies for button in reply.buttons]


@dataclass
class Gateway:
    """A running gateway."""

    memory: Memory
    engine: Engine
    hub: Hub
    delivery: Delivery
    platform: Platform
    run: str = field(default_factory=lambda: secrets.token_hex(4))
    events: int = 0

    def chat(self, name: str = "main") -> "Chat":
        return Chat(self, Place(PLATFORM, name))


@dataclass
class Chat:
    """One chat of a running gateway."""

    gateway: Gateway
    place: Place

    async def send(self, text: str, *, edited: bool = False, user: str = "ann") -> str:
        """Hand a message in and return its event; it is stored, not yet answered."""
        self.gateway.events += 1
        event_id = f"{self.gateway.run}-{self.gateway.events}"
        await self.gateway.hub.receive(Inbound(self.place, user, event_id, text, edited=edited))
        return event_id

    async def answer_to(self, event_id: str) -> Answered:
        """Wait until a message is dealt with."""
        ended = self.gateway.platform.ended.setdefault(event_id, anyio.Event())
        with anyio.fail_after(PATIENCE_S):
            await ended.wait()
        return Answered(tuple(message for message in self.gateway.platform.sent if message.reply_to == event_id))

    async def told(self) -> Answered:
        """Wait until everything is sent, and return all that this run has said in the chat."""
        with anyio.fail_after(PATIENCE_S):
            await self.gateway.delivery.idle()
        return Answered(tuple(message for message in self.gateway.platform.sent if message.place == self.place))

    async def say(self, text: str) -> Answered:
        """Send a message and wait for all that is said to it."""
        return await self.answer_to(await self.send(text))

    async def head(self) -> int | None:
        session = await self.gateway.memory.sessions.current(self.place)
        return session.head if session else None


EngineMaker = Callable[[str, str], Engine]


def plain_engine(home: str, user_home: str) -> Engine:
    return Engine(
        os.path.join(home, "checkpoints"), user_home=user_home, command_env=COMMAND_ENV, search_path=os.environ["PATH"]
    )


@asynccontextmanager
async def running_gateway(
    home: Path,
    settings: Settings,
    *,
    make_engine: EngineMaker = plain_engine,
    agents: Mapping[str, Agent] | None = None,
    rules: Rules = OWNED,
    wishes: Wishes = NO_WISHES,
    secrets: Collection[str] = (),
) -> AsyncIterator[Gateway]:
    """Run a gateway over ``home`` until the block ends; ``rules`` say whom it admits."""
    async with open_memory(str(home)) as memory:
        engine = await to_thread.run_sync(make_engine, str(home), str(home.parent / "user"))
        offload = Offload(engine)
        platform = Platform()
        delivery = Delivery(memory.outbox, [platform])
        writers = Writers(offload.claim)
        neighbours = Neighbours(memory, offload, serves=delivery.serves, wake=delivery.wake)

        def waiting(place: Place) -> int:
            return hub.waiting(place)

        services = Services(
            memory=memory,
            offload=offload,
            runner=TurnRunner(memory, offload, delivery, writers, neighbours, secrets=secrets),
            writers=writers,
            neighbours=neighbours,
            workspaces=Workspaces(settings, offload, settings.default_workspace or next(iter(settings.workspaces))),
            agents=agents or {DirectAgent.kind: DirectAgent()},
            waiting=waiting,
        )
        door = Door(Access(memory.admissions, {PLATFORM: rules}), memory.admissions, memory.buttons, memory.moves)
        hub = Hub(memory.inbox, delivery, Conversations(services, wishes), door)
        await recover(memory, offload, offload.open_workspace, [platform.name])
        async with anyio.create_task_group() as tasks:
            await tasks.start(delivery.run)
            await tasks.start(hub.run)
            yield Gateway(memory, engine, hub, delivery, platform)
            # What a test left running is cut off, as at a stop of the service.
            with anyio.move_on_after(1):
                await hub.idle()
                await delivery.idle()
            tasks.cancel_scope.cancel()


def settings_for(
    *workspaces: Path, checkpoints: bool = True, limits: Mapping[str, object] | None = None, **more: object
) -> Settings:
    """Configure directories under their own names, the first one as default."""
    return Settings.model_validate(
        {
            "checkpoints": {"enabled": checkpoints, **(limits or {})},
            "workspaces": {path.name: {"path": str(path)} for path in workspaces},
            "default_workspace": workspaces[0].name,
            **more,
        }
    )


def times_of(root: Path) -> dict[Path, int]:
    """Return when each entry of a tree, and the root itself, was last written."""
    return {path: path.stat().st_mtime_ns for path in [root, *root.rglob("*")]}


def rename(path: Path, name: str) -> Path:
    """Give a directory another name."""
    return path.rename(path.with_name(name))


def tree_of(root: Path) -> dict[str, bytes]:
    """Return every file of a tree with its content."""
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}
