"""Finding and ending every process that a command started.

A command runs in a session of its own, so its process group holds what it starts, but for two kinds. A process that
left the group (``setsid``, a daemon) is found on Linux by a variable in its environment, unless it dropped that. A
process of another user (``sudo``) cannot be signalled; that it runs on is reported.

What a command detaches on purpose, by ``nohup`` or ``setsid``, can be told from what it merely leaves: it ignores
SIGHUP, or is in a session of its own.
"""

import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

MARKER: Final = "TAKEBACK_OPERATION"
"""The environment variable, with a value of its own for each run, by which processes of a run are known."""

_PROC = "/proc"
_DETACHING = frozenset({"nohup", "setsid"})
_SESSION_FIELD = 3  # state, parent, group, session; proc(5)


class ProcessGroup:
    """The processes of one run: those in the group of its first process, and those that carry its mark."""

    def __init__(self, leader: int, mark: str) -> None:
        self._kept: frozenset[int] = frozenset()
        self._leader = leader
        self._mark = f"{MARKER}={mark}".encode()

    def end(self, number: int) -> None:
        """Send SIGTERM or SIGKILL to all of them; those that are gone, or belong to another user, get none.

        One that is suspended is woken, else it would not notice SIGTERM.
        """
        descriptors = self._open_escaped()
        for each in (number, signal.SIGCONT):
            if not self._kept:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._leader, each)
            for descriptor in descriptors:
                with suppress(ProcessLookupError, PermissionError):
                    signal.pidfd_send_signal(descriptor, each)
        for descriptor in descriptors:
            os.close(descriptor)

    def keep_detached(self) -> tuple[str, ...]:
        """Spare from now on what was detached on purpose; return the number and command line of each.

        Where there is no ``/proc`` it cannot be told apart, and nothing is spared.
        """
        detached = [pid for pid in self._members() if _is_detached(pid, self._leader)]
        self._kept = frozenset(detached)
        return tuple(f"{pid} {' '.join(_command_line(pid))}" for pid in detached)

    def settling(self, started: Sequence[str]) -> bool:
        """Whether one of them is still on its way to becoming what it was started as.

        ``started`` is the command line of the first process, which those just forked have, too.
        """
        lines = [_command_line(pid) for pid in self._members()]
        return any(line == list(started) or (line and os.path.basename(line[0]) in _DETACHING) for line in lines)

    def alive(self) -> bool:
        """Whether any of them is left, but those that are spared."""
        if self._kept:
            return any(pid not in self._kept for pid in self._members())
        if self._group_alive():
            return True
        escaped = self._open_escaped()
        for descriptor in escaped:
            os.close(descriptor)
        return bool(escaped)

    def _group_alive(self) -> bool:
        try:
            os.killpg(self._leader, 0)
        except ProcessLookupError:
            return False
        except PermissionError:  # Linux: all are another user's; macOS also where all of them are zombies
            return os.path.isdir(f"{_PROC}/self")
        members = [pid for pid in _processes() if _group_if_alive(pid) == self._leader]
        # Where nobody reaps orphans (a container without init) a dead group still takes signals, for ever.
        return bool(members) or not os.path.isdir(f"{_PROC}/self")

    def _members(self) -> list[int]:
        return [pid for pid in _processes() if _group_if_alive(pid) == self._leader or self._is_escaped(pid)]

    def _open_escaped(self) -> list[int]:
        """Open a descriptor for each process that the group's signal does not reach; the caller closes them.

        Outside the group those carry the mark. When some are spared no signal goes to the group, so all are opened.
        """
        if not hasattr(os, "pidfd_open"):
            return []
        found = []
        for pid in _processes():
            if not self._is_meant(pid):
                continue
            with suppress(OSError):
                descriptor = os.pidfd_open(pid)
                # Again, because the number may be another process's by now; a descriptor stays with its process.
                if self._is_meant(pid):
                    found.append(descriptor)
                else:
                    os.close(descriptor)
        return found

    def _is_meant(self, pid: int) -> bool:
        if pid in self._kept:
            return False
        return self._is_escaped(pid) or (bool(self._kept) and _group_if_alive(pid) == self._leader)

    def _is_escaped(self, pid: int) -> bool:
        try:
            with open(f"{_PROC}/{pid}/environ", "rb") as file:
                return self._mark in file.read().split(b"\0") and os.getpgid(pid) != self._leader
        except OSError:  # gone, or another user's
            return False


def _processes() -> list[int]:
    try:
        return [int(name) for name in os.listdir(_PROC) if name.isdecimal()]
    except OSError:
        return []


def _group_if_alive(pid: int) -> int | None:
    """Return the process group of a process that is no zombie (proc(5): state, parent and group follow the name)."""
    try:
        with open(f"{_PROC}/{pid}/stat", "rb") as file:
            state, _, group = file.read().rpartition(b")")[2].split()[:3]
    except (OSError, ValueError):
        return None
    return None if state in {b"Z", b"X"} else int(group)


def _is_detached(pid: int, leader: int) -> bool:
    """Whether a process is in another session than a leader's, or ignores SIGHUP of its own accord.

    Where this program ignores it, as under ``nohup``, every command of it does, which then says nothing.
    """
    try:
        with open(f"{_PROC}/{pid}/stat", "rb") as file:
            session = int(file.read().rpartition(b")")[2].split()[_SESSION_FIELD])
        with open(f"{_PROC}/{pid}/status", "rb") as file:
            ignored = next(line for line in file if line.startswith(b"SigIgn:"))
    except (OSError, ValueError, StopIteration):
        return False
    if session != leader:
        return True
    inherited = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return not inherited and bool(int(ignored.split()[1], 16) & 1 << (signal.SIGHUP - 1))


def _command_line(pid: int) -> list[str]:
    try:
        with open(f"{_PROC}/{pid}/cmdline", "rb") as file:
            words = file.read().rstrip(b"\0").split(b"\0")
    except OSError:
        return []
    return [word.decode("utf-8", "backslashreplace") for word in words]
