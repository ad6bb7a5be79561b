"""What becomes of a message: routed, then answered by a command or given to the agent as a turn.

Also what a chat begins with: its session, bound to a configured workspace that is opened anew for each message, so
that a change of configuration or of the disk shows at once.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from types import MappingProxyType

from adapters.contract import Inbound, Place
from engine.errors import EngineError
from engine.model import Workspace
from gateway.agents.base import Agent
from gateway.chats import Handled, Manner
from gateway.commands.base import CommandContext, Declined, Invocation
from gateway.commands.failures import sentence
from gateway.config.settings import Settings
from gateway.offload import Offload
from gateway.render import Reply, say
from gateway.router import Ignored, Mistyped, Routed, ToAgent, ToCommand, route
from gateway.state.errors import StateError
from gateway.state.inbox import Received
from gateway.state.memory import Memory
from gateway.state.sessions import Session
from gateway.state.turns import Turn
from gateway.turns import TurnRequest, TurnRunner
from gateway.writers import WorkspaceBusy, Writers

CONTAINERS = frozenset({"docker", "singularity", "modal", "daytona", "vercel_sandbox"})
"""Backends whose paths belong to a sandbox."""

NO_WORKSPACE = "No workspace is configured, so there is nothing to work in. Name one under workspaces: in config.yaml."


@dataclass(frozen=True, slots=True)
class Services:
    """What messages are answered with.

    ``agents`` has one for each kind that a workspace may name; ``bots`` the name that each adapter's commands may be
    addressed to, where it has one; ``waiting`` counts the messages in a chat's queue.
    """

    memory: Memory
    engine: Offload
    settings: Settings
    runner: TurnRunner
    writers: Writers
    agents: Mapping[str, Agent]
    waiting: Callable[[Place], int]
    bots: Mapping[str, str] = MappingProxyType({})


class ChatHandler:
    """Decides about and answers messages, for `gateway.chats.Hub`."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def manner(self, inbound: Inbound) -> Manner:
        """Say how a message is ordered among its chat's others."""
        match await self._route(inbound):
            case ToCommand(invocation=invocation):
                return Manner(invocation.order.value)
            case ToAgent():
                return Manner.TURN
            case _:
                return Manner.IMMEDIATE

    async def handle(self, received: Received) -> Handled:
        """Answer a message, or give back the turn that will."""
        routed = await self._route(received.inbound)
        if isinstance(routed, Ignored):
            return Handled()
        if isinstance(routed, Mistyped):
            return _said(received, (say(routed.sentence),))
        try:
            visit = await self._visit(received)
            if isinstance(routed, ToAgent):
                return await visit.turn(routed.text)
            return await visit.command(routed.invocation)
        except (Declined, EngineError, StateError, WorkspaceBusy) as error:
            return _said(received, (say(sentence(error) if isinstance(error, EngineError) else str(error)),))

    async def _visit(self, received: Received) -> "_Visit":
        place = received.inbound.place
        session = await self._services.memory.sessions.current(place)
        if session is None:
            name = await self._workspace_name(place)
            if name is None:
                raise Declined(NO_WORKSPACE)
            session = await start_session(self._services, place, name)
        return _Visit(self._services, received, session)

    async def _route(self, inbound: Inbound) -> Routed:
        if inbound.edited:
            # Whatever it was has been dealt with when it first came.
            return Ignored()
        name = await self._workspace_name(inbound.place)
        kind = self._services.settings.agent_of(name or "").kind
        return route(inbound.text, agent_kind=kind, bot=self._services.bots.get(inbound.place.adapter))

    async def _workspace_name(self, place: Place) -> str | None:
        """Return the workspace a chat is in, or would begin in."""
        session = await self._services.memory.sessions.current(place)
        if session is not None:
            return session.workspace
        chat = await self._services.memory.sessions.find_chat(place)
        if chat is not None and chat.workspace is not None:
            return chat.workspace
        settings = self._services.settings
        return settings.default_workspace or next(iter(settings.workspaces), None)


