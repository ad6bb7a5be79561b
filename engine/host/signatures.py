"""What stands at a path, in a form that tells whether something else stands there later.

``files`` hands signatures out and takes them back as ``expected``; nothing here touches the file system.
"""

import os
import stat
from dataclasses import dataclass
from enum import Enum
from typing import Final, Self

from engine.host.paths import display


class _Anything(Enum):
    ANY = "anything"


ANY: Final = _Anything.ANY
"""``expected=ANY``: whatever stands there now may be replaced or removed."""


@dataclass(frozen=True, slots=True)
class Signature:
    """What ``lstat`` says of one path: enough to notice that something else stands there now.

    ``kind`` is ``st_mode & S_IFMT``, ``mode`` the permission bits (``0o7777``).
    """

    kind: int
    mode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    ino: int
    dev: int

    @classmethod
    def of(cls, status: os.stat_result) -> Self:
        """Read it out of a stat result."""
        return cls(
            kind=stat.S_IFMT(status.st_mode),
            mode=stat.S_IMODE(status.st_mode),
            size=status.st_size,
            mtime_ns=status.st_mtime_ns,
            ctime_ns=status.st_ctime_ns,
            ino=status.st_ino,
            dev=status.st_dev,
        )

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file."""
        return self.kind == stat.S_IFREG

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link."""
        return self.kind == stat.S_IFLNK

    @property
    def is_directory(self) -> bool:
        """Whether it is a directory."""
        return self.kind == stat.S_IFDIR

    def same_as(self, other: "Signature | None") -> bool:
        """Whether nothing changed since; what happens inside a directory does not count for the directory."""
        if other is None or not (self.is_directory and other.is_directory):
            return self == other
        return (self.mode, self.ino, self.dev) == (other.mode, other.ino, other.dev)


Expected = Signature | _Anything | None
"""What has to stand at a path for a change to go ahead; ``None``: nothing."""


class ContentChanged(Exception):
    """Something else stands at a path than expected; it was left alone. ``found`` is ``None`` for nothing."""

    def __init__(self, path: str, found: Signature | None) -> None:
        self.path = path
        self.found = found
        what = "is gone" if found is None else "was changed"
        super().__init__(f"{display(path)}: {what} meanwhile; it was left as it is")
