"""Who writes a workspace now, between processes: one at a time for a whole turn or restore, wherever roots touch.

A claim locks its own root alone, and every directory above it beside others, so that a root and one that lies in it are
never claimed by two. Locks end with their process, however that ends, and their files are never removed.
"""

import os
from contextlib import ExitStack

from engine.errors import StorageFailed, StoreBusy
from engine.host import locks
from engine.store.layout import workspace_hash


class Claims:
    """Makes claims; the lock files are in ``directory``, which is made when first needed."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def make(self, root: str, holder: str) -> "Claim":
        """Return what has to be taken to be the only writer below a root for longer than one call."""
        return Claim(self._directory, root, holder)


class Claim:
    """The wish to write below a root; it holds nothing until it is taken.

    Args:
        directory: where the lock files are; made if missing.
        root: the workspace's absolute real path.
        holder: how others are told who it is.
    """

    def __init__(self, directory: str, root: str, holder: str) -> None:
        self._directory = directory
        self._root = root
        self._holder = holder
        self._held = ExitStack()
        self._taken = False

    def take(self) -> str | None:
        """Take it without waiting; return who is in the way, ``None`` when it is taken (or was before).

        Raises:
            StorageFailed: the lock files cannot be made.
        """
        if self._taken:
            return None
        try:
            os.makedirs(self._directory, 0o700, exist_ok=True)
            with ExitStack() as stack:
                for above in _above(self._root):
                    stack.enter_context(locks.hold(self._lock(above), shared=True, wait_s=0, purpose=self._holder))
                stack.enter_context(locks.hold(self._lock(self._root), shared=False, wait_s=0, purpose=self._holder))
                self._held = stack.pop_all()
        except StoreBusy as busy:
            return busy.holder
        except OSError as error:
            path = os.fsdecode(error.filename or self._directory)
            raise StorageFailed(path, error.strerror or str(error)) from error
        self._taken = True
        return None

    def give_back(self) -> None:
        """Let the next one write; without effect where it was not taken."""
        self._held.close()
        self._taken = False

    def find_holder(self) -> str | None:
        """Return who writes the root itself now, ``None`` where nobody does."""
        return locks.find_holder(self._lock(self._root))

    def _lock(self, root: str) -> str:
        return os.path.join(self._directory, f"{workspace_hash(root)}.lock")


def _above(root: str) -> list[str]:
    """Return the directories above, outermost first."""
    found = []
    while (parent := os.path.dirname(root)) != root:
        found.append(parent)
        root = parent
    return found[::-1]
