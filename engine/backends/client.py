"""Programs of this machine that reach another place: ``ssh``, ``docker``, ``podman``, ``apptainer``.

Each call is a process in a session of its own, so that a terminal's Ctrl-C is not its. A call that runs a command has a
pipe as its standard input that this program alone holds open: when this program is gone, the wrapper on the other side
sees the end of it and ends the command.
"""

import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import IO, Final

from engine.backends.base import Executed, StopSignal
from engine.backends.conversation import NotStarted
from engine.backends.waiting import LOOK_S, refuse_stopped
from engine.backends.wrapper import GATE, Verdict, one_line

_READ_BYTES: Final = 64 * 1024
_STOP: Final = b"\n"
_END_S: Final = 5.0


class ClientChannel:
    """A run of the wrapper through a client program; see ``conversation.Channel``.

    Args:
        arguments: the client and all that it needs to run ``/bin/sh -c GATE`` on the other side is appended by
            ``shell_arguments``.
        environment: of the client.
        text: the program for the other side.
        killer: kills the process group of that number on the other side, by a call of its own; whether it could.
    """

    def __init__(
        self, arguments: Sequence[str], environment: Mapping[str, str], text: str, killer: Callable[[Verdict], bool]
    ) -> None:
        self._killer = killer
        self._process = start_client(arguments, environment)
        self._to_send: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._to_send.put(one_line(text))
        # In a thread of its own: a client that cannot connect reads nothing, and the pipe is small.
        threading.Thread(target=self._send, name="command-elsewhere", daemon=True).start()

    def output(self) -> Iterator[bytes]:
        """Yield what comes on standard output until its end."""
        return _pieces(self._process.stdout)

    def errors(self) -> Iterator[bytes]:
        """Yield what comes on standard errors until its end."""
        return _pieces(self._process.stderr)

    def ask_to_end(self) -> None:
        """Send the line that the wrapper waits for."""
        self._to_send.put(_STOP)

    def kill(self, verdict: Verdict) -> bool:
        """End the command by another call of the client, then the client."""
        killed = self._killer(verdict)
        end_client(self._process)
        return killed

    def close(self) -> None:
        """End the client if it still runs; its pipes close with it."""
        end_client(self._process)
        self._to_send.put(None)

    def _send(self) -> None:
        stdin = self._process.stdin
        if stdin is None:
            raise AssertionError
        with suppress(OSError):  # the client has ended; what it said tells why
            while (data := self._to_send.get()) is not None:
                stdin.write(data)
                stdin.flush()
        with suppress(OSError):
            stdin.close()


def shell_arguments() -> list[str]:
    """What a client is given to run so that the wrapper's program can be sent to it."""
    return ["/bin/sh", "-c", GATE]


def start_client(
    arguments: Sequence[str], environment: Mapping[str, str], *, silent: bool = False
) -> subprocess.Popen[bytes]:
    """Start a client with pipes on all sides, or to it alone; raises ``NotStarted`` where that is impossible."""
    outward = subprocess.DEVNULL if silent else subprocess.PIPE
    try:
        return subprocess.Popen(
            arguments,
            stdin=subprocess.PIPE,
            stdout=outward,
            stderr=outward,
            cwd="/",
            env=dict(environment),
            start_new_session=True,
        )
    except FileNotFoundError:
        raise NotStarted(f"the program {arguments[0]!r} is not installed here") from None
    except OSError as error:
        raise NotStarted(f"the program {arguments[0]!r} cannot be started: {error.strerror}") from error
    except ValueError:
        raise NotStarted("an argument holds a NUL character, which no program can take") from None


def end_client(process: subprocess.Popen[bytes]) -> None:
    """Kill a client, with what it started here, unless it has ended."""
    if process.poll() is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_END_S)


def call_client(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    *,
    stdin: bytes = b"",
    timeout_s: float,
    detaches: bool = False,
    stop: StopSignal | None = None,
) -> Executed:
    """Run a client to its end; raises ``NotStarted`` also when it takes too long or is stopped, and it is killed then.

    A stop is heeded where there is no ``stdin``. One that ``detaches`` leaves something behind that keeps its standard
    output and errors, so these are not read.
    """
    process = start_client(arguments, environment, silent=detaches)
    try:
        output, errors = _communicate(process, stdin, timeout_s, stop)
    except subprocess.TimeoutExpired:
        raise NotStarted(f"{os.path.basename(arguments[0])} did not answer within {timeout_s:.0f} s") from None
    finally:
        end_client(process)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
    return Executed(process.returncode, output or b"", errors or b"")


def _communicate(
    process: subprocess.Popen[bytes], stdin: bytes, timeout_s: float, stop: StopSignal | None
) -> tuple[bytes, bytes]:
    """Feed and hear a process to its end, looking up now and then; raises ``TimeoutExpired`` or ``NotStarted``."""
    if stop is None or stdin:  # a second call of communicate does not go on feeding
        return process.communicate(stdin, timeout_s)
    deadline_s = time.monotonic() + timeout_s
    while True:
        try:
            return process.communicate(timeout=min(LOOK_S, max(deadline_s - time.monotonic(), 0)))
        except subprocess.TimeoutExpired:
            refuse_stopped(stop)
            if time.monotonic() >= deadline_s:
                raise


def complaint(executed: Executed) -> str:
    """What a client says last of why it failed, a hint at its help left out."""
    lines = [line.strip() for line in executed.errors.decode("utf-8", "replace").splitlines()]
    said = [line for line in lines if line and not line.startswith(("See ", "Run "))]
    return said[-1] if said else f"it ended with exit code {executed.exit_code} and said nothing"


def _pieces(stream: IO[bytes] | None) -> Iterator[bytes]:
    if stream is None:
        raise AssertionError
    with stream:
        while data := os.read(stream.fileno(), _READ_BYTES):
            yield data
