"""Bringing restores that a crash cut off to their end: files by the engine's journal, then the conversation."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from adapters.contract import Part, Place
from engine.errors import EngineError
from engine.model import RestoreReport, Workspace
from gateway.commands.failures import sentence
from gateway.commands.restoring import complete
from gateway.offload import Offload
from gateway.render import SHORT_ID, Reply, say
from gateway.reports import conversation_said, everything_command, restored_reply
from gateway.state.memory import Memory
from gateway.state.restores import Restore

OpenWorkspace = Callable[[str], Awaitable[Workspace]]
"""Opens the workspace of a root that a session was bound to."""

_FINISHED = "The gateway was restarted in the middle of this restore; it is finished now.\n"
_NOTHING_DONE = (
    "The gateway was restarted before this restore changed anything. Files and conversation are as they were; "
    "ask again if you still want it."
)


@dataclass(frozen=True, slots=True)
class Settled:
    """What a chat is told of a restore that was interrupted; ``inbox_id`` is the message that asked for it."""

    place: Place
    inbox_id: int | None
    reply: Reply


async def settle_restores(memory: Memory, engine: Offload, open_workspace: OpenWorkspace) -> list[Settled]:
    """Finish every restore that a dead process left planned; may be called again and while others work.

    One whose workspace or store cannot be used now stays planned, and its chat is told; the next start tries
    again.
    """
    planned = await memory.restores.planned()
    return [
        Settled(restore.place, restore.inbox_id, await _settle(memory, engine, open_workspace, restore))
        for restore in planned
    ]


async def _settle(memory: Memory, engine: Offload, open_workspace: OpenWorkspace, restore: Restore) -> Reply:
    if restore.checkpoint_id is None:
        moved = await complete(memory, restore.token, None)
        return say(_FINISHED + conversation_said(moved, files=False))
    try:
        report = await _outcome(engine, await open_workspace(restore.root), restore)
    except EngineError as error:
        return say(
            f"The gateway was restarted in the middle of a restore, which cannot be finished yet. {sentence(error)}"
        )
    if report is None:
        await memory.restores.refuse(restore.token)
        return say(_NOTHING_DONE)
    moved = await complete(memory, restore.token, report)
    again = everything_command(f"/rollback {report.target.id[:SHORT_ID]}", report)
    reply = restored_reply(report, again, moved)
    return replace(reply, parts=(Part(_FINISHED), *reply.parts))


async def _outcome(engine: Offload, workspace: Workspace, restore: Restore) -> RestoreReport | None:
    await engine.resume_restores(workspace)
    return await engine.restore_outcome(workspace, restore.token)
