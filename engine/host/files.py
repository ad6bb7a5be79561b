"""The one module that changes workspace files.

A file is never written in place: its new content is complete under a temporary name in the same directory, is
synced, then takes the name in one step. So a path holds its old content or the new one, never a mixture, and
other names of the same file (hard links) keep theirs. ``places`` says how a path is reached without symlinks.

Between the last check and the step itself some microseconds remain in which another process can still replace
the file; POSIX has no compare-and-rename. Where nothing may stand, the name is taken by an exclusive step
that has no such window.
"""

import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import TracebackType
from typing import BinaryIO, Final, Self

from engine.host.paths import PathUnsafe, validate
from engine.host.places import (
    LIST,
    SEARCH,
    Place,
    check_parent,
    find_place,
    open_directory,
    open_no_link,
    open_regular,
    opened,
)
from engine.host.signatures import ANY, ContentChanged, Expected, Signature

__all__ = ["ANY", "TEMP_PREFIX", "ContentChanged", "Expected", "Fault", "Signature", "Tree"]

TEMP_PREFIX: Final = ".takeback-tmp-"
"""How the names of temporary files begin; whoever walks a workspace passes over them."""

Fault = Callable[[str, str], None]
"""Called with an operation and a path before each step that changes something; tests interfere there."""

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# What file systems say that have no hard links, and what they say that cannot sync a directory.
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
_NO_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EBADF}
_CHUNK_BYTES = 1024 * 1024

_Names = list[str]
_Entries = list[tuple[str, Signature]]


def _no_fault(operation: str, path: str) -> None:
    """Let every step go ahead."""


