"""``/diff``: what the last turn changed, or everything since the session began."""

import re
from dataclasses import dataclass

from adapters.contract import Part
from engine.model import DiffResult, Workspace
from gateway.commands.arguments import nearest
from gateway.commands.base import BadUsage, Command, CommandContext, Declined, Invocation, Order, Outcome, Usage
from gateway.commands.preconditions import guarded_workspace
from gateway.listing import gaps_said
from gateway.render import Reply, diff_parts, name, one_line, say, stats
from gateway.state.turns import Turn

_TURN = re.compile(r"#(\d{1,18})")
_QUOTED_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class TurnDiff:
    """Show what a turn changed: the last one, or the one a button names."""

    turn_id: int | None = None

    order = Order.BESIDE

    async def run(self, context: CommandContext) -> Outcome:
        """Answer with the summary and the diff."""
        workspace = await guarded_workspace(context)
        turn = await self._turn(context)
        diff = await context.engine.turn_diff(workspace, str(turn.id))
        said = one_line(turn.text, _QUOTED_CHARACTERS)
        which = "The last turn" if self.turn_id is None else f"Turn #{turn.id}"
        if diff is None and await self._is_lost(context, workspace, turn):
            raise Declined(f"What the turn changed is not known any more, as its checkpoint is gone: {said}")
        if diff is None or not (diff.stats.files or diff.unreached):
            return Outcome((say(f"{which} changed no file: {said}"),))
        if not diff.stats.files:
            unreached = "".join(f"\n[{gap}]" for gap in gaps_said(diff.unreached))
            return Outcome((say(f"{which} changed no file that is captured now: {said}{unreached}"),))
        return Outcome((_shown(f"{which} changed this: {said}", diff, f"turn-{turn.id}.diff"),))

    async def _is_lost(self, context: CommandContext, workspace: Workspace, turn: Turn) -> bool:
        """Whether the checkpoint of a turn went, and with it what is known of the turn."""
        if turn.checkpoint_id is None or turn.root != workspace.root:
            return False
        return all(known.id != turn.checkpoint_id for known in await context.engine.checkpoints(workspace))

    async def _turn(self, context: CommandContext) -> Turn:
        if self.turn_id is None:
            turn = await context.memory.turns.head(context.session.id)
            if turn is None:
                raise Declined("There is nothing to show: this session has no turn.")
            return turn
        turn = await context.memory.turns.find(self.turn_id)
        if turn is None or turn.session_id != context.session.id:
            raise Declined(f"Turn #{self.turn_id} is not one of this session. /diff shows the last one.")
        return turn


@dataclass(frozen=True, slots=True)
class SessionDiff:
    """Show everything that changed since the session began."""

    order = Order.BESIDE

    async def run(self, context: CommandContext) -> Outcome:
        """Answer with the summary and the diff."""
        workspace = await guarded_workspace(context)
        diff = await context.engine.session_diff(workspace, context.session.id)
        if diff is None:
            raise Declined(
                "How the files were when this session began is not known: checkpoints were off then, or are gone. "
                "/new begins one from which they are."
            )
        if not diff.stats.files:
            return Outcome((say(f"No file has changed {diff.title}."),))
        title = diff.title[:1].upper() + diff.title[1:]
        return Outcome((_shown(title, diff, f"{context.session.id}.diff"),))


def parse(text: str) -> Invocation:
    """Accept nothing, ``session``, or the ``#N`` of a turn."""
    word = text.strip()
    if not word:
        return TurnDiff()
    if word.lower() == "session":
        return SessionDiff()
    match = _TURN.fullmatch(word)
    if match is not None:
        return TurnDiff(int(match[1]))
    hint = " Did you mean /diff session?" if nearest(word, ["session"]) else ""
    raise BadUsage(
        f"/diff does not know {name(word)}.{hint} "
        "It shows the last turn; /diff session all since this session began; /rollback diff N all since checkpoint N."
    )


def _shown(title: str, diff: DiffResult, file_name: str) -> Reply:
    parts, files = diff_parts(diff, file_name)
    gaps = "".join(f"[{said}]\n" for said in gaps_said((*diff.unreached, *diff.gaps)))
    tail = (Part(gaps),) if gaps else ()
    return Reply((Part(f"{title}  ({stats(diff.stats)})\n\n"), *parts, *tail), files)


DIFF = Command(
    name="diff",
    summary="Show what the last turn changed, or everything since this session began",
    usages=(
        Usage("/diff", "what the last turn changed"),
        Usage("/diff session", "everything since this session began"),
    ),
    parse=parse,
)
