"""Commands on this machine, each in a session of its own, with nothing left of it afterwards."""

import errno
import os
import secrets
import shutil
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from typing import Any, Final

from engine.backends.base import ProcessResult, Site, StopSignal
from engine.backends.guardian import Guardian
from engine.backends.options import Options
from engine.backends.output import CAPTURE_BYTES, Capture, Lines
from engine.backends.processes import MARKER, ProcessGroup
from engine.backends.running import Running
from engine.errors import ToolRefused

GRACE_S: Final = 2.0
"""How long processes may take to end after SIGTERM, before SIGKILL."""

# Looked for here first: a workspace may be on PATH, and a program in it must not become the shell.
_SHELLS = ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/opt/homebrew/bin/bash")


# Nothing of the command runs before its guardian is there. The shell that waits becomes the one that runs it.
_GATE: Final = 'read -r _ && exec "$0" -c -- "$1" </dev/null'


class LocalBackend:
    """Runs ``bash -c`` (``sh -c`` without bash) with the user's rights; standard input is empty.

    When the command ends, is stopped or runs out of time, everything it started is ended with it: SIGTERM, then
    SIGKILL; ``processes`` says how far that reaches. It ends as well when this program dies (``guardian``).
    ``keep_background=True`` lets what a command detached live on after a natural end; its later output is lost. Output
    is read from one pipe, in the order in which it was written.
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
        started = _start(shell, command, cwd, {**env, MARKER: mark})
        group = ProcessGroup(started.process.pid, mark)
        running = Running(started.process, group, started.output, Capture(self._capture_bytes), Lines(on_output))
        with running, started.gate as gate, Guardian(started.process.pid):
            with suppress(BrokenPipeError):  # ended already, by somebody else: what follows will tell
                gate.write(b"\n")
            with stop.listening(running.wake):
                running.follow(stop, timeout_s)
            if keep_background and running.ended_by_itself:
                running.keep_detached([shell, "-c", "--", command])
            running.end_all(self._grace_s)
            return running.result()

    def close(self) -> None:
        """Nothing is held between two runs."""


def create_local(options: Mapping[str, Any], site: Site) -> LocalBackend:
    """Make the backend of this machine, which has no options and may be used from everywhere on it."""
    del site
    Options(LocalBackend.kind, options).finish()
    return LocalBackend()


@dataclass(frozen=True, slots=True)
class _Started:
    """A process that waits at its gate, and our ends of its pipes."""

    process: subprocess.Popen[bytes]
    output: int
    gate: FileIO


def _find_shell(search_path: str) -> str:
    for shell in _SHELLS:
        if os.access(shell, os.X_OK):
            return shell
    return shutil.which("bash", path=search_path) or "/bin/sh"


def _start(shell: str, command: str, cwd: str, env: Mapping[str, str]) -> _Started:
    """Start a process that becomes the command's shell when a line comes through its gate, and ends if none does."""
    _require_possible(shell, command)
    output, written = os.pipe()
    waiting, gate = os.pipe()
    try:
        process = subprocess.Popen(
            ["/bin/sh", "-c", _GATE, shell, command],
            cwd=cwd,
            env=env,
            stdin=waiting,
            stdout=written,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except BaseException as error:
        os.close(output)
        os.close(gate)
        if isinstance(error, OSError):
            raise _refusal(error, cwd) from error
        raise
    finally:
        os.close(written)
        os.close(waiting)
    return _Started(process, output, FileIO(gate, "wb"))


def _require_possible(shell: str, command: str) -> None:
    if not os.access(shell, os.X_OK):
        raise ToolRefused("terminal", f"the shell {shell!r} cannot be started")
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
