"""Writing down what a tool changed: the ledger's record, and the name of the state after it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from engine.checkpoints.capture import Captured
from engine.checkpoints.diff import change_stats
from engine.checkpoints.history import Held, drop_after, keep_after
from engine.checkpoints.unreached import LOST, lost_before, out_of_reach
from engine.errors import GitFailed
from engine.model import Change, ChangeStats, TurnRef, Workspace
from engine.store.ledger import WriteRecord, append_record
from engine.store.opened import Store

# Beyond this many paths a comparison takes the whole trees: a command line has a limit, and counting is as good.
_MOST_NAMED_PATHS = 400


@dataclass(frozen=True, slots=True)
class Tooled:
    """What a tool did: the changes, the states before and after it, and where no capture holds what stood there."""

    changes: Sequence[Change]
    state: Captured
    captured: Captured
    uncaptured: Mapping[str, str] = field(default_factory=dict)


def note_changes(
    store: Store, workspace: Workspace, turn: TurnRef, found: Held | None, tooled: Tooled
) -> tuple[ChangeStats | None, tuple[str, ...]]:
    """Write down what a tool changed; return what its turn changed so far, and of which paths the state is lost.

    Args:
        store: the store.
        workspace: the workspace.
        turn: the tool's turn.
        found: the checkpoint of the turn, if it has one.
        tooled: what the tool did.

    Raises:
        OSError: nothing is noted.
    """
    changes, captured = tooled.changes, tooled.captured
    unreached = out_of_reach(tooled.state, captured)
    if not (changes or unreached or tooled.uncaptured):
        return None, ()
    store.touch(workspace)  # a tool may have made the directory anew
    ledger = store.ledger(workspace)
    stats = None
    lost: tuple[str, ...] = ()
    if found is not None:
        keep_after(store, workspace, found, tooled.state, captured)
        before = {change.path: change.before for change in changes}
        for write in reversed(ledger.writes_of([turn.turn])):
            before |= write.before
        try:  # which reads what stood there; a content that is lost must not cost the record
            stats = _stats(store, found.tree, captured.tree, set(before)) if before else None
        except GitFailed:
            lost = lost_before(store.git, before)
    record = WriteRecord(
        ledger.number + 1,
        turn.chat,
        turn.session,
        turn.turn,
        found.checkpoint.id if found else None,
        captured.commit,
        {change.path: change.after for change in changes},
        stats,
        {change.path: change.before for change in changes},
        {**tooled.uncaptured, **dict.fromkeys(lost, LOST)},
        unreached,
        store.place(workspace),
    )
    try:
        append_record(store.layout.ledger(workspace.hash), record)
    except OSError:
        if found is not None and not ledger.knows_checkpoint(found.checkpoint.id):
            drop_after(store, workspace, found.checkpoint.sequence)  # what is not noted did not happen
        raise
    return stats, lost


def _stats(store: Store, old: str, new: str, paths: set[str]) -> ChangeStats:
    selection = sorted(paths) if len(paths) <= _MOST_NAMED_PATHS else []
    return change_stats(store.git, old, new, selection, literal=True)
