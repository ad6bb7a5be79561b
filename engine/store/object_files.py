"""The files that hold the store's objects: whether they are still the ones that were seen to be sound.

A file that keeps its inode, size and times holds what it held, short of a disk that rots in silence. So what was proved
once need not be read again before each command: a stat of each file shows which ones have to be.
"""

import hashlib
import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from engine.store.rows import RACY_NS
from engine.store.stamps import Stamp

SIZE = 1
"""Where a file's stamp has its size in bytes."""

_PACKS = "pack"
_PACK_ENDINGS = (".pack", ".idx")
_FAN_OUT_CHARACTERS = 2  # of the name of a directory of loose objects
_MOST_AT_ONCE = 1500  # files; where there are more, those in directories that did not change take turns
_CHUNK_BYTES = 1024 * 1024
_DIGEST_BYTES = 20
_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class ObjectFiles:
    """The stamps of files that hold objects, by path below the store's ``objects``, as they were at one moment.

    ``directories`` are the stamps of the directories they are in; one that may yet change unseen has none.
    """

    files: Mapping[str, Stamp] = field(default_factory=dict)
    directories: Mapping[str, Stamp | None] = field(default_factory=dict)

    def changed(self, git_dir: str, turn: int = 0) -> frozenset[str]:
        """Return those that are gone by now, or not the same any more.

        Of very many only a part is looked at, another one each ``turn``, besides what is in directories that changed.
        """
        with _opened_objects(git_dir) as objects:
            if objects is None:
                return frozenset(self.files)
            looked_at = self._to_look_at(objects, turn)
            return frozenset(path for path in looked_at if _file_stamp(objects, path) != self.files[path])

    def _to_look_at(self, objects: int, turn: int) -> Iterable[str]:
        parts = len(self.files) // _MOST_AT_ONCE + 1
        if parts == 1:
            return self.files
        due = {name for number, name in enumerate(sorted(self.directories)) if number % parts == turn % parts}
        due |= {name for name, stamp in self.directories.items() if stamp != _directory_stamp(objects, name)}
        return [path for path in self.files if path.partition("/")[0] in due]

    def with_new(self, git_dir: str) -> "ObjectFiles":
        """Add the files that are new by now; what was there keeps its stamp, so that a change since still shows."""
        with _opened_objects(git_dir) as objects:
            return self if objects is None else self._with_new(objects)

    def _with_new(self, objects: int) -> "ObjectFiles":
        files, directories = dict(self.files), dict(self.directories)
        for name in os.listdir(objects):
            if name != _PACKS and len(name) != _FAN_OUT_CHARACTERS:
                continue
            stamp = _directory_stamp(objects, name)
            if stamp is not None and stamp == self.directories.get(name):
                continue
            directories[name] = stamp
            for path in _iter_files(objects, name):
                found = files.get(path) or _file_stamp(objects, path)
                if found is not None:
                    files[path] = found
        return ObjectFiles(files, directories)

    def without(self, paths: Iterable[str]) -> "ObjectFiles":
        """Leave out files, to be found as new ones."""
        left_out = frozenset(paths)
        if not left_out:
            return self
        files = {path: stamp for path, stamp in self.files.items() if path not in left_out}
        directories = dict(self.directories) | {path.partition("/")[0]: None for path in left_out}
        return ObjectFiles(files, directories)


@contextmanager
def _opened_objects(git_dir: str) -> Iterator[int | None]:
    try:
        descriptor = os.open(os.path.join(git_dir, "objects"), _DIRECTORY_FLAGS)
    except (FileNotFoundError, NotADirectoryError):
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _iter_files(objects: int, directory: str) -> Iterator[str]:
    try:
        descriptor = os.open(directory, _DIRECTORY_FLAGS, dir_fd=objects)
    except OSError:
        return
    try:
        names = os.listdir(descriptor)
    finally:
        os.close(descriptor)
    for name in names:
        if directory != _PACKS or name.endswith(_PACK_ENDINGS):
            yield f"{directory}/{name}"


def _file_stamp(objects: int, path: str) -> Stamp | None:
    try:
        status = os.stat(path, dir_fd=objects, follow_symlinks=False)
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _directory_stamp(objects: int, name: str) -> Stamp | None:
    """Return the stamp of a directory about to be listed, ``None`` if it changed so lately that it may again."""
    now_ns = time.time_ns()
    try:
        status = os.stat(name, dir_fd=objects, follow_symlinks=False)
    except OSError:
        return None
    if max(status.st_mtime_ns, status.st_ctime_ns) >= now_ns - RACY_NS:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_ctime_ns


def oid_of(path: str) -> str | None:
    """Return the id of a loose object, ``None`` for a file of a pack."""
    directory, _slash, name = path.partition("/")
    return None if directory == _PACKS else directory + name


def find_broken_packs(git_dir: str, paths: Iterable[str]) -> frozenset[str]:
    """Return those files of packs that do not end with the digest of what is in them (gitformat-pack), or are gone."""
    objects = os.path.join(git_dir, "objects")
    return frozenset(path for path in paths if not _ends_with_digest(os.path.join(objects, path)))


def _ends_with_digest(path: str) -> bool:
    try:
        with open(path, "rb") as stream:
            left = os.fstat(stream.fileno()).st_size - _DIGEST_BYTES
            digest = hashlib.sha1(usedforsecurity=False)
            while left > 0 and (chunk := stream.read(min(left, _CHUNK_BYTES))):
                digest.update(chunk)
                left -= len(chunk)
            return left == 0 and stream.read() == digest.digest()
    except OSError:
        return False
