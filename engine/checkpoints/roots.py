"""Which directory a path belongs to: the workspace's root, and the directories that never are one."""

import os
from collections.abc import Callable, Iterator

from engine.errors import WorkspaceRefused
from engine.store.layout import workspace_hash

_MARKERS = (
    ".git", "pyproject.toml", "package.json", "Cargo.toml", "go.mod", "Makefile", "pom.xml", ".hg", "Gemfile",
)  # fmt: skip


def find_root(path: str, user_home: str, knows: Callable[[str], bool]) -> tuple[str, str]:
    """Return the root a directory belongs to and the directory itself, both as real paths.

    The root is the nearest ancestor the store knows, else the nearest with a project's marker, else the directory.

    Args:
        path: a directory.
        user_home: the person's home directory; neither it nor anything above it is ever a root.
        knows: whether the store knows a workspace by its hash.

    Raises:
        WorkspaceRefused: there is no such directory, or it is one that is never guarded.
    """
    if not os.path.isdir(path):
        what = "it is not a directory" if os.path.lexists(path) else "there is no such directory"
        raise WorkspaceRefused(path, what)
    directory = os.path.realpath(path)
    home = os.path.realpath(user_home)
    if _is_too_wide(directory, home):
        raise WorkspaceRefused(directory, "it is the home directory or above it, which is more than one project")
    allowed = [ancestor for ancestor in _ancestors(directory) if not _is_too_wide(ancestor, home)]
    for ancestor in allowed:
        if knows(workspace_hash(ancestor)):
            return ancestor, directory
    for ancestor in allowed:
        if any(os.path.lexists(os.path.join(ancestor, marker)) for marker in _MARKERS):
            return ancestor, directory
    return directory, directory


def refuse_own(directory: str, base: str, own: frozenset[tuple[int, int]]) -> None:
    """Refuse a directory that is Takeback's: in the store's base, or one of ``own``, given by device and inode.

    Others may lie in Takeback's home, as the sample to try with does.

    Raises:
        WorkspaceRefused: it is.
    """
    status = os.stat(directory)
    if f"{directory}/".startswith(f"{base}/") or (status.st_dev, status.st_ino) in own:
        raise WorkspaceRefused(directory, "it is where Takeback keeps its own files")


def _is_too_wide(directory: str, home: str) -> bool:
    return directory in (os.path.sep, home) or home.startswith(directory.rstrip("/") + "/")


def _ancestors(directory: str) -> Iterator[str]:
    while True:
        yield directory
        parent = os.path.dirname(directory)
        if parent == directory:
            return
        directory = parent
