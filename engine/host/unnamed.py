"""Files without a name: what only this process and those that it starts can read, gone with the last of them."""

import os
import tempfile
import weakref


class UnnamedFile:
    """A content in a file that no directory holds; in memory where the system has such files.

    ``descriptor`` is what a process has to be started with to find the file at ``path``.

    Raises:
        OSError: the system cannot hold it.
    """

    def __init__(self, content: bytes) -> None:
        self.descriptor = _make()
        self._close = weakref.finalize(self, os.close, self.descriptor)
        try:
            rest = memoryview(content)
            while rest:
                rest = rest[os.write(self.descriptor, rest) :]
        except BaseException:
            self._close()
            raise

    @property
    def path(self) -> str:
        """Where this process finds it, and whoever was started with the descriptor."""
        return f"/dev/fd/{self.descriptor}"

    def close(self) -> None:
        """Let go of it; at the latest this happens when nobody refers to it any more."""
        self._close()


def _make() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("takeback")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
