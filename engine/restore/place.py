"""Whether a workspace's directory still is the one that its checkpoints are of.

Where a disk is not mounted, or something else was put in its place, another directory stands there: what would be
brought back was never taken away from it.
"""

import os

from engine.checkpoints.history import Held
from engine.checkpoints.manifest import MODES_PATH
from engine.errors import RestoreRefused
from engine.host.files import Tree
from engine.host.paths import display
from engine.model import Workspace
from engine.store.objects import list_tree
from engine.store.opened import Store


def require_place(store: Store, workspace: Workspace, tree: Tree, newest: Held) -> None:
    """Refuse to write into a directory that no checkpoint has seen and that holds nothing of what they saw.

    Args:
        store: the store.
        workspace: the workspace.
        tree: its files.
        newest: its newest checkpoint.

    Raises:
        RestoreRefused: it is another directory.
    """
    known = store.known_directory(workspace)
    if known is None or known == os.stat(workspace.root).st_ino:
        return
    files = [path for path in list_tree(store.git, newest.tree) if path != MODES_PATH]
    if files and all(tree.signature(path) is None for path in files):
        raise RestoreRefused(
            f"nothing of what the last checkpoint saw stands in {display(workspace.root)}, which is another directory "
            "now: is a disk not mounted? /rollback N --all restores everything into what stands there"
        )
