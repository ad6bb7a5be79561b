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
from gateway.commands.base import CommandContext, Declined
from gateway.reports import Moved, note_after_redo, note_for_agent, report_of
from gateway.state.errors import StateError, UnknownRestore
from gateway.state.memory import Memory
from gateway.state.restores import Restore, RestoreKind
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
        Declined: the conversation went on in another process meanwhile; nothing was changed.
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
        await _plan(context, move, plan.token, plan.target.id)
        report = await _apply(context, plan)
        try:
            return report, await complete(context.memory, plan.token, report)
        except StateError as error:
            return report, Moved(problem=str(error))


async def move_conversation(context: CommandContext, move: Move) -> Moved:
    """Move the conversation alone, where there are no files to go with it."""
    token = secrets.token_hex(16)
    await _plan(context, move, token, None)
    return await complete(context.memory, token, None)


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
    moved = await _turns_between(memory, planned) if follows else Moved(problem="not every file could be restored")
    safety = None if report is None or report.safety is None else report.safety.id
    note: str | None
    if planned.kind is RestoreKind.REDO and follows:
        note = note_after_redo(report)
    else:
        note = note_for_agent(report, moved, WHAT_HAPPENED[planned.kind])
    row = await memory.restores.complete(token, safety_id=safety, note=note, in_part=not follows)
    if follows and not row.head_moved:
        return Moved(problem="it had gone on meanwhile")
    return moved


async def _same_head(context: CommandContext) -> None:
    """Check that the conversation stands where it stood when the plan was made; no turn of it begins from here on."""
    now = await context.memory.sessions.get(context.session.id)
    if now.head != context.session.head:
        raise Declined(
            "The conversation went on in another Takeback process meanwhile. Nothing was changed; ask again."
        )


async def _plan(context: CommandContext, move: Move, token: str, checkpoint_id: str | None) -> None:
    await context.memory.restores.plan(
        context.session.id,
        token=token,
        kind=move.kind,
        checkpoint_id=checkpoint_id,
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


async def _turns_between(memory: Memory, restore: Restore) -> Moved:
    old, new = restore.old_head, restore.new_head
    undone = await memory.turns.left_behind(restore.session_id, old_head=old, new_head=new)
    returned = await memory.turns.left_behind(restore.session_id, old_head=new, new_head=old)
    return Moved(len(undone), len(returned))
