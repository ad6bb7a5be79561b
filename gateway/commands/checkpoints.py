"""``/checkpoints``: this session's switch and its state."""

from dataclasses import dataclass

from engine.errors import EngineError
from gateway.commands.base import BadUsage, Command, CommandContext, Declined, Invocation, Order, Outcome, Usage
from gateway.commands.failures import HOW_TO_TURN_ON, container_reason, git_reason, sentence
from gateway.commands.preconditions import listed_workspace
from gateway.listing import local_minute
from gateway.render import LISTED_ID, counted, name, one_line, say


@dataclass(frozen=True, slots=True)
class ShowState:
    """Say whether checkpoints are on, and what there is."""

    order = Order.BESIDE

    async def run(self, context: CommandContext) -> Outcome:
        """Answer with the state; with checkpoints off, git is not run."""
        if context.container is not None:
            return Outcome((say(container_reason(context.container)),))
        if not context.guarded:
            return Outcome((say(HOW_TO_TURN_ON),))
        workspace = await listed_workspace(context)
        checkpoints = await context.engine.checkpoints(workspace)
        said = f"Checkpoints are on for this session in {name(workspace.root)}. "
        if not checkpoints:
            return Outcome((say(f"{said}None has been taken yet.\n/checkpoints off turns them off."),))
        newest = checkpoints[0]
        return Outcome(
            (
                say(
                    f"{said}There {'is' if len(checkpoints) == 1 else 'are'} "
                    f"{counted(len(checkpoints), 'checkpoint')}, at most {workspace.limits.max_snapshots} are kept. "
                    f"The newest is {newest.id[:LISTED_ID]} of {local_minute(newest.taken_at)}: "
                    f"{one_line(newest.reason, 100)}\n/rollback lists them. /checkpoints off turns them off."
                ),
            )
        )


@dataclass(frozen=True, slots=True)
class TurnOn:
    """Turn checkpoints on for this session."""

    order = Order.BESIDE

    async def run(self, context: CommandContext) -> Outcome:
        """Answer with what holds from the next turn on."""
        if context.container is not None:
            raise Declined(container_reason(context.container))
        reason = await context.engine.availability()
        if reason is not None:
            raise Declined(git_reason(reason))
        if context.guarded:
            return Outcome((say("Checkpoints are on already for this session."),))
        workspace = await context.control.open_workspace()
        await context.memory.sessions.set_checkpoints(context.session.id, on=True)
        said = "Checkpoints are on for this session from the next turn on. /rollback lists them."
        try:
            await context.engine.begin_session(workspace, context.session.id)
        except EngineError as error:
            said += f"\n⚠ The files as they are now could not be recorded for /diff session. {sentence(error)}"
        return Outcome((say(said),))


@dataclass(frozen=True, slots=True)
class TurnOff:
    """Turn checkpoints off for this session."""

    order = Order.BESIDE

    async def run(self, context: CommandContext) -> Outcome:
        """Answer with what holds from the next turn on."""
        if not context.guarded:
            return Outcome((say("Checkpoints are off already for this session."),))
        await context.memory.sessions.set_checkpoints(context.session.id, on=False)
        return Outcome(
            (
                say(
                    "Checkpoints are off for this session from the next turn on: what the agent changes then cannot be "
                    "taken back. Those taken so far are kept; /checkpoints on turns them on again."
                ),
            )
        )


def parse(text: str) -> Invocation:
    """Accept nothing, ``on`` or ``off``."""
    match text.strip().lower():
        case "":
            return ShowState()
        case "on":
            return TurnOn()
        case "off":
            return TurnOff()
    raise BadUsage(f"/checkpoints takes on, off or nothing, not {name(text.strip())}.")


CHECKPOINTS = Command(
    name="checkpoints",
    summary="Show whether checkpoints are on, or switch them for this session",
    usages=(
        Usage("/checkpoints", "whether checkpoints are on for this session"),
        Usage("/checkpoints on", "take checkpoints in this session"),
        Usage("/checkpoints off", "take none in this session"),
    ),
    parse=parse,
)
