"""What every place where commands run has in common: how a command is started, stopped, and what it leaves.

A backend runs one command at a time per call and may be used from several threads. It decides nothing about
checkpoints. Adding one: implement ``Backend`` and register a factory under the entry point group
``takeback.backends`` (see ``registry``).
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """How a command ended and what it wrote, standard output and errors together.

    Exactly one of ``exit_code`` and ``signal`` is set, or neither: the command was stopped before it started, or did
    not end in spite of SIGKILL. Of long output only ``head`` and ``tail`` are kept, with ``cut_bytes`` between them.
    ``duration_s`` is how long it ran until it ended or was made to. ``left_running`` says that processes of the command
    could not be ended.
    """

    exit_code: int | None
    signal: int | None
    timed_out: bool = False
    stopped: bool = False
    head: bytes = b""
    tail: bytes = b""
    cut_bytes: int = 0
    duration_s: float = 0.0
    left_running: bool = False

    @property
    def output(self) -> bytes:
        """What was kept of the output; whole when ``cut_bytes`` is 0."""
        return self.head + self.tail


class StopSignal:
    """Asks a running command to end; thread-safe, and asking twice, or before the start, is fine."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: list[Callable[[], None]] = []
        self._stopped = False

    @property
    def stopped(self) -> bool:
        """Whether it was asked."""
        return self._stopped

    def stop(self) -> None:
        """Ask; returns at once."""
        with self._lock:
            if self._stopped:
                return
            self._stopped = True
            for listener in self._listeners:
                listener()

    @contextmanager
    def listening(self, listener: Callable[[], None]) -> Iterator[None]:
        """Call ``listener`` once when asked, also when that has happened already; it must not block or raise."""
        with self._lock:
            if self._stopped:
                listener()
            self._listeners.append(listener)
        try:
            yield
        finally:
            with self._lock:
                self._listeners.remove(listener)


class Backend(Protocol):
    """A place where commands run."""

    @property
    def kind(self) -> str:
        """The name it is configured by."""
        ...

    @property
    def is_container(self) -> bool:
        """Whether its paths belong to a sandbox, so that no checkpoint covers what its commands do."""
        ...

    def run(
        self,
        command: str,
        cwd: str,
        env: Mapping[str, str],
        timeout_s: float | None,
        on_output: Callable[[bytes], None],
        stop: StopSignal,
    ) -> ProcessResult:
        """Run a shell command in a directory and wait until it, and what it started, has ended.

        Args:
            command: what the shell is given.
            cwd: the absolute directory to start in.
            env: the environment of the command.
            timeout_s: the longest run in seconds; ``None`` for none.
            on_output: is called with whole lines as they come, from the calling thread; it should not block.
            stop: ends the run.

        Raises:
            ToolRefused: the command cannot be started at all; nothing ran.
        """
        ...
