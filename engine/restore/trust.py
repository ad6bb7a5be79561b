"""Whether the ledger still has what the checkpoints noted of it; a restore does not go by one that lost records."""

from collections.abc import Sequence
from itertools import pairwise

from engine.checkpoints.history import Held
from engine.errors import StoreDamaged
from engine.model import Workspace
from engine.store.opened import Store
from engine.store.refs import after_ref, list_names


def require_ledger(store: Store, workspace: Workspace, held: Sequence[Held], target: Held) -> None:
    """Refuse to tell the agent's files from a person's by a ledger that lost what was written after a checkpoint.

    Args:
        store: the store.
        workspace: whose ledger.
        held: its checkpoints, newest first.
        target: the one to go back to.

    Raises:
        StoreDamaged: records are lost; a restore of everything needs none.
    """
    ledger = store.ledger(workspace)
    since = [item.ledger_number for item in held if item.checkpoint.sequence >= target.checkpoint.sequence]
    numbers = [*reversed(since), ledger.number]
    # Records are only ever added, so a lower number than before says that it began anew.
    began_anew = any(later < earlier for earlier, later in pairwise(numbers))
    unread = ledger.lost is not None and ledger.lost.after >= target.ledger_number
    if began_anew or unread or _lacks_the_turn_of(store, workspace, target):
        raise StoreDamaged(
            f"the ledger {store.layout.ledger(workspace.hash)} has lost what was written after checkpoint "
            f"{target.checkpoint.id[:8]}, so nothing tells the agent's files from yours; --all restores both"
        )


def _lacks_the_turn_of(store: Store, workspace: Workspace, target: Held) -> bool:
    """Whether the state after a checkpoint's turn is named, and no record says what the turn wrote."""
    if store.ledger(workspace).knows_checkpoint(target.checkpoint.id):
        return False
    name = after_ref(workspace.hash, target.checkpoint.sequence)
    return name in list_names(store.git, name)
