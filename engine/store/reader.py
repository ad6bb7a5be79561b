"""Reading objects back out of the store, each proved against its id."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

from engine.errors import GitFailed, StoreDamaged
from engine.host.git import Git, GitProcess

COPY_BYTES = 256 * 1024
_HEADER_FIELDS = 3  # "<oid> <type> <size>"; all else says missing


class ObjectReader:
    """Reads blobs one after the other through one ``git cat-file --batch`` and proves each against its id."""

    def __init__(self, process: GitProcess) -> None:
        self._process = process
        self._unread = 0

    def chunks(self, name: str) -> Iterator[bytes]:
        """Yield the content of a blob, by id or ``<tree>:<path>``, in pieces of at most `COPY_BYTES`.

        Raises:
            StoreDamaged: the store does not hold it, cannot read it, or holds other bytes than its id stands for; the
                last one shows only when all pieces have been read.
        """
        oid, size = self._request(name)
        digest = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
        while self._unread > 1:
            piece = self._take(min(self._unread - 1, COPY_BYTES), name)
            digest.update(piece)
            yield piece
        self._take(1, name)
        if digest.hexdigest() != oid:
            raise StoreDamaged(f"object {oid} does not hold what its id stands for")

    def read(self, name: str) -> bytes:
        """Return the whole content of a blob; for small ones.

        Raises:
            StoreDamaged: as `chunks`.
        """
        return b"".join(self.chunks(name))

    def proves(self, oid: str) -> bool:
        """Read an object of any kind to its end; whether the store holds it.

        Raises:
            StoreDamaged: it is there, and cannot be read or is not what its id stands for.
        """
        header = self._ask(oid)
        if len(header) != _HEADER_FIELDS:
            return False
        size = int(header[2])
        digest = hashlib.sha1(b"%s %d\0" % (header[1], size), usedforsecurity=False)
        self._unread = size + 1
        while self._unread > 1:
            digest.update(self._take(min(self._unread - 1, COPY_BYTES), oid))
        self._take(1, oid)
        if digest.hexdigest() != oid:
            raise StoreDamaged(f"object {oid} does not hold what its id stands for")
        return True

    def _request(self, name: str) -> tuple[str, int]:
        header = self._ask(name)
        if len(header) != _HEADER_FIELDS or header[1] != b"blob":
            raise StoreDamaged(f"object {name} is missing")
        self._unread = int(header[2]) + 1  # a newline follows the content
        return header[0].decode("ascii"), int(header[2])

    def _ask(self, name: str) -> list[bytes]:
        """Ask for an object and return how it is announced: id, kind and size, or that it is missing."""
        while self._unread:  # a reader that gave up half-way left the rest in the pipe
            self._take(min(self._unread, COPY_BYTES), name)
        try:
            self._process.stdin.write(name.encode("ascii") + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise StoreDamaged(f"object {name} cannot be read") from error
        line = self._process.stdout.readline()
        if not line:
            raise StoreDamaged(f"object {name} cannot be read")
        return line.split()

    def _take(self, size: int, name: str) -> bytes:
        try:
            piece = self._process.read(size)
        except GitFailed as error:
            raise StoreDamaged(f"object {name} cannot be read ({error.detail})") from error
        self._unread -= len(piece)
        return piece


@contextmanager
def open_reader(git: Git) -> Iterator[ObjectReader]:
    """Open an `ObjectReader`; one process for as many objects as are asked for."""
    with git.open(["cat-file", "--batch"]) as process:
        yield ObjectReader(process)
