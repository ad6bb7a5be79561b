"""Clearing away the temporary files of a process that was killed while it wrote."""

import re
from collections.abc import Iterable

from engine.host.files import TEMP_PREFIX, Tree
from engine.host.paths import PathUnsafe

_TEMPORARY = re.compile(re.escape(TEMP_PREFIX) + r"[0-9a-f]{16}")


def remove_leftovers(tree: Tree, paths: Iterable[str]) -> None:
    """Remove our temporary files from the directories of these paths; what cannot be removed stays.

    Only call it where no live process of ours is writing to these paths.
    """
    for directory in {path.rpartition("/")[0] for path in paths}:
        try:
            names = tree.list(directory)
        except (OSError, PathUnsafe):
            continue
        for name in filter(_TEMPORARY.fullmatch, names):
            try:
                tree.remove_file(f"{directory}/{name}" if directory else name)
            except (OSError, PathUnsafe):
                continue
