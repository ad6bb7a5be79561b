"""The output of a command in a sandbox of Daytona: a websocket, on which each line is marked with its stream.

The service's library follows it for asynchronous callers alone, so it is read here, by the library beneath.
"""

import queue
import re
import threading
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from typing import Final

from engine.backends.conversation import NotStarted

_WAITING_CHUNKS = 64
_LOOK_S = 0.2
_LARGEST_MESSAGE_BYTES = 16 * 1024 * 1024
_NORMAL_CLOSURE = 1000  # RFC 6455, 7.4.1
_OUTPUT = b"\x01\x01\x01"
_ERRORS = b"\x02\x02\x02"
_MARK: Final = re.compile(rb"\x01{3}|\x02{3}")
_BEGUN: Final = re.compile(rb"\x01{1,2}\Z|\x02{1,2}\Z")


class CommandLog:
    """Reads the websocket of a command in a thread of its own, and takes its two streams apart."""

    def __init__(self, address: str, key: str) -> None:
        self._address = address
        self._headers = {"Authorization": f"Bearer {key}"}
        self._pieces: dict[bytes, queue.Queue[bytes | Exception | None]] = {
            mark: queue.Queue(_WAITING_CHUNKS) for mark in (_OUTPUT, _ERRORS)
        }
        self._closed = threading.Event()
        threading.Thread(target=self._read, name="sandbox-log", daemon=True).start()

    def output(self) -> Iterator[bytes]:
        """Yield what carries the mark of standard output."""
        return self._stream(_OUTPUT)

    def errors(self) -> Iterator[bytes]:
        """Yield what carries the mark of standard errors."""
        return self._stream(_ERRORS)

    def close(self) -> None:
        """Read no more; the thread ends when it next hears something."""
        self._closed.set()

    def _stream(self, mark: bytes) -> Iterator[bytes]:
        while not self._closed.is_set():
            try:
                piece = self._pieces[mark].get(timeout=_LOOK_S)
            except queue.Empty:
                continue
            if piece is None:
                return
            if isinstance(piece, Exception):
                raise NotStarted(f"the connection to the sandbox broke ({str(piece) or type(piece).__name__})")
            yield piece

    def _read(self) -> None:
        failure: Exception | None = None
        try:
            self._follow()
        except _connection_errors() as error:
            failure = error
        for mark in self._pieces:
            if failure is not None:
                self._hand_over(mark, failure)
            self._hand_over(mark, None)

    def _follow(self) -> None:
        httpx, sockets = import_module("httpx"), import_module("httpx_ws")
        marked = _Marked()
        listening = {"headers": self._headers, "max_message_size_bytes": _LARGEST_MESSAGE_BYTES}
        with httpx.Client() as client, sockets.connect_ws(self._address, client, **listening) as socket:
            try:
                while not self._closed.is_set():
                    for mark, piece in marked.add(socket.receive_bytes()):
                        self._hand_over(mark, piece)
            except sockets.WebSocketDisconnect as error:
                if error.code != _NORMAL_CLOSURE:
                    raise
        for mark, piece in marked.rest():
            self._hand_over(mark, piece)

    def _hand_over(self, mark: bytes, piece: bytes | Exception | None) -> None:
        while not self._closed.is_set():
            with suppress(queue.Full):
                self._pieces[mark].put(piece, timeout=_LOOK_S)
                return


class _Marked:
    """A stream of bytes in which three equal bytes say whose the following ones are, however it is cut in pieces."""

    def __init__(self) -> None:
        self._unread = b""
        self._mark = _OUTPUT

    def add(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Take the next bytes, and yield which are whose; what may be the begin of a mark waits."""
        text, at = self._unread + data, 0
        known = {_OUTPUT: bytearray(), _ERRORS: bytearray()}
        for found in _MARK.finditer(text):
            known[self._mark] += text[at : found.start()]
            self._mark, at = found[0], found.end()
        begun = _BEGUN.search(text, at)
        end = len(text) if begun is None else begun.start()
        known[self._mark] += text[at:end]
        self._unread = text[end:]
        yield from ((mark, bytes(piece)) for mark, piece in known.items() if piece)

    def rest(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield what waited; nothing more comes."""
        if self._unread:
            yield self._mark, self._unread


def _connection_errors() -> tuple[type[Exception], ...]:
    return OSError, import_module("httpx").HTTPError, import_module("httpx_ws").HTTPXWSException
