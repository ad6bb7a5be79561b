"""The whole output of a command, in a file, for whoever asked for it: private, bounded, and gone after a while.

The files lie in a directory of Takeback's own, never in a workspace. Each is readable by its owner alone.
"""

import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, Final

from engine.errors import ToolRefused

LARGEST_BYTES: Final = 16 * 1024 * 1024
"""What a file holds at most; of longer output it is the beginning."""

KEPT_S: Final = 24 * 3600.0
"""How long a file is kept."""

_NAME = re.compile(r"output-[0-9a-f]{16}\.txt")


class OutputFile:
    """A file that takes output as it comes; ``cut_bytes`` is how much it had no room for."""

    def __init__(self, name: str, file: BinaryIO, limit_bytes: int) -> None:
        self.name = name
        self.cut_bytes = 0
        self._file = file
        self._room = limit_bytes

    def write(self, data: bytes) -> None:
        """Take the next bytes."""
        kept = data[: self._room]
        self._file.write(kept)
        self._room -= len(kept)
        self.cut_bytes += len(data) - len(kept)


class Outputs:
    """The files of one home."""

    def __init__(self, directory: str, *, limit_bytes: int = LARGEST_BYTES) -> None:
        self._directory = directory
        self._limit_bytes = limit_bytes

    @contextmanager
    def new(self) -> Iterator[OutputFile]:
        """Make a file for as long as the block lasts; one whose block raises is removed."""
        os.makedirs(self._directory, mode=0o700, exist_ok=True)
        name = f"output-{secrets.token_hex(8)}.txt"
        path = os.path.join(self._directory, name)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                yield OutputFile(name, file, self._limit_bytes)
        except BaseException:
            with suppress(FileNotFoundError):
                os.remove(path)
            raise

    def read(self, name: str) -> bytes:
        """Return what a file holds; raises ``ToolRefused`` where there is none (any more)."""
        if _NAME.fullmatch(name):
            with suppress(FileNotFoundError), open(os.path.join(self._directory, name), "rb") as file:
                return file.read()
        raise ToolRefused("the whole output", "is not kept any more; run the command again")

    def expire(self, kept_s: float = KEPT_S) -> int:
        """Remove what is older; return how many files that were."""
        removed = 0
        with suppress(FileNotFoundError):
            for name in os.listdir(self._directory):
                path = os.path.join(self._directory, name)
                with suppress(FileNotFoundError):
                    if _NAME.fullmatch(name) and time.time() - os.lstat(path).st_mtime > kept_s:
                        os.remove(path)
                        removed += 1
        return removed
