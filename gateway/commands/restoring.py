"""Files and conversation back together, in the order that a crash cannot break.

1. The restore is written down with the head it will set. 2. The engine changes the files, under the same
token. 3. In one transaction the restore is done, the head moves, and the agent is told. A process that dies
in between leaves a row that `settle_restores` brings to its end at the next start.
"""

import secrets
from dataclasses import dataclass

from engine.errors import EngineError
from engine.model import RestorePlan, RestoreReport
from gateway.commands.alignment import head_note
from gateway.commands.base import CommandContext
from gateway.reports import Moved, note_after_redo, note_for_agent, report_of
from gateway.state.errors import ConversationWentOn, StateError, UnknownRestore
from gateway.state.memory import Memory
from gateway.state.restores import Asked, RestoreKind
from gateway.state.turns import turn_ref
from gateway.turns.writers import chat_name

MOMENT_S = 2.0
"""How long a restore waits for another chat's turn in the same workspace."""

WHAT_HAPPENED = {
    RestoreKind.ROLLBACK: "restored the workspace to an earlier checkpoint",
    RestoreKind.UNDO: "took back the last turn",
    RestoreKind.REDO: "undid the last restore",
    RestoreKind.FILES: "restored some files from an earlier checkpoint",
}
"""What the agent is told that the user did."""


@dataclass(frozen=True, slots=True)
class Move:
    """What a restore means for the conversation.

    ``undoes`` is the restore that a redo takes back, ``retries`` the turn whose message is run again afterwards.
    """

    kind: RestoreKind
    new_head: int | None
    undoes: int | None = None
    retries: int | None = None


async def restore(context: CommandContext, plan: RestorePlan, move: Move) -> tuple[RestoreReport, Moved]:
    """Apply a plan and move the conversation with it.

    A restore that succeeded only in part leaves the conversation where it is, so that doing it again
    finishes both.

    Raises:
        WorkspaceBusy: another chat's turn is at work in the workspace; nothing was changed.
        ConversationWentOn: it did, in another process; nothing was changed.
        EngineError: nothing was changed, neither files nor conversation.
    """
    async with context.writers.hold(plan.workspace.root, chat_name(context.place), wait_s=MOMENT_S):
        await _same_head(context)
        if not plan.effective and move.new_head == context.session.head:
            # Nothing moves at all; written down, it would stand between a redo and the restore that is meant. A redo
            # itself is written down, so that the next one means the restore before.
            if move.undoes is not None:
                await move_conversation(context, move)
            return report_of(plan), Moved()
        await _plan(context, move, plan)
        report = await _apply(context, plan)
        try:
            return report, await complete(context.memory, plan.token, report)
        except StateError as error:
            return report, Moved(problem=str(error))


async def move_conversation(context: CommandContext, move: Move) -> Moved:
    """Move the conversation alone, where there are no files to go with it.

    It takes no claim to the workspace: it is done in one step, and not at all where a turn was begun meanwhile.

    Raises:
        ConversationWentOn: it did, in another process; nothing was changed.
    """
    session = context.session
    moved = await _turns_between(context.memory, session.id, session.head, move.new_head)
    asked = Asked(
        token=secrets.token_hex(16),
        kind=move.kind,
        new_head=move.new_head,
        undoes=move.undoes,
        retries=move.retries,
        inbox_id=context.inbox_id,
    )
    note = _note(move.kind, None, moved, follows=True)
    await context.memory.restores.move(session.id, asked, old_head=session.head, note=note)
    return moved


async def complete(memory: Memory, token: str, report: RestoreReport | None) -> Moved:
    """Settle a restore as done; without a ``report`` only the conversation moves.

    How many turns that takes away is read from the heads that were written down, so it is the same after a
    crash.

    Raises:
        StateError: nothing was stored; the restore stays planned, and the next start completes it.
    """
    planned = await memory.restores.find(token)
    if planned is None:
        raise UnknownRestore(token)
    follows = report is None or report.complete
    moved = Moved(problem="not every file could be restored")
    if follows:
        moved = await _turns_between(memory, planned.session_id, planned.old_head, planned.new_head)
    safety = None if report is None or report.safety is None else report.safety.id
    note = _note(planned.kind, report, moved, follows=follows)
    row = await memory.restores.complete(token, safety_id=safety, note=note, in_part=not follows)
    if follows and not row.head_moved:
        return Moved(problem="it had gone on meanwhile")
    return moved


async def _same_head(context: CommandContext) -> None:
    """Check that the conversation stands where it stood when the plan was made; no turn of it begins from here on."""
    now = await context.memory.sessions.get(context.session.id)
    if now.head != context.session.head:
        raise ConversationWentOn(now.id)


async def _plan(context: CommandContext, move: Move, plan: RestorePlan) -> None:
    await context.memory.restores.plan(
        context.session.id,
        token=plan.token,
        kind=move.kind,
        checkpoint_id=plan.target.id,
        new_head=move.new_head,
        undoes=move.undoes,
        retries=move.retries,
        inbox_id=context.inbox_id,
    )


async def _apply(context: CommandContext, plan: RestorePlan) -> RestoreReport:
    """Change the files."""
    session = context.session
    try:
        return await context.engine.apply_restore(
            plan,
            turn=turn_ref(session, session.head or 0),
            replaced_head=head_note(session),
        )
    except EngineError:
        # The engine may have failed after it began; its journal knows, and finishes what was begun.
        await context.engine.resume_restores(plan.workspace)
        outcome = await context.engine.restore_outcome(plan.workspace, plan.token)
        if outcome is not None:
            return outcome
        await context.memory.restores.refuse(plan.token)
        raise


async def _turns_between(memory: Memory, session_id: str, old: int | None, new: int | None) -> Moved:
    undone = await memory.turns.left_behind(session_id, old_head=old, new_head=new)
    returned = await memory.turns.left_behind(session_id, old_head=new, new_head=old)
    return Moved(len(undone), len(returned))


def _note(kind: RestoreKind, report: RestoreReport | None, moved: Moved, *, follows: bool) -> str | None:
    """What the agent is told."""
    if kind is RestoreKind.REDO and follows:
        return note_after_redo(report)
    return note_for_agent(report, moved, WHAT_HAPPENED[kind])
