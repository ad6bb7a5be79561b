"""One running process: following its output, its end, and the end of everything it started."""

import fcntl
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

from engine.backends.base import ProcessResult, StopSignal
from engine.backends.output import Capture, Lines
from engine.backends.processes import ProcessGroup

LINGER_S: Final = 0.2
"""How long what a command left in the background may go on by itself: ``> >(tee log)`` ends within that."""

SETTLE_S: Final = 2.0
"""How long what is being detached may take to get there."""

GIVE_UP_S: Final = 5.0
"""What outlives SIGKILL for so long hangs in the kernel or belongs to another user."""

# Left to itself, so that nobody has to wait for its end.
_DRAIN: Final = "exec 3<&0; cat <&3 >/dev/null 2>&1 &"
_POLL_S = 0.01
_PROMPT_S = 0.2  # an unfinished line is handed on after this silence
_READ_BYTES = 64 * 1024
_PIPE_BYTES = 64 * 1024  # what a pipe holds where the system does not say


class Running:
    """Owns a process, the pipe it writes to, and what it started; as a context manager it leaves nothing running.

    A thread waits for the process and wakes the reader through a pipe, as a stop does, so that a single ``select``
    waits for output, end and stop alike. When the block is left by an exception, everything is killed.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        group: ProcessGroup,
        output: int,
        capture: Capture,
        lines: Lines,
    ) -> None:
        self._process = process
        self._group = group
        self._output = output
        self._capture = capture
        self._lines = lines
        self._started_s = time.monotonic()
        self._duration_s = 0.0
        self._timed_out = False
        self._stopped = False
        self._left_running = False
        self._detached: tuple[str, ...] = ()
        self._exited = threading.Event()
        self._lock = threading.Lock()
        self._woken, self._waker = os.pipe()
        self._selector = selectors.DefaultSelector()
        for descriptor in (self._output, self._woken):
            os.set_blocking(descriptor, False)
            self._selector.register(descriptor, selectors.EVENT_READ)
        os.set_blocking(self._waker, False)
        threading.Thread(target=self._await_exit, name="command-exit", daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._group.end(signal.SIGKILL)
            self._exited.wait(GIVE_UP_S)
        self._selector.close()
        with self._lock:  # the waiting thread, and a late stop, may still want to wake us
            os.close(self._waker)
            self._waker = -1
        os.close(self._woken)
        os.close(self._output)

    @property
    def ended_by_itself(self) -> bool:
        """Whether the process ended without being stopped or running out of time."""
        return self._exited.is_set() and not (self._stopped or self._timed_out)

    def wake(self) -> None:
        """Make the reader look round; may be called from any thread."""
        with self._lock, suppress(BlockingIOError):  # a full pipe wakes it as well
            if self._waker >= 0:
                os.write(self._waker, b"!")

    def follow(self, stop: StopSignal, timeout_s: float | None) -> None:
        """Read output until the process ends, is to be stopped, or has run for ``timeout_s`` seconds."""
        while not self._exited.is_set():
            self._duration_s = time.monotonic() - self._started_s
            if stop.stopped:
                self._stopped = True
                return
            if timeout_s is not None and self._duration_s >= timeout_s:
                self._timed_out = True
                return
            self._read(None if timeout_s is None else timeout_s - self._duration_s)
        self._duration_s = time.monotonic() - self._started_s

    def keep_detached(self, started: Sequence[str]) -> None:
        """Let live on what the command detached, once it has become that; its later output is taken and lost."""
        self._drain()
        deadline_s = time.monotonic() + SETTLE_S
        while self._group.settling(started) and time.monotonic() < deadline_s:
            self._read_for(_POLL_S)
        self._detached = self._group.keep_detached()

    def end_all(self, grace_s: float) -> None:
        """End whatever is left of the command: wait a moment after a natural end, then SIGTERM, then SIGKILL."""
        if self.ended_by_itself:
            self._drain()
            if self._gone_within(LINGER_S):
                return
        self._group.end(signal.SIGTERM)
        if self._gone_within(grace_s):
            return
        deadline_s = time.monotonic() + GIVE_UP_S
        while time.monotonic() < deadline_s:
            self._group.end(signal.SIGKILL)  # again and again: what is just being forked escapes a single one
            if self._gone_within(10 * _POLL_S):
                return
        self._left_running = True

    def result(self) -> ProcessResult:
        """Hand on the rest of the output and say how it went."""
        self._drain()
        if self._detached:
            _drain_for_good(self._output)
        self._lines.flush()
        head, tail, cut_bytes = self._capture.kept()
        code = self._process.returncode if self._exited.is_set() else None
        return ProcessResult(
            exit_code=code if code is not None and code >= 0 else None,
            signal=-code if code is not None and code < 0 else None,
            timed_out=self._timed_out,
            stopped=self._stopped,
            head=head,
            tail=tail,
            cut_bytes=cut_bytes,
            duration_s=self._duration_s,
            left_running=self._left_running,
            detached=self._detached,
        )

    def _await_exit(self) -> None:
        self._process.wait()
        self._exited.set()
        self.wake()

    def _gone_within(self, patience_s: float) -> bool:
        """Go on reading until nothing of the command is left; whether that came in time."""
        deadline_s = time.monotonic() + patience_s
        while not (self._exited.is_set() and not self._group.alive()):
            if time.monotonic() >= deadline_s:
                return False
            self._read_for(_POLL_S)
        return True

    def _read_for(self, duration_s: float) -> None:
        deadline_s = time.monotonic() + duration_s
        while (left_s := deadline_s - time.monotonic()) > 0:
            self._read(left_s)

    def _read(self, wait_s: float | None) -> None:
        """Wait for something to happen, and take what came."""
        if self._lines.waiting:
            wait_s = _PROMPT_S if wait_s is None else min(wait_s, _PROMPT_S)
        ready = self._selector.select(wait_s)
        if not ready:
            self._lines.flush()
        for key, _ in ready:
            if key.fd == self._output:
                self._take()
            else:
                os.read(self._woken, _READ_BYTES)

    def _take(self) -> int:
        """Read once; return how many bytes came."""
        try:
            data = os.read(self._output, _READ_BYTES)
        except BlockingIOError:
            return 0
        if not data:
            with suppress(KeyError):  # at the end already
                self._selector.unregister(self._output)
        self._capture.add(data)
        self._lines.add(data)
        return len(data)

    def _drain(self) -> None:
        """Take what the process wrote before it ended: at most what the pipe holds, however much others still write."""
        left = _pipe_bytes(self._output)
        while left > 0 and (taken := self._take()):
            left -= taken


def _drain_for_good(output: int) -> None:
    """Have somebody read a pipe as long as there are writers: one without a reader would end them (SIGPIPE)."""
    os.set_blocking(output, True)  # it would end at the first pause
    subprocess.run(["/bin/sh", "-c", _DRAIN], stdin=output, cwd="/", env={"PATH": os.defpath}, check=True)


def _pipe_bytes(descriptor: int) -> int:
    ask = getattr(fcntl, "F_GETPIPE_SZ", None)
    return _PIPE_BYTES if ask is None else fcntl.fcntl(descriptor, ask)
