"""Which gateway processes are alive, so that a start takes over what a dead one left and nothing that a live one holds.

Several gateways may share one home (the service, and a terminal chat beside it). Each holds an advisory lock on a file
of its own below ``<home>/instances`` for as long as it lives; the kernel lets go of it however the process ends.
"""

import fcntl
import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio
from anyio import to_thread

_SUFFIX = ".lock"


class Instance:
    """This process among those that share a home. ``id`` marks the rows it owns."""

    def __init__(self, instance_id: str, directory: str) -> None:
        self.id = instance_id
        self._directory = directory

    async def living(self) -> frozenset[str]:
        """The ids of every live instance, this one included."""
        others = await to_thread.run_sync(_living, self._directory, self.id)
        return others | {self.id}


@asynccontextmanager
async def hold_instance(directory: str) -> AsyncIterator[Instance]:
    """Be a live instance until the block ends."""
    instance_id = "g-" + secrets.token_hex(6)
    path = os.path.join(directory, instance_id + _SUFFIX)
    descriptor = await to_thread.run_sync(_lock_new, path)
    try:
        yield Instance(instance_id, directory)
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(_release, path, descriptor)


def _lock_new(path: str) -> int:
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    # Locked under a name that nobody reads as an instance, then renamed: it is never seen unlocked.
    temporary = path + ".new"
    descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.write(descriptor, f"{os.getpid()}\n".encode())
    os.rename(temporary, path)
    return descriptor


def _release(path: str, descriptor: int) -> None:
    _unlink(path)
    os.close(descriptor)


def _living(directory: str, own_id: str) -> frozenset[str]:
    """Probe every other lock; the file of a dead one is removed (its name is random and never used again)."""
    living = set()
    for name in os.listdir(directory):
        instance_id = name.removesuffix(_SUFFIX)
        if not name.endswith(_SUFFIX) or instance_id == own_id:
            continue
        path = os.path.join(directory, name)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            living.add(instance_id)
        else:
            _unlink(path)
        finally:
            os.close(descriptor)
    return frozenset(living)


def _unlink(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)
