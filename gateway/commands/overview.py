"""``/status all``: what there is beyond this chat: a person's sessions, the workspaces, and what the store holds."""

from collections.abc import Mapping
from dataclasses import dataclass

from engine.errors import EngineError
from gateway.commands.base import CommandContext, Order, Outcome
from gateway.commands.workspace import where
from gateway.config.settings import MIB
from gateway.render import counted, name, one_line, say
from gateway.state.sessions import Session

_SHOWN_SESSIONS = 10
_QUOTED_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class Overview:
    """Say what a person has going on, in every chat of this platform."""

    order = Order.BESIDE

    async def run(self, context: CommandContext) -> Outcome:
        """Answer with sessions, workspaces and checkpoint totals; where checkpoints are off, the store is not asked."""
        lines = ["Your sessions of late:", *await _sessions(context), "", "Workspaces:"]
        counts: Mapping[str, int] = {}
        total = "Checkpoints: off everywhere"
        if context.guarded or any(context.settings.checkpoints_of(one).enabled for one in context.settings.workspaces):
            status = await context.engine.store_status()
            counts = {project.workdir: project.checkpoints for project in status.projects if project.workdir}
            total = f"Checkpoints: {sum(counts.values())} in all, {status.total_bytes / MIB:.1f} MB"
            if status.problem is not None:
                total = f"Checkpoints: {status.problem}"
        lines += [await _workspace(context, one, counts) for one in sorted(context.settings.workspaces)]
        return Outcome((say("\n".join([*lines, "", total])),))


async def _sessions(context: CommandContext) -> list[str]:
    sessions = await context.memory.sessions.of_person(
        context.place.adapter, context.inbound.user, limit=_SHOWN_SESSIONS
    )
    return [await _session(context, session) for session in sessions] or ["  none"]


async def _session(context: CommandContext, session: Session) -> str:
    turns = await context.memory.turns.active(session.id, limit=1)
    last = f"turn #{turns[0].id} {turns[0].state.value}: {one_line(turns[0].text, _QUOTED_CHARACTERS)}" if turns else ""
    ended = ", ended" if session.ended_at is not None else ""
    return f"  {name(session.place.chat)} in {where(session)}{ended}: {last or 'all taken back'}"


async def _workspace(context: CommandContext, named: str, counts: Mapping[str, int]) -> str:
    settings = context.settings
    path = settings.workspaces[named].path
    if settings.backend_of(named).is_container:
        return f"  {name(named)}: {name(path)}, in a container: no checkpoints"
    try:
        root = (await context.engine.open_workspace(path)).root
    except EngineError as error:
        return f"  {name(named)}: {one_line(str(error), 200)}"
    state = "on" if settings.checkpoints_of(named).enabled else "off"
    return f"  {name(named)}: {name(root)}, checkpoints {state}, {counted(counts.get(root, 0), 'checkpoint')}"
