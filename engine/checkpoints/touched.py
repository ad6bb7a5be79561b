"""What may differ from the capture before: what a look has to look at again."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from engine.checkpoints.source import VIRTUALENV_MARKERS

# Names by whose coming, going or content a whole directory is judged anew.
_RULING_NAMES = frozenset({".gitignore", ".git"} | VIRTUALENV_MARKERS)


@dataclass(frozen=True, slots=True)
class Touched:
    """Paths below the root to look at again; all else is as the capture before found it.

    ``paths`` are looked at one by one: what stands there now, also nothing or something of another kind. A directory
    among them is listed again, its known subdirectories are not entered unless they are touched too; what is new is
    walked. Naming a file that came, went or changed is enough, its directory need not be among them.
    ``below`` are directories whose whole subtree is walked, as one has to be that may be another directory than the
    one that had its path; ``""`` is the root, everything.
    """

    paths: frozenset[str] = frozenset()
    below: frozenset[str] = frozenset()

    def with_paths(self, paths: Iterable[str]) -> "Touched":
        """Return this with more paths."""
        return Touched(self.paths.union(paths), self.below)

    def __or__(self, other: "Touched") -> "Touched":
        return Touched(self.paths | other.paths, self.below | other.below)


NOTHING = Touched()
EVERYTHING = Touched(below=frozenset({""}))
"""A walk of the whole workspace."""


@dataclass(slots=True)
class Branch:
    """What is touched at one path and below it, as a descent from the root comes by.

    ``look`` says that the path itself is touched, ``whole`` that all below it is walked.
    """

    look: bool = False
    whole: bool = False
    children: dict[str, "Branch"] = field(default_factory=dict)

    def add(self, path: str, *, whole: bool) -> None:
        """Add a path below; one that rules over a directory stands for all of that."""
        branch = self
        for name in path.split("/") if path else ():
            if name in _RULING_NAMES and (name != ".git" or branch is not self):
                branch.whole = True
                return
            branch = branch.children.setdefault(name, Branch())
        branch.look = True
        branch.whole = branch.whole or whole


def branch_out(touched: Touched) -> Branch:
    """Return the root's branch of what is touched."""
    root = Branch()
    for path in touched.paths:
        root.add(path, whole=False)
    for path in touched.below:
        root.add(path, whole=True)
    return root
