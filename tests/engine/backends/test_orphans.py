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
def orphans_come_here() -> Iterator[None]:
    """Inherit orphans and leave them dead (Linux; elsewhere init takes them)."""
    if sys.platform != "linux":
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    try:
        yield
    finally:
        libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        with suppress(ChildProcessError):  # none is left
            while True:
                os.waitpid(-1, 0)


def test_a_dead_orphan_is_not_waited_for(orphans_come_here: None, tmp_path: Path) -> None:
    env = {"PATH": os.environ["PATH"]}

    result = LocalBackend().run("sleep 60 & echo $! > pid", str(tmp_path), env, 60, lambda _: None, StopSignal())

    assert (result.exit_code, result.left_running) == (0, False)
    assert result.duration_s < 5
    pid = (tmp_path / "pid").read_text().strip()
    states = subprocess.run(["ps", "-o", "stat=", "-p", pid], capture_output=True, check=False, text=True).stdout
    assert states.strip()[:1] in {"Z", ""}
