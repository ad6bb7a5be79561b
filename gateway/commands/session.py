"""``/new``, ``/stop`` and ``/status``: the session itself."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from engine.errors import EngineError
from gateway.commands.arguments import no_arguments
from gateway.commands.base import Command, CommandContext, Invocation, Order, Outcome, Usage
from gateway.commands.overview import Overview
from gateway.commands.workspace import where
from gateway.listing import local_minute
from gateway.render import SHORT_ID, counted, one_line, say
from gateway.state.errors import StateError
from gateway.state.sessions import Session
from gateway.state.turns import Turn
from gateway.turns.writers import chat_name, overlap

_QUOTED_CHARACTERS = 60

_LOOKED_BACK = 100
"""Turns that are searched for the newest checkpoint."""

_THEIRS = (
    "Nothing runs here. Another Takeback process runs turn #{number} of this chat: /stop it there. "
    "If that process has ended, the next message notices."
)


@dataclass(frozen=True, slots=True)
class New:
    """End this session and begin the next in the same workspace."""

    order = Order.ALONE

    async def run(self, context: CommandContext) -> Outcome:
        """Answer with what the new session begins with."""
        session = await context.control.begin_session()
        await _note_beginning(context, session)
        return Outcome(
            (
                say(
                    f"✨ New session in {where(session)}. "
                    "The agent remembers nothing of the one before; files and checkpoints stay as they are. "
                    f"{_switch_kept(session)}"
                ),
            )
        )


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop the running turn."""

    order = Order.IMMEDIATE

    async def run(self, context: CommandContext) -> Outcome:
        """Answer once the turn can write nothing more; what it asks is denied."""
        # Stored before the turn is stopped and never told to it, so that it cannot go on with the answer. Where that
        # fails, the turn's end closes the question.
        with suppress(StateError):
            await context.memory.approvals.deny_all(context.place, by=context.inbound.user, inbox_id=context.inbox_id)
        stopped = context.control.running()
        if not await context.control.stop():
            theirs = await context.memory.turns.running(context.session.id)
            return Outcome((say("Nothing is running." if theirs is None else _THEIRS.format(number=theirs.id)),))
        running = context.control.running()
        if stopped is not None and running is not None and running.id == stopped.id:
            return Outcome((say("⏹ Stopping: it can write nothing any more, and says here when it has ended."),))
        # The turn itself says that it was stopped, with what it had changed by then.
        return Outcome(())


@dataclass(frozen=True, slots=True)
class Status:
    """Say where this chat stands, from the database alone: it never waits for the engine."""

    order = Order.IMMEDIATE

    async def run(self, context: CommandContext) -> Outcome:
        """Answer with session, workspace, backend, agent, checkpoints, head, queue, who else is at work, questions."""
        session = context.session
        turns = await context.memory.turns.active(session.id, limit=_LOOKED_BACK)
        covered = next((turn for turn in turns if turn.checkpoint_id), None)
        backend = context.settings.backend_of(session.workspace).kind
        lines = [
            f"Session: {session.id}, since {local_minute(session.started_at)}",
            f"Workspace: {where(session)}",
            f"Backend: {backend}",
            f"Agent: {_agent(context)}",
            f"Checkpoints: {_switch(context)}",
            f"Last turn: {_described(turns[0]) if turns else 'none yet'}",
            f"Last checkpoint: {_checkpoint(covered)}",
            *await _now(context),
            *await _others(context),
            *await _questions(context),
        ]
        return Outcome((say("\n".join(lines)),))


def _agent(context: CommandContext) -> str:
    agent = context.settings.agent_of(context.session.workspace)
    return agent.kind if agent.kind != "model" else f"model, {agent.choice(context.session.model).shown}"


def _switch_kept(session: Session) -> str:
    if session.checkpoints is None:
        return "/status shows whether checkpoints are on."
    state, other = ("on", "off") if session.checkpoints else ("off", "on")
    return f"Checkpoints stay {state}, as this chat chose; /checkpoints {other} changes that."


async def _note_beginning(context: CommandContext, session: Session) -> None:
    """Record the files as they are for ``/diff session``; where that fails, the first tool tries again and says so."""
    on = session.checkpoints
    if on is None:
        on = context.settings.checkpoints_of(session.workspace).enabled
    if not on or context.container is not None:
        return
    with suppress(EngineError):
        await context.engine.begin_session(await context.control.open_workspace(), session.id)


def _switch(context: CommandContext) -> str:
    if context.container is not None:
        return "none: commands run in a container"
    if context.session.checkpoints is None:
        return "on" if context.guarded else "off (/checkpoints on)"
    return f"{'on' if context.guarded else 'off'} (chosen in this chat with /checkpoints; /new keeps it)"


def _described(turn: Turn) -> str:
    return f"#{turn.id} {turn.state.value}: {one_line(turn.text, _QUOTED_CHARACTERS)}"


def _checkpoint(turn: Turn | None) -> str:
    if turn is None or turn.checkpoint_id is None:
        return "none in this session"
    return f"{turn.checkpoint_id[:SHORT_ID]}, before turn #{turn.id}"


async def _now(context: CommandContext) -> list[str]:
    # A turn that this process does not run may be another's.
    running = context.control.running() or await context.memory.turns.running(context.session.id)
    waiting = context.control.waiting()
    lines = []
    if running is not None:
        seconds = _seconds(running.started_at, context.memory.clock())
        lines.append(f"Running: turn #{running.id} for {seconds} s: {one_line(running.text, _QUOTED_CHARACTERS)}")
    if waiting:
        lines.append(f"Waiting: {counted(waiting, 'message')}")
    return lines or ["Running: nothing"]


async def _others(context: CommandContext) -> list[str]:
    """Name the other chats whose turns are at work in this workspace now: this one's wait for them."""
    return [
        f"At work here too: {chat_name(place)}, since {local_minute(turn.started_at)}"
        for place, turn in await context.memory.turns.running_elsewhere(context.session.id)
        if overlap(turn.root, context.session.root)
    ]


async def _questions(context: CommandContext) -> list[str]:
    return [
        f"Asks: question #{asked.id} waits for an answer: {one_line(asked.subject, _QUOTED_CHARACTERS)}"
        for asked in await context.memory.approvals.pending(context.place)
    ]


def _seconds(since: datetime, now: datetime) -> int:
    return max(0, int((now - since).total_seconds()))


def _parse_new(text: str) -> Invocation:
    no_arguments("new", text)
    return New()


def _parse_stop(text: str) -> Invocation:
    no_arguments("stop", text)
    return Stop()


def _parse_status(text: str) -> Invocation:
    if text.strip().lower() == "all":
        return Overview()
    no_arguments("status", text)
    return Status()


NEW = Command(
    name="new",
    summary="Begin a new session; files stay as they are",
    usages=(Usage("/new", "begin a new session; files stay as they are"),),
    parse=_parse_new,
)

STOP = Command(
    name="stop",
    summary="Stop the running turn",
    usages=(Usage("/stop", "stop the running turn; nothing is written afterwards"),),
    parse=_parse_stop,
)

STATUS = Command(
    name="status",
    summary="Show session, workspace, checkpoints and what is running",
    usages=(
        Usage("/status", "session, workspace, checkpoints, last turn, what is running"),
        Usage("/status all", "your sessions in every chat, the workspaces, how many checkpoints there are"),
    ),
    parse=_parse_status,
)
