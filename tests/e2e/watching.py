"""Changes on disk as they happen, from the kernel: the moment to end a program is counted, not guessed."""

import ctypes
import os
import select
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Names and values as inotify(7) has them.
_IN_MODIFY = 0x00000002
_IN_MOVED_TO = 0x00000080
_IN_CREATE = 0x00000100
_IN_DELETE = 0x00000200
_IN_NONBLOCK_CLOEXEC = 0o2004000
_EVENT = struct.Struct("iIII")
_libc = ctypes.CDLL(None, use_errno=True)


class Watch:
    """Changes of the names in some directories, in order, those inside files too."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._pending: list[str] = []

    def add(self, directory: Path) -> None:
        """Watch one more directory."""
        mask = _IN_MODIFY | _IN_MOVED_TO | _IN_CREATE | _IN_DELETE
        number = _libc.inotify_add_watch(self._descriptor, os.fsencode(directory), mask)
        assert number >= 0, os.strerror(ctypes.get_errno())

    def wait(self, changes: int, ending: str = "", within_s: float = 60) -> None:
        """Wait until so many changes have been made to names that end so."""
        while changes > 0:
            if not self._pending:
                assert select.select([self._descriptor], [], [], within_s)[0], f"{changes} changes did not come"
                self._pending = list(_names(os.read(self._descriptor, 1 << 16)))
            if self._pending.pop(0).endswith(ending):
                changes -= 1


def _names(data: bytes) -> Iterator[str]:
    while data:
        _watch, _mask, _cookie, length = _EVENT.unpack_from(data)
        end = _EVENT.size + length
        yield os.fsdecode(data[_EVENT.size : end].rstrip(b"\0"))
        data = data[end:]


@contextmanager
def watching(*directories: Path) -> Iterator[Watch]:
    """Watch directories until the block ends."""
    descriptor = _libc.inotify_init1(_IN_NONBLOCK_CLOEXEC)
    assert descriptor >= 0, os.strerror(ctypes.get_errno())
    try:
        watch = Watch(descriptor)
        for directory in directories:
            watch.add(directory)
        yield watch
    finally:
        os.close(descriptor)
