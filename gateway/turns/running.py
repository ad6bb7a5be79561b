"""Runs turns: begins each, hands it to its agent with tools, and stores how it ended together with what is said of it.

One turn at a time in a workspace, and so many at once in all. However a turn ends, its end is stored in one
transaction with its replies and with its message being dealt with; afterwards none of its tools can write.
"""

import logging
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

import anyio

from adapters.contract import Attachment, Outbound, Part, Place
from engine.errors import EngineError
from engine.model import BackendChoice, ToolCall, Workspace
from gateway.agents.base import Agent, Answer, TurnContext
from gateway.blotting import blotted
from gateway.delivery import Delivery
from gateway.offload import Offload
from gateway.operation.measures import Note, TurnEnded, unnoted
from gateway.operation.neighbours import Neighbours
from gateway.render import Reply, readable, say
from gateway.state.errors import StateError, TurnRunning
from gateway.state.inbox import Received
from gateway.state.memory import Memory
from gateway.state.patience import until_stored
from gateway.state.sent import SentFile
from gateway.state.sessions import Session
from gateway.state.turns import Turn, TurnState, turn_ref
from gateway.turns.approvals import BY_DEFAULT, Approvals, Asker, Gate, Policy
from gateway.turns.enclosures import Enclosures
from gateway.turns.endings import FAILED, INTERRUPTED, STOPPED
from gateway.turns.history import Histories
from gateway.turns.receipts import receipt
from gateway.turns.secrecy import without_secrets
from gateway.turns.slots import Slot
from gateway.turns.toolbox import Toolbox
from gateway.turns.writers import Writers, chat_name

MAX_TURNS = 8
"""How many turns run at once in all chats; every one may hold a writer's thread (`gateway.offload.WRITERS`)."""

STOP_LIMIT_S = 10.0
"""How long ``/stop`` waits for a turn to end. By then it can write nothing more, whatever keeps it."""

SHUT_DOWN = "Takeback was shut down during this turn; it is not run again by itself. /retry runs it anew."

UNGUARDED = "No checkpoint covers this turn: whatever it had changed by then stays."

