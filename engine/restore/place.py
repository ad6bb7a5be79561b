"""Whether a workspace's directory still is the one that its checkpoints are of.

Where a disk is not mounted, or something else was put in its place, another directory stands there: what would be
brought back was never taken away from it, and what stands there was never put there.
"""

from engine.checkpoints.history import Held
from engine.checkpoints.manifest import MODES_PATH
from engine.errors import RestoreRefused
from engine.host.files import Tree
from engine.host.paths import display
from engine.model import Workspace
from engine.restore.scope import Request
from engine.store.objects import list_tree
from engine.store.opened import Store

_UNMOUNTED = "is a disk not mounted?"


def require_place(store: Store, workspace: Workspace, newest: Held) -> None:
    """Refuse to write into a directory that no checkpoint has seen and that holds nothing of what they saw.

    Args:
        store: the store.
        workspace: the workspace.
        newest: its newest checkpoint.

    Raises:
        RestoreRefused: it is another directory.
    """
    if _is_another(store, workspace, newest):
        raise RestoreRefused(
            f"{_nothing_stands(workspace)}: {_UNMOUNTED} /rollback N --all restores everything into what stands there"
        )


def require_same_place(store: Store, workspace: Workspace, request: Request, target: Held) -> None:
    """Refuse to take back, in one directory, only what was done in another that stood there.

    Raises:
        RestoreRefused: all of it was done there.
    """
    ledger, here = store.ledger(workspace), store.place(workspace)
    token = target.checkpoint.restore_token
    done = ledger.writes_of(request.turns) if request.turns else [ledger.restore_by(token)] if token else []
    places = {record.place for record in done if record is not None}
    if places and here not in places:
        raise RestoreRefused(
            f"what is to be taken back was done in another directory than the one that stands in "
            f"{display(workspace.root)} now: {_UNMOUNTED}"
        )


def enter_place(store: Store, workspace: Workspace, newest: Held) -> tuple[str, ...]:
    """Note that another directory stands there, where it does; return what to say of it."""
    if not _is_another(store, workspace, newest):
        return ()
    store.enter(workspace)
    return (f"{_nothing_stands(workspace)}: {_UNMOUNTED} What was done there before is not taken back here",)


def _is_another(store: Store, workspace: Workspace, newest: Held) -> bool:
    if not store.is_strange(workspace):
        return False
    files = [path for path in list_tree(store.git, newest.tree) if path != MODES_PATH]
    with Tree.open(workspace.root) as tree:
        return bool(files) and all(tree.signature(path) is None for path in files)


def _nothing_stands(workspace: Workspace) -> str:
    return (
        f"nothing of what the last checkpoint saw stands in {display(workspace.root)}, which is another directory now"
    )
