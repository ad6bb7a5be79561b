"""What backends share whose workspace lies in a place that is found or started once and then kept for a while."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial

from engine.backends.base import ProcessResult, Site, StopSignal
from engine.backends.container import Idleness, inside
from engine.backends.conversation import Channel, Hearing, NotStarted, Order, language, run_elsewhere
from engine.errors import ToolRefused


class KeptBackend(ABC):
    """Runs commands in a container or a sandbox that is kept until it has been idle, or to the end.

    Args:
        kind: what it is configured as.
        site: the workspace, and what the environment of programs is.
        workdir: the workspace's directory inside.
        environment: what commands get in addition.
        idle_s: after how long without use the place is given up; ``None`` for never before the end.
    """

    is_container = True

    def __init__(
        self, kind: str, site: Site, workdir: str, environment: Mapping[str, str], idle_s: float | None
    ) -> None:
        self.kind = kind
        self.workdir = workdir
        self._site = site
        self._environment = environment
        self._idle = Idleness(idle_s, self.close)
        self._lock = threading.Lock()
        self._ours = False

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
        """Run a command there; see ``Backend.run``."""
        added = {**language(env), **self._environment}
        order = Order(command, inside(self._site, self.workdir, cwd), added, keep_background)
        with self._idle.in_use():
            try:
                opening = partial(self._open_channel, stop)
                return run_elsewhere(opening, order, Hearing(on_output), stop, timeout_s)
            except NotStarted as error:
                raise self._explained(error.reason) from error

    @abstractmethod
    def close(self) -> None:
        """Give the place up, if this started it."""

    @abstractmethod
    def _open_channel(self, stop: StopSignal, text: str, mark: str) -> Channel:
        """Start the wrapper there; raises ``NotStarted``, also when it is stopped on the way there."""

    @abstractmethod
    def _explained(self, reason: str) -> ToolRefused:
        """What is said where nothing could be started."""
