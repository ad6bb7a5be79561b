"""What the store holds, asked for many times while it is filled: each of its directories is listed once.

For whoever holds the store's lock, under which nothing is taken out of it. What others add meanwhile may not be seen:
an object is then in the store twice, which does no harm.
"""

import os
from collections.abc import Iterable

from engine.host.git import Git
from engine.store.soundness import find_known


class KnownObjects:
    """What a store has something for. Threads may share it: what two of them learn at once is the same.

    Args:
        git: the store.
    """

    def __init__(self, git: Git) -> None:
        self._git = git
        self._objects = os.path.join(git.git_dir, "objects")
        self._names: dict[str, frozenset[str]] = {}
        self._directories = frozenset(os.listdir(self._objects))

    def find(self, oids: Iterable[str]) -> frozenset[str]:
        """Return those ids that the store has a file or a pack's entry for, whatever these are worth."""
        wanted = set(oids)
        loose = {oid for oid in wanted if oid[2:] in self._inside(oid[:2])}
        return frozenset(loose | find_known(self._git, wanted - loose, loose=False))

    def _inside(self, directory: str) -> frozenset[str]:
        if directory not in self._directories:
            return frozenset()
        if directory not in self._names:
            self._names[directory] = frozenset(os.listdir(os.path.join(self._objects, directory)))
        return self._names[directory]
