"""How far the reading of a workspace has come, told to those who want to hear of it while it goes on."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from engine.model import Workspace

OnReading = Callable[[int, int], None]
"""Called in the reading thread from time to time: how many files of how many have been read. Raises nothing."""


class Readings:
    """Who hears of which workspace; thread-safe. Only where very many files have to be read is anything told."""

    def __init__(self) -> None:
        self._hearers: dict[str, list[OnReading]] = {}
        self._lock = threading.Lock()

    @contextmanager
    def heard(self, workspace: Workspace, hear: OnReading) -> Iterator[None]:
        """Have ``hear`` called until the block ends, whoever it is that reads the workspace meanwhile."""
        with self._lock:
            self._hearers.setdefault(workspace.hash, []).append(hear)
        try:
            yield
        finally:
            with self._lock:
                self._hearers[workspace.hash].remove(hear)
                if not self._hearers[workspace.hash]:
                    del self._hearers[workspace.hash]

    def tell(self, workspace: Workspace, done: int, total: int) -> None:
        """Tell those who hear of a workspace."""
        with self._lock:
            hearers = list(self._hearers.get(workspace.hash, ()))
        for hear in hearers:
            hear(done, total)
