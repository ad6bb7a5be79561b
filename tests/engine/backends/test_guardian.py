"""A command does not outlive the program that runs it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PROGRAM = """
import sys, threading
from engine.backends.base import StopSignal
from engine.backends.local import LocalBackend
def run():
    LocalBackend().run(sys.argv[1], sys.argv[2], {"PATH": "/usr/bin:/bin"}, None, lambda _: None, StopSignal())
thread = threading.Thread(target=run, daemon=True)
thread.start()
sys.stdin.read()
"""


@contextmanager
def program(command: str, cwd: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A program that runs a command in a thread until its own input ends."""
    with subprocess.Popen([sys.executable, "-c", PROGRAM, command, str(cwd)], stdin=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("end", ["killed", "ended with the thread left behind"])
@pytest.mark.parametrize("deaf", ["", "trap '' TERM; "])
def test_a_command_ends_with_its_program(tmp_path: Path, end: str, deaf: str) -> None:
    """Everything that the command starts holds a FIFO open, so its reader learns when the last of it is gone."""
    os.mkfifo(tmp_path / "held")
    command = f"{deaf}exec 9>held; echo up >&9; sleep 60; touch late"

    with program(command, tmp_path) as process, (tmp_path / "held").open("rb") as held:
        assert held.readline() == b"up\n"
        if end == "killed":
            process.send_signal(signal.SIGKILL)
        else:
            process.communicate(b"")
        process.wait()
        assert held.read() == b""

    assert not (tmp_path / "late").exists()
