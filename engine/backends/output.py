"""What is kept and shown of a command's output while it runs; bounded, whatever the command writes."""

from collections.abc import Callable
from typing import Final

CAPTURE_BYTES: Final = 1024 * 1024
"""How much output is kept of one command."""

LINE_LIMIT_BYTES = 8 * 1024
"""A line that is longer is shown in pieces."""


class Capture:
    """Keeps the head and the tail of a stream of bytes, each up to half of a limit."""

    def __init__(self, limit_bytes: int) -> None:
        self._head_limit = limit_bytes - limit_bytes // 2
        self._tail_limit = limit_bytes // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0

    def add(self, data: bytes) -> None:
        """Take the next bytes."""
        self._total += len(data)
        room = self._head_limit - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * self._tail_limit:  # cut now and then, not for every chunk
            self._cut_tail()

    def _cut_tail(self) -> None:
        del self._tail[: max(len(self._tail) - self._tail_limit, 0)]

    def kept(self) -> tuple[bytes, bytes, int]:
        """Return the head, the tail, and how many bytes between them are lost."""
        self._cut_tail()
        return bytes(self._head), bytes(self._tail), self._total - len(self._head) - len(self._tail)


class Lines:
    """Hands on a stream of bytes as whole lines, several at once where they come together."""

    def __init__(self, deliver: Callable[[bytes], None]) -> None:
        self._deliver = deliver
        self._partial = bytearray()

    @property
    def waiting(self) -> bool:
        """Whether an unfinished line is held back."""
        return bool(self._partial)

    def add(self, data: bytes) -> None:
        """Take the next bytes and hand on what is finished."""
        self._partial += data
        end = self._partial.rfind(b"\n") + 1
        if not end and len(self._partial) >= LINE_LIMIT_BYTES:
            end = len(self._partial)
        if end:
            self._hand_on(end)

    def flush(self) -> None:
        """Hand on an unfinished line: a prompt, a progress bar, or the end."""
        if self._partial:
            self._hand_on(len(self._partial))

    def _hand_on(self, end: int) -> None:
        # Taken out first: if the receiver raises, these bytes are not handed on a second time.
        finished = bytes(self._partial[:end])
        del self._partial[:end]
        self._deliver(finished)
