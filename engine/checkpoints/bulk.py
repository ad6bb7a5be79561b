"""Reading very many files for a capture: each once, by two threads, its content on its way into a pack meanwhile.

Few files are only read; their contents are written later by whoever makes the commit. A content that the store has
already is not packed again. A large file goes into the pack piece by piece, others in batches, so that what is in
memory at one time is bounded whatever the workspace holds.
"""

import hashlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Self

from engine.checkpoints.reading import Outcome, Outcomes, Sizes, hash_content, read_directory, read_files
from engine.host.git import Git
from engine.store.known import KnownObjects
from engine.store.packing import PackEntry, PackWriter, pack_object
from engine.store.readings import OnReading

LEAST_FILES = 200
"""From how many files on a pack of their own takes less time than telling git of each."""

LARGE_BYTES = 1024 * 1024
"""A larger file is never held in memory as a whole."""

_THREADS = 2  # the least that any machine has; a third finds Python itself in its way
_BATCH_FILES = 128
_BATCH_BYTES = 2 * 1024 * 1024
_AHEAD = 4  # batches that are read or waiting to be taken


@dataclass(slots=True)
class _Batch:
    """Files to be read by one thread in one go."""

    sizes: dict[str, list[str]] = field(default_factory=dict)
    files: int = 0
    size: int = 0

    def add(self, directory: str, name: str, size: int) -> None:
        self.sizes.setdefault(directory, []).append(name)
        self.files += 1
        self.size += size

    @property
    def is_full(self) -> bool:
        return self.files >= _BATCH_FILES or self.size >= _BATCH_BYTES


@dataclass(frozen=True, slots=True)
class _Batched:
    """What came of a batch, and the contents that the store does not have."""

    outcomes: list[tuple[str, Outcome]]
    entries: list[PackEntry]


class BulkReader:
    """Reads the files of one capture; what it packs is in the store once `install` is done, or never.

    Args:
        git: the store.
        tell: told how far it has come.
        restless: the files do not keep still, so each content is packed as it is read: how few there are, and that the
            store may have it, do not count.
    """

    def __init__(self, git: Git, tell: OnReading, *, restless: bool = False) -> None:
        self._git = git
        self._tell = tell
        self._restless = restless
        self._pack: PackWriter | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pack is not None:
            self._pack.close()

    @property
    def packed(self) -> frozenset[str]:
        """The contents that are packed, by id."""
        return frozenset() if self._pack is None else self._pack.oids

    def pack(self) -> PackWriter:
        """Return the pack, begun if there is none yet, for more that belongs to the capture.

        Raises:
            StorageFailed: it cannot be begun.
        """
        if self._pack is None:
            self._pack = PackWriter(self._git.git_dir)
        return self._pack

    def install(self) -> None:
        """Make what is packed a durable part of the store.

        Raises:
            StorageFailed: it is not.
        """
        if self._pack is not None:
            self._pack.install()

    def read(self, root: int, sizes: Sizes, limit_bytes: int) -> Outcomes:
        """Read files below an open root.

        Raises:
            StorageFailed: the pack cannot be written.
        """
        total = sum(map(len, sizes.values()))
        if total < LEAST_FILES and not self._restless:
            return read_files(root, sizes, limit_bytes)
        known = None if self._restless else KnownObjects(self._git)
        return self._read_many(_Filling(self.pack(), known, root, limit_bytes), sizes, total)

    def _read_many(self, filling: "_Filling", sizes: Sizes, total: int) -> Outcomes:
        done = 0
        self._tell(0, total)
        for outcomes in filling.read(sizes):
            done += len(outcomes)
            yield from outcomes
            self._tell(done, total)


@dataclass(frozen=True, slots=True)
class _Filling:
    """Reads files into a pack, but for the contents that are known already."""

    pack: PackWriter
    known: KnownObjects | None
    root: int
    limit_bytes: int

    def read(self, sizes: Sizes) -> Iterator[list[tuple[str, Outcome]]]:
        """Yield what came of the files, batch by batch."""
        waiting: deque[Future[_Batched]] = deque()
        with ThreadPoolExecutor(_THREADS, "takeback-reading") as pool:
            for batch in _batches(sizes):
                if batch.size > LARGE_BYTES and batch.files == 1:
                    yield self._read_large(batch)
                    continue
                waiting.append(pool.submit(self._read_batch, batch.sizes))
                if len(waiting) > _AHEAD:
                    yield self._take(waiting.popleft())
            while waiting:
                yield self._take(waiting.popleft())

    def _read_batch(self, names: Mapping[str, Iterable[str]]) -> _Batched:
        """Read and compress; runs in a thread of the pool."""
        contents: dict[str, bytes] = {}
        outcomes: list[tuple[str, Outcome]] = []
        take = partial(_gather, contents)
        for directory, inside in names.items():
            outcomes += read_directory(self.root, directory, inside, self.limit_bytes, take)
        known = self._find_known(contents)
        new = [pack_object("blob", oid, content) for oid, content in contents.items() if oid not in known]
        return _Batched(outcomes, new)

    def _take(self, future: "Future[_Batched]") -> list[tuple[str, Outcome]]:
        batched = future.result()
        self.pack.add(batched.entries)
        return batched.outcomes

    def _read_large(self, batch: _Batch) -> list[tuple[str, Outcome]]:
        def take(size: int, chunks: Iterator[bytes]) -> str | None:
            return self.pack.stream(size, chunks, lambda oid: not self._find_known([oid]))

        ((directory, names),) = batch.sizes.items()
        return list(read_directory(self.root, directory, names, self.limit_bytes, take))

    def _find_known(self, oids: Iterable[str]) -> frozenset[str]:
        """Return those that need not be packed."""
        return frozenset() if self.known is None else self.known.find(oids)


def _batches(sizes: Sizes) -> Iterator[_Batch]:
    """Divide files into batches; a large one has one of its own."""
    batch = _Batch()
    for directory, inside in sizes.items():
        for name, size in inside.items():
            if size > LARGE_BYTES:
                alone = _Batch()
                alone.add(directory, name, size)
                yield alone
                continue
            batch.add(directory, name, size)
            if batch.is_full:
                yield batch
                batch = _Batch()
    if batch.files:
        yield batch


def _gather(contents: dict[str, bytes], size: int, chunks: Iterator[bytes]) -> str | None:
    """Keep a content under its id; one that has grown large meanwhile is only hashed."""
    if size > LARGE_BYTES:
        return hash_content(size, chunks)
    pieces, left = [], size
    for chunk in chunks:
        pieces.append(chunk)
        left -= len(chunk)
        if left < 0:
            return None
    if left:
        return None
    content = b"".join(pieces)
    digest = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    digest.update(content)
    oid = digest.hexdigest()
    contents[oid] = content
    return oid
