"""Reading objects back out of the store, each proved against its id."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from engine.errors import EngineError, GitFailed, StoreDamaged
from engine.host.git import Git, GitProcess
from engine.store.loose import LooseObject, read_loose

COPY_BYTES = 256 * 1024
_ID = re.compile(r"[0-9a-f]{40}")
_HEADER_FIELDS = 3  # "<oid> <type> <size>"; all else says missing


class ObjectReader:
    """Reads objects one after the other and proves each against its id.

    What has a sound file of its own is read from there; for all else one ``git cat-file --batch`` is started when the
    first such object is asked for, and another one where it ended over an object that it could not read. ``git`` is the
    store it reads.
    """

    def __init__(self, git: Git) -> None:
        self.git = git
        self._running = ExitStack()
        self._process: GitProcess | None = None
        self._unread = 0

    def close(self) -> None:
        """End the process, if there is one."""
        self._process, self._unread = None, 0
        self._running.close()

    def chunks(self, name: str) -> Iterator[bytes]:
        """Yield the content of a blob, by id or ``<tree>:<path>``, in pieces of at most `COPY_BYTES`.

        Raises:
            StoreDamaged: the store does not hold it, cannot read it, or holds other bytes than its id stands for; the
                last one shows only when all pieces have been read.
        """
        return self._chunks(name, "blob")

    def read(self, name: str, kind: str = "blob") -> bytes:
        """Return the whole content of an object of a kind; for small ones.

        Raises:
            StoreDamaged: as `chunks`.
        """
        return b"".join(self._chunks(name, kind))

    def proves(self, oid: str) -> bool:
        """Read an object of any kind to its end; whether the store holds it.

        Raises:
            StoreDamaged: it is there, and cannot be read or is not what its id stands for.
        """
        if self._loose(oid) is not None:
            return True
        header = self._ask(oid)
        if len(header) != _HEADER_FIELDS:
            return False
        for _piece in self._take_object(oid, header):
            pass
        return True

    def _chunks(self, name: str, kind: str) -> Iterator[bytes]:
        held = self._loose(name)
        if held is not None:
            if held.kind != kind:
                raise StoreDamaged(f"object {name} is missing")
            for start in range(0, len(held.content), COPY_BYTES):
                yield held.content[start : start + COPY_BYTES]
            return
        header = self._ask(name)
        if len(header) != _HEADER_FIELDS or header[1] != kind:
            self._unread = int(header[2]) + 1 if len(header) == _HEADER_FIELDS else 0
            raise StoreDamaged(f"object {name} is missing")
        yield from self._take_object(name, header)

    def _loose(self, name: str) -> LooseObject | None:
        if not _ID.fullmatch(name):
            return None
        try:
            return read_loose(self.git.git_dir, name)
        except OSError:
            return None  # git says why, or has it elsewhere

    def _take_object(self, name: str, header: Sequence[str]) -> Iterator[bytes]:
        """Yield the content of the object that was just announced, and prove it."""
        oid, kind, size = header
        digest = hashlib.sha1(f"{kind} {size}\0".encode("ascii"), usedforsecurity=False)
        self._unread = int(size) + 1  # a newline follows the content
        while self._unread > 1:
            piece = self._take(min(self._unread - 1, COPY_BYTES), name)
            digest.update(piece)
            yield piece
        self._take(1, name)
        if digest.hexdigest() != oid:
            raise StoreDamaged(f"object {oid} does not hold what its id stands for")

    def _ask(self, name: str) -> list[str]:
        """Ask git for an object and return how it is announced: id, kind and size, or that it is missing."""
        while self._unread:  # a reader that gave up half-way left the rest in the pipe
            self._take(min(self._unread, COPY_BYTES), name)
        process = self._open()
        try:
            process.stdin.write(name.encode("ascii") + b"\n")
            process.stdin.flush()
        except BrokenPipeError as error:
            raise self._given_up(process, name) from error
        line = process.stdout.readline()
        if not line:
            raise self._given_up(process, name)
        process.advance()
        return line.decode("ascii", "replace").split()

    def _given_up(self, process: GitProcess, name: str) -> EngineError:
        """Return what is wrong where git ended: that it took too long says nothing of the store."""
        process.kill()
        process.wait()
        failure = process.failure()
        self.close()
        return failure if failure.timed_out else StoreDamaged(f"object {name} cannot be read")

    def _open(self) -> GitProcess:
        if self._process is None:
            self._process = self._running.enter_context(self.git.open(["cat-file", "--batch"]))
        return self._process

    def _take(self, size: int, name: str) -> bytes:
        try:
            piece = self._open().read(size)
        except GitFailed as error:
            self.close()
            if error.timed_out:
                raise
            raise StoreDamaged(f"object {name} cannot be read ({error.detail})") from error
        self._unread -= len(piece)
        return piece


@contextmanager
def open_reader(git: Git) -> Iterator[ObjectReader]:
    """Open an `ObjectReader`; one process at most for as many sound objects as are asked for."""
    reader = ObjectReader(git)
    try:
        yield reader
    finally:
        reader.close()
