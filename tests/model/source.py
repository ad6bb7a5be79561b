"""Which paths a checkpoint holds: what is source by name, by ``.gitignore``, and by having been captured before."""

from collections.abc import Collection
from dataclasses import dataclass
from fnmatch import fnmatchcase

from tests.model.trees import Node, Tree, parents

JUNK_DIRECTORIES = {"node_modules"}
JUNK_FILES = {"x.log"}
SECRETS = {".env"}
IGNORABLE = (".env", "*.ign", "hidden/")
"""The lines that a ``.gitignore`` is made of here."""

REPOSITORY = Node("repository", 0)


@dataclass(frozen=True, slots=True)
class Capture:
    """A moment of the workspace: the paths a checkpoint holds, those it excludes, and its gaps."""

    rows: Tree
    excluded: frozenset[str]
    gaps: frozenset[str]

    @property
    def nested(self) -> list[str]:
        return sorted(path for path, node in self.rows.items() if node == REPOSITORY)

    def same_as(self, other: "Capture") -> bool:
        """Whether both hold the same, whatever they leave out."""
        return self.rows == other.rows


def capture(tree: Tree, known: Collection[str], named: Collection[str], tracked: Collection[str]) -> Capture:
    """Capture a tree.

    ``known`` is what the last capture held, ``named`` what a tool names or the agent wrote earlier, ``tracked`` the
    index of the user's repository.
    """
    return _Walk(tree, known, named, tracked).capture()


class _Walk:
    def __init__(self, tree: Tree, known: Collection[str], named: Collection[str], tracked: Collection[str]) -> None:
        self.tree = tree
        self.known = known
        self.named = named
        self.tracked = tracked
        self.above_named = {parent for path in named for parent in parents(path)}
        self.above_tracked = {parent for path in tracked for parent in parents(path)}
        self.children: dict[str, list[str]] = {}
        for path in tree:
            self.children.setdefault(path.rpartition("/")[0], []).append(path)
        rules = tree.get(".gitignore")
        text = rules.data.decode() if rules is not None and rules.kind == "file" else ""
        self.patterns = [line for line in text.splitlines() if line in IGNORABLE]
        self.rows: Tree = {}
        self.excluded: set[str] = set()

    def capture(self) -> Capture:
        self.walk("", closed=False)
        gaps = frozenset(path for path, node in self.rows.items() if node == REPOSITORY)
        hidden = {path for path in self.named if path not in self.rows and path in self.tree and self.is_excluded(path)}
        return Capture(self.rows, frozenset(self.excluded), gaps | hidden)

    def walk(self, directory: str, *, closed: bool) -> None:
        for path in self.children.get(directory, ()):
            node, name = self.tree[path], path.rpartition("/")[2]
            if name == ".git":
                self.excluded.add(path)
            elif node.is_directory:
                self.enter(path, name, closed=closed)
            elif self.admits(path, name, closed=closed):
                self.rows[path] = node
            else:
                self.excluded.add(path)

    def enter(self, path: str, name: str, *, closed: bool) -> None:
        hidden = closed or self.is_ignored(name, directory=True)
        shut = False
        if hidden or name in JUNK_DIRECTORIES:
            if path in self.above_tracked:
                shut = hidden
            elif path in self.known or path in self.above_named:
                shut = True
            else:
                self.excluded.add(path)
                return
        if f"{path}/.git" in self.tree:
            self.rows[path] = REPOSITORY
            return
        self.rows[path] = self.tree[path]
        self.walk(path, closed=shut)

    def admits(self, path: str, name: str, *, closed: bool) -> bool:
        if path in self.known or path in self.tracked or (path in self.named and name not in SECRETS):
            return True
        return not (closed or name in JUNK_FILES or self.is_ignored(name, directory=False))

    def is_ignored(self, name: str, *, directory: bool) -> bool:
        return any(
            fnmatchcase(name, pattern.rstrip("/")) and (directory or not pattern.endswith("/"))
            for pattern in self.patterns
        )

    def is_excluded(self, path: str) -> bool:
        return path in self.excluded or any(parent in self.excluded for parent in parents(path))
