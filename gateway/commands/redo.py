"""``/redo`` and ``/rollback undo``: take back the last restore, and on a second time the one before."""

from dataclasses import dataclass

from engine.model import Workspace
from gateway.commands.arguments import no_arguments
from gateway.commands.base import Command, CommandContext, Declined, Invocation, Order, Outcome, Usage
from gateway.commands.preconditions import guarded_workspace
from gateway.commands.restoring import Move, move_conversation, restore
from gateway.render import SHORT_ID, say
from gateway.reports import conversation_said, everything_command, restored_reply
from gateway.state.restores import Restore, RestoreKind
from gateway.state.turns import turn_ref


@dataclass(frozen=True, slots=True)
class Redo:
    """Bring back what the newest restore that still stands took away."""

    order = Order.ALONE

    async def run(self, context: CommandContext) -> Outcome:
        """Restore that restore's safety checkpoint, and the head it replaced."""
        last = await self._undoable(context)
        move = Move(RestoreKind.REDO, last.old_head, undoes=last.id)
        if last.safety_id is None:
            moved = await move_conversation(context, move)
            said = conversation_said(moved, files=False) or "Nothing had to be brought back.\n"
            return Outcome((say(f"✅ Undid the last restore.\n{said}Files are as they were: it had changed none.\n"),))
        workspace = await guarded_workspace(context)
        plan = await context.engine.plan_restore(
            workspace,
            last.safety_id,
            selection=await _touched_beside_nested(context, workspace, last),
            chat=turn_ref(context.session, 0).chat,
        )
        report, moved = await restore(context, plan, move)
        again = everything_command(f"/rollback {last.safety_id[:SHORT_ID]}", report)
        return Outcome((restored_reply(report, again, moved),))

    async def _undoable(self, context: CommandContext) -> Restore:
        last = await context.memory.restores.latest_undoable(context.session.id)
        if last is None:
            raise Declined("There is nothing to redo: no restore of this session stands.")
        if not last.stale:
            return last
        if last.safety_id is None:
            raise Declined("Nothing was redone: you have gone on since the last undo, which had changed no file.")
        raise Declined(
            "Nothing was redone: you have gone on since the last restore, and redo would lose the newer turns. "
            f"The files as they were before it: /rollback {last.safety_id[:SHORT_ID]}"
        )


async def _touched_beside_nested(context: CommandContext, workspace: Workspace, last: Restore) -> tuple[str, ...]:
    """Name the files the restore had touched where nested repositories forbid a full restore; else nothing.

    A restore of one turn or of some files is allowed there, so undoing it has to be, too.
    """
    safety = await context.engine.find_checkpoint(workspace, last.safety_id or "")
    if not safety.nested_repositories:
        return ()
    outcome = await context.engine.restore_outcome(workspace, last.token)
    if outcome is None:
        return ()
    return tuple(f":(literal){note.path}" for note in (*outcome.restored, *outcome.deleted, *outcome.merged))


def parse(text: str) -> Invocation:
    """Accept no arguments."""
    no_arguments("redo", text)
    return Redo()


REDO = Command(
    name="redo",
    summary="Undo the last restore: files and turns come back",
    usages=(Usage("/redo", "undo the last restore: files and turns come back"),),
    parse=parse,
)
