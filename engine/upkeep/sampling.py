"""Reading the store's files again, some at a time, so that a disk that rots in silence is found out.

What proves to be broken is doubted from then on: the next capture of a workspace reads it again, and writes it anew
while the workspace still has the content.
"""

import os
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

from engine.errors import StoreDamaged
from engine.store.loose import is_sound_file
from engine.store.object_files import SIZE, ObjectFiles, find_broken_packs, oid_of
from engine.store.opened import Store
from engine.store.reader import ObjectReader, open_reader
from engine.store.stamps import Stamp

MOST_FILES = 2000
MOST_BYTES = 64 * 1024 * 1024
"""How much is read at a time, but for a last file that is larger."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What one look came to: how many files were read, and which are newly seen to be broken, below ``objects``."""

    files: int
    broken: tuple[str, ...]


class Sampling:
    """Goes round the files of one store; each look goes on where the last one ended."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._last = ""
        self._broken: dict[str, Stamp] = {}

    def look(self) -> Sample:
        """Read the files whose turn it is.

        Raises:
            StoreBusy: somebody reclaims space past the bounded wait.
            GitFailed: git could not be asked.
        """
        git = self._store.git
        if not os.path.isdir(git.git_dir):
            return Sample(0, ())
        with self._store.beside("reading objects again"), open_reader(git) as reader:
            files = ObjectFiles().with_new(git.git_dir).files
            read = 0
            broken = []
            for path in self._due(files):
                if not _is_sound(reader, path) and self._broken.get(path) != files[path]:
                    broken.append(path)
                    self._broken[path] = files[path]
                self._last = path
                read += 1
        self._store.doubt(broken)
        return Sample(read, tuple(broken))

    def _due(self, files: Mapping[str, Stamp]) -> list[str]:
        """Return what comes next, round and round, as much as is read at a time."""
        paths = sorted(files)
        begin = bisect_right(paths, self._last)
        due: list[str] = []
        size = 0
        for path in (*paths[begin:], *paths[:begin]):
            if len(due) >= MOST_FILES or size >= MOST_BYTES:
                break
            due.append(path)
            size += files[path][SIZE]
        return due


def _is_sound(reader: ObjectReader, path: str) -> bool:
    git_dir = reader.git.git_dir
    oid = oid_of(path)
    if oid is None:
        return not find_broken_packs(git_dir, [path])
    if is_sound_file(git_dir, oid):
        return True
    try:
        # Too large to be read in one piece; or broken, and in a pack besides, which does as well.
        return reader.proves(oid)
    except StoreDamaged:
        return False
