"""Places where a command of the agent's and a test wait for each other, so that no test has to guess how long."""

import os
import select
from pathlib import Path


class Waypoint:
    """A named pipe. A command passes it with ``reach`` or stops at it with ``stop_here``."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        # Open at both ends: neither side ever waits for the other to open it.
        self._descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        self.reach = f"echo > {path}"
        self.stop_here = f"read -r _ < {path}"

    def wait(self, within_s: float = 60) -> None:
        """Wait until a command has passed it."""
        assert select.select([self._descriptor], [], [], within_s)[0], "the command did not get there"
        os.read(self._descriptor, 1)

    def let_pass(self) -> None:
        """Let one command that stops here go on."""
        os.write(self._descriptor, b"\n")

    def close(self) -> None:
        """Let go of it."""
        os.close(self._descriptor)
