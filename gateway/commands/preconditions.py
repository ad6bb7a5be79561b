"""What has to hold before a command works with checkpoints, each with one sentence where it does not."""

from engine.model import Workspace
from gateway.commands.base import CommandContext, Declined
from gateway.commands.failures import HOW_TO_TURN_ON, container_reason, git_reason
from gateway.commands.numbering import Named, NoSuchCheckpoint, resolve


async def guarded_workspace(context: CommandContext) -> Workspace:
    """Return the workspace whose checkpoints may be used.

    Raises:
        Declined: a container, checkpoints off, no git, or no such directory; with off, git is not even
        looked for.
    """
    if context.container is not None:
        raise Declined(container_reason(context.container))
    return await listed_workspace(context)


async def listed_workspace(context: CommandContext) -> Workspace:
    """Return the workspace whose checkpoints may be listed, also that of a container.

    Raises:
        Declined: checkpoints off, no git, or no such directory.
    """
    if not context.guarded:
        raise Declined(HOW_TO_TURN_ON)
    reason = await context.engine.availability()
    if reason is not None:
        raise Declined(git_reason(reason))
    return await context.control.open_workspace()


async def named_checkpoint(context: CommandContext, workspace: Workspace, word: str) -> Named:
    """Return the checkpoint a person means.

    Raises:
        NoSuchCheckpoint: there is none; the message says what to type instead.
    """
    known = await context.engine.checkpoints(workspace)
    try:
        had = not known and await context.memory.turns.covered(workspace.root)
        return resolve(word, known, await shown_ids(context, workspace), had=had)
    except NoSuchCheckpoint as error:
        damage = await context.engine.damage(workspace)
        if not damage:
            raise
        said = str(error) if known else f"There is no checkpoint {word} that can be read."
        raise NoSuchCheckpoint(" ".join([said, *(f"⚠ {note}" for note in damage)])) from error


async def shown_ids(context: CommandContext, workspace: Workspace) -> tuple[str, ...]:
    """Return the list last shown in this chat; one of another workspace does not count."""
    shown = await context.memory.shown.find(context.place)
    return shown.ids if shown is not None and shown.root == workspace.root else ()
