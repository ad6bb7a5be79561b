"""How a path below an open root is reached: name by name, through descriptors, never through a symlink.

Each parent is opened by its own name with ``O_NOFOLLOW`` relative to the one before, so that no symlink,
whenever it appears, leads anywhere else, and the length of the whole path does not matter. Only regular files
and directories are ever opened for reading, so a FIFO never blocks. Nothing here changes anything.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from engine.host.paths import PathUnsafe, display, validate
from engine.host.signatures import Signature

# A parent only has to be searched, not read. O_PATH (Linux) and O_SEARCH (macOS) ask for no more than that.
SEARCH: Final = (
    getattr(os, "O_PATH", getattr(os, "O_SEARCH", os.O_RDONLY)) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
)
LIST: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Place:
    """A path, the open descriptor of its parent, and its name there."""

    path: str
    parts: tuple[str, ...]
    parent: int

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.parts[-1]

    def status(self) -> os.stat_result | None:
        """``lstat`` of the place; ``None`` for nothing."""
        try:
            return os.stat(self.name, dir_fd=self.parent, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def signature(self) -> Signature | None:
        """Sign what stands at the place; ``None`` for nothing."""
        status = self.status()
        return None if status is None else Signature.of(status)


@contextmanager
def opened(name: str, flags: int, parent: int) -> Iterator[int]:
    """Open something by its name in a directory and close it again."""
    descriptor = os.open(name, flags, dir_fd=parent)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def find_place(root: int, path: str) -> Iterator[Place]:
    """Open the parent of a path; ``PathUnsafe`` where a symlink or no directory is in the way."""
    parts = validate(path)
    parent = _walk(root, path, parts[:-1])
    try:
        yield Place(path, parts, parent)
    finally:
        os.close(parent)


@contextmanager
def open_directory(root: int, path: str) -> Iterator[int]:
    """Open a directory for listing; ``""`` is the root."""
    searched = _walk(root, path, validate(path) if path else ())
    try:
        with opened(".", LIST, searched) as descriptor:
            yield descriptor
    finally:
        os.close(searched)


def check_parent(root: int, place: Place) -> None:
    """Check that the parent still is where the path says; ``PathUnsafe`` if it was moved or replaced."""
    try:
        again = _walk(root, place.path, place.parts[:-1])
    except FileNotFoundError:
        again = None
    try:
        moved = again is None or not os.path.sameopenfile(again, place.parent)
    finally:
        if again is not None:
            os.close(again)
    if moved:
        raise PathUnsafe(place.path, "its directory was moved or removed meanwhile")


def open_regular(place: Place) -> int:
    """Open a regular file for reading; the caller closes it. Anything else is ``PathUnsafe``."""
    # Asked before opening, because opening a device can do something, and after, because it may be another
    # one by then.
    _require_regular(place, os.stat(place.name, dir_fd=place.parent, follow_symlinks=False))
    descriptor = open_no_link(place)
    try:
        _require_regular(place, os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def open_no_link(place: Place) -> int:
    """Open what stands at a place for reading, without blocking; a symlink is ``PathUnsafe``."""
    try:
        return os.open(place.name, READ, dir_fd=place.parent)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise PathUnsafe(place.path, "is a symbolic link") from error
        raise


def _require_regular(place: Place, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise PathUnsafe(place.path, "is not a regular file")


def _walk(root: int, path: str, parts: tuple[str, ...]) -> int:
    """Open a directory below the root, one name at a time; the caller closes it."""
    current = os.dup(root)
    try:
        for depth in range(1, len(parts) + 1):
            following = _step(path, parts[:depth], current)
            os.close(current)
            current = following
    except BaseException:
        os.close(current)
        raise
    return current


def _step(path: str, parts: tuple[str, ...], current: int) -> int:
    try:
        return os.open(parts[-1], SEARCH, dir_fd=current)
    except OSError as error:
        if error.errno in {errno.ENOTDIR, errno.ELOOP}:
            raise PathUnsafe(path, f"{display('/'.join(parts))} is a symbolic link or no directory") from error
        raise
