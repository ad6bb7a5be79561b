"""Writing very many objects at once: into a pack of their own with its index, without a process and with few syncs.

Contents are compressed lightly and whole; the next prune that reclaims space keeps what comes later as differences from
them. What fits into memory is compressed by libdeflate, in little more than half the time that zlib takes for as small
a result; large contents go through zlib piece by piece. Until `install` the pack is a temporary file that git does not
see and a prune sweeps.

Order that matters in a crash:

1. the pack is complete and durable under a temporary name;
2. its index is;
3. the index takes its name: without its pack git passes over it, and its next gc sweeps it;
4. the pack takes its name, from where on the objects are in the store;
5. both names are durable.

The formats are gitformat-pack(5): pack version 2, index version 2.
"""

import hashlib
import os
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import NamedTuple, Self

from engine.errors import StorageFailed
from engine.host import durable
from engine.store.loose import object_id

_PACK_HEADER = struct.Struct(">4sII")
_INDEX_HEADER = struct.pack(">4sI", b"\377tOc", 2)
_VERSION = 2
_KINDS = {"commit": 1, "tree": 2, "blob": 3}
_FIRST_SIZE_BITS = 4  # of an object's size in the first byte of its entry, then seven in each
_FAN_OUT = 256
_FAR = 1 << 31  # where an offset needs eight bytes, in a table of their own

_LEVEL = 6  # of libdeflate: smaller than its fastest by a twentieth, and faster than zlib's fastest on files this small
_STREAM_LEVEL = 4


class PackEntry(NamedTuple):
    """An object as a pack holds it, with the checksum of that."""

    oid: str
    data: bytes
    crc: int


class _Written(NamedTuple):
    oid: bytes
    crc: int
    offset: int


def pack_object(kind: str, oid: str, content: bytes) -> PackEntry:
    """Return the entry of an object whose id is known; several threads may do so at once."""
    from deflate import zlib_compress

    data = _entry_header(kind, len(content)) + zlib_compress(content, _LEVEL)
    return PackEntry(oid, data, zlib.crc32(data))


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

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __contains__(self, oid: object) -> bool:
        return oid in self._written

    @property
    def oids(self) -> frozenset[str]:
        """The ids of the objects in it."""
        return frozenset(self._written)

    def put(self, kind: str, content: bytes) -> str:
        """Append an object that fits into memory, and return its id."""
        oid = object_id(kind, content)
        if oid not in self._written:
            self.add([pack_object(kind, oid, content)])
        return oid

    def add(self, entries: Iterable[PackEntry]) -> None:
        """Append objects; one that is in the pack already is passed over."""
        pieces = []
        at = self._pack.size
        for oid, data, crc in entries:
            if oid not in self._written:
                self._written[oid] = _Written(bytes.fromhex(oid), crc, at)
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
        compress = zlib.compressobj(_STREAM_LEVEL)
        crc = self._append(_entry_header("blob", size), 0)
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
        """Make the objects durable parts of the store."""
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


def _entry_header(kind: str, size: int) -> bytes:
    """Return kind and size of an object as its entry begins with."""
    byte = _KINDS[kind] << _FIRST_SIZE_BITS | size & 0x0F
    size >>= _FIRST_SIZE_BITS
    header = bytearray()
    while size:
        header.append(byte | 0x80)
        byte = size & 0x7F
        size >>= 7
    header.append(byte)
    return bytes(header)
