"""The kernel's queue of changes below watched directories: Linux' inotify, read when asked and never by a thread.

The kernel queues an event before the call that caused it returns, so whoever drains the queue has heard of everything
that was over by then; where the queue could not hold it all, an event says so. inotify_simple hands all of that on as
it is (watchfiles hides the overflow, so it will not do). Directories are watched through their open descriptors: no
symlink is ever followed.

What inotify itself cannot tell: a write through a mapping, until the mapping ends; a write through another name of a
file that has several; another machine's write on a shared file system; what happens below a mount that covers a
directory. Whoever trusts the queue has to know of these by other means.
"""

import errno
import os
import sys
import threading
import weakref
from collections.abc import Iterator
from typing import NamedTuple

MODIFY = 0x0002
ATTRIB = 0x0004
CLOSE_WRITE = 0x0008
MOVED_FROM = 0x0040
MOVED_TO = 0x0080
CREATE = 0x0100
DELETE = 0x0200
DELETE_SELF = 0x0400
MOVE_SELF = 0x0800
UNMOUNT = 0x2000
OVERFLOW = 0x4000
IGNORED = 0x8000
IS_DIRECTORY = 0x4000_0000

_ONLY_DIRECTORIES = 0x0100_0000
_WANTED = (
    MODIFY | ATTRIB | CLOSE_WRITE | MOVED_FROM | MOVED_TO | CREATE | DELETE | DELETE_SELF | MOVE_SELF
) | _ONLY_DIRECTORIES
_LIMITS = "/proc/sys/fs/inotify"
_LOADING = threading.Lock()


class WatchingImpossible(Exception):
    """Nothing, or nothing more, can be watched; ``why`` is for people."""

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(why)


class Event(NamedTuple):
    """One event as the kernel gave it: ``name`` is what it happened to in the watched directory, or nothing."""

    watch: int
    mask: int
    name: str = ""


class Watcher:
    """One inotify instance; not thread-safe. It is closed with the last use of it, if not before.

    Raises:
        WatchingImpossible: this system has none to give.
    """

    def __init__(self) -> None:
        if sys.platform != "linux":
            raise WatchingImpossible("only Linux tells of changes in a way that never loses one unsaid")
        with _LOADING:
            from inotify_simple import INotify  # type: ignore[import-untyped]
        try:
            self._inotify = INotify(nonblocking=True, closefd=False)
        except OSError as error:
            raise WatchingImpossible(_refusal(error)) from error
        self._close = weakref.finalize(self, os.close, self._inotify.fileno())
        self._owner = os.getpid()

    def add(self, descriptor: int) -> int:
        """Watch an open directory and return the watch; the same directory has the same watch each time.

        Raises:
            WatchingImpossible: the kernel refuses.
        """
        try:
            return int(self._inotify.add_watch(f"/proc/self/fd/{descriptor}", _WANTED))
        except OSError as error:
            raise WatchingImpossible(_refusal(error)) from error

    def remove(self, watch: int) -> None:
        """Watch a directory no longer; one that is gone is fine."""
        try:
            self._inotify.rm_watch(watch)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise

    def drain(self) -> Iterator[Event]:
        """Yield what is queued, in the kernel's order, until the queue is empty.

        Raises:
            WatchingImpossible: this is a fork of the process that watched, and the queue is not its own.
        """
        if os.getpid() != self._owner:
            raise WatchingImpossible("the process was forked")
        while events := self._inotify.read(timeout=0):
            for watch, mask, _cookie, name in events:
                yield Event(watch, mask, name)

    def close(self) -> None:
        """Give everything back."""
        self._close()


def read_limit(name: str, otherwise: int) -> int:
    """Return a limit of inotify's on this machine: ``max_user_watches``, ``max_user_instances``."""
    try:
        with open(os.path.join(_LIMITS, name), encoding="ascii") as stream:
            return int(stream.read())
    except (OSError, ValueError):
        return otherwise


def _refusal(error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return "the machine's limit of watched directories is reached (sysctl fs.inotify.max_user_watches)"
    if error.errno == errno.EMFILE:
        return "the machine's limit of watchers is reached (sysctl fs.inotify.max_user_instances)"
    return f"the system refuses ({error.strerror or error})"
