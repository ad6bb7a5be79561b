"""The commit that a nested repository is at, read from its files without starting git there."""

import hashlib
import os

from engine.checkpoints.tracked import read_small_file

# What stands for a nested repository's commit where it has none or keeps it elsewhere: a constant nobody's commit has.
NO_COMMIT = hashlib.sha1(b"takeback: a nested repository without a commit", usedforsecurity=False).hexdigest()

_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def nested_commit(directory: int) -> str:
    """Return the commit a nested repository is at, read from its files; `NO_COMMIT` where that is not plain."""
    try:
        git = os.open(".git", _DIRECTORY_FLAGS, dir_fd=directory)
    except OSError:
        return NO_COMMIT
    try:
        head = (read_small_file("HEAD", git) or b"").strip()
        if head.startswith(b"ref: "):
            name = os.fsdecode(head[5:].strip())
            safe = name.startswith("refs/") and ".." not in name
            head = (read_small_file(name, git) or b"").strip() if safe else b""
        text = head.decode("ascii", "replace")
        return text if len(text) == len(NO_COMMIT) and set(text) <= set("0123456789abcdef") else NO_COMMIT
    finally:
        os.close(git)
