"""Rehearsing a restore: a checkpoint is put into an empty scratch directory, and what stands there is compared.

Nothing of the workspace is touched or even looked at. Every name is reached as a restore reaches it, through
descriptors and never through a symlink; nothing is synced, because nothing of it stays.
"""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from engine.checkpoints.manifest import MODES_PATH, Manifest, decode_modes
from engine.errors import EngineError
from engine.host.paths import PathUnsafe, display
from engine.host.places import LIST, SEARCH, find_place, opened
from engine.model import Entry, EntryKind
from engine.store.layout import RESERVED
from engine.store.objects import list_tree
from engine.store.opened import Store
from engine.store.reader import COPY_BYTES, ObjectReader, open_reader
from engine.upkeep.debris import remove_tree, scratch_name

_MOST_PROBLEMS = 20
_WRITABLE_DIRECTORY = 0o700


@dataclass(slots=True)
class Rehearsal:
    """What was put back and what was not as the checkpoint says; ``problems`` name paths."""

    files: int = 0
    size_bytes: int = 0
    problems: list[str] = field(default_factory=list)


def rehearse(store: Store, commit: str) -> Rehearsal:
    """Put a checkpoint into a scratch directory below the base, compare bytes and permission bits, and remove it.

    Raises:
        OSError: the scratch directory cannot take it, which says nothing of the checkpoint.
        EngineError, ValueError: the checkpoint cannot be read.
    """
    with open_reader(store.git) as reader:
        listing = list_tree(store.git, commit)
        modes = listing.get(MODES_PATH)
        manifest = decode_modes(reader.read(modes[1]) if modes else None)
        entries = {
            path: entry
            for path, (mode, oid) in listing.items()
            if not path.startswith(f"{RESERVED}/") and (entry := manifest.entry(path, mode, oid)) is not None
        }
        with _scratch(store.layout.base) as root:
            return _Rehearsing(root, reader, manifest).run(entries)


@contextmanager
def _scratch(base: str) -> Iterator[int]:
    path = os.path.join(base, scratch_name())
    os.mkdir(path, 0o700)
    try:
        descriptor = os.open(path, SEARCH)
        try:
            yield descriptor
        finally:
            os.close(descriptor)
    finally:
        remove_tree(path)


class _Rehearsing:
    """One checkpoint in one empty directory."""

    def __init__(self, root: int, reader: ObjectReader, manifest: Manifest) -> None:
        self._root = root
        self._reader = reader
        self._manifest = manifest
        self._result = Rehearsal()

    def run(self, entries: dict[str, Entry]) -> Rehearsal:
        directories = sorted({parent for path in entries for parent in _parents(path)} | self._manifest.bare)
        for path in directories:
            with self._judged(path), find_place(self._root, path) as place:
                os.mkdir(place.name, _WRITABLE_DIRECTORY, dir_fd=place.parent)
        for path, entry in entries.items():
            with self._judged(path):
                self._put(path, entry)
        self._compare_names({*directories, *(p for p, e in entries.items() if e.kind is not EntryKind.REPOSITORY)})
        for path in reversed(directories):  # from the deepest: a read-only one must not stand in the way
            with self._judged(path):
                self._finish_directory(path)
        return self._result

    @contextmanager
    def _judged(self, path: str) -> Iterator[None]:
        """Turn what goes wrong with one path into a problem; a scratch directory that is full is nobody's fault."""
        try:
            yield
        except PathUnsafe as error:
            self._problem(path, error.reason)
        except FileExistsError:
            self._problem(path, "it has the name of another file here")
        except EngineError as error:
            self._problem(path, str(error))

    def _problem(self, path: str, what: str) -> None:
        if len(self._result.problems) < _MOST_PROBLEMS:
            self._result.problems.append(f"{display(path)}: {what}")

    def _put(self, path: str, entry: Entry) -> None:
        if entry.kind is EntryKind.SYMLINK:
            self._put_link(path, entry)
        elif entry.kind is EntryKind.FILE:
            self._put_file(path, entry)
        self._result.files += 1

    def _put_link(self, path: str, entry: Entry) -> None:
        target = self._reader.read(entry.oid or "")
        with find_place(self._root, path) as place:
            os.symlink(target, os.fsencode(place.name), dir_fd=place.parent)
            if os.fsencode(os.readlink(place.name, dir_fd=place.parent)) != target:
                self._problem(path, "the link does not lead where it should")

    def _put_file(self, path: str, entry: Entry) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with find_place(self._root, path) as place:
            descriptor = os.open(place.name, flags, 0o600, dir_fd=place.parent)
        with os.fdopen(descriptor, "w+b") as stream:
            for chunk in self._reader.chunks(entry.oid or ""):
                stream.write(chunk)
                self._result.size_bytes += len(chunk)
            stream.flush()
            os.fchmod(descriptor, entry.mode)
            status = os.fstat(descriptor)
            stream.seek(0)
            digest = hashlib.sha1(b"blob %d\0" % status.st_size, usedforsecurity=False)
            while chunk := stream.read(COPY_BYTES):
                digest.update(chunk)
        if digest.hexdigest() != entry.oid:
            self._problem(path, "its bytes came out different")
        self._compare_mode(path, status.st_mode, entry.mode)

    def _finish_directory(self, path: str) -> None:
        wanted = self._manifest.directory(path).mode
        with find_place(self._root, path) as place, opened(place.name, LIST, place.parent) as descriptor:
            os.fchmod(descriptor, wanted)
            self._compare_mode(path, os.fstat(descriptor).st_mode, wanted)

    def _compare_mode(self, path: str, found: int, wanted: int) -> None:
        if found & 0o7777 != wanted:
            self._problem(path, f"its permission bits are {found & 0o7777:o}, not {wanted:o}")

    def _compare_names(self, wanted: set[str]) -> None:
        """Compare what stands there with what should, so that nothing is missing and nothing is too much."""
        found = set(self._walk("", self._root))
        for path in sorted(wanted ^ found):
            self._problem(path, "it is missing" if path in wanted else "it should not be there")

    def _walk(self, prefix: str, directory: int) -> Iterator[str]:
        with opened(".", LIST, directory) as descriptor, os.scandir(descriptor) as listing:
            for entry in sorted(listing, key=lambda item: item.name):
                path = f"{prefix}{entry.name}"
                yield path
                if entry.is_dir(follow_symlinks=False):
                    with opened(entry.name, LIST, descriptor) as below:
                        yield from self._walk(f"{path}/", below)


def _parents(path: str) -> Iterator[str]:
    parent = path.rpartition("/")[0]
    while parent:
        yield parent
        parent = parent.rpartition("/")[0]
