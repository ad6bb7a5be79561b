"""What the user's repository tracks and excludes, read without letting git near its configuration.

The repository's index is read by a git that works on the store and is only told the index's path; nothing is written
to it and no setting of the repository is consulted.
"""

import os
import stat

from engine.checkpoints.source import DirectoryRules, Tracked
from engine.errors import GitFailed
from engine.host.git import Git

GITIGNORE = ".gitignore"
_SMALL_FILE_BYTES = 1024 * 1024
_POINTER = b"gitdir: "


def find_git_directory(root: str) -> str | None:
    """Return the directory of the repository at a workspace's root, also of a linked worktree or a submodule."""
    path = os.path.join(root, ".git")
    try:
        kind = os.lstat(path).st_mode
    except OSError:
        return None
    if stat.S_ISDIR(kind):
        return path
    if not stat.S_ISREG(kind):
        return None
    content = read_small_file(path)
    if content is None or not content.startswith(_POINTER):
        return None
    target = os.path.join(root, os.fsdecode(content[len(_POINTER) :].rstrip(b"\n")))
    return target if os.path.isdir(target) else None


def read_tracked(git: Git, root: str) -> Tracked:
    """Return what the repository at the root tracks; nothing where there is none or its index cannot be read."""
    directory = find_git_directory(root)
    index = directory and os.path.join(directory, "index")
    if not index or not os.path.isfile(index):
        return Tracked()
    try:
        out = git.run(["ls-files", "-z", "--cached"], env={"GIT_INDEX_FILE": index})
    except GitFailed:
        return Tracked()
    return Tracked.of(frozenset(os.fsdecode(path) for path in out.split(b"\0") if path))


def index_stamp(root: str) -> tuple[int, int, int] | None:
    """Return what changes when the user's index changes, ``None`` without one."""
    directory = find_git_directory(root)
    if directory is None:
        return None
    try:
        stamp = os.stat(os.path.join(directory, "index"))
    except OSError:
        return None
    return stamp.st_mtime_ns, stamp.st_size, stamp.st_ino


def read_exclude(root: str) -> bytes:
    """Return the patterns of the repository's own exclude file."""
    directory = find_git_directory(root)
    if directory is None:
        return b""
    return read_small_file(os.path.join(directory, "info", "exclude")) or b""


def read_small_file(path: str, directory: int | None = None) -> bytes | None:
    """Return a regular file's content, ``None`` if it is none, too large to be meant, or unreadable."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags, dir_fd=directory)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        content = os.read(descriptor, _SMALL_FILE_BYTES + 1)
        return content if len(content) <= _SMALL_FILE_BYTES else None
    except OSError:
        return None
    finally:
        os.close(descriptor)


def with_gitignore(rules: DirectoryRules, descriptor: int, path: str) -> DirectoryRules:
    """Return the rules with what a directory's own file says."""
    content = read_small_file(GITIGNORE, descriptor)
    return rules.with_patterns(path, content) if content else rules
