"""Loose objects: files of one object each, read and put in place without starting git.

What was written last lies in such files, and reading one takes a hundredth of the time that a process takes to start.
What cannot be had from them may still be in a pack, so ``None`` means "ask git" and never "it is not there".
"""

import hashlib
import os
import zlib
from typing import NamedTuple

from engine.host import durable

_COMPRESSION = 1  # as the store's own configuration has it
_LONGEST_HEADER_BYTES = 64
_MOST_BYTES = 4 * 1024 * 1024  # what is larger is better read in pieces


class LooseObject(NamedTuple):
    """What an object is, and what it holds."""

    kind: str
    content: bytes


def object_id(kind: str, content: bytes) -> str:
    """Return git's id of an object."""
    header = b"%s %d\0" % (kind.encode("ascii"), len(content))
    return hashlib.sha1(header + content, usedforsecurity=False).hexdigest()


def object_path(git_dir: str, oid: str) -> str:
    """Return where the file of an object is."""
    return os.path.join(git_dir, "objects", oid[:2], oid[2:])


def read_loose(git_dir: str, oid: str) -> LooseObject | None:
    """Return an object, proved against its id; ``None`` if it has no sound file of its own, or a large one.

    Raises:
        OSError: there is a file, and it cannot be read.
    """
    try:
        with open(object_path(git_dir, oid), "rb") as stream:
            packed = stream.read(_MOST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        return _unpack(packed, oid)
    except (zlib.error, ValueError):
        return None


def _unpack(packed: bytes, oid: str) -> LooseObject | None:
    inflate = zlib.decompressobj()
    head = inflate.decompress(packed, _LONGEST_HEADER_BYTES)
    header, _nul, begin = head.partition(b"\0")
    kind, size = header.split(b" ")
    if not size.isdigit():
        return None
    length = int(size)
    if len(packed) > _MOST_BYTES or length > _MOST_BYTES:
        return None
    # One byte more than it should hold shows that it holds more.
    content = begin + inflate.decompress(inflate.unconsumed_tail, length + 1)
    if hashlib.sha1(header + b"\0" + content, usedforsecurity=False).hexdigest() != oid:
        return None
    return LooseObject(kind.decode("ascii"), content)


def is_sound_file(git_dir: str, oid: str) -> bool:
    """Whether an object has a file of its own from which it can be had; of a large one that is not known."""
    try:
        return read_loose(git_dir, oid) is not None
    except OSError:
        return False


def write_loose(git_dir: str, kind: str, content: bytes) -> str:
    """Put an object's file in place durably, whatever stands there, and return its id.

    Raises:
        OSError: what stood there still does.
    """
    whole = b"%s %d\0" % (kind.encode("ascii"), len(content)) + content
    oid = hashlib.sha1(whole, usedforsecurity=False).hexdigest()
    path = object_path(git_dir, oid)
    directory = os.path.dirname(path)
    if not os.path.isdir(directory):
        os.makedirs(directory, 0o700, exist_ok=True)
        durable.sync_directory(os.path.dirname(directory))
    durable.write_bytes(path, zlib.compress(whole, _COMPRESSION))
    return oid
