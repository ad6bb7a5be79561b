"""``/undo`` and ``/retry``: take back the last turn, its files and its place in the conversation."""

import re
from dataclasses import dataclass

from adapters.contract import Part
from engine.errors import EngineError, UnknownCheckpoint
from engine.model import RestoreReport, Workspace
from gateway.blotting import MARK
from gateway.commands.arguments import no_arguments
from gateway.commands.base import BadUsage, Command, CommandContext, Declined, Invocation, Order, Outcome, Usage
from gateway.commands.failures import container_reason
from gateway.commands.numbering import NONE_ANY_MORE
from gateway.commands.preconditions import guarded_workspace
from gateway.commands.restoring import Move, move_conversation, restore
from gateway.render import SHORT_ID, Reply, name, one_line, say
from gateway.reports import conversation_said, everything_command, restored_reply
from gateway.state.restores import RestoreKind
from gateway.state.turns import Turn, TurnState, turn_ref

_TURN = re.compile(r"\s*#(\d{1,18})\s*")
_QUOTED_CHARACTERS = 60
_NO_CHECKPOINT = "it has no checkpoint, and its files are as they are"
_PRUNED = "its checkpoint was dropped since (there is a limit on how many are kept), so its files are as they are"
_GONE = f"{NONE_ANY_MORE} (it was cleared, deleted or pruned by age), so its files are as they are"
_ELSEWHERE = (
    "its checkpoint is one of {old}, and the workspace is {new} now, so its files are as they are. Once the directory "
    "itself stands at {old} again (a symbolic link is not enough), /redo and then /undo take its files back too"
)
_NOT_KEPT = (
    "Nothing was done: the message of the last turn held what looks like a key, which is not kept, so it cannot be run "
    "again. /undo takes the turn back; then send the message anew."
)
_GOES_ON = "Takeback was ended after it had taken back the last turn, and has started again. Its message runs now."
_CUT_OFF = "The turn was cut off, so what it had changed by then counts as edited by hand"
_NOT_NOTED = "What the turn changed could not be noted, so it counts as edited by hand"
_NOTHING_NOTED = "Nothing is noted of what the turn changed, so all that changed since counts as edited by hand"
_BY_HAND = "{why}: /rollback diff {id} shows it, /rollback {id} --all takes it back.\n"


@dataclass(frozen=True, slots=True)
class TakenBack:
    """What came of taking back a turn; ``complete`` is whether its files and its place are both gone."""

    turn: Turn
    reply: Reply
    complete: bool


@dataclass(frozen=True, slots=True)
class Undo:
    """Take back the last turn; with ``turn_id`` only if it is that one, as a button of an older message may not."""

    turn_id: int | None = None

    order = Order.ALONE

    async def run(self, context: CommandContext) -> Outcome:
        """Answer with what was taken back."""
        return Outcome(((await take_back(context, self.turn_id)).reply,))


@dataclass(frozen=True, slots=True)
class Retry:
    """Take back the last turn and run its message again.

    What was taken back is written down together with what is still to be run, so a crash in between repeats neither
    and loses neither.
    """

    order = Order.ALONE

    async def run(self, context: CommandContext) -> Outcome:
        """Answer with what was taken back, and have the message run."""
        begun = await context.memory.restores.retry_of(context.inbox_id) if context.inbox_id is not None else None
        if begun is not None:
            return await _again(context, await context.memory.turns.get(begun), say(_GOES_ON))
        turn = await context.memory.turns.head(context.session.id)
        if turn is not None and MARK in turn.text:
            raise Declined(_NOT_KEPT)
        taken = await take_back(context, None, retry=True)
        return await _again(context, taken.turn, taken.reply) if taken.complete else Outcome((taken.reply,))


async def _again(context: CommandContext, turn: Turn, reply: Reply) -> Outcome:
    files = await context.memory.sent.of_turn(turn.id)
    return Outcome((reply,), turn_text=turn.text, turn_files=files)


async def take_back(context: CommandContext, turn_id: int | None, *, retry: bool = False) -> TakenBack:
    """Undo the turn at the head; with ``retry`` its message is to be run again.

    Raises:
        Declined: there is none, or it is another one than was meant; nothing was changed.
        EngineError: nothing was changed.
    """
    turn = await context.memory.turns.head(context.session.id)
    if turn is None:
        raise Declined("There is nothing to undo: this session has no turn.")
    if turn_id is not None and turn.id != turn_id:
        raise Declined(
            f"Turn #{turn_id} is not the last one (that is #{turn.id}), so it was not undone. "
            "To go back further: /rollback"
        )
    move = Move(RestoreKind.UNDO, turn.parent_id, retries=turn.id if retry else None)
    if context.container is not None:
        return await _conversation_only(context, turn, move, container_reason(context.container))
    checkpoint_id = turn.checkpoint_id or await _find_checkpoint(context, turn)
    if checkpoint_id is None:
        return await _conversation_only(context, turn, move, _NO_CHECKPOINT)
    workspace = await guarded_workspace(context)
    try:
        return await _files_too(context, workspace, turn, move, checkpoint_id)
    except UnknownCheckpoint:
        return await _conversation_only(context, turn, move, await _why_lost(context, workspace, turn))


