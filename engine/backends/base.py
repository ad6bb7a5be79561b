"""What every place where commands run has in common: how a command is started, stopped, and what it leaves.

A backend runs one command at a time per call and may be used from several threads. It decides nothing about
checkpoints. Adding one: implement ``Backend``, or ``Sandbox`` where paths are not the host's (``container`` has what
those have in common), and register a factory under the entry point group ``takeback.backends`` (see ``registry``).
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """How a command ended and what it wrote, standard output and errors together.

    Exactly one of ``exit_code`` and ``signal`` is set, or neither: the command was stopped before it started, or did
    not end in spite of SIGKILL. Of long output only ``head`` and ``tail`` are kept, with ``cut_bytes`` between them.
    ``duration_s`` is how long it ran until it ended or was made to. ``left_running`` says that processes of the command
    could not be ended. ``detached`` are processes that live on as the command asked (``nohup``, ``setsid``), each its
    number and command line. ``lost`` says how the connection to it broke; whether it ended is not known then.
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
    detached: tuple[str, ...] = ()
    lost: str = ""

    @property
    def output(self) -> bytes:
        """What was kept of the output; whole when ``cut_bytes`` is 0."""
        return self.head + self.tail


@dataclass(frozen=True, slots=True)
class Site:
    """What a backend may know of where it is used.

    ``root`` is the workspace on the host, ``hash`` its name in the store. ``private`` is a directory of Takeback's own
    for what a backend has to keep, made when needed. ``environment`` is that of programs which the backend itself calls
    (ssh, docker), and all of it; a command gets its own.
    """

    root: str
    hash: str
    private: str
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Executed:
    """How a short program in a sandbox ended, and what it wrote."""

    exit_code: int
    output: bytes
    errors: bytes


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
        *,
        keep_background: bool = False,
    ) -> ProcessResult:
        """Run a shell command in a directory and wait until it, and what it started, has ended.

        Args:
            command: what the shell is given.
            cwd: the absolute directory to start in, as the host knows it.
            env: the environment of a command on the host; elsewhere only language and terminal are taken from it.
            timeout_s: the longest run in seconds; ``None`` for none.
            on_output: is called with whole lines as they come, from the calling thread; it should not block.
            stop: ends the run.
            keep_background: let live on what the command itself detaches, and name it.

        Raises:
            ToolRefused: the command cannot be started at all; nothing ran.
        """
        ...

    def close(self) -> None:
        """Give back what it holds: a connection, a container that it started. It may be used again afterwards."""
        ...


@runtime_checkable
class Sandbox(Backend, Protocol):
    """A backend whose paths are its own, so that files are read and written through it as well."""

    @property
    def workdir(self) -> str:
        """The absolute path of the workspace inside."""
        ...

    def execute(self, arguments: Sequence[str], stdin: bytes = b"") -> Executed:
        """Run a short program inside, as the commands' user, to its end; the file tools work by it.

        Raises:
            ToolRefused: it cannot be started; nothing ran.
        """
        ...