@dataclass(frozen=True, slots=True)
class _Visit:
    """One message in its session; what commands may do to their chat is done here."""

    services: Services
    received: Received
    session: Session

    @property
    def place(self) -> Place:
        return self.received.inbound.place

    @property
    def container(self) -> str | None:
        kind = self.services.settings.backend_of(self.session.workspace).kind
        return kind if kind in CONTAINERS else None

    @property
    def guarded(self) -> bool:
        """Whether checkpoints are on: the session's own switch, else what the configuration says of the workspace."""
        if self.session.checkpoints is not None:
            return self.session.checkpoints
        return self.services.settings.checkpoints_of(self.session.workspace).enabled

    async def command(self, invocation: Invocation) -> Handled:
        context = CommandContext(
            inbound=self.received.inbound,
            inbox_id=self.received.id,
            session=self.session,
            guarded=self.guarded,
            container=self.container,
            settings=self.services.settings,
            memory=self.services.memory,
            engine=self.services.engine,
            writers=self.services.writers,
            control=self,
        )
        outcome = await invocation.run(context)
        if outcome.turn_text is None:
            return _said(self.received, outcome.replies)
        return await self.turn(outcome.turn_text, outcome.replies)

    async def turn(self, text: str, replies: tuple[Reply, ...] = ()) -> Handled:
        settings = self.services.settings
        kind = settings.agent_of(self.session.workspace).kind
        agent = self.services.agents.get(kind)
        if agent is None:
            raise Declined(f"This workspace's agent is of the kind {kind}, which this version does not have.")
        request = TurnRequest(
            received=self.received,
            session=self.session,
            workspace=await self.open_workspace(),
            agent=agent,
            text=text,
            guarded=self.guarded and self.container is None,
            backend=settings.backend_of(self.session.workspace).kind,
        )
        said = _said(self.received, replies)
        return Handled(said.replies, lambda: self.services.runner.run(request))

    async def open_workspace(self) -> Workspace:
        return await open_workspace(self.services, self.session.workspace)

    def running(self) -> Turn | None:
        return self.services.runner.running(self.place)

    def waiting(self) -> int:
        return self.services.waiting(self.place)

    async def stop(self) -> bool:
        return await self.services.runner.stop(self.place)

    async def begin_session(self, workspace: str | None = None) -> Session:
        memory = self.services.memory
        session = await start_session(self.services, self.place, workspace or self.session.workspace)
        if workspace is not None:
            await memory.sessions.choose_workspace(self.place, workspace)
        begun = replace(self, session=session)
        if begun.guarded and begun.container is None:
            # Where this fails, the first tool tries again and says so.
            with suppress(EngineError):
                await self.services.engine.begin_session(await begun.open_workspace(), session.id)
        return session


async def start_session(services: Services, place: Place, name: str) -> Session:
    """Begin a chat's session in a configured workspace.

    Raises:
        Declined: its directory cannot be used; the chat stays in the session it is in.
    """
    workspace = await open_workspace(services, name)
    return await services.memory.sessions.start(place, workspace=name, root=workspace.root)


async def open_workspace(services: Services, name: str) -> Workspace:
    """Open a configured workspace with its limits.

    Raises:
        Declined: it is no longer configured, or its directory cannot be used.
    """
    configured = services.settings.workspaces.get(name)
    if configured is None:
        raise Declined(f"The workspace {name} is no longer configured. /workspace lists those that are.")
    try:
        return await services.engine.open_workspace(configured.path, services.settings.checkpoints_of(name).limits())
    except EngineError as error:
        raise Declined(sentence(error)) from error


def _said(received: Received, replies: tuple[Reply, ...]) -> Handled:
    inbound = received.inbound
    return Handled(tuple(reply.to(inbound.place, inbound.event_id) for reply in replies))
