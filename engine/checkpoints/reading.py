"""Reading one file or link of a workspace for a capture: its content's id, and what proves later that it is the same.

A file is opened by its name in an open directory, never through a symlink, read to its end and looked at again: what
would not keep still meanwhile is no content that anybody could rely on.
"""

import hashlib
import os
import stat
import time

from engine.model import Entry, EntryKind
from engine.store.rows import Row, is_racy

_LINK_MODE = 0o777
_CHUNK_BYTES = 1024 * 1024
_ATTEMPTS = 3
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def read_file(directory: int, name: str, limit_bytes: int) -> Row | None:
    """Read a regular file to its end; ``None`` if it would not keep still, or is none, or too large by now.

    Raises:
        OSError: it cannot be read.
    """
    for _attempt in range(_ATTEMPTS):
        read_at_ns = time.time_ns()
        descriptor = os.open(name, _FLAGS, dir_fd=directory)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > limit_bytes:
                return None
            oid = _hash(descriptor, status.st_size)
            after = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        if oid is not None and (after.st_mtime_ns, after.st_ctime_ns) == (status.st_mtime_ns, status.st_ctime_ns):
            entry = Entry(EntryKind.FILE, stat.S_IMODE(status.st_mode), oid)
            return _row(entry, status, trusted=not is_racy(status, read_at_ns))
    return None


def read_link(directory: int, name: str, status: os.stat_result) -> Row:
    """Read a symlink's target; ``status`` is what was seen of the link.

    Raises:
        OSError: it cannot be read.
    """
    target = os.fsencode(os.readlink(name, dir_fd=directory))
    return _row(Entry(EntryKind.SYMLINK, _LINK_MODE, blob_oid(target)), status, trusted=True)


def blob_oid(content: bytes) -> str:
    """Return git's id of a blob."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _hash(descriptor: int, size: int) -> str | None:
    """Return the id of what a descriptor reads; ``None`` if that is more or less than ``size`` bytes."""
    digest = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    left = size
    while chunk := os.read(descriptor, _CHUNK_BYTES):
        left -= len(chunk)
        digest.update(chunk)
    return digest.hexdigest() if left == 0 else None


def _row(entry: Entry, status: os.stat_result, *, trusted: bool) -> Row:
    return Row(
        entry, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev, trusted=trusted
    )
