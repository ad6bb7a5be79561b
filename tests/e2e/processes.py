"""Processes of a test's own, known by the home directory in their environment."""

import os
import select
import signal
from contextlib import suppress


def living(user_home: str) -> dict[int, str]:
    """Every running process that was started with this home, by its number, with its command line."""
    mark = f"HOME={user_home}".encode()
    found = {}
    for name in os.listdir("/proc"):
        # Gone meanwhile, or another user's.
        with suppress(OSError, ValueError):
            pid = int(name)
            with open(f"/proc/{pid}/environ", "rb") as file:
                mine = mark in file.read().split(b"\0")
            if mine and pid != os.getpid():
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    found[pid] = file.read().replace(b"\0", b" ").decode("utf-8", "replace")
    return found


def end_all(user_home: str) -> None:
    """Kill every process with this home, and what they start meanwhile, and wait until all are gone."""
    while pids := living(user_home):
        for pid in pids:
            with suppress(ProcessLookupError):
                end(pid)


def end(pid: int) -> None:
    """Kill a process and wait until it is gone; one that is nobody's child any more is waited for as well."""
    descriptor = os.pidfd_open(pid)
    try:
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        assert select.select([descriptor], [], [], 30)[0], f"process {pid} outlives SIGKILL"
    finally:
        os.close(descriptor)