async def _why_lost(context: CommandContext, workspace: Workspace, turn: Turn) -> str:
    if turn.root != workspace.root:
        return _ELSEWHERE.format(old=name(turn.root), new=name(workspace.root))
    return _PRUNED if await context.engine.checkpoints(workspace) else _GONE


async def _find_checkpoint(context: CommandContext, turn: Turn) -> str | None:
    """Find the checkpoint of a turn to which the link was never stored: it was cut off, or the disk was full.

    Raises:
        EngineError: there is a state to be kept, and it could not be made a checkpoint.
    """
    try:
        workspace = await guarded_workspace(context)
    except Declined:
        return None
    await context.engine.settle(workspace)
    meant = turn_ref(context.session, turn.id)
    checkpoints = await context.engine.checkpoints(workspace)
    return next((checkpoint.id for checkpoint in checkpoints if checkpoint.turn == meant), None)


async def _conversation_only(context: CommandContext, turn: Turn, move: Move, why: str) -> TakenBack:
    moved = await move_conversation(context, move)
    said = f"✅ Took back the last turn: {_quoted(turn)}\nOnly the conversation moved: {why.removesuffix('.')}.\n"
    return TakenBack(turn, say(said + conversation_said(moved, files=False)), complete=True)


async def _files_too(
    context: CommandContext, workspace: Workspace, turn: Turn, move: Move, checkpoint_id: str
) -> TakenBack:
    plan = await context.engine.plan_restore(
        workspace, checkpoint_id, turns=(str(turn.id),), chat=turn_ref(context.session, turn.id).chat
    )
    report, moved = await restore(context, plan, move)
    done = report.complete and not moved.problem
    what = "✅ Took back the last turn" if done else "⚠ Took back only a part of the last turn"
    again = everything_command(f"/rollback {checkpoint_id[:SHORT_ID]}", report)
    why = await _why_by_hand(context, workspace, turn, report)
    ending = _BY_HAND.format(why=why, id=checkpoint_id[:SHORT_ID]) if why else ""
    reply = restored_reply(report, again, moved, opening=(Part(f"{what}: {_quoted(turn)}\n"),), ending=ending)
    return TakenBack(turn, reply, complete=done)


async def _why_by_hand(context: CommandContext, workspace: Workspace, turn: Turn, report: RestoreReport) -> str:
    """Say why what a turn changed may still stand there, if it may."""
    if turn.checkpoint_id is None:
        return _CUT_OFF if turn.state is TurnState.INTERRUPTED else _NOT_NOTED
    named = (
        report.restored,
        report.deleted,
        report.merged,
        report.kept,
        report.other_chats,
        report.copies,
        report.failed,
    )
    if any(named) or report.not_captured:
        return ""
    try:
        since = await context.engine.diff(workspace, turn.checkpoint_id)
    except EngineError:
        return ""  # the turn is taken back; this would only have been said beside it
    return _NOTHING_NOTED if since.stats.files else ""


def _quoted(turn: Turn) -> str:
    return one_line(turn.text, _QUOTED_CHARACTERS)


def parse_undo(text: str) -> Invocation:
    """Accept nothing, or the ``#N`` of a turn."""
    match = _TURN.fullmatch(text)
    if match is not None:
        return Undo(int(match[1]))
    if text.strip():
        raise BadUsage("/undo takes back the last turn and takes nothing after it. To go back further: /rollback")
    return Undo()


def parse_retry(text: str) -> Invocation:
    """Accept no arguments."""
    no_arguments("retry", text)
    return Retry()


UNDO = Command(
    name="undo",
    summary="Take back the last turn: its files and its place in the conversation",
    usages=(Usage("/undo", "take back the last turn: its files and its place in the conversation"),),
    parse=parse_undo,
)

RETRY = Command(
    name="retry",
    summary="Take back the last turn and run its message again",
    usages=(Usage("/retry", "take back the last turn and run its message again"),),
    parse=parse_retry,
)
