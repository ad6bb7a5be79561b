"""The object files of the store: how many there are, and what each drop of a checkpoint would free."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from engine.host.git import Git
from engine.store.layout import Layout

_LONG_TIMEOUT_S = 1800.0
_FAN_OUT = 2  # loose objects lie in directories named after the first two digits of their id
_BATCH = 20_000
_KEPT = -1
# A packed object also has an entry in the pack's index: its id, a checksum, an offset, and one in the reverse index.
INDEX_ENTRY_BYTES = 32
"""What a packed object takes beside its content."""


@dataclass(frozen=True, slots=True)
class Bulk:
    """How the objects are kept; a store that was just reclaimed has one pack and nothing loose."""

    loose: int = 0
    loose_bytes: int = 0
    packs: int = 0

    @property
    def compact(self) -> bool:
        """Whether reclaiming again could change nothing."""
        return self.loose == 0 and self.packs <= 1


def read_bulk(layout: Layout) -> Bulk:
    """Count loose objects and packs without opening any."""
    root = os.path.join(layout.store, "objects")
    loose = loose_bytes = packs = 0
    for directory in _names(root):
        path = os.path.join(root, directory)
        if directory == "pack":
            packs = sum(name.endswith(".pack") for name in _names(path))
        elif len(directory) == _FAN_OUT:
            count, size = _files(path)
            loose += count
            loose_bytes += size
    return Bulk(loose, loose_bytes, packs)


def _names(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _files(path: str) -> tuple[int, int]:
    count = size = 0
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                size += entry.stat(follow_symlinks=False).st_size
                count += 1
    except (FileNotFoundError, NotADirectoryError):
        pass  # packed meanwhile
    return count, size


def freed_by(
    git: Git, kept: Iterable[str], drops: Sequence[Iterable[str]], *, with_kept: bool = False
) -> tuple[list[int], int]:
    """Return the bytes that each drop frees when those before it in the list have been dropped.

    An object is freed by the last drop that still holds it, and never while anything kept does. So the walk starts
    with what is kept, then goes through the drops from the last to the first, and an object counts for the one that
    it is met at first. One walk answers for all drops. What a delta against a dropped object costs when it has to be
    stored whole is not known before it is done, so the answer can be too high, not too low.

    Args:
        git: the store.
        kept: commits that stay.
        drops: the commits of each drop, first drop first.
        with_kept: also return what all that is kept takes (else 0), which has to look at every object.

    Raises:
        GitFailed: an object is missing or cannot be read.
    """
    owner: dict[str, int] = dict.fromkeys(kept, _KEPT)
    for number in range(len(drops) - 1, -1, -1):
        for commit in drops[number]:
            owner.setdefault(commit, number)
    totals = [0] * (len(drops) + 1)  # what is kept is the last one, number -1
    if not with_kept and all(number == _KEPT for number in owner.values()):
        return totals[:-1], 0
    walked = (found for found in walk_objects(git, owner) if with_kept or found[0] != _KEPT)
    while batch := list(islice(walked, _BATCH)):
        for (number, _oid, _path), size in zip(batch, _sizes(git, [oid for _, oid, _ in batch]), strict=True):
            totals[number] += size + INDEX_ENTRY_BYTES
    return totals[:-1], totals[-1]


def walk_objects(git: Git, owner: Mapping[str, int]) -> Iterator[tuple[int, str, str]]:
    """Yield every object that these commits hold, once: the owner of the first commit that does, its id, its path.

    The path is where it was met; commits and their root have none.

    Raises:
        GitFailed: an object is missing or cannot be read.
    """
    arguments = ["rev-list", "--objects", "--in-commit-order", "--no-walk=unsorted", "--stdin"]
    if not owner:
        return
    with git.open(arguments, timeout_s=_LONG_TIMEOUT_S) as process:
        # rev-list reads all of its input before it writes a line, so neither side can wait for the other.
        process.stdin.write("".join(f"{commit}\n" for commit in owner).encode("ascii"))
        process.stdin.close()
        number = _KEPT
        for line in process.stdout:
            oid = line[:40].decode("ascii")
            number = owner.get(oid, number)
            yield number, oid, line[41:-1].decode("utf-8", "surrogateescape")
        process.finish()


def _sizes(git: Git, oids: Sequence[str]) -> list[int]:
    stdin = "".join(f"{oid}\n" for oid in oids).encode("ascii")
    out = git.run(["cat-file", "--batch-check=%(objectsize:disk)"], stdin=stdin, timeout_s=_LONG_TIMEOUT_S)
    return [int(line) for line in out.split(b"\n") if line]
