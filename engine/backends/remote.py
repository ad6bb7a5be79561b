"""Programs in a sandbox of a service: fed and heard through the service's library, in plain ASCII.

Not every service carries other bytes. What runs is always the same gate; a program is sent to it in one line, and what
belongs to its own standard input and output travels as base64.
"""

import base64
import queue
import secrets
import shlex
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final, Protocol

from engine.backends.base import Executed
from engine.backends.conversation import NotStarted
from engine.backends.wrapper import GATE, Verdict, one_line

GATED: Final = ("/bin/sh", "-c", GATE)
"""What a service is given to run, so that a program can be sent to it in one line."""

CALL_S: Final = 60.0
"""How long a short program may take: reading and writing files among them."""

_STOP = "\n"

# Standard input and output travel as base64; how it ended stands in a line of standard errors.
_EXECUTE: Final = r"""
exec 3>&2
{ if [ "$size" -gt 0 ]; then head -c "$size" | base64 -d | "$@"; else "$@" </dev/null; fi
printf '\n%s %s\n' "$mark" "$?" >&3; } | base64
"""


class RemoteProcess(Protocol):
    """A program in a sandbox; every method may raise ``NotStarted``."""

    def send(self, text: str) -> None:
        """Write whole lines to its standard input."""
        ...

    def output(self) -> Iterator[bytes]:
        """Yield its standard output until the end."""
        ...

    def errors(self) -> Iterator[bytes]:
        """Yield its standard errors until the end."""
        ...

    def kill(self) -> None:
        """End it, as far as the service offers that."""
        ...

    def close(self) -> None:
        """Listen no more; it goes on if it still runs."""
        ...


def call_through(process: RemoteProcess, arguments: Sequence[str], stdin: bytes = b"") -> Executed:
    """Run a short program through a gate to its end; raises ``NotStarted`` also when it takes too long."""
    mark = secrets.token_hex(16)
    data = base64.encodebytes(stdin).decode()
    setting = f"mark={mark} size={len(data)}\nset -- {shlex.join(arguments)}\n"
    try:
        process.send(one_line(setting + _EXECUTE).decode() + data)
        output, errors = _Collector(process.output()), _Collector(process.errors())
        if not (output.ended.wait(CALL_S) and errors.ended.wait(CALL_S)):
            process.kill()
            raise NotStarted(f"the sandbox did not answer within {CALL_S:.0f} s")
    finally:
        process.close()
    said, _, status = errors.data.rpartition(f"\n{mark} ".encode())
    if output.complaint or not status.strip().isdigit():
        complaint = output.complaint or errors.complaint or errors.data.decode("utf-8", "replace").strip()
        raise NotStarted(complaint or "it ended before the program began, and said nothing")
    return Executed(int(status), base64.b64decode(output.data), said)


class _Collector:
    """Takes a whole stream in, in a thread of its own."""

    def __init__(self, stream: Iterator[bytes]) -> None:
        self.data = b""
        self.complaint = ""
        self.ended = threading.Event()
        threading.Thread(target=self._take, args=(stream,), name="sandbox-call", daemon=True).start()

    def _take(self, stream: Iterator[bytes]) -> None:
        try:
            self.data = b"".join(stream)
        except NotStarted as error:
            self.complaint = error.reason
        finally:
            self.ended.set()


class RemoteChannel:
    """A run of the wrapper in a sandbox; see ``conversation.Channel``."""

    def __init__(self, process: RemoteProcess, text: str, killer: Callable[[Verdict], bool]) -> None:
        self._process = process
        self._killer = killer
        self._complaint = ""
        self._to_send: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._to_send.put(one_line(text).decode())
        threading.Thread(target=self._send, name="command-elsewhere", daemon=True).start()

    def output(self) -> Iterator[bytes]:
        """Yield what comes on standard output; when the connection breaks, ``errors`` tells."""
        return self._heard(self._process.output())

    def errors(self) -> Iterator[bytes]:
        """Yield what comes on standard errors, in the end why no more came."""
        yield from self._heard(self._process.errors())
        if self._complaint:
            yield f"\n{self._complaint}\n".encode()

    def ask_to_end(self) -> None:
        """Send the line that the wrapper waits for."""
        self._to_send.put(_STOP)

    def kill(self, verdict: Verdict) -> bool:
        """End the command by a program of its own, then the wrapper."""
        killed = self._killer(verdict)
        with suppress(NotStarted):
            self._process.kill()
        return killed

    def close(self) -> None:
        """Listen no more."""
        self._to_send.put(None)
        with suppress(NotStarted):
            self._process.close()

    def _heard(self, stream: Iterator[bytes]) -> Iterator[bytes]:
        try:
            yield from stream
        except NotStarted as error:
            self._complaint = error.reason

    def _send(self) -> None:
        try:
            while (text := self._to_send.get()) is not None:
                self._process.send(text)
        except NotStarted as error:  # it has ended, or what it said tells why
            self._complaint = self._complaint or error.reason
