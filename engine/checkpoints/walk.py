"""The source files below a directory, for an agent that looks round: what a capture would hold, by the same rules.

A directory that is named itself is looked into whatever the rules say of it, but ``.git`` never. No symlink is
followed; nothing is read but ``.gitignore``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from engine.checkpoints.source import (
    NOT_SOURCE_DIRECTORIES,
    VIRTUALENV_MARKERS,
    DirectoryRules,
    SourceRules,
    Tracked,
)
from engine.host.paths import PathUnsafe, is_repository_part
from engine.store.layout import RESERVED
from engine.tools.filetree import FileTree

MOST_FILES: Final = 50_000
"""How many files are listed; a capture takes no more either."""

IGNORE_FILE: Final = ".gitignore"

_PATTERN_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A regular file that is source."""

    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Listing:
    """Source files in the order of their paths; ``complete`` is false where there were too many.

    ``unread`` counts the directories that could not be read.
    """

    files: Sequence[SourceFile]
    complete: bool = True
    unread: int = 0


def list_source(
    tree: FileTree, below: str, tracked: Tracked, excluded: bytes = b"", *, most: int = MOST_FILES
) -> Listing:
    """List what is source below a directory; ``excluded`` are the repository's own patterns."""
    tree.look_below(below, NOT_SOURCE_DIRECTORIES, IGNORE_FILE)
    walk = _Walk(tree, SourceRules(tracked, {}))
    files: list[SourceFile] = []
    complete = True
    for file in walk.files(below, excluded):
        if len(files) >= most:
            complete = False
            break
        files.append(file)
    return Listing(sorted(files, key=lambda file: file.path), complete, walk.unread)


class _Walk:
    """One walk over a tree."""

    def __init__(self, tree: FileTree, rules: SourceRules) -> None:
        self.unread = 0
        self._tree = tree
        self._rules = rules

    def files(self, below: str, excluded: bytes) -> Iterator[SourceFile]:
        """Yield the files below a directory, each directory's together."""
        waiting = [(below, self._rules_at(below, excluded))]
        while waiting:
            directory, rules = waiting.pop()
            try:
                entries = self._tree.entries(directory)
            except (OSError, PathUnsafe):  # unreadable, gone, or replaced by a symlink
                self.unread += 1
                continue
            names = {name for name, _ in entries}
            if directory != below and names & VIRTUALENV_MARKERS and directory not in self._rules.tracked.directories:
                continue
            if IGNORE_FILE in names:
                rules = rules.with_patterns(directory, self._patterns(directory))
            for name, found in entries:
                path = _below(directory, name)
                if is_repository_part(name) or path == RESERVED:
                    continue
                inside = rules.enter(path, name) if found.is_directory else None
                if inside is not None:
                    waiting.append((path, inside))
                elif found.is_file and rules.admits(path, name):
                    yield SourceFile(path, found.size)

    def _rules_at(self, below: str, excluded: bytes) -> DirectoryRules:
        """The rules in a directory that is to be looked into: those of the directories above, unless they shut it."""
        rules = self._rules.top(excluded)
        path = ""
        for name in below.split("/") if below else ():
            rules = rules.with_patterns(path, self._patterns(path))
            path = _below(path, name)
            rules = rules.enter(path, name) or DirectoryRules(self._rules)
        return rules

    def _patterns(self, directory: str) -> bytes:
        path = _below(directory, IGNORE_FILE)
        found = self._tree.signature(path)
        if found is None or not found.is_file or found.size > _PATTERN_BYTES:
            return b""
        try:
            with self._tree.open_file(path) as file:
                return file.read(_PATTERN_BYTES)
        except (OSError, PathUnsafe):
            return b""


def _below(directory: str, name: str) -> str:
    return f"{directory}/{name}" if directory else name
