"""Files of our own that survive a crash: whole old or whole new content, never a torn one."""

import json
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

TEMPORARY_PREFIX = ".tmp-"
_SYNCS_AT_ONCE = 16
_CHUNK_BYTES = 1024 * 1024


def write_bytes(path: str, content: bytes, *, temporary: str | None = None) -> None:
    """Replace a file atomically and durably, mode 0600.

    ``temporary`` is its path until it is whole, where nothing may stand; made up unless given.

    Raises:
        OSError: the old content is still there.
    """
    directory = os.path.dirname(path)
    temporary = temporary or os.path.join(directory, f"{TEMPORARY_PREFIX}{secrets.token_hex(6)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.rename(temporary, path)
    except BaseException:
        with suppress(OSError):  # what failed is told, and a prune sweeps what is left
            os.unlink(temporary)
        raise
    sync_directory(directory)


def write_all(files: Mapping[str, bytes]) -> None:
    """Replace several files, each atomically, mode 0600; the disk is asked for all their contents at once.

    That they have their names is durable with the next sync in a journal that keeps its order, as git relies on, too.

    Raises:
        OSError: some of them may be replaced.
    """
    temporaries: dict[str, str] = {}
    descriptors: list[int] = []
    try:
        for path, content in files.items():
            temporary = os.path.join(os.path.dirname(path), f"{TEMPORARY_PREFIX}{secrets.token_hex(6)}")
            descriptors.append(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
            temporaries[path] = temporary
            _write_whole(descriptors[-1], content)
        _sync_all(descriptors)
        for path in files:
            os.rename(temporaries[path], path)
            del temporaries[path]
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
        for temporary in temporaries.values():  # what failed is told, and a prune sweeps what is left
            with suppress(OSError):
                os.unlink(temporary)


def _write_whole(descriptor: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _sync_all(descriptors: Sequence[int]) -> None:
    """Sync side by side: a disk takes many at once in hardly more time than one."""
    if len(descriptors) == 1:
        os.fsync(descriptors[0])
    elif descriptors:
        with ThreadPoolExecutor(min(len(descriptors), _SYNCS_AT_ONCE)) as threads:
            list(threads.map(os.fsync, descriptors))


def write_json(path: str, value: Any) -> None:
    """Replace a JSON file atomically and durably; lone surrogates are kept as escapes."""
    write_bytes(path, json.dumps(value, separators=(",", ":")).encode("ascii"))


def read_json(path: str) -> Any:
    """Return a JSON file's value, ``None`` when the file is missing.

    Raises:
        ValueError: the file is not JSON.
    """
    try:
        with open(path, "rb") as stream:
            return json.loads(stream.read())
    except FileNotFoundError:
        return None


def remove(path: str) -> None:
    """Remove a file durably; a missing one is fine."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    sync_directory(os.path.dirname(path))


def sync_directory(path: str) -> None:
    """Make renames and removals in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_directories(path: str) -> None:
    """Make a directory and those above it as far as they are missing, durably, each with mode 0700.

    Raises:
        OSError: some of them may be there.
    """
    if os.path.isdir(path):
        return
    above = os.path.dirname(path)
    make_directories(above)
    with suppress(FileExistsError):  # another process made it meanwhile
        os.mkdir(path, 0o700)
    sync_directory(above)


class NewFile:
    """A file in the making that has only a temporary name yet, mode 0600; see `new_file`."""

    def __init__(self, path: str, descriptor: int) -> None:
        self.size = 0
        self._path = path
        self._descriptor = descriptor
        self._named = False

    def append(self, content: bytes) -> None:
        """Write at the end."""
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]
        self.size += len(content)

    def cut(self, size: int) -> None:
        """Take away all behind the first ``size`` bytes."""
        os.ftruncate(self._descriptor, size)
        os.lseek(self._descriptor, size, os.SEEK_SET)
        self.size = size

    def patch(self, at: int, content: bytes) -> None:
        """Write over what is there already."""
        while content:
            written = os.pwrite(self._descriptor, content, at)
            at, content = at + written, content[written:]

    def chunks(self) -> Iterator[bytes]:
        """Yield all that was written, in pieces."""
        at = 0
        while chunk := os.pread(self._descriptor, _CHUNK_BYTES, at):
            at += len(chunk)
            yield chunk

    def sync(self) -> None:
        """Make the content durable."""
        os.fsync(self._descriptor)

    def name(self, name: str) -> None:
        """Give it its name in its directory, in one step; syncing file and directory are the caller's steps."""
        os.rename(self._path, os.path.join(os.path.dirname(self._path), name))
        self._named = True

    def close(self) -> None:
        """Close it; one without a name is removed, and one that cannot be is left for a prune to sweep."""
        os.close(self._descriptor)
        if not self._named:
            with suppress(OSError):
                os.unlink(self._path)


@contextmanager
def new_file(directory: str) -> Iterator[NewFile]:
    """Begin a file in a directory; unless it is named before the block ends, it is gone again.

    Raises:
        OSError: it cannot be made there.
    """
    path = os.path.join(directory, f"{TEMPORARY_PREFIX}{secrets.token_hex(6)}")
    file = NewFile(path, os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    try:
        yield file
    finally:
        file.close()
