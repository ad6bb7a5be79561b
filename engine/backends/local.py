"""Commands on this machine, each in a session of its own, with nothing left of it afterwards."""

import errno
import os
import secrets
import shutil
import subprocess
from collections.abc import Callable, Mapping
from typing import Final

from engine.backends.base import ProcessResult, StopSignal
from engine.backends.guardian import Guardian
from engine.backends.output import Capture, Lines
from engine.backends.processes import MARKER, ProcessGroup
from engine.backends.running import Running
from engine.errors import ToolRefused

CAPTURE_BYTES: Final = 1024 * 1024
"""How much output is kept of one command."""

GRACE_S: Final = 2.0
"""How long processes may take to end after SIGTERM, before SIGKILL."""

# Looked for here first: a workspace may be on PATH, and a program in it must not become the shell.
_SHELLS = ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/opt/homebrew/bin/bash")


class LocalBackend:
    """Runs ``bash -c`` (``sh -c`` without bash) with the user's rights; standard input is empty.

    When the command ends, is stopped or runs out of time, everything it started is ended with it: SIGTERM, then
    SIGKILL; ``processes`` says how far that reaches. It ends as well when this program dies (``guardian``).
    ``keep_background=True`` lets what a command put into the background live on after a natural end; its later output
    is lost. Output is read from one pipe, in the order in which it was written.
    """

    kind = "local"
    is_container = False

    def __init__(
        self, *, grace_s: float = GRACE_S, capture_bytes: int = CAPTURE_BYTES, shell: str | None = None
    ) -> None:
        self._grace_s = grace_s
        self._capture_bytes = capture_bytes
        self._shell = shell

    def run(
        self,
        command: str,
        cwd: str,
        env: Mapping[str, str],
        timeout_s: float | None,
        on_output: Callable[[bytes], None],
        stop: StopSignal,
        *,
        keep_background: bool = False,
    ) -> ProcessResult:
        """Run a command; see ``Backend.run``. The environment is ``env`` and the mark of the run."""
        if stop.stopped:
            return ProcessResult(None, None, stopped=True)
        mark = secrets.token_hex(16)
        shell = self._shell or _find_shell(env.get("PATH", os.defpath))
        process, output = _start([shell, "-c", "--", command], cwd, {**env, MARKER: mark})
        group = ProcessGroup(process.pid, mark)
        running = Running(process, group, output, Capture(self._capture_bytes), Lines(on_output))
        with running, Guardian(process.pid):
            with stop.listening(running.wake):
                running.follow(stop, timeout_s)
            if not (keep_background and running.ended_by_itself):
                running.end_all(self._grace_s)
            return running.result()


def _find_shell(search_path: str) -> str:
    for shell in _SHELLS:
        if os.access(shell, os.X_OK):
            return shell
    return shutil.which("bash", path=search_path) or "/bin/sh"


def _start(arguments: list[str], cwd: str, env: Mapping[str, str]) -> tuple[subprocess.Popen[bytes], int]:
    """Start a process; return it and the descriptor to read its output from, which the caller closes."""
    _require_possible(arguments[-1])
    output, written = os.pipe()
    try:
        process = subprocess.Popen(
            arguments,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except BaseException as error:
        os.close(output)
        if isinstance(error, OSError):
            raise _refusal(error, cwd) from error
        raise
    finally:
        os.close(written)
    return process, output


def _require_possible(command: str) -> None:
    if "\0" in command:
        raise ToolRefused("terminal", "the command holds a NUL character, which no command can")
    try:
        os.fsencode(command)
    except UnicodeEncodeError:
        raise ToolRefused("terminal", "the command holds characters that this system cannot encode") from None


def _refusal(error: OSError, cwd: str) -> ToolRefused:
    if error.errno == errno.E2BIG:
        return ToolRefused("terminal", "the command is longer than the system takes; write it to a file and run that")
    if error.filename == cwd:
        return ToolRefused("terminal", f"cannot start in {cwd!r}: {error.strerror}")
    return ToolRefused("terminal", f"the command cannot be started: {error.strerror}")
