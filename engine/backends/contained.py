"""A backend over a container that a program of this machine starts and enters, whichever program that is.

One container per workspace, started when first needed and removed when the backend is closed; what was left behind by a
process that died is removed before the next one is started. One that somebody else started is used as it is.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, Protocol

from engine.backends.base import Executed, Site, StopSignal
from engine.backends.client import ClientChannel, call_client, complaint, shell_arguments
from engine.backends.conversation import NotStarted
from engine.backends.kept import KeptBackend
from engine.backends.waiting import holding, refuse_stopped
from engine.backends.wrapper import Verdict, killing
from engine.errors import ToolRefused

CALL_S: Final = 60.0
"""How long a call of the program may take: reading and writing files among them."""

END_S: Final = 10.0
"""How long removing what was begun may take, in seconds; somebody waits who has stopped it."""


class Runtime(Protocol):
    """A program that runs containers, as one workspace uses it; every method may raise ``NotStarted``.

    ``stop`` cuts short what takes long; nothing of a start that was cut short is left.
    """

    @property
    def title(self) -> str:
        """What the program is called."""
        ...

    @property
    def name(self) -> str:
        """What the container is called."""
        ...

    def sweep(self, stop: StopSignal | None) -> None:
        """Remove what processes that are gone have left behind."""
        ...

    def attach(self, stop: StopSignal | None) -> str | None:
        """Return what the running container of that name goes by; ``None`` when there is none."""
        ...

    def start(self, stop: StopSignal | None) -> str:
        """Start it, with the workspace's directory in it, and return what it goes by."""
        ...

    def runs(self, container: str) -> bool:
        """Whether it still runs."""
        ...

    def remove(self, container: str) -> None:
        """Remove it with all that is in it."""
        ...

    def entering(self, container: str) -> list[str]:
        """Return the words that, with a program's own after them, run it inside; standard input goes along."""
        ...


class ContainedBackend(KeptBackend):
    """Runs commands and reaches files in a workspace's container; ``runtime`` is the program behind it."""

    def __init__(
        self,
        kind: str,
        runtime: Runtime,
        site: Site,
        workdir: str,
        environment: Mapping[str, str],
        idle_s: float | None,
    ) -> None:
        super().__init__(kind, site, workdir, environment, idle_s)
        self._runtime = runtime
        self._container: str | None = None

    def execute(self, arguments: Sequence[str], stdin: bytes = b"") -> Executed:
        """Run a short program in the container; see ``Sandbox.execute``."""
        with self._idle.in_use():
            try:
                done = self._call(*self._runtime.entering(self._ensure()), *arguments, stdin=stdin)
            except NotStarted as error:
                raise self._explained(error.reason) from error
            if done.exit_code and self._is_lost():
                raise self._vanished()
            return done

    def close(self) -> None:
        """Remove the container, if this started it."""
        self._idle.cancel()
        with self._lock:
            container, self._container = self._container, None
            if container is not None and self._ours:
                with suppress(NotStarted):
                    self._runtime.remove(container)

    def _open_channel(self, stop: StopSignal, text: str, mark: str) -> ClientChannel:
        words = self._runtime.entering(self._ensure(stop))

        def kill(verdict: Verdict) -> bool:
            if verdict.group is None:
                return False
            try:
                return self._call(*words, "/bin/sh", "-c", killing(verdict.group, mark)).exit_code == 0
            except NotStarted:
                return False

        return ClientChannel([*words, *shell_arguments()], self._site.environment, text, kill)

    def _ensure(self, stop: StopSignal | None = None) -> str:
        """Return a running container, started if there is none; raises ``NotStarted``."""
        with holding(self._lock, stop):
            if self._container is None:
                self._runtime.sweep(stop)
                found = self._runtime.attach(stop)
                self._ours = found is None
                self._container = self._runtime.start(stop) if found is None else found
            refuse_stopped(stop)
            return self._container

    def _is_lost(self) -> bool:
        """Whether the container that was used does not run any more; it is forgotten then."""
        with self._lock:
            if self._container is None or self._runtime.runs(self._container):
                return False
            self._container = None
            return True

    def _explained(self, reason: str) -> ToolRefused:
        with suppress(NotStarted):
            if self._is_lost():
                return self._vanished()
        return ToolRefused(f"container ({self._runtime.title})", f"{reason}. Nothing ran")

    def _vanished(self) -> ToolRefused:
        return ToolRefused(
            f"container ({self._runtime.title})",
            f"the container {self._runtime.name!r} is gone or was stopped meanwhile, with every file in it that no "
            "mount holds; the next command starts another. Nothing ran",
        )

    def _call(self, *words: str, stdin: bytes = b"") -> Executed:
        return call_client(words, self._site.environment, stdin=stdin, timeout_s=CALL_S)


def require(done: Executed, what: str = "") -> None:
    """Raise ``NotStarted`` with what a program said, unless it succeeded."""
    if done.exit_code:
        raise NotStarted(f"{what}: {complaint(done)}" if what else complaint(done))
