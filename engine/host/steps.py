"""The single steps that a change of a workspace file is made of, each at a ``Place``.

Only ``files`` uses them: it knows their order and checks before each.
"""

import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from engine.host.paths import PathUnsafe
from engine.host.places import LIST, Place, open_no_link, open_regular, opened
from engine.host.signatures import ContentChanged, Signature

TEMP_PREFIX: Final = ".takeback-tmp-"
"""How the names of temporary files begin; whoever walks a workspace passes over them."""

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_CAPABILITIES = "security.capability"
# What file systems say that have no hard links, and what they say that cannot sync a directory.
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
_NO_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EBADF}


def create_temp(place: Place) -> tuple[int, str]:
    """Create an empty file beside a place; return its descriptor, which the caller closes, and its name."""
    name = _temp_name()
    return os.open(name, _CREATE, 0o600, dir_fd=place.parent), name


def create_temp_link(place: Place, target: bytes) -> str:
    """Create a symlink beside a place and return its name."""
    name = _temp_name()
    os.symlink(os.fsdecode(target), name, dir_fd=place.parent)
    return name


def discard(place: Place, temp: str) -> None:
    """Remove a temporary file; one that is gone, or cannot be removed, stays without a word."""
    with suppress(OSError):
        os.unlink(temp, dir_fd=place.parent)


def write_all(descriptor: int, chunk: bytes) -> None:
    """Write every byte; the system may take fewer at a time."""
    rest = memoryview(chunk)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def rename(place: Place, temp: str) -> None:
    """Give a temporary file its real name in one step, whatever has that name now."""
    os.rename(temp, place.name, src_dir_fd=place.parent, dst_dir_fd=place.parent)


def link_exclusively(place: Place, temp: str) -> bool:
    """Add the real name, which fails when something stands there by now; ``False`` without hard links."""
    try:
        os.link(temp, place.name, src_dir_fd=place.parent, dst_dir_fd=place.parent, follow_symlinks=False)
    except FileExistsError:
        raise ContentChanged(place.path, place.signature()) from None
    except OSError as error:
        if error.errno in _NO_LINKS:
            return False
        raise
    return True


@contextmanager
def removed_on_failure(place: Place) -> Iterator[None]:
    """Take a directory that was just made away again when what follows fails."""
    try:
        yield
    except BaseException:
        with suppress(OSError):
            os.rmdir(place.name, dir_fd=place.parent)
        raise


def sync(descriptor: int) -> None:
    """Make what was written durable; on macOS ``fsync`` alone leaves it in the drive's cache (fsync(2))."""
    full = getattr(fcntl, "F_FULLFSYNC", None)
    if full is not None:
        with suppress(OSError):
            fcntl.fcntl(descriptor, full)
            return
    os.fsync(descriptor)


def sync_directory(place: Place) -> None:
    """Make what happened in the directory of a place durable."""
    try:
        with opened(".", LIST, place.parent) as descriptor:
            sync(descriptor)
    except PermissionError:  # a directory that may be searched but not read cannot be synced
        return
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise


def keep_owner(place: Place, descriptor: int) -> None:
    """Give a new file the owner of the file it will replace, where the system allows it."""
    before = place.status()
    if before is None or not stat.S_ISREG(before.st_mode):
        return
    made = os.fstat(descriptor)
    if (before.st_uid, before.st_gid) != (made.st_uid, made.st_gid):
        with suppress(PermissionError):  # only root may give a file away
            os.fchown(descriptor, before.st_uid, before.st_gid)


def keep_attributes(place: Place, descriptor: int) -> None:
    """Give a new file the extended attributes of the file it will replace, access lists among them, where it may.

    A file's capabilities are left out: they were given to another content, and writing to a file takes them away.
    """
    if not hasattr(os, "listxattr"):
        return
    with suppress(OSError, PathUnsafe), os.fdopen(open_regular(place), "rb") as before:
        for name in set(os.listxattr(before.fileno())) - {_CAPABILITIES}:
            with suppress(OSError):  # some are the system's own to set
                os.setxattr(descriptor, name, os.getxattr(before.fileno(), name))


def change_mode(place: Place, mode: int, found: Signature) -> Signature:
    """Change the permission bits of exactly the file or directory that was found; return its signature."""
    try:
        descriptor = open_no_link(place)
    except PermissionError:
        return _change_mode_unread(place, mode, found)
    try:
        _require_same(place, found, os.fstat(descriptor))
        os.fchmod(descriptor, mode)
        return Signature.of(os.fstat(descriptor))
    finally:
        os.close(descriptor)


def _change_mode_unread(place: Place, mode: int, found: Signature) -> Signature:
    """Change the mode of what may not be opened for reading."""
    path_only = getattr(os, "O_PATH", 0)
    if not path_only:
        os.chmod(place.name, mode, dir_fd=place.parent, follow_symlinks=False)
        return place.signature() or found
    with opened(place.name, path_only | os.O_NOFOLLOW | os.O_CLOEXEC, place.parent) as descriptor:
        _require_same(place, found, os.fstat(descriptor))
        # This link leads to the very file that is open, whatever stands at its name by now (proc(5)).
        os.chmod(f"/proc/self/fd/{descriptor}", mode)
        return Signature.of(os.fstat(descriptor))


def _require_same(place: Place, found: Signature, status: os.stat_result) -> None:
    now = Signature.of(status)
    if (found.kind, found.ino, found.dev) != (now.kind, now.ino, now.dev):
        raise ContentChanged(place.path, now)


def _temp_name() -> str:
    return TEMP_PREFIX + secrets.token_hex(8)