HERE = BackendChoice()
"""Commands run on this machine."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """What a turn needs: whom it answers, where it works, and what answers it.

    ``text`` is what is asked, usually the message's own. ``guarded`` is whether checkpoints are on. ``policy`` says
    which of the agent's calls wait for a person. Of a conversation longer than ``history_characters`` the agent gets a
    summary of the older part. ``files`` came with the message; ``earlier`` did when it was first said. ``secret_files``
    is whether a tool may read files that look like secrets; a person who runs tools always may.
    """

    received: Received
    session: Session
    workspace: Workspace
    agent: Agent
    text: str
    guarded: bool
    backend: BackendChoice = HERE
    policy: Policy = BY_DEFAULT
    history_characters: int = 200_000
    files: tuple[Attachment, ...] = ()
    earlier: tuple[SentFile, ...] = ()
    secret_files: bool = False

    @property
    def place(self) -> Place:
        """The chat that asks."""
        return self.received.inbound.place


@dataclass(eq=False, slots=True)
class _Running:
    """A turn under way; ``turn`` is ``None`` while it waits for its workspace."""

    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    ended: anyio.Event = field(default_factory=anyio.Event)
    turn: Turn | None = None
    stopped: bool = False
    began: float = 0.0


class TurnRunner:
    """Runs turns and stops them.

    Agents and tools get a message as it is; what is kept and said of it holds none of ``secrets`` and nothing that
    looks like a key.
    """

    def __init__(
        self,
        memory: Memory,
        offload: Offload,
        delivery: Delivery,
        writers: Writers,
        neighbours: Neighbours,
        *,
        max_turns: int = MAX_TURNS,
        note: Note = unnoted,
        secrets: Collection[str] = (),
    ) -> None:
        self._memory = memory
        self._secrets = secrets
        self._offload = offload
        self._delivery = delivery
        self._writers = writers
        self._slots = anyio.CapacityLimiter(max_turns)
        self._note = note
        self._approvals = Approvals(memory, delivery)
        self._histories = Histories(memory)
        self._enclosures = Enclosures(memory, offload)
        self._neighbours = neighbours
        self._running: dict[Place, _Running] = {}

    def running(self, place: Place) -> Turn | None:
        """Return the turn that runs in a chat now; ``None`` also while one waits for its workspace."""
        running = self._running.get(place)
        return running.turn if running is not None else None

    def running_in_all(self) -> int:
        """Count the turns that run now, in every chat."""
        return sum(running.turn is not None for running in self._running.values())

    async def run(self, request: TurnRequest) -> None:
        """Run a turn to its end.

        Returns when the turn's end is stored: done, failed, or stopped by `stop`. Cancelled from outside, it stores the
        turn as interrupted first.
        """
        place = request.place
        running = self._running[place] = _Running()
        try:
            with running.scope:
                async with (
                    self._writers.hold(
                        request.workspace.root,
                        chat_name(place),
                        on_wait=lambda holder: self._say_wait(request, holder),
                    ),
                    Slot(self._slots) as slot,
                ):
                    await self._begun(request, running, slot)
            if running.turn is None and running.stopped:
                await self._answer(request, say("⏹ Stopped before it began."))
        except EngineError as error:
            # Of what runs in there only the claim to the workspace lets one out.
            await self._answer(request, say(f"✖ {error}"))
        finally:
            del self._running[place]
            running.ended.set()

    def wake(self, approval_id: int) -> None:
        """Let the turn go on whose question was answered, once the answer is stored."""
        self._approvals.wake(approval_id)

    async def stop(self, place: Place) -> bool:
        """Stop the turn of a chat and wait until it can write nothing more; false when there is none."""
        if not self.end(place):
            return False
        with anyio.move_on_after(STOP_LIMIT_S):
            await self._running[place].ended.wait()
        return True

    def end(self, place: Place) -> bool:
        """Have the turn of a chat end, without waiting until it has; false when there is none."""
        running = self._running.get(place)
        if running is None:
            return False
        running.stopped = True
        running.scope.cancel()
        return True

    async def _begun(self, request: TurnRequest, running: _Running, slot: Slot) -> None:
        try:
            # Shielded: a stop must find either no turn at all or one it can end.
            with anyio.CancelScope(shield=True):
                running.turn = turn = await self._begin(request)
                running.began = anyio.current_time()
        except TurnRunning:
            await self._answer(request, say("busy: another Takeback process runs a turn in this chat."))
            return
        toolbox = self._toolbox(request, turn, slot)
        try:
            state, replies = await self._watched(request, turn, toolbox)
        except anyio.get_cancelled_exc_class():
            toolbox.close()
            with anyio.CancelScope(shield=True):
                await self._cut_off(request, turn, toolbox, stopped=running.stopped)
            raise
        toolbox.close()
        with anyio.CancelScope(shield=True):
            await self._finish(request, turn, state, replies)

    async def _begin(self, request: TurnRequest) -> Turn:
        text = blotted(request.text, self._secrets)
        begin = partial(self._memory.turns.begin, request.session.id, text, inbox_id=request.received.id)
        try:
            return await begin()
        except TurnRunning:
            # The process that ran it may have died while this one waited for the workspace.
            await self._neighbours.interrupt_turns()
            return await begin()

    async def _watched(self, request: TurnRequest, turn: Turn, toolbox: Toolbox) -> tuple[TurnState, tuple[Reply, ...]]:
        """Let the agent answer; when that is cancelled, have the engine end what a tool is doing just then."""
        answered = False

        async def end_tools() -> None:
            # The tool's own wait is shielded and would not notice.
            try:
                await anyio.sleep_forever()
            finally:
                if not answered:
                    with anyio.CancelScope(shield=True):
                        await self._offload.stop(_operation(turn))

        async with anyio.create_task_group() as group:
            group.start_soon(end_tools)
            ending = await self._answered(request, turn, toolbox)
            answered = True
            group.cancel_scope.cancel()
        return ending

    async def _answered(
        self, request: TurnRequest, turn: Turn, toolbox: Toolbox
    ) -> tuple[TurnState, tuple[Reply, ...]]:
        """Let the agent answer; what it raises becomes a failed turn that says what was done by then."""
        try:
            context = await self._context(request, turn, toolbox)
            answer = await request.agent.answer(context)
        except EngineError as error:
            return TurnState.FAILED, (_with_receipt(f"{FAILED} {error}", turn, toolbox),)
        except Exception as error:  # noqa: BLE001 - whatever an agent raises ends its turn, not the service
            _log.exception("an agent failed", extra=_about(request, turn))
            words = f"{FAILED} The agent failed ({type(error).__name__}); the log has the details. /retry tries again."
            return TurnState.FAILED, (_with_receipt(words, turn, toolbox),)
        return TurnState.FAILED if answer.failed else TurnState.DONE, _replies(answer, turn, toolbox)

    async def _context(self, request: TurnRequest, turn: Turn, toolbox: Toolbox) -> TurnContext:
        """What the agent is given; what came with the message is kept first, and it is said where that failed."""
        kept = await self._enclosures.keep(turn, toolbox.call, request.files, request.earlier)
        if kept.problems:
            await self._say(request, turn, say("\n".join(f"{FAILED} {readable(problem)}" for problem in kept.problems)))
        return TurnContext(
            turn_id=turn.id,
            text=request.text,
            tools=toolbox,
            guarded=request.guarded,
            notes=await self._memory.messages.notes_before(turn.id),
            history=partial(self._histories.read, turn, request.history_characters),
            say=partial(self._say, request, turn),
            progress=partial(self._show, request.place),
            stream=partial(self._stream, request.place),
            files=kept.files,
            read_sent=partial(self._enclosures.read, toolbox.call),
        )

    async def _cut_off(self, request: TurnRequest, turn: Turn, toolbox: Toolbox, *, stopped: bool) -> None:
        if stopped:
            words = f"{STOPPED} Stopped." if request.guarded else f"{STOPPED} Stopped. {UNGUARDED}"
            reply = _with_receipt(words, turn, toolbox)
            await self._finish(request, turn, TurnState.STOPPED, (reply,))
            return
        words = f"{INTERRUPTED} {SHUT_DOWN}"
        try:
            await self._finish(request, turn, TurnState.INTERRUPTED, (_with_receipt(words, turn, toolbox),))
        except StateError as error:
            # The next start finds it running and stores the same.
            _log.error("an interrupted turn was not stored: %s", error, extra=_about(request, turn))
            return
        # The hub, which says so of every other end, is cancelled by now. Shutting down waits for no database.
        with suppress(StateError):
            await self._delivery.finished(request.place, request.received.inbound.event_id)

    async def _finish(self, request: TurnRequest, turn: Turn, state: TurnState, replies: tuple[Reply, ...]) -> None:
        received = request.received
        messages = [self._said(request, reply) for reply in replies]
        self._delivery.progress(request.place, "")

        async def store() -> None:
            await self._memory.turns.finish(turn.id, state, replies=messages, inbox_id=received.id)

        await (store() if state is TurnState.INTERRUPTED else until_stored(store))
        seconds = anyio.current_time() - self._running[request.place].began
        self._note(TurnEnded(state.value, seconds))
        _log.info("a turn ended", extra={**_about(request, turn), "state": state.value, "seconds": round(seconds, 3)})
        self._delivery.wake(request.place)

    def _stream(self, place: Place, text: str) -> None:
        """Show an answer as far as it is written."""
        if text.strip():
            self._show(place, f"\n{text}")

    def _show(self, place: Place, text: str) -> None:
        self._delivery.progress(place, blotted(text, self._secrets))

    def _said(self, request: TurnRequest, reply: Reply) -> Outbound:
        """A reply as it is kept and sent."""
        return without_secrets(reply, self._secrets).to(request.place, request.received.inbound.event_id)

    async def _say(self, request: TurnRequest, turn: Turn, reply: Reply) -> None:
        """Send a reply in the middle of a turn; it is part of what the agent said."""
        received = request.received
        await self._memory.turns.say(turn.id, self._said(request, reply), inbox_id=received.id)
        self._delivery.wake(request.place)

    async def _answer(self, request: TurnRequest, reply: Reply) -> None:
        """Deal with a message whose turn never began."""
        received = request.received
        message = self._said(request, reply)
        await until_stored(lambda: self._memory.inbox.done(received.id, (message,)))
        self._delivery.wake(request.place)

    async def _say_wait(self, request: TurnRequest, holder: str) -> None:
        reply = say(f"⏳ Waiting: {holder} is at work in this workspace. /stop gives up waiting.")
        await self._delivery.post(reply.to(request.place, request.received.inbound.event_id))

    def _toolbox(self, request: TurnRequest, turn: Turn, slot: Slot) -> Toolbox:
        call = ToolCall(
            workspace=request.workspace,
            turn=turn_ref(request.session, turn.id),
            guarded=request.guarded,
            operation=_operation(turn),
            backend=request.backend,
            secret_files=request.secret_files or request.agent.own_word,
        )
        asker = Asker(turn.id, request.place, request.received.inbound.event_id, request.workspace)
        gate = Gate(self._approvals, self._offload, asker, request.policy, slot.lent, secrets=self._secrets)
        return Toolbox(
            self._memory.messages,
            self._offload,
            call,
            turn_id=turn.id,
            show=partial(self._delivery.progress, request.place),
            gate=None if request.agent.own_word else gate,
            note=self._note,
            secrets=self._secrets,
        )


def _operation(turn: Turn) -> str:
    return f"turn-{turn.id}"


def _with_receipt(words: str, turn: Turn, toolbox: Toolbox) -> Reply:
    parts, buttons = receipt(turn.id, toolbox.results)
    return Reply((Part(f"{words}\n" if parts else words), *parts), buttons=buttons)


def _replies(answer: Answer, turn: Turn, toolbox: Toolbox) -> tuple[Reply, ...]:
    """What an agent says; the last of it ends with the receipt where the agent tells what it took."""
    if answer.usage is None:
        return answer.replies
    parts, buttons = receipt(turn.id, toolbox.results, answer.usage)
    last = answer.replies[-1] if answer.replies else Reply(())
    between = (Part("\n" if last.plain_text.endswith("\n") else "\n\n"),) if last.parts and parts else ()
    ended = Reply((*last.parts, *between, *parts), last.files, (*last.buttons, *buttons))
    return (*answer.replies[:-1], ended)


def _about(request: TurnRequest, turn: Turn) -> dict[str, object]:
    place = request.place
    return {"adapter": place.adapter, "chat": place.chat, "session": turn.session_id, "turn": turn.id}