class Tree:
    """A directory tree, anchored by an open descriptor of its root; safe to use from several threads.

    Paths are relative to the root and pass ``paths.validate``; ``list``, ``entries`` and ``signature`` also
    take ``""``, the root. All raise ``PathUnsafe`` for a path that is malformed, that a symlink or something
    else than a directory stands in the way of, or whose directory moved during the operation;
    ``ContentChanged`` where ``expected`` does not hold; and let ``OSError`` pass with nothing half-done and
    no temporary file left. Only an error of the very last step, making a change durable (``sync-directory``),
    comes when the change stands.
    """

    def __init__(self, root: str, descriptor: int, fault: Fault = _no_fault) -> None:
        self.root = root
        self._descriptor = descriptor
        self._fault = fault

    @classmethod
    def open(cls, root: str, fault: Fault = _no_fault) -> Self:
        """Open a directory by its real path; ``NotADirectoryError`` or ``FileNotFoundError`` without one."""
        real = os.path.realpath(root)
        return cls(real, os.open(real, SEARCH), fault)

    def close(self) -> None:
        """Give the descriptor back; closing twice is fine."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def signature(self, path: str) -> Signature | None:
        """Sign what stands at a path; ``None`` for nothing, also where a parent is a symlink."""
        if not path:
            return Signature.of(os.fstat(self._descriptor))
        validate(path)  # a malformed path is a mistake to report, not an absent file
        try:
            with find_place(self._descriptor, path) as place:
                return place.signature()
        except (FileNotFoundError, PathUnsafe):
            return None
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:  # a name that cannot exist
                return None
            raise

    def open_file(self, path: str) -> BinaryIO:
        """Open a regular file for reading; anything else is ``PathUnsafe``, nothing ``FileNotFoundError``."""
        with find_place(self._descriptor, path) as place:
            return os.fdopen(open_regular(place), "rb")

    def read_link(self, path: str) -> bytes:
        """Return the target of a symlink."""
        with find_place(self._descriptor, path) as place:
            return os.fsencode(os.readlink(place.name, dir_fd=place.parent))

    def list(self, path: str) -> _Names:
        """Return the names in a directory, sorted."""
        with open_directory(self._descriptor, path) as descriptor:
            return sorted(os.listdir(descriptor))

    def entries(self, path: str) -> _Entries:
        """Return names and signatures of what a directory holds, sorted by name: one walk for all of them."""
        found = []
        with open_directory(self._descriptor, path) as descriptor, os.scandir(descriptor) as names:
            for entry in names:
                with suppress(FileNotFoundError):  # removed between the two calls
                    found.append((entry.name, Signature.of(entry.stat(follow_symlinks=False))))
        return sorted(found, key=lambda item: item[0])

    def write_file(
        self, path: str, chunks: Iterable[bytes], mode: int, *, expected: Expected = ANY
    ) -> Signature:
        """Put a regular file with this content and these permission bits at a path, or leave it as it is.

        The parents must exist. The owner of a file that is replaced is kept where the system allows it.
        """
        with find_place(self._descriptor, path) as place:
            self._check(place, expected)
            self._fault("create", path)
            temp = _temp_name()
            descriptor = os.open(temp, _CREATE, 0o600, dir_fd=place.parent)
            try:
                try:
                    self._fill(place, descriptor, chunks, mode)
                    self._install(place, temp, expected)
                except BaseException:
                    _discard(place, temp)
                    raise
                self._sync_directory(place)
                # By descriptor: what stands at the path by now may be somebody else's.
                return Signature.of(os.fstat(descriptor))
            finally:
                os.close(descriptor)

    def write_link(self, path: str, target: bytes, *, expected: Expected = ANY) -> Signature:
        """Put a symlink at a path, or leave it as it is. The parents must exist."""
        with find_place(self._descriptor, path) as place:
            self._check(place, expected)
            self._fault("symlink", path)
            temp = _temp_name()
            os.symlink(os.fsdecode(target), temp, dir_fd=place.parent)
            try:
                made = Signature.of(os.stat(temp, dir_fd=place.parent, follow_symlinks=False))
                self._install(place, temp, expected)
            except BaseException:
                _discard(place, temp)
                raise
            self._sync_directory(place)
            now = place.signature()  # again, because taking its name changed its ctime
            return now if now is not None and (now.ino, now.dev) == (made.ino, made.dev) else made

    def remove_file(self, path: str, *, expected: Expected = ANY) -> None:
        """Remove a file or a symlink; a FIFO, socket or device only when ``expected`` is its signature."""
        with find_place(self._descriptor, path) as place:
            self._fault("unlink", path)
            found = self._require(place, expected)
            if found.is_directory:
                raise _os_error(errno.EISDIR, path)
            if expected is ANY and not (found.is_file or found.is_link):
                raise PathUnsafe(path, "is neither a file nor a symbolic link")
            os.unlink(place.name, dir_fd=place.parent)
            self._sync_directory(place)

    def make_directory(self, path: str, mode: int) -> None:
        """Make one directory with these permission bits; ``FileExistsError`` if something is there."""
        with find_place(self._descriptor, path) as place:
            self._fault("mkdir", path)
            self._check(place, ANY)
            os.mkdir(place.name, 0o700, dir_fd=place.parent)
            try:
                self._fault("chmod", path)
                with opened(place.name, LIST, place.parent) as descriptor:
                    os.fchmod(descriptor, mode)
            except BaseException:
                with suppress(OSError):
                    os.rmdir(place.name, dir_fd=place.parent)
                raise
            self._sync_directory(place)

    def ensure_parents(self, path: str) -> _Names:
        """Make the missing parents of a path (``0o755`` less the umask); return those made, top first.

        If one cannot be made, those made before it are removed again.
        """
        parts = validate(path)
        made: _Names = []
        try:
            for depth in range(1, len(parts)):
                parent = "/".join(parts[:depth])
                if self._ensure_directory(parent):
                    made.append(parent)
        except BaseException:
            for parent in reversed(made):
                with suppress(OSError, PathUnsafe):
                    self.remove_directory(parent)
            raise
        return made

    def remove_directory(self, path: str) -> bool:
        """Remove an empty directory; ``False`` when it is not empty."""
        with find_place(self._descriptor, path) as place:
            self._fault("rmdir", path)
            self._check(place, ANY)
            try:
                os.rmdir(place.name, dir_fd=place.parent)
            except OSError as error:
                if error.errno in {errno.ENOTEMPTY, errno.EEXIST}:
                    return False
                raise
            self._sync_directory(place)
            return True

    def change_mode(self, path: str, mode: int, *, expected: Expected = ANY) -> Signature:
        """Change the permission bits of a file or directory, never those of what a symlink points to.

        A file with other names (hard links) is replaced by a copy: the others may lie outside the tree.
        """
        with find_place(self._descriptor, path) as place:
            self._fault("chmod", path)
            found = self._require(place, expected)
            if not (found.is_file or found.is_directory):
                raise PathUnsafe(path, "is neither a file nor a directory")
            status = place.status()
            if found.is_file and status is not None and status.st_nlink > 1:
                return self._change_mode_of_copy(place, mode, found)
            return _change_mode_at(place, mode, found)

    def _check(self, place: Place, expected: Expected) -> Signature | None:
        """Check that the way to a place and what stands there are as expected; return what stands there."""
        check_parent(self._descriptor, place)
        found = place.signature()
        if isinstance(expected, Signature):
            holds = expected.same_as(found)
        else:
            holds = expected is ANY or found is None
        if not holds:
            raise ContentChanged(place.path, found)
        return found

    def _require(self, place: Place, expected: Expected) -> Signature:
        found = self._check(place, expected)
        if found is None:
            raise _os_error(errno.ENOENT, place.path)
        return found

    def _fill(self, place: Place, descriptor: int, chunks: Iterable[bytes], mode: int) -> None:
        for chunk in chunks:
            self._fault("write", place.path)
            rest = memoryview(chunk)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
        self._fault("chmod", place.path)
        _keep_owner(place, descriptor)
        os.fchmod(descriptor, mode)  # last: writing and chown both clear the setuid bit
        self._fault("sync", place.path)
        _sync(descriptor)

    def _install(self, place: Place, temp: str, expected: Expected) -> None:
        """Give what has the temporary name its real one."""
        self._fault("install", place.path)
        self._check(place, expected)
        if expected is None and _link_exclusively(place, temp):
            _discard(place, temp)
        else:
            os.rename(temp, place.name, src_dir_fd=place.parent, dst_dir_fd=place.parent)

    def _ensure_directory(self, path: str) -> bool:
        """Make one directory unless it is there; whether it was made."""
        with find_place(self._descriptor, path) as place:
            found = place.signature()
            if found is None:
                self._fault("mkdir", path)
                self._check(place, ANY)
                with suppress(FileExistsError):  # made by somebody else: then look at what it is
                    os.mkdir(place.name, 0o755, dir_fd=place.parent)
                    self._sync_directory(place)
                    return True
                found = place.signature()
            if found is None or not found.is_directory:
                raise PathUnsafe(path, "is a symbolic link or no directory")
            return False

    def _change_mode_of_copy(self, place: Place, mode: int, found: Signature) -> Signature:
        with os.fdopen(open_regular(place), "rb") as source:
            chunks = iter(lambda: source.read(_CHUNK_BYTES), b"")
            return self.write_file(place.path, chunks, mode, expected=found)

    def _sync_directory(self, place: Place) -> None:
        self._fault("sync-directory", place.path)
        try:
            with opened(".", LIST, place.parent) as descriptor:
                _sync(descriptor)
        except PermissionError:  # a directory that may be searched but not read cannot be synced
            return
        except OSError as error:
            if error.errno not in _NO_SYNC:
                raise


def _temp_name() -> str:
    return TEMP_PREFIX + secrets.token_hex(8)


def _discard(place: Place, temp: str) -> None:
    with suppress(OSError):
        os.unlink(temp, dir_fd=place.parent)


def _link_exclusively(place: Place, temp: str) -> bool:
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


def _sync(descriptor: int) -> None:
    """Make what was written durable; on macOS ``fsync`` alone leaves it in the drive's cache (fsync(2))."""
    full = getattr(fcntl, "F_FULLFSYNC", None)
    if full is not None:
        with suppress(OSError):
            fcntl.fcntl(descriptor, full)
            return
    os.fsync(descriptor)


def _keep_owner(place: Place, descriptor: int) -> None:
    before = place.status()
    if before is None or not stat.S_ISREG(before.st_mode):
        return
    made = os.fstat(descriptor)
    if (before.st_uid, before.st_gid) != (made.st_uid, made.st_gid):
        with suppress(PermissionError):  # only root may give a file away
            os.fchown(descriptor, before.st_uid, before.st_gid)


def _change_mode_at(place: Place, mode: int, found: Signature) -> Signature:
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


def _os_error(code: int, path: str) -> OSError:
    return OSError(code, os.strerror(code), path)
