"""Clearing away the temporary files of a process that was killed while it wrote."""

import re
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress

from engine.host.files import TEMP_PREFIX, ContentChanged, Tree
from engine.host.paths import PathUnsafe

_TEMPORARY = re.compile(re.escape(TEMP_PREFIX) + r"[0-9a-f]{16}")


def remove_leftovers(tree: Tree, paths: Iterable[str]) -> None:
    """Remove our temporary files from the directories of these paths; what cannot be removed stays.

    Only call it where no live process of ours is writing to these paths.
    """
    for path in _beside(tree, paths):
        with suppress(OSError, PathUnsafe):
            tree.remove_file(path)


def _beside(tree: Tree, paths: Iterable[str]) -> Iterator[str]:
    """Yield our temporary files in the directories of these paths."""
    for directory in {path.rpartition("/")[0] for path in paths}:
        try:
            names = tree.list(directory)
        except (OSError, PathUnsafe):
            continue
        for name in filter(_TEMPORARY.fullmatch, names):
            yield f"{directory}/{name}" if directory else name


OLD_S = 3600.0
"""How old a temporary file has to be in seconds before it can be nobody's any more: no write takes as long."""


def remove_old_leftovers(root: str, paths: Iterable[str]) -> None:
    """Remove those of these paths that are temporary files of ours and old; what cannot be removed stays."""
    found = [path for path in paths if _TEMPORARY.fullmatch(path.rpartition("/")[2])]
    if not found:
        return
    with Tree.open(root) as tree:
        _remove_old(tree, found)


def remove_old_beside(tree: Tree, paths: Iterable[str]) -> None:
    """Remove our old temporary files from the directories of these paths; what cannot be removed stays."""
    _remove_old(tree, _beside(tree, paths))


def _remove_old(tree: Tree, paths: Iterable[str]) -> None:
    horizon_ns = (time.time() - OLD_S) * 1e9
    for path in paths:
        with suppress(OSError, PathUnsafe, ContentChanged):
            signature = tree.signature(path)
            if signature is not None and signature.mtime_ns < horizon_ns:
                tree.remove_file(path, expected=signature)
