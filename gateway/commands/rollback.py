"""``/rollback``: the list, the preview, and going back."""

import shlex
from dataclasses import dataclass, replace

from adapters.contract import Button, Part, Style
from engine.errors import RestoreRefused
from engine.model import Checkpoint, RestorePlan, Workspace
from gateway.commands.alignment import head_for
from gateway.commands.arguments import nearest, parse_arguments
from gateway.commands.base import BadUsage, Command, CommandContext, Invocation, Order, Outcome, Usage
from gateway.commands.failures import REFUSED, container_reason, sentence
from gateway.commands.numbering import Named, is_reference
from gateway.commands.preconditions import guarded_workspace, listed_workspace, named_checkpoint
from gateway.commands.redo import Redo
from gateway.commands.restoring import Move, restore
from gateway.listing import checkpoint_list, gaps_said
from gateway.render import LISTED_ID, SHORT_ID, Reply, diff_parts, name, one_line, say, stats
from gateway.reports import everything_command, planned_parts, restored_reply
from gateway.state.restores import RestoreKind
from gateway.state.turns import turn_ref

_ALL = "--all"
_WORDS = ("list", "diff", "undo")


@dataclass(frozen=True, slots=True)
class ShowList:
    """Show the checkpoints, and remember what was shown: numbers mean this list from now on."""

    order = Order.BESIDE

    async def run(self, context: CommandContext) -> Outcome:
        """Answer with the list."""
        if context.container is not None and not context.guarded:
            return Outcome((say(container_reason(context.container)),))
        workspace = await listed_workspace(context)
        checkpoints = await context.engine.checkpoints(workspace)
        ids = [checkpoint.id for checkpoint in checkpoints]
        await context.memory.shown.remember(context.place, root=workspace.root, ids=ids, inbox_id=context.inbox_id)
        explanation = "" if context.container is None else container_reason(context.container)
        damage = "".join(f"⚠ {note}\n" for note in await context.engine.damage(workspace))
        if not checkpoints:
            said = f"No checkpoint of {name(workspace.root)} can be read.\n{damage}" if damage else ""
            had = await context.memory.turns.covered(workspace.root)
            return Outcome((say(said or _nothing_there(workspace, explanation, had=had)),))
        listed = checkpoint_list(workspace.root, checkpoints, explanation=explanation)
        return Outcome((replace(listed, parts=(*listed.parts, Part(damage))) if damage else listed,))


@dataclass(frozen=True, slots=True)
class Preview:
    """Show what changed since a checkpoint, and what restoring it would do."""

    word: str
    paths: tuple[str, ...] = ()
    everything: bool = False

    order = Order.BESIDE

    async def run(self, context: CommandContext) -> Outcome:
        """Answer with the summary, the diff and the plan."""
        workspace = await guarded_workspace(context)
        named = await named_checkpoint(context, workspace, self.word)
        diff = await context.engine.diff(workspace, named.checkpoint.id, self.paths)
        short = named.checkpoint.id[:LISTED_ID]
        parts, files = diff_parts(diff, f"rollback-{short}.diff")
        gaps = "".join(f"[{said}]\n" for said in gaps_said(diff.gaps))
        plan = await self._plan(context, workspace, named)
        return Outcome((Reply((*_since(named.checkpoint, stats(diff.stats)), *parts, Part(gaps), *plan), files),))

    async def _plan(self, context: CommandContext, workspace: Workspace, named: Named) -> tuple[Part, ...]:
        command = command_for(named, self.paths, everything=self.everything)
        try:
            plan = await plan_rollback(context, workspace, named, self.paths, everything=self.everything)
        except RestoreRefused as refusal:
            return (
                Part("\n"),
                Part(command, Style.CODE),
                Part(f" would be refused: {sentence(refusal).removeprefix(REFUSED)}\n"),
            )
        return (*planned_parts(plan, command), Part(_also_of(context, plan, "Would also take back")))


@dataclass(frozen=True, slots=True)
class GoBack:
    """Restore a checkpoint, or some files of it."""

    word: str
    paths: tuple[str, ...] = ()
    everything: bool = False

    order = Order.ALONE

    async def run(self, context: CommandContext) -> Outcome:
        """Restore files, and move the conversation unless only some files were asked for."""
        workspace = await guarded_workspace(context)
        named = await named_checkpoint(context, workspace, self.word)
        if await _list_has_changed(context, workspace):
            return Outcome((_asked_again(named.checkpoint),))
        plan = await plan_rollback(context, workspace, named, self.paths, everything=self.everything)
        report, moved = await restore(context, plan, await self._move(context, named.checkpoint))
        again = everything_command(f"/rollback {named.again}", report, self.paths)
        ending = _also_of(context, plan, "Also took back")
        ending += "The conversation stays as it is; the agent is told. /redo undoes this.\n" if self.paths else ""
        return Outcome((restored_reply(report, again, moved, ending=ending),))

    async def _move(self, context: CommandContext, checkpoint: Checkpoint) -> Move:
        if self.paths:
            return Move(RestoreKind.FILES, context.session.head)
        return Move(RestoreKind.ROLLBACK, await head_for(context.memory, context.session, checkpoint))


