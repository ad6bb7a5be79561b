"""What all containers have in common: what they are called, where the workspace is in them, and whose they are.

A container that Takeback started carries its owner, the process. One whose owner is gone is removed before the next is
started; one that somebody else started is used and left alone.
"""

import os
import posixpath
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from engine.backends.base import Site
from engine.backends.options import Options
from engine.errors import ToolRefused

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
_HOUR_S = 3600.0
_STARTED_FIELD = 19  # starttime, counted from the field after the name; proc(5)


def container_name(kind: str, wanted: str, site: Site) -> str:
    """Return what a workspace's container is called: as configured, or by the workspace; raises ``ToolRefused``."""
    if not wanted:
        return f"takeback-{site.hash[:12]}"
    if not _NAME.fullmatch(wanted):
        raise ToolRefused(
            f"backend {kind!r}",
            f"{wanted!r} is no name for a container: letters, digits, '.', '_' and '-', a letter or digit first",
        )
    return wanted


def inside(site: Site, workdir: str, cwd: str) -> str:
    """Return where a directory of the workspace on the host is in the sandbox."""
    below = os.path.relpath(cwd, site.root)
    return workdir if below == "." or below.startswith("..") else posixpath.join(workdir, below)


def mounted(read: Options, site: Site, workdir: str, *, forbidden: str) -> bool:
    """Read whether the host's directory is to be seen inside; its path must hold none of the ``forbidden`` marks."""
    if not read.switch("mount"):
        return False
    if any(mark in path for path in (site.root, workdir) for mark in forbidden):
        raise read.refusal("mount", "is not possible: the path holds a mark that has a meaning of its own there")
    return True


def idle_seconds(read: Options) -> float | None:
    """Read after how long without use a container is removed."""
    hours = read.number("idle_hours")
    return None if hours is None else hours * _HOUR_S


class Idleness:
    """Calls something once nothing has been in use for a while; thread-safe. Without a time it never does."""

    def __init__(self, patience_s: float | None, give_up: Callable[[], None]) -> None:
        self._patience_s = patience_s
        self._give_up = give_up
        self._users = 0
        self._timer: threading.Timer | None = None
        self._lock = threading.Lock()

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Be in use as long as the block lasts."""
        with self._lock:
            self._users += 1
            self._cancel()
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users and self._patience_s is not None:
                    self._timer = threading.Timer(self._patience_s, self._expire)
                    self._timer.daemon = True
                    self._timer.start()

    def cancel(self) -> None:
        """Wait for nothing any more."""
        with self._lock:
            self._cancel()

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        with self._lock:
            if self._users:
                return
            self._timer = None
        self._give_up()


def this_owner() -> str:
    """Name this process so that no later one is taken for it."""
    return f"{os.getpid()}.{_started(os.getpid())}"


def is_gone(owner: str) -> bool:
    """Whether the process by that name runs no more."""
    number, _, started = owner.partition(".")
    if not number.isdecimal():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False
    return _started(int(number)) != started


def _started(pid: int) -> str:
    """When a process started, in the system's own ticks; empty where the system does not say."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[_STARTED_FIELD].decode()
    except (OSError, IndexError):
        return ""
