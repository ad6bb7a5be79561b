"""What may differ from the capture before: what a look has to look at again."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Touched:
    """Paths below the root to look at again; all else is as the capture before found it.

    ``paths`` are looked at one by one: what stands there now, also nothing or something of another kind. A directory
    among them is listed again, its known subdirectories are not entered unless they are touched too; what is new is
    walked. Naming a file that came, went or changed is enough, its directory need not be among them.
    ``below`` are directories whose whole subtree is walked; ``""`` is the root, everything.
    """

    paths: frozenset[str] = frozenset()
    below: frozenset[str] = frozenset()

    def with_paths(self, paths: Iterable[str]) -> "Touched":
        """Return this with more paths."""
        return Touched(self.paths.union(paths), self.below)

    def __or__(self, other: "Touched") -> "Touched":
        return Touched(self.paths | other.paths, self.below | other.below)


EVERYTHING = Touched(below=frozenset({""}))
"""A walk of the whole workspace."""
