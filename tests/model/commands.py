"""What the commands of a chat are predicted to do; each changes the model, or raises `Refused` and changes nothing."""

from collections.abc import Callable

from tests.model.acts import Act
from tests.model.model import Checkpoint, Refused, Restored, Session, Turn, World

OFF = "Checkpoints are off"

Command = Callable[[World, Session], Restored]


def tell(world: World, chat: str, done: Act) -> Turn:
    """Have the agent of a chat do something."""
    session = world.sessions[chat]
    turn = world.begin_turn(session, done.text)
    if done.begins:
        world.begin_tools(session)
    if done.guarded:
        world.run_tool(session, turn, done.reason, done.effect, named=done.named, destructive=done.destructive)
    return turn


def find(world: World, session: Session, number: int) -> Checkpoint:
    """Find the checkpoint a number means."""
    if not session.guarded:
        raise Refused(OFF)
    return world.find(session.chat, number)


def roll_back(number: int, *, everything: bool = False, path: str | None = None) -> Command:
    """Go back to a checkpoint, or bring back some files of it."""

    def command(world: World, session: Session) -> Restored:
        target = find(world, session, number)
        planned = world.plan(session, target, everything=everything, path=path)
        head = session.head if path is not None else world.head_for(session, target)
        return world.restore(session, target, planned, head)

    return command


def preview(number: int) -> Command:
    """Show what going back would do."""

    def command(world: World, session: Session) -> Restored:
        target = find(world, session, number)
        world.capture()
        return Restored(world.plan(session, target))

    return command


def undo(world: World, session: Session) -> Restored:
    """Take back the last turn."""
    turn = session.head
    if turn is None:
        raise Refused("There is nothing to undo")
    checkpoint = turn.checkpoint
    if checkpoint is not None and not session.guarded and not turn.cut_off:
        raise Refused(OFF)
    if checkpoint is None or checkpoint not in world.checkpoints or not session.guarded:
        world.move(session, turn.parent, None)
        return Restored({})
    return world.restore(session, checkpoint, world.plan(session, checkpoint, turn=turn), turn.parent)


def redo(world: World, session: Session) -> Restored:
    """Take back the last restore."""
    last = world.redoable(session)
    if last.safety is None:
        world.move(session, last.old_head, None, undoes=last)
        return Restored({})
    if not session.guarded:
        raise Refused(OFF)
    if last.safety not in world.checkpoints:
        raise Refused("there is none by that id")
    beside = last.touched if last.safety.capture.nested else None
    planned = world.plan(session, last.safety, beside=beside)
    return world.restore(session, last.safety, planned, last.old_head, undoes=last)
