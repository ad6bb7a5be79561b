"""Reading files and links of a workspace for a capture: the ids of their contents, and what proves them unchanged.

A file is opened by its name in an open directory, never through a symlink, read to its end and looked at again: what
would not keep still meanwhile is no content that anybody could rely on.
"""

import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping

from engine.host.paths import PathUnsafe
from engine.host.places import open_directory
from engine.model import Entry, EntryKind
from engine.store.rows import Row, is_racy

_LINK_MODE = 0o777
_CHUNK_BYTES = 1024 * 1024
_ATTEMPTS = 3
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

Sizes = Mapping[str, Mapping[str, int]]
"""Files to be read: by directory, and in it by name, the size that was seen of each."""

Outcome = Row | OSError | None
"""What came of reading a file: its row, why it cannot be read, or ``None`` because it would not keep still."""

Outcomes = Iterable[tuple[str, Outcome]]
"""Paths with what came of each."""

Take = Callable[[int, Iterator[bytes]], str | None]
"""Takes a content of a known size in pieces and returns its id; ``None`` if the pieces are more or less."""


def read_files(root: int, sizes: Sizes, limit_bytes: int) -> Outcomes:
    """Read files below an open root, one after the other."""
    for directory, inside in sizes.items():
        yield from read_directory(root, directory, inside, limit_bytes, hash_content)


def read_directory(root: int, directory: str, names: Iterable[str], limit_bytes: int, take: Take) -> Outcomes:
    """Read files of one directory below an open root; what takes a content may raise no ``OSError`` of its own."""
    prefix = f"{directory}/" if directory else ""
    try:
        with open_directory(root, directory) as descriptor:
            for name in names:
                yield prefix + name, _try_file(descriptor, name, limit_bytes, take)
    except PathUnsafe:  # another kind of thing has the directory's name by now: what was in it is gone
        yield from ((prefix + name, FileNotFoundError()) for name in names)
    except OSError as error:
        yield from ((prefix + name, error) for name in names)


def _try_file(directory: int, name: str, limit_bytes: int, take: Take) -> Outcome:
    try:
        return read_file(directory, name, limit_bytes, take)
    except OSError as error:
        return error


def read_file(directory: int, name: str, limit_bytes: int, take: Take) -> Row | None:
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
            oid = take(status.st_size, _chunks(descriptor, status.st_size))
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


def hash_content(size: int, chunks: Iterable[bytes]) -> str | None:
    """Return the id of a content that comes in pieces; ``None`` if they are more or less than ``size`` bytes."""
    digest = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    left = size
    for chunk in chunks:
        left -= len(chunk)
        digest.update(chunk)
    return digest.hexdigest() if left == 0 else None


def _chunks(descriptor: int, size: int) -> Iterator[bytes]:
    """Yield a file's content as far as it is as long as it was, or shows that it is longer.

    Each time a byte more is asked for than should be left: a small file takes one look.
    """
    while chunk := os.read(descriptor, min(size, _CHUNK_BYTES) + 1):
        yield chunk
        size -= len(chunk)
        if size <= 0:
            return


def _row(entry: Entry, status: os.stat_result, *, trusted: bool) -> Row:
    return Row(
        entry, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev, trusted=trusted
    )
