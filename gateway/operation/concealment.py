"""Keeps the secrets in this process's environment from the commands that it runs, which are the same user's.

Linux shows a process's first environment to every process of its user, in ``/proc/PID/environ``, whatever the process
has done with its variables since. So the values are overwritten where that is read from, and the process is marked as
one that no other process of its user may look into, its memory included. Root may still look into memory. Elsewhere
than on Linux only the variables themselves are taken away.
"""

import logging
import os
import sys
from collections.abc import Collection, Iterator, MutableMapping
from itertools import chain

_STAT = "/proc/self/stat"
_MEMORY = "/proc/self/mem"
_ENVIRONMENT_FIELDS = slice(47, 49)
"""Where proc_pid_stat(5) says that the environment begins and ends, counted from the field behind the name."""

_PR_SET_DUMPABLE = 4

_log = logging.getLogger(__name__)


def conceal(environment: MutableMapping[str, str], drop: Collection[str], keep: Collection[str]) -> None:
    """Have nobody else read the variables ``drop`` and ``keep`` of this process; the latter it still knows itself.

    What cannot be done is logged, and the program goes on.
    """
    if sys.platform == "linux":
        try:
            _overwrite({os.fsencode(name) for name in chain(drop, keep)})
            _close_to_others()
        except OSError as error:
            _log.warning("commands may be able to read the environment of the gateway: %s", error)
    for name in drop:
        environment.pop(name, None)
    for name in keep:
        if name in environment:
            # Set anew, for libraries that look where the value is overwritten now.
            environment[name] = environment[name]


def _overwrite(names: Collection[bytes]) -> None:
    with open(_STAT, "rb") as stat:
        start, end = map(int, stat.read().rpartition(b")")[2].split()[_ENVIRONMENT_FIELDS])
    with open(_MEMORY, "r+b", buffering=0) as memory:
        memory.seek(start)
        block = memory.read(end - start)
        for offset, length in _values(block, names):
            memory.seek(start + offset)
            memory.write(bytes(length))


def _values(block: bytes, names: Collection[bytes]) -> Iterator[tuple[int, int]]:
    """Where in an environment the values of some variables stand, and how long each is."""
    offset = 0
    for entry in block.split(b"\0"):
        name, equals, value = entry.partition(b"=")
        if equals and name in names:
            yield offset + len(name) + 1, len(value)
        offset += len(entry) + 1


def _close_to_others() -> None:
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_DUMPABLE) is refused")
