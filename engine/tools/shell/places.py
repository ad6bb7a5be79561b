"""Directories a command may be in while it runs, and whether a path lies outside the workspace.

Purely lexical unless the caller gives a resolver: nothing here touches the disk.
"""

import posixpath
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase

Where = frozenset[str]
"""Every directory the shell may be in at one point of a command; empty where it never gets to."""

NOWHERE: Where = frozenset()

MAX_DIRECTORIES = 16
"""Each `cd` that may fail doubles the possibilities; beyond this a command's place is called unknown."""

SINKS = frozenset({"/dev/null", "/dev/zero", "/dev/full", "/dev/tty"})
"""Devices that hold nothing: writing to them changes no file."""

STREAMS = frozenset({"/dev/stdout", "/dev/stderr", "/dev/fd/1", "/dev/fd/2"})
"""Names for what a command already writes to."""

SOURCES = frozenset({"/dev/stdin", "/dev/fd/0", "/dev/random", "/dev/urandom"})

GLOB_CHARACTERS = frozenset("*?[")


def is_device(path: str) -> bool:
    """Whether a path names no place on disk that could lie in or outside a workspace."""
    return path in SINKS or path in STREAMS or path in SOURCES


def join(where: str, path: str) -> str:
    """The absolute, lexically normalised form of a path."""
    joined = posixpath.normpath(posixpath.join("/", where, path))
    return "/" + joined.lstrip("/")  # POSIX keeps a leading double slash; Linux gives it no meaning


@dataclass(frozen=True, slots=True)
class Workspace:
    """The tree a command is meant to stay in."""

    root: str
    home: str | None = None
    resolve: Callable[[str], str] | None = None

    def is_outside(self, path: str, where: Where) -> bool:
        """Whether a path may lie outside, seen from any directory the shell may be in."""
        if "\0" in path:
            return True
        starts = where if not path.startswith("/") else frozenset("/")
        return any(self._escapes(start, spelling) for start in starts for spelling in _spellings(path))

    def enter(self, where: Where, path: str) -> Where:
        """The directories the shell may be in after `cd path`, which it works out from the text alone."""
        return frozenset(join(start, path) for start in where)

    def _escapes(self, start: str, path: str) -> bool:
        if self.resolve is None:
            return not _contains(join("/", self.root), join(start, path))
        # Not normalised first: the kernel follows a link before it looks at the `..` behind it.
        real = self.resolve(posixpath.join("/", start, path))
        return not _contains(self.resolve(self.root), real)


def _contains(root: str, path: str) -> bool:
    return root in {path, "/"} or path.startswith(root + "/")


def _spellings(path: str) -> tuple[str, ...]:
    """The path, and what it becomes where a pattern such as `.*` also matches `..`, as in older shells."""
    if GLOB_CHARACTERS.isdisjoint(path):
        return (path,)
    parts = [".." if part.startswith(".") and fnmatchcase("..", part) else part for part in path.split("/")]
    climbed = "/".join(parts)
    return (path,) if climbed == path else (path, climbed)
