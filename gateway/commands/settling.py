"""Bringing restores that a crash cut off to their end: files by the engine's journal, then the conversation."""

from collections.abc import Awaitable, Callable, Collection
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

_FINISHED = "Takeback was ended in the middle of this restore; it is finished now.\n"
_UNFINISHED = "Takeback was ended in the middle of this restore, which cannot be finished yet. "
_NOTHING_DONE = (
    "Takeback was ended before this restore changed anything. Files and conversation are as they were; "
    "ask again if you still want it."
)


@dataclass(frozen=True, slots=True)
class Settled:
    """What a chat is told of a restore that was interrupted; ``inbox_id`` is the message that asked for it.

    ``goes_on`` says that the message asks for more than that: a turn that is run again.
    """

    place: Place
    inbox_id: int | None
    reply: Reply
    goes_on: bool = False


async def settle_restores(
    memory: Memory, engine: Offload, open_workspace: OpenWorkspace, *, but: Collection[str] = ()
) -> list[Settled]:
    """Finish every restore that a dead process left planned, and return what is to be said of them.

    One that had changed nothing is given up in silence: its message is handled again. One whose workspace or store
    cannot be used now stays planned, and its chat is told; the next start tries again. Those with the tokens ``but``
    are left alone.
    """
    settled = []
    for restore in (restore for restore in await memory.restores.planned() if restore.token not in but):
        reply = await _settle(memory, engine, open_workspace, restore)
        if reply is not None:
            goes_on = restore.inbox_id is not None and await memory.restores.retry_of(restore.inbox_id) is not None
            settled.append(Settled(restore.place, restore.inbox_id, reply, goes_on))
    return settled


async def _settle(memory: Memory, engine: Offload, open_workspace: OpenWorkspace, restore: Restore) -> Reply | None:
    if restore.checkpoint_id is None:
        moved = await complete(memory, restore.token, None)
        return say(_FINISHED + conversation_said(moved, files=False))
    try:
        report = await _outcome(engine, await open_workspace(restore.root), restore)
    except EngineError as error:
        return say(f"{_UNFINISHED}{sentence(error)}")
    if report is None:
        await memory.restores.refuse(restore.token)
        return say(_NOTHING_DONE) if restore.inbox_id is None else None
    moved = await complete(memory, restore.token, report)
    again = everything_command(f"/rollback {report.target.id[:SHORT_ID]}", report)
    reply = restored_reply(report, again, moved)
    return replace(reply, parts=(Part(_FINISHED), *reply.parts))


async def _outcome(engine: Offload, workspace: Workspace, restore: Restore) -> RestoreReport | None:
    await engine.resume_restores(workspace)
    return await engine.restore_outcome(workspace, restore.token)
