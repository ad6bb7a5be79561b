"""Decides what a message is and has it answered: finds the chat's session, runs a command, or begins a turn.

This is what the hub calls for every message (`gateway.chats.Handler`). It keeps nothing that a restart would lose, but
which chats have been met in this run.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import anyio

from adapters.contract import Inbound, Outbound, Place
from engine.errors import EngineError
from engine.model import Workspace
from gateway.agents.base import Agent
from gateway.agents.choosing import Choosing, ModelUnusable
from gateway.agents.receiving import Receiving, title
from gateway.chats import Handled, Manner
from gateway.commands.base import CommandContext, Declined, Order, Outcome
from gateway.commands.failures import sentence
from gateway.commands.session import Stop
from gateway.offload import Offload
from gateway.operation.neighbours import Neighbours
from gateway.render import Reply, say
from gateway.router import Ignored, Mistyped, Routed, ToAgent, ToCommand, route
from gateway.state.access import Role
from gateway.state.compactions import Compaction
from gateway.state.errors import StateError
from gateway.state.inbox import Received
from gateway.state.memory import Memory
from gateway.state.sent import SentFile
from gateway.state.sessions import Session
from gateway.state.turns import Turn
from gateway.turns.approvals import Policy
from gateway.turns.history import Histories
from gateway.turns.running import TurnRequest, TurnRunner
from gateway.turns.writers import WorkspaceBusy, Writers
from gateway.workspaces import Workspaces


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the command line asks of this run.

    ``place`` is the chat it speaks for and ``workspace`` where that chat is to work, whatever it chose before.
    ``checkpoints`` holds for every session of the run that does not choose anew.
    """

    place: Place | None = None
    workspace: str | None = None
    checkpoints: bool | None = None


@dataclass(frozen=True, slots=True)
class Services:
    """What answering a message needs. ``waiting`` counts a chat's messages that have not been begun."""

    memory: Memory
    offload: Offload
    runner: TurnRunner
    writers: Writers
    neighbours: Neighbours
    workspaces: Workspaces
    agents: Mapping[str, Agent]
    waiting: Callable[[Place], int]


@dataclass(frozen=True, slots=True)
class _Said:
    """What a turn is to answer: words, files that came with them earlier, and what is said before it begins."""

    text: str
    files: tuple[SentFile, ...] = ()
    replies: tuple[Outbound, ...] = ()


