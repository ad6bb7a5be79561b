"""Reversing changes over a content that others changed since: three ways, by git's own merge, or not at all.

The base is what a change left, one side what stands now, the other what stood before the change. Only a merge without
any conflict counts; nothing half-merged leaves the scratch directory, and no attribute, driver or filter has a say,
because git merges plain files that belong to no work tree.
"""

import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from functools import cached_property
from types import TracebackType
from typing import Self

from engine.checkpoints.scan import megabytes
from engine.errors import StoreDamaged
from engine.host.git import Git
from engine.model import Entry, EntryKind
from engine.restore.sharing import Step
from engine.store.objects import open_writer
from engine.store.reader import COPY_BYTES, ObjectReader
from engine.upkeep.debris import remove_tree, scratch_name

_BINARY_WITHIN = 8000  # where git itself looks for a NUL byte


class Unmergeable(Exception):
    """A change cannot be reversed over what stands there now; ``why`` ends a sentence about the path."""

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(why)


class Merger:
    """Reverses changes and keeps the results for the store; a context manager that leaves no scratch behind.

    Args:
        git: the store.
        reader: reads the contents.
        base: where the scratch directory is made, and swept by a prune if this process dies.
        limit_bytes: the largest content that a checkpoint could hold.
    """

    def __init__(self, git: Git, reader: ObjectReader, base: str, limit_bytes: int) -> None:
        self._git = git
        self._reader = reader
        self._limit_bytes = limit_bytes
        self._root = os.path.join(base, scratch_name())
        self._made: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if os.path.isdir(self._root):
            remove_tree(self._root)

    def reverse(self, now: Entry | None, steps: Sequence[Step]) -> Entry | None:
        """Return what stands there once these changes have been reversed one by one.

        Raises:
            Unmergeable: one of them cannot be.
            GitFailed: git could not be asked.
        """
        content = now
        for step in steps:
            if not step.known:
                raise Unmergeable("the ledger is too old to tell whose lines are whose")
            try:
                content = self._merge(content, step.after, step.before)
            except OSError as error:
                raise Unmergeable(f"there is no room to merge it ({error.strerror or error})") from error
        return content

    def keep(self, results: Sequence[Entry]) -> None:
        """Write the contents that were made here into the store; no name stands for them yet.

        Raises:
            GitFailed: the store could not take them.
        """
        made = sorted({entry.oid for entry in results if entry.oid is not None and entry.oid in self._made})
        if not made:
            return
        with open_writer(self._git) as writer:
            for oid in made:
                writer.blob(os.path.getsize(self._path(oid)), _pieces(self._path(oid)))

    def _merge(self, ours: Entry | None, base: Entry | None, theirs: Entry | None) -> Entry | None:
        if ours == base:
            return theirs
        if theirs in (base, ours):
            return ours
        if ours is None or base is None or theirs is None:
            raise Unmergeable("it was made or deleted on one side and changed on the other")
        if not ours.kind == base.kind == theirs.kind:
            raise Unmergeable("it is no longer the same kind of thing")
        mode = _merge_modes(ours.mode, base.mode, theirs.mode)
        return Entry(ours.kind, mode, self._merge_contents(ours, base, theirs))

    def _merge_contents(self, ours: Entry, base: Entry, theirs: Entry) -> str | None:
        if ours.oid == base.oid:
            return theirs.oid
        if theirs.oid in (base.oid, ours.oid):
            return ours.oid
        if ours.kind is not EntryKind.FILE or ours.oid is None or base.oid is None or theirs.oid is None:
            raise Unmergeable("links cannot be merged")
        files = [self._fetch(oid) for oid in (ours.oid, base.oid, theirs.oid)]
        if any(_is_binary(path) for path in files):
            raise Unmergeable("it is binary, so it cannot be merged")
        return self._merge_files(*files)

    def _merge_files(self, ours: str, base: str, theirs: str) -> str:
        result = self._path("result")
        shutil.copyfile(ours, result)
        if self._git.answer(["merge-file", "--quiet", result, base, theirs]) != 0:
            raise Unmergeable("the same lines were changed on both sides")
        size = os.path.getsize(result)
        self._require_small(size)
        digest = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
        for piece in _pieces(result):
            digest.update(piece)
        oid = digest.hexdigest()
        os.replace(result, self._path(oid))
        self._made.add(oid)
        return oid

    def _fetch(self, oid: str) -> str:
        """Put a content into the scratch directory and return where."""
        path = self._path(oid)
        if not os.path.exists(path):
            size = 0
            try:
                with open(path, "wb") as stream:
                    for chunk in self._reader.chunks(oid):
                        size += len(chunk)
                        self._require_small(size)
                        stream.write(chunk)
            except StoreDamaged as error:
                os.unlink(path)
                raise Unmergeable("the store no longer holds what stood there in between") from error
            except BaseException:
                os.unlink(path)
                raise
        return path

    def _require_small(self, size: int) -> None:
        if size > self._limit_bytes:
            raise Unmergeable(f"it is larger than {megabytes(self._limit_bytes)}")

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, name)

    @cached_property
    def _directory(self) -> str:
        os.mkdir(self._root, 0o700)
        return self._root


def _merge_modes(ours: int, base: int, theirs: int) -> int:
    if ours == base:
        return theirs
    if theirs in (base, ours):
        return ours
    raise Unmergeable("its permissions were changed on both sides")


def _pieces(path: str) -> Iterator[bytes]:
    with open(path, "rb") as stream:
        while piece := stream.read(COPY_BYTES):
            yield piece


def _is_binary(path: str) -> bool:
    with open(path, "rb") as stream:
        return b"\0" in stream.read(_BINARY_WITHIN)
