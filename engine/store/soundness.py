"""Whether the store can give back what it seems to have, and writing anew what it cannot.

git takes an object that it finds for a sound one: it never writes it again, whatever a power loss or a broken disk made
of its file. So what was there before is proved before a checkpoint relies on it, and a loose file of the same content,
put in place of a broken one or beside a broken pack, mends it for everything that needs it.
"""

import mmap
import os
from bisect import bisect_left
from collections.abc import Iterable

from engine.errors import GitFailed, StoreDamaged
from engine.host.git import Git
from engine.store.loose import write_loose
from engine.store.objects import missing_objects
from engine.store.reader import ObjectReader, open_reader

_FAN_OUT_AT = 8  # behind the signature and the version of a pack's index (gitformat-pack)
_IDS_AT = _FAN_OUT_AT + 256 * 4
_OID_BYTES = 20


def find_known(git: Git, oids: Iterable[str], *, loose: bool = True) -> frozenset[str]:
    """Return those ids that the store has a file or a pack's entry for, whatever these are worth.

    With ``loose`` false a file of an object's own is not enough.
    """
    wanted = set(oids)
    found = find_loose(git, wanted) if loose else set()
    for index in _pack_indexes(git):
        found |= _listed(index, wanted - found)
    return frozenset(found)


def find_loose(git: Git, oids: Iterable[str]) -> set[str]:
    """Return those ids that have a file of their own, whatever it is worth."""
    names: dict[str, set[str]] = {}
    found = set()
    for oid in oids:
        directory = oid[:2]
        if directory not in names:
            names[directory] = _names(os.path.join(git.git_dir, "objects", directory))
        if oid[2:] in names[directory]:
            found.add(oid)
    return found


def _names(directory: str) -> set[str]:
    try:
        return set(os.listdir(directory))
    except (FileNotFoundError, NotADirectoryError):
        return set()


def _pack_indexes(git: Git) -> list[str]:
    directory = os.path.join(git.git_dir, "objects", "pack")
    names = _names(directory)
    indexes = [name for name in names if name.endswith(".idx") and f"{name.removesuffix('.idx')}.pack" in names]
    return [os.path.join(directory, name) for name in indexes]


def _listed(path: str, oids: set[str]) -> set[str]:
    """Return those ids that a pack's index lists."""
    try:
        with open(path, "rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as index:
            return {oid for oid in oids if _lists(index, bytes.fromhex(oid))}
    except (OSError, ValueError):
        return set()  # a torn index is none to git either


def _lists(index: mmap.mmap, oid: bytes) -> bool:
    fan_out = _FAN_OUT_AT + oid[0] * 4
    low = int.from_bytes(index[fan_out - 4 : fan_out], "big") if oid[0] else 0
    high = int.from_bytes(index[fan_out : fan_out + 4], "big")

    def at(number: int) -> bytes:
        start = _IDS_AT + number * _OID_BYTES
        return index[start : start + _OID_BYTES]

    position = bisect_left(range(low, high), oid, key=at) + low
    return position < high and at(position) == oid


def find_unsound(git: Git, oids: Iterable[str], reader: ObjectReader | None = None) -> frozenset[str]:
    """Return those ids whose objects the store cannot give back: each is read to its end and hashed.

    Raises:
        GitFailed: git could not be asked.
    """
    if reader is not None:
        return frozenset(oid for oid in sorted(set(oids)) if not _is_sound(reader, oid))
    with open_reader(git) as own:
        return find_unsound(git, oids, own)


def _is_sound(reader: ObjectReader, oid: str) -> bool:
    try:
        return reader.proves(oid)
    except StoreDamaged:
        return False


def find_spoiled(git: Git, oids: Iterable[str], broken_packs: Iterable[str] = ()) -> frozenset[str]:
    """Return those ids that the store lacks, or has a broken file for; what lies within a sound pack is not read.

    ``broken_packs`` are the files of packs that are not sound, by path below the store's ``objects``.

    Raises:
        GitFailed: git could not be asked.
    """
    wanted = set(oids)
    missing = frozenset(missing_objects(git, wanted))
    doubtful = find_loose(git, wanted)
    for path in broken_packs:
        index = os.path.join(git.git_dir, "objects", f"{os.path.splitext(path)[0]}.idx")
        doubtful |= _listed(index, wanted)
    return missing | find_unsound(git, doubtful - missing)


def has_all_trees(git: Git, tree: str) -> bool:
    """Whether every directory of a tree can be read.

    Raises:
        GitFailed: git ran out of time.
    """
    try:
        git.run(["ls-tree", "-r", "-d", "-z", "--name-only", tree])
    except GitFailed as error:
        if error.timed_out:
            raise
        return False
    return True


def write_anew(git: Git, kind: str, content: bytes) -> str:
    """Put an object's file in place, whatever stands there, and return its id.

    Raises:
        OSError: what stood there still does.
    """
    return write_loose(git.git_dir, kind, content)
