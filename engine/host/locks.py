"""Locks between processes and threads: ``flock`` on files that are never removed.

A lock ends with its owner, however that ends, because the kernel drops it; so nothing is ever broken by force. The
file holds a line about its last exclusive owner, for the sentence that says who is waited for.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

from engine.errors import StoreBusy

ANOTHER = "another process"
"""The holder where no line says who it is: those who share a lock leave none."""

_FIRST_PAUSE_S = 0.002
_LONGEST_PAUSE_S = 0.05


@contextmanager
def hold(path: str, *, shared: bool, wait_s: float, purpose: str) -> Iterator[int]:
    """Hold a lock for the length of a block, and as long as a process lives that was given its descriptor.

    Args:
        path: the lock file; made if missing, never removed.
        shared: beside other shared holders, or alone.
        wait_s: the longest wait in seconds.
        purpose: what it is held for, shown to those who wait.

    Raises:
        StoreBusy: it was not free in time.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        _acquire(descriptor, path, fcntl.LOCK_SH if shared else fcntl.LOCK_EX, wait_s)
        if not shared:
            _sign(descriptor, purpose)
        try:
            yield descriptor
        finally:
            if not shared:
                _clear(descriptor)
    finally:
        os.close(descriptor)


def find_holder(path: str) -> str | None:
    """Return who holds a lock alone, ``None`` where nobody does."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _holder(descriptor)
    else:
        return None
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, path: str, mode: int, wait_s: float) -> None:
    began = time.monotonic()
    pause = _FIRST_PAUSE_S
    while True:
        try:
            fcntl.flock(descriptor, mode | fcntl.LOCK_NB)
        except BlockingIOError:
            waited = time.monotonic() - began
            if waited >= wait_s:
                raise StoreBusy(path, _holder(descriptor), waited) from None
            time.sleep(min(pause, max(wait_s - waited, 0)))
            pause = min(pause * 2, _LONGEST_PAUSE_S)
        else:
            return


def _sign(descriptor: int, purpose: str) -> None:
    line = json.dumps(
        {"pid": os.getpid(), "purpose": purpose, "since": datetime.now(UTC).isoformat(timespec="seconds")}
    )
    _clear(descriptor)
    with suppress(OSError):  # a full disk takes the lock, if not the line
        os.pwrite(descriptor, line.encode("ascii"), 0)


def _clear(descriptor: int) -> None:
    with suppress(OSError):  # the lock is what counts, the line is only for people
        os.ftruncate(descriptor, 0)


def _holder(descriptor: int) -> str:
    try:
        owner = json.loads(os.pread(descriptor, 4096, 0))
        return f"process {owner['pid']} ({owner['purpose']}, since {owner['since']})"
    except (ValueError, KeyError, TypeError):
        return ANOTHER
