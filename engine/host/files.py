"""The one module that changes workspace files.

A file is never written in place: its new content is complete under a temporary name in the same directory, is
synced, then takes the name in one step. So a path holds its old content or the new one, never a mixture, and
other names of the same file (hard links) keep theirs. ``places`` says how a path is reached without symlinks.

Between the last check and the step itself some microseconds remain in which another process can still replace
the file; POSIX has no compare-and-rename. Where nothing may stand, the name is taken by an exclusive step
that has no such window.
"""

import errno
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from types import TracebackType
from typing import BinaryIO, Self

from engine.host import steps
from engine.host.paths import PathUnsafe, resolve_inside, validate
from engine.host.places import (
    LIST,
    SEARCH,
    Place,
    check_parent,
    find_place,
    open_directory,
    open_regular,
    opened,
)
from engine.host.signatures import ANY, ContentChanged, Expected, Signature
from engine.host.steps import TEMP_PREFIX

__all__ = ["ANY", "TEMP_PREFIX", "ContentChanged", "Expected", "Fault", "Signature", "Tree"]

Fault = Callable[[str, str], None]
"""Called with an operation and a path before each step that changes something; tests interfere there."""

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

    def resolve(self, directory: str, named: str) -> str:
        """Turn a name, seen from a directory below the root, into a path; see ``paths.resolve_inside``."""
        return resolve_inside(self.root, os.path.join(self.root, directory), named)

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

    def look_below(self, path: str, without: Collection[str], reading: str) -> None:
        """Nothing has to be learned in advance: a look takes no time here."""

    def contents(self, paths: Sequence[str], limit_bytes: int) -> Iterator[tuple[str, bytes]]:
        """Yield what regular files hold, in the order asked; what is larger or cannot be read is left out."""
        # A directory is opened once for those of its files that follow one another.
        for _, together in groupby(paths, key=os.path.dirname):
            near = list(together)
            try:
                with find_place(self._descriptor, near[0]) as first:
                    for path in near:
                        content = _content(Place(path, validate(path), first.parent), limit_bytes)
                        if content is not None:
                            yield path, content
            except (OSError, PathUnsafe):
                continue

    def write_file(self, path: str, chunks: Iterable[bytes], mode: int, *, expected: Expected = ANY) -> Signature:
        """Put a regular file with this content and these permission bits at a path, or leave it as it is.

        The parents must exist. Owner and extended attributes of a file that is replaced are kept where the system
        allows it.
        """
        with find_place(self._descriptor, path) as place:
            self._check(place, expected)
            self._fault("create", path)
            descriptor, temp = steps.create_temp(place)
            try:
                try:
                    self._fill(place, descriptor, chunks, mode)
                    self._install(place, temp, expected)
                except BaseException:
                    steps.discard(place, temp)
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
            temp = steps.create_temp_link(place, target)
            try:
                made = Signature.of(os.stat(temp, dir_fd=place.parent, follow_symlinks=False))
                self._install(place, temp, expected)
            except BaseException:
                steps.discard(place, temp)
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
                raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), path)
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
            with steps.removed_on_failure(place):
                self._fault("chmod", path)
                with opened(place.name, LIST, place.parent) as descriptor:
                    os.fchmod(descriptor, mode)
            self._sync_directory(place)

    def ensure_parents(self, path: str) -> _Names:
        """Make the missing parents of a path (``0o755`` less the umask); return those made, top first.

        If one cannot be made, those made before it are removed again.
        """
        parts = validate(path)
        made: _Names = []
        above = self.signature("/".join(parts[:-1]))
        if above is not None and above.is_directory:  # as nearly always: one walk, not one for each level
            return made
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
            return steps.change_mode(place, mode, found)

    def _check(self, place: Place, expected: Expected) -> Signature | None:
        """Check that the way to a place and what stands there are as expected; return what stands there."""
        check_parent(self._descriptor, place)
        found = place.signature()
        if not _holds(expected, found):
            raise ContentChanged(place.path, found)
        return found

    def _require(self, place: Place, expected: Expected) -> Signature:
        found = self._check(place, expected)
        if found is None:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), place.path)
        return found

    def _fill(self, place: Place, descriptor: int, chunks: Iterable[bytes], mode: int) -> None:
        for chunk in chunks:
            self._fault("write", place.path)
            steps.write_all(descriptor, chunk)
        self._fault("chmod", place.path)
        steps.keep_owner(place, descriptor)
        steps.keep_attributes(place, descriptor)
        os.fchmod(descriptor, mode)  # last: writing and chown both clear the setuid bit
        self._fault("sync", place.path)
        steps.sync(descriptor)

    def _install(self, place: Place, temp: str, expected: Expected) -> None:
        """Give what has the temporary name its real one."""
        self._fault("install", place.path)
        self._check(place, expected)
        if expected is None and steps.link_exclusively(place, temp):
            steps.discard(place, temp)
        else:
            steps.rename(place, temp)

    def _ensure_directory(self, path: str) -> bool:
        """Make one directory unless it is there; whether it was made."""
        with find_place(self._descriptor, path) as place:
            found = place.signature()
            if found is None:
                self._fault("mkdir", path)
                self._check(place, ANY)
                try:
                    os.mkdir(place.name, 0o755, dir_fd=place.parent)
                except FileExistsError:  # made by somebody else just now: look at what it is
                    return self._ensure_directory(path)
                with steps.removed_on_failure(place):
                    self._sync_directory(place)
                return True
            if not found.is_directory:
                raise PathUnsafe(path, "is a symbolic link or no directory")
            return False

    def _change_mode_of_copy(self, place: Place, mode: int, found: Signature) -> Signature:
        with os.fdopen(open_regular(place), "rb") as source:
            chunks = iter(lambda: source.read(_CHUNK_BYTES), b"")
            return self.write_file(place.path, chunks, mode, expected=found)

    def _sync_directory(self, place: Place) -> None:
        self._fault("sync-directory", place.path)
        steps.sync_directory(place)


def _content(place: Place, limit_bytes: int) -> bytes | None:
    """Read a regular file whole; ``None`` for one that is larger or cannot be read."""
    try:
        with os.fdopen(open_regular(place), "rb") as file:
            content = file.read(limit_bytes + 1)
    except (OSError, PathUnsafe):
        return None
    return content if len(content) <= limit_bytes else None


def _holds(expected: Expected, found: Signature | None) -> bool:
    if isinstance(expected, Signature):
        return expected.same_as(found)
    return expected is ANY or found is None
