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
        replaced = await _turn_of(memory, session.id, head) if session_id == session.id else None
        if replaced is not None:
            return replaced.id
    elif checkpoint.turn is not None:
        turn = await _turn_of(memory, checkpoint.turn.session, checkpoint.turn.turn)
        if turn is not None and turn.session_id == session.id:
            return turn.parent_id
        if turn is not None:
            # Of two turns in one workspace the later one has the higher number, whatever the clock said.
            return next((own.id for own in await memory.turns.active(session.id) if own.id < turn.id), None)
    return _last_before(await memory.turns.active(session.id), checkpoint)


async def _turn_of(memory: Memory, session_id: str, named: str) -> Turn | None:
    """Find a turn by the names the engine keeps; the store may know turns that the database lost."""
    turn = await memory.turns.find(int(named)) if named.isdecimal() else None
    return turn if turn is not None and turn.session_id == session_id else None


def _last_before(active: Sequence[Turn], checkpoint: Checkpoint) -> int | None:
    """Return the newest active turn that had begun when a checkpoint was taken; ``active`` is newest first."""
    return next((turn.id for turn in active if turn.started_at <= checkpoint.taken_at), None)
