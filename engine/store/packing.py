"""Writing very many blobs at once: into a pack of their own with its index, without a process and with few syncs.

Contents are compressed lightly and whole; the next prune that reclaims space keeps what comes later as differences from
them. Until `install` the pack is a temporary file that git does not see and a prune sweeps.

Order that matters in a crash:

1. the pack is complete and durable under a temporary name;
2. its index is;
3. the index takes its name: without its pack git passes over it, and its next gc sweeps it;
4. the pack takes its name, from where on the blobs are in the store;
5. both names are durable.

The formats are gitformat-pack(5): pack version 2, index version 2.
"""

import hashlib
import os
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from engine.errors import StorageFailed
from engine.host import durable

_PACK_HEADER = struct.Struct(">4sII")
_INDEX_HEADER = struct.pack(">4sI", b"\377tOc", 2)
_VERSION = 2
_BLOB = 3
_FIRST_SIZE_BITS = 4  # of a blob's size in the first byte of its entry, then seven in each
_FAN_OUT = 256
_FAR = 1 << 31  # where an offset needs eight bytes, in a table of their own

_LEVEL = 4  # half-way between the fastest and the usual level: a twentieth smaller than the former at a quarter more
_SMALL_BYTES = 8192
# What is this small needs no larger window, and setting up the usual one takes longer than compressing what is in it.
_SMALL_WINDOW_BITS = 13
_SMALL_MEMORY = 6


class PackEntry(NamedTuple):
    """A blob as a pack holds it."""

    oid: str
    data: bytes


class _Written(NamedTuple):
    oid: bytes
    crc: int
    offset: int


def pack_blob(oid: str, content: bytes) -> PackEntry:
    """Return the entry of a blob whose id is known; several threads may do so at once."""
    compress = _compressor(len(content))
    return PackEntry(oid, _entry_header(len(content)) + compress.compress(content) + compress.flush())


class PackWriter:
    """One pack in the making, to be closed; without `install` nothing is left of it.

    Args:
        git_dir: the store.

    Raises:
        StorageFailed: here and in each step, the system refused it; the pack is of no more use.
    """

    def __init__(self, git_dir: str) -> None:
        self._directory = os.path.join(git_dir, "objects", "pack")
        self._written: dict[str, _Written] = {}
        with self._refusals_told(), ExitStack() as stack:
            self._pack = stack.enter_context(durable.new_file(self._directory))
            self._pack.append(_PACK_HEADER.pack(b"PACK", _VERSION, 0))
            self._stack = stack.pop_all()

    def close(self) -> None:
        """Give up what is not installed; closing twice is fine."""
        self._stack.close()

    @property
    def oids(self) -> frozenset[str]:
        """The ids of the blobs in it."""
        return frozenset(self._written)

    def add(self, entries: Iterable[PackEntry]) -> None:
        """Append blobs; one that is in the pack already is passed over."""
        pieces = []
        at = self._pack.size
        for oid, data in entries:
            if oid not in self._written:
                self._written[oid] = _Written(bytes.fromhex(oid), zlib.crc32(data), at)
                pieces.append(data)
                at += len(data)
        with self._refusals_told():
            self._pack.append(b"".join(pieces))

    def stream(self, size: int, chunks: Iterable[bytes], is_wanted: Callable[[str], bool]) -> str | None:
        """Append a blob of exactly ``size`` bytes piece by piece, as far as its id is wanted, and return its id.

        ``None`` says that ``chunks`` gave more or less; the pack then is as it was.
        """
        begin = self._pack.size
        digest = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
        compress = _compressor(size)
        crc = self._append(_entry_header(size), 0)
        left = size
        for chunk in chunks:
            left -= len(chunk)
            digest.update(chunk)
            crc = self._append(compress.compress(chunk), crc)
        crc = self._append(compress.flush(), crc)
        oid = None if left else digest.hexdigest()
        if oid is None or oid in self._written or not is_wanted(oid):
            with self._refusals_told():
                self._pack.cut(begin)
        else:
            self._written[oid] = _Written(digest.digest(), crc, begin)
        return oid

    def _append(self, data: bytes, crc: int) -> int:
        if data:
            with self._refusals_told():
                self._pack.append(data)
        return zlib.crc32(data, crc)

    def install(self) -> None:
        """Make the blobs durable parts of the store."""
        if self._written:
            with self._refusals_told():
                self._install()

    def _install(self) -> None:
        self._pack.patch(0, _PACK_HEADER.pack(b"PACK", _VERSION, len(self._written)))
        digest = hashlib.sha1(usedforsecurity=False)
        for chunk in self._pack.chunks():
            digest.update(chunk)
        checksum = digest.digest()
        self._pack.append(checksum)
        self._pack.sync()
        with durable.new_file(self._directory) as index:
            index.append(encode_index(sorted(self._written.values()), checksum))
            index.sync()
            index.name(f"pack-{checksum.hex()}.idx")
            self._pack.name(f"pack-{checksum.hex()}.pack")
        durable.sync_directory(self._directory)

    @contextmanager
    def _refusals_told(self) -> Iterator[None]:
        """Translate what the system refuses, so that it is not taken for a file's fault that is being read."""
        try:
            yield
        except OSError as error:
            raise StorageFailed(self._directory, error.strerror or str(error)) from error


def encode_index(entries: Sequence[tuple[bytes, int, int]], checksum: bytes) -> bytes:
    """Return the index of a pack, given each entry's id, checksum and offset in the order of ids."""
    counts = [0] * _FAN_OUT
    for oid, _crc, _offset in entries:
        counts[oid[0]] += 1
    fan_out, total = [], 0
    for count in counts:
        total += count
        fan_out.append(total)
    near: list[int] = []
    far: list[int] = []
    for _oid, _crc, offset in entries:
        if offset < _FAR:
            near.append(offset)
        else:
            near.append(_FAR | len(far))
            far.append(offset)
    content = b"".join(
        (
            _INDEX_HEADER,
            struct.pack(f">{_FAN_OUT}I", *fan_out),
            b"".join(oid for oid, _crc, _offset in entries),
            struct.pack(f">{total}I", *(crc for _oid, crc, _offset in entries)),
            struct.pack(f">{total}I", *near),
            struct.pack(f">{len(far)}Q", *far),
            checksum,
        )
    )
    return content + hashlib.sha1(content, usedforsecurity=False).digest()


def _compressor(size: int) -> "zlib._Compress":
    if size <= _SMALL_BYTES:
        return zlib.compressobj(_LEVEL, zlib.DEFLATED, _SMALL_WINDOW_BITS, _SMALL_MEMORY)
    return zlib.compressobj(_LEVEL)


def _entry_header(size: int) -> bytes:
    """Return kind and size of a blob as its entry begins with."""
    byte = _BLOB << _FIRST_SIZE_BITS | size & 0x0F
    size >>= _FIRST_SIZE_BITS
    header = bytearray()
    while size:
        header.append(byte | 0x80)
        byte = size & 0x7F
        size >>= 7
    header.append(byte)
    return bytes(header)
