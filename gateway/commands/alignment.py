"""Where a conversation stands after files went back: the head that belongs to a checkpoint.

Deciding only; nothing here moves a head.
"""

from collections.abc import Sequence

from engine.model import Checkpoint, CheckpointKind
from gateway.state.memory import Memory
from gateway.state.sessions import Session
from gateway.state.turns import Turn


def head_note(session: Session) -> str:
    """Write down where a session stands, to be kept with a safety checkpoint."""
    return f"{session.id}:{'' if session.head is None else session.head}"


async def head_for(memory: Memory, session: Session, checkpoint: Checkpoint) -> int | None:
    """Return the head a session gets when its files go back to a checkpoint.

    The checkpoint of one of its own turns: just before that turn, wherever it lies. Its own safety
    checkpoint: the head that the restore replaced. Any other checkpoint: before the first active turn that
    began after it.
    """
    if checkpoint.kind is CheckpointKind.SAFETY:
        session_id, _, head = (checkpoint.replaced_head or "").partition(":")
        if session_id == session.id and not head:
            return None
        replaced = await _own_turn(memory, session, head) if session_id == session.id else None
        if replaced is not None:
            return replaced.id
    elif checkpoint.turn is not None and checkpoint.turn.session == session.id:
        turn = await _own_turn(memory, session, checkpoint.turn.turn)
        if turn is not None:
            return turn.parent_id
    return _last_before(await memory.turns.active(session.id), checkpoint)


async def _own_turn(memory: Memory, session: Session, named: str) -> Turn | None:
    """Find a turn of this session by the name the engine keeps; the store may know turns that the database lost."""
    turn = await memory.turns.find(int(named)) if named.isdecimal() else None
    return turn if turn is not None and turn.session_id == session.id else None


def _last_before(active: Sequence[Turn], checkpoint: Checkpoint) -> int | None:
    """Return the newest active turn that had begun when a checkpoint was taken; ``active`` is newest first."""
    return next((turn.id for turn in active if turn.started_at <= checkpoint.taken_at), None)
