"""Reads lines from and writes to file descriptors without blocking the event loop or leaving a thread behind.

A descriptor is waited for before a thread touches it, so a cancelled read or write ends at once even when the
other side is silent. Nothing changes the descriptor's flags: the shell that started the program may share it.
"""

import os
from collections.abc import AsyncIterator, Awaitable, Callable

import anyio
from anyio import to_thread

CHUNK_BYTES = 64 * 1024
PIPE_WRITE_BYTES = 4096
"""What a pipe that is reported writable takes without blocking (``PIPE_BUF`` on Linux)."""
LONGEST_LINE_BYTES = 64 * 1024 * 1024


class LineTooLong(Exception):
    """A line went on for more than is taken in; it has been skipped."""


class OutputGone(Exception):
    """Nobody reads the output any more."""


async def _ready(wait: Callable[[int], Awaitable[None]], descriptor: int) -> bool:
    """Wait until a descriptor is ready; false for what cannot be waited for and never blocks: a regular file."""
    try:
        await wait(descriptor)
    except (PermissionError, ValueError):
        return False
    return True


class LineReader:
    """Lines of bytes from a descriptor, without their newline."""

    def __init__(self, descriptor: int, *, longest_bytes: int = LONGEST_LINE_BYTES) -> None:
        self._descriptor = descriptor
        self._longest_bytes = longest_bytes
        self._buffer = bytearray()
        self._searched = 0
        self._ended = False

    async def next(self) -> bytes | None:
        """The next line, ``None`` at the end of input.

        Raises:
            LineTooLong: the line was skipped; the next call goes on after it.
        """
        too_long = False
        while True:
            end = self._buffer.find(b"\n", self._searched)
            if end >= 0:
                line = bytes(self._buffer[:end])
                del self._buffer[: end + 1]
                self._searched = 0
                if too_long or len(line) > self._longest_bytes:
                    raise LineTooLong
                return line
            if self._ended:
                return self._last(too_long=too_long)
            if len(self._buffer) > self._longest_bytes:
                too_long = True
                self._buffer.clear()
            self._searched = len(self._buffer)
            await self._fill()

    def _last(self, *, too_long: bool) -> bytes | None:
        """What stands after the last newline."""
        line = bytes(self._buffer)
        self._buffer.clear()
        self._searched = 0
        if too_long:
            raise LineTooLong
        return line or None

    async def _fill(self) -> None:
        await _ready(anyio.wait_readable, self._descriptor)
        try:
            chunk = await to_thread.run_sync(os.read, self._descriptor, CHUNK_BYTES)
        except OSError:
            # A terminal that was hung up reads as EIO: there will be no more input.
            chunk = b""
        self._buffer += chunk
        self._ended = not chunk

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (line := await self.next()) is not None:
            yield line


class Writer:
    """Writes whole pieces to a descriptor, one after another."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = anyio.Lock()
        self.gone = anyio.Event()

    async def write(self, data: bytes) -> None:
        """Write all of ``data``; pieces of two callers never mix.

        Raises:
            OutputGone: the reader has gone; ``gone`` is set.
        """
        async with self._lock:
            if self.gone.is_set():
                raise OutputGone
            view = memoryview(data)
            while view:
                size = PIPE_WRITE_BYTES if await _ready(anyio.wait_writable, self._descriptor) else CHUNK_BYTES
                try:
                    written = await to_thread.run_sync(os.write, self._descriptor, view[:size])
                except (BrokenPipeError, ConnectionResetError):
                    self.gone.set()
                    raise OutputGone from None
                view = view[written:]
