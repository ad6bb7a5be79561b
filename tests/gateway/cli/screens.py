"""A real pseudo-terminal around a process: keys to press, a screen to wait for."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|\x1b[=>78]")


class Screen:
    """What a process shows on a terminal of its own."""

    def __init__(self, line: list[str], **options) -> None:
        main, side = pty.openpty()
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self._main = main
        self.raw = ""
        self.process = subprocess.Popen(line, stdin=side, stdout=side, stderr=side, start_new_session=True, **options)
        os.close(side)

    @property
    def text(self) -> str:
        """Everything shown so far, without control sequences."""
        return _CONTROL.sub("", self.raw).replace("\r", "")

    def press(self, keys: str) -> None:
        """Type. A prompt that hides what is typed throws away what came before it: wait until it is shown."""
        os.write(self._main, keys.encode())

    def shows(self, wanted: str, *, times: int = 1, within_s: float = 20) -> None:
        """Read until ``wanted`` has been shown so often."""
        deadline = time.monotonic() + within_s
        while self.text.count(wanted) < times:
            left = deadline - time.monotonic()
            if left <= 0 or not self._read(left):
                self.kill()
                raise AssertionError(f"{wanted!r} was not shown {times} times:\n{self.text}")

    def ends(self, within_s: float = 20) -> int:
        """Read until the process has ended; returns its exit code."""
        deadline = time.monotonic() + within_s
        while self._read(max(0.0, deadline - time.monotonic())):
            pass
        code = self.process.wait(timeout=max(0.1, deadline - time.monotonic()))
        os.close(self._main)
        return code

    def kill(self) -> None:
        """End the process if it still runs; for the end of a test that failed."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
            os.close(self._main)

    def _read(self, wait_s: float) -> bool:
        """Take in what there is; false when the process is gone or nothing came in time."""
        if not select.select([self._main], [], [], wait_s)[0]:
            return False
        try:
            data = os.read(self._main, 65536)
        except OSError:
            return False
        self.raw += data.decode("utf-8", "replace")
        return bool(data)
