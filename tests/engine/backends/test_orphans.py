"""A dead process that nobody reaps, as in a container without init, is not taken for one that still runs."""

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from engine.backends.base import StopSignal
from engine.backends.local import LocalBackend

PR_SET_CHILD_SUBREAPER = 36


@pytest.fixture
def orphans_come_here() -> Iterator[list[int]]:
    """Inherit orphans and leave them dead, those that are named until the end (Linux; elsewhere init takes them)."""
    orphans: list[int] = []
    if sys.platform != "linux":
        yield orphans
        return
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    try:
        yield orphans
    finally:
        libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        for pid in orphans:
            with suppress(ChildProcessError):  # not inherited
                os.waitpid(pid, 0)


def test_a_dead_orphan_is_not_waited_for(orphans_come_here: list[int], tmp_path: Path) -> None:
    env = {"PATH": os.environ["PATH"]}

    result = LocalBackend().run("sleep 60 & echo $! > pid", str(tmp_path), env, 60, lambda _: None, StopSignal())

    assert (result.exit_code, result.left_running) == (0, False)
    assert result.duration_s < 5
    pid = (tmp_path / "pid").read_text().strip()
    orphans_come_here.append(int(pid))
    states = subprocess.run(["ps", "-o", "stat=", "-p", pid], capture_output=True, check=False, text=True).stdout
    assert states.strip()[:1] in {"Z", ""}