class Conversations:
    """Answers messages."""

    def __init__(self, services: Services, wishes: Wishes) -> None:
        self._memory = services.memory
        self._offload = services.offload
        self._runner = services.runner
        self._writers = services.writers
        self._neighbours = services.neighbours
        self._workspaces = services.workspaces
        self._agents = services.agents
        self._waiting = services.waiting
        self._wishes = wishes
        self._met: set[Place] = set()
        # One at a time: two first messages of a chat must not begin two sessions.
        self._arrivals = anyio.Lock()

    async def manner(self, inbound: Inbound) -> Manner:
        """How a message is ordered among its chat's."""
        if inbound.edited:
            return Manner.BESIDE
        session = await self._memory.sessions.current(inbound.place)
        match self._route(inbound.text, await self._wanted(inbound.place, session)):
            case ToCommand(invocation=invocation):
                return Manner(invocation.order.value)
            case ToAgent():
                return Manner.TURN
            case Ignored() if inbound.files:
                return Manner.TURN
        return Manner.BESIDE

    async def stop_unstored(self, inbound: Inbound) -> bool:
        """End the turn that a message asks to stop; false where it asks for something else, or there is none."""
        session = await self._memory.sessions.current(inbound.place)
        match self._route(inbound.text, await self._wanted(inbound.place, session)):
            case ToCommand(invocation=Stop()) if not inbound.edited:
                return any(self._runner.end(name) for name in await self._names(inbound.place))
        return False

    async def handle(self, received: Received) -> Handled:
        """Run a command, or give back the turn to run. What was already read is not read again when it is edited."""
        inbound = received.inbound
        if inbound.edited:
            return Handled()
        session = await self._enter(inbound.place)
        match self._route(inbound.text, session.workspace):
            case Ignored():
                return await self._turn(received, session, _Said("")) if inbound.files else Handled()
            case Mistyped(sentence=words):
                return Handled((_answer(inbound, say(words)),))
            case ToAgent(text=text):
                return await self._turn(received, session, _Said(text))
            case ToCommand() as command:
                outcome = await self._run(received, session, command)
        replies = tuple(_answer(inbound, reply) for reply in outcome.replies)
        if outcome.turn_text is None:
            return Handled(replies)
        # The command may have moved the session's head; the turn begins at what is current now.
        said = _Said(outcome.turn_text, outcome.turn_files, replies)
        return await self._turn(received, await self._enter(inbound.place), said)

    def _route(self, text: str, workspace: str) -> Routed:
        return route(text, agent_kind=self._workspaces.settings.agent_of(workspace).kind)

    async def _run(self, received: Received, session: Session, command: ToCommand) -> Outcome:
        if command.command.admin_only and received.role is not Role.ADMIN:
            return Outcome((say(f"/{command.command.name} is for admins alone."),))
        try:
            if command.invocation.order is not Order.IMMEDIATE:
                await self._neighbours.settle()
            if command.invocation.order is Order.ALONE:
                await self._neighbours.wait_for_turn(session)
                # What was waited for, or settled, has moved the session's head.
                session = await self._enter(received.inbound.place)
            return await command.invocation.run(self._context(received, session))
        except EngineError as error:
            return Outcome((say(sentence(error)),))
        except (Declined, WorkspaceBusy, StateError) as error:
            return Outcome((say(str(error)),))

    def _context(self, received: Received, session: Session) -> CommandContext:
        return CommandContext(
            inbound=received.inbound,
            inbox_id=received.id,
            session=session,
            guarded=self._guarded(session),
            container=self._workspaces.container(session.workspace),
            settings=self._workspaces.settings,
            memory=self._memory,
            engine=self._offload,
            writers=self._writers,
            control=_Control(self, session, received.id),
            role=received.role,
        )

    async def _turn(self, received: Received, session: Session, said: "_Said") -> Handled:
        await self._neighbours.settle()
        opened = await self._workspaces.open(session.workspace)
        if opened.workspace is None:
            return Handled((*said.replies, _answer(received.inbound, say(opened.problem))))
        if opened.root != session.root:
            # The configuration names another directory by now: its changes belong to a session of their own.
            session = await self._start(session.place, session.workspace, opened.root, before=session)
        settings = self._workspaces.settings
        agent = self._agent(session)
        files = received.inbound.files
        if agent.own_word and (files or said.files):
            agent = Receiving(agent, alone=said.text in {"", title(said.files)})
        request = TurnRequest(
            received=received,
            session=session,
            workspace=opened.workspace,
            agent=agent,
            text=said.text or title(files),
            files=files,
            earlier=said.files,
            guarded=self._guarded(session) and self._workspaces.container(session.workspace) is None,
            backend=settings.backend_of(session.workspace).choice(),
            policy=Policy(settings.approvals_of(session.workspace), settings.approval_timeout_s, settings.approvers),
            history_characters=settings.agent_of(session.workspace).history_characters,
            secret_files=settings.agent_of(session.workspace).secret_files,
        )
        return Handled(said.replies, lambda: self._runner.run(request))

    def _agent(self, session: Session) -> Agent:
        """What answers in a session: the workspace's agent, with the model that the session chose."""
        settings = self._workspaces.settings.agent_of(session.workspace)
        agent = self._agents[settings.kind]
        return agent.using(settings, session.model) if isinstance(agent, Choosing) else agent

    def _guarded(self, session: Session) -> bool:
        if session.checkpoints is not None:
            return session.checkpoints
        return self._workspaces.settings.checkpoints_of(session.workspace).enabled

    async def _enter(self, place: Place) -> Session:
        """Find the chat's session, or begin the one that fits."""
        async with self._arrivals:
            session = await self._memory.sessions.current(place)
            wanted = await self._wanted(place, session)
            if session is None or session.workspace != wanted:
                opened = await self._workspaces.open(wanted)
                session = await self._start(place, wanted, opened.root)
            elif place not in self._met and self._wishes.checkpoints is not None and session.checkpoints is not None:
                session = await self._memory.sessions.set_checkpoints(session.id, on=None)
            self._met.add(place)
            return session

    async def _start(
        self,
        place: Place,
        workspace: str,
        root: str,
        *,
        before: Session | None = None,
        inbox_id: int | None = None,
    ) -> Session:
        """Begin a session; what the chat chose with ``/checkpoints`` and ``/model`` in this workspace still holds."""
        if self._wishes.checkpoints is None:
            chosen = await self._memory.sessions.last_switch(place, workspace)
        else:
            # What was chosen in an earlier run gives way to the command line.
            chosen = before.checkpoints if before is not None and before.workspace == workspace else None
        model = await self._memory.sessions.last_model(place, workspace)
        return await self._memory.sessions.start(
            place, workspace=workspace, root=root, checkpoints=chosen, model=model, inbox_id=inbox_id
        )

    async def _wanted(self, place: Place, session: Session | None) -> str:
        """The workspace a chat works in: what the command line says, its session's, its choice, or the default."""
        if place == self._wishes.place and place not in self._met and self._wishes.workspace is not None:
            return self._wishes.workspace
        if session is not None:
            return session.workspace
        chat = await self._memory.sessions.find_chat(place)
        if chat is not None and chat.workspace is not None and self._workspaces.path(chat.workspace) is not None:
            return chat.workspace
        return self._workspaces.default

    async def open_workspace(self, name: str) -> Workspace:
        """Open a workspace by its name.

        Raises:
            Declined: it cannot be used now.
        """
        opened = await self._workspaces.open(name)
        if opened.workspace is None:
            raise Declined(opened.problem)
        return opened.workspace

    async def begin_session(self, session: Session, workspace: str | None, inbox_id: int | None) -> Session:
        """Begin the next session of a chat, in the same workspace or another.

        Raises:
            Declined: the workspace cannot be used; the session goes on.
        """
        wanted = workspace or session.workspace
        root = (await self.open_workspace(wanted)).root
        if workspace is not None:
            await self._memory.sessions.choose_workspace(session.place, workspace)
        return await self._start(session.place, wanted, root, before=session, inbox_id=inbox_id)

    async def compact(self, session: Session) -> Compaction | None:
        """Sum up what a session's agent would be shown now; ``None`` where there is nothing new.

        Raises:
            Declined: its model cannot be used.
        """
        agent, histories = self._agent(session), Histories(self._memory)
        characters = self._workspaces.settings.agent_of(session.workspace).history_characters
        if not isinstance(agent, Choosing):
            return await histories.compact(session, characters)
        try:
            async with agent.summing_up() as compactor:
                return await histories.compact(session, characters, compactor)
        except ModelUnusable as error:
            raise Declined(str(error)) from error

    def running(self, place: Place) -> Turn | None:
        """The turn that runs in a chat now."""
        return self._runner.running(place)

    def waiting(self, place: Place) -> int:
        """How many of a chat's messages wait."""
        return self._waiting(place)

    def wake(self, approval_id: int) -> None:
        """Let a turn go on whose question was answered."""
        self._runner.wake(approval_id)

    async def stop(self, place: Place) -> bool:
        """Stop the turn of a chat, also one begun before its platform moved it; false when none runs."""
        for name in await self._names(place):
            if await self._runner.stop(name):
                return True
        return False

    async def _names(self, place: Place) -> list[Place]:
        return [place, *(Place(place.adapter, name) for name in await self._memory.moves.former(place))]


class _Control:
    """What a command may do to its chat."""

    def __init__(self, conversations: Conversations, session: Session, inbox_id: int) -> None:
        self._conversations = conversations
        self._session = session
        self._inbox_id = inbox_id

    def running(self) -> Turn | None:
        return self._conversations.running(self._session.place)

    def waiting(self) -> int:
        return self._conversations.waiting(self._session.place)

    def wake(self, approval_id: int) -> None:
        self._conversations.wake(approval_id)

    async def stop(self) -> bool:
        return await self._conversations.stop(self._session.place)

    async def open_workspace(self) -> Workspace:
        return await self._conversations.open_workspace(self._session.workspace)

    async def compact(self) -> Compaction | None:
        return await self._conversations.compact(self._session)

    async def begin_session(self, workspace: str | None = None) -> Session:
        return await self._conversations.begin_session(self._session, workspace, self._inbox_id)


def _answer(inbound: Inbound, reply: Reply) -> Outbound:
    return reply.to(inbound.place, inbound.event_id)