def _also_of(context: CommandContext, plan: RestorePlan, did: str) -> str:
    """Say whose changes go besides those of this chat, where the checkpoint is another chat's."""
    own, turn = turn_ref(context.session, 0).chat, plan.target.turn
    if turn is None or turn.chat == own or plan.full or not plan.effective:
        return ""
    return (
        f"⚠ {did} what {name(turn.chat)} changed there since, as this is a checkpoint of that chat; "
        "its conversation stays as it is.\n"
    )


async def _list_has_changed(context: CommandContext, workspace: Workspace) -> bool:
    """Whether this comes from a button below a list that would not read the same now."""
    if context.inbound.pressed is None:
        return False
    seen = await context.memory.shown.beside(context.inbound.pressed)
    if seen is None:
        return False
    now = await context.engine.checkpoints(workspace)
    return seen.root != workspace.root or seen.ids != tuple(checkpoint.id for checkpoint in now)


def _asked_again(checkpoint: Checkpoint) -> Reply:
    """Ask whether to restore what was pressed, as things have moved on since it was shown."""
    short = checkpoint.id[:SHORT_ID]
    return Reply(
        (
            Part("The list has changed since it was shown; nothing was restored yet. Restore checkpoint "),
            Part(short, Style.CODE),
            Part(f": {one_line(checkpoint.reason, 200)}?\n"),
        ),
        buttons=(Button("Restore", f"/rollback {short}"), Button("Diff", f"/rollback diff {short}")),
    )


async def plan_rollback(
    context: CommandContext, workspace: Workspace, named: Named, paths: tuple[str, ...], *, everything: bool
) -> RestorePlan:
    """Plan what ``/rollback N`` does and ``/rollback diff N`` shows."""
    return await context.engine.plan_restore(
        workspace,
        named.checkpoint.id,
        selection=paths,
        everything=everything,
        chat=turn_ref(context.session, 0).chat,
    )


def command_for(named: Named, paths: tuple[str, ...], *, everything: bool) -> str:
    """Return the command that restores what was previewed."""
    words = ["/rollback", named.again, *([_ALL] if everything else [])]
    if any(path.startswith("-") for path in paths):
        words.append("--")
    return " ".join([*words, *(shlex.quote(path) for path in paths)])


def parse(text: str) -> Invocation:
    """Tell the forms of ``/rollback`` apart."""
    given = parse_arguments("rollback", text, flags=(_ALL,))
    everything = _ALL in given.flags
    match given.words:
        case () | ("list",) if not everything:
            return ShowList()
        case ("undo",) if not everything:
            return Redo()
        case ("diff", word, *paths) if is_reference(word):
            return Preview(word, tuple(paths), everything)
        case (word, *paths) if is_reference(word):
            return GoBack(word, tuple(paths), everything)
    raise BadUsage(_mistake(given.words))


def _mistake(words: tuple[str, ...]) -> str:
    if not words or words == ("diff",):
        return "Which checkpoint? Give its number from the list: /rollback shows it."
    word = words[1] if words[0] == "diff" else words[0]
    if word in _WORDS:
        return f"/rollback {word} takes nothing more. /help shows the forms of /rollback."
    meant = nearest(word, _WORDS) if word == words[0] else None
    if meant:
        return f"/rollback does not know {name(word)}. Did you mean /rollback {meant}?"
    return (
        f"{name(word)} is neither a number from the list nor the beginning of an id. "
        "The checkpoint comes first, then files: /rollback 1 notes.md. /rollback shows the list."
    )


def _nothing_there(workspace: Workspace, explanation: str, *, had: bool) -> str:
    which = f"There are no checkpoints of {name(workspace.root)}"
    if had:
        said = f"{which} any more: they were cleared, deleted or pruned by age. "
        return said + (explanation or "The next is taken before the agent changes something.")
    return f"{which} yet. " + (explanation or "The first is taken before the agent changes something.")


def _since(checkpoint: Checkpoint, change: str) -> tuple[Part, ...]:
    reason = one_line(checkpoint.reason, 200)
    return (
        Part("Changes since checkpoint "),
        Part(checkpoint.id[:SHORT_ID], Style.CODE),
        Part(f": {reason}  ({change})\n\n"),
    )


ROLLBACK = Command(
    name="rollback",
    summary="List checkpoints, preview one, or go back to it",
    usages=(
        Usage("/rollback", "list the checkpoints"),
        Usage("/rollback N", "restore checkpoint N, keep your hand-edits, undo the conversation to match"),
        Usage("/rollback N --all", "restore everything, your hand-edits too"),
        Usage("/rollback diff N", "show what changed since checkpoint N, and what restoring it would do"),
        Usage("/rollback N PATH…", "restore only these files (*.txt, :(glob)…, :(exclude)… work)"),
        Usage("/rollback undo", "undo the last restore: files and turns come back"),
    ),
    parse=parse,
)
