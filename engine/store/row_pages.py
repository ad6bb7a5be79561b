"""The rows of one directory as a few bytes: what the index keeps of it.

Numbers of a kind stand together, each as the difference from the one before, so that compression finds the zeros.
"""

import struct
import zlib
from collections.abc import Iterable, Iterator
from itertools import accumulate

from engine.model import Entry, EntryKind
from engine.store.rows import Inside, Row

_LEVEL = 1
_KINDS = tuple(EntryKind)
_KIND_BITS = 0x0F
_HAS_OID, _TRUSTED, _OLDER = 0x10, 0x20, 0x40
_OID_BYTES = 20
_WORD = 1 << 64
_COUNT = struct.Struct("<I")


def encode_inside(inside: Inside) -> bytes:
    """Return what a directory holds; an id is one of git's, of forty digits."""
    rows = inside.values()
    mtimes = [row.mtime_ns for row in rows]
    names = b"\0".join(name.encode("utf-8", "surrogateescape") for name in inside)
    pieces = (
        _COUNT.pack(len(inside)),
        bytes(_flags(row) for row in rows),
        struct.pack(f"<{len(inside)}H", *(row.entry.mode for row in rows)),
        _words(row.size for row in rows),
        _words(_steps(mtimes)),
        # Mostly nothing but the content was ever changed of a file.
        _words(row.ctime_ns - mtime_ns for row, mtime_ns in zip(rows, mtimes, strict=True)),
        _words(_steps(row.ino for row in rows)),
        _words(_steps(row.dev for row in rows)),
        bytes.fromhex("".join(row.entry.oid or "" for row in rows)),
        names,
    )
    return zlib.compress(b"".join(pieces), _LEVEL)


def decode_inside(data: bytes) -> dict[str, Row]:
    """Return what a directory holds.

    Raises:
        ValueError: it is damaged.
    """
    try:
        return _decode(zlib.decompress(data))
    except (zlib.error, struct.error, IndexError, StopIteration) as error:
        raise ValueError(f"rows cannot be read ({error})") from error


def _decode(data: bytes) -> dict[str, Row]:
    (count,) = _COUNT.unpack_from(data)
    at = _COUNT.size
    flags = data[at : at + count]
    at += count
    modes = struct.unpack_from(f"<{count}H", data, at)
    at += 2 * count
    columns = []
    for _column in range(5):
        columns.append(struct.unpack_from(f"<{count}Q", data, at))
        at += 8 * count
    sizes, mtimes, changes, inos, devs = columns
    mtimes_ns = [_signed(number % _WORD) for number in accumulate(mtimes)]
    inodes = [number % _WORD for number in accumulate(inos)]
    devices = [number % _WORD for number in accumulate(devs)]
    oids_end = at + _OID_BYTES * sum(flag & _HAS_OID != 0 for flag in flags)
    oids = _iter_oids(data[at:oids_end])
    found = {}
    for number, name in enumerate(data[oids_end:].split(b"\0")):
        flag = flags[number]
        entry = Entry(_KINDS[flag & _KIND_BITS], modes[number], next(oids) if flag & _HAS_OID else None)
        mtime_ns = mtimes_ns[number]
        ctime_ns = mtime_ns + _signed(changes[number])
        stamps = (sizes[number], mtime_ns, ctime_ns, inodes[number], devices[number])
        row = Row(entry, *stamps, trusted=bool(flag & _TRUSTED), older=bool(flag & _OLDER))
        found[name.decode("utf-8", "surrogateescape")] = row
    if len(found) != count:
        raise ValueError("rows are missing")
    return found


def _flags(row: Row) -> int:
    oid = _HAS_OID if row.entry.oid is not None else 0
    return _KINDS.index(row.entry.kind) | oid | (_TRUSTED if row.trusted else 0) | (_OLDER if row.older else 0)


def _steps(numbers: Iterable[int]) -> Iterator[int]:
    before = 0
    for number in numbers:
        yield number - before
        before = number


def _words(numbers: Iterable[int]) -> bytes:
    words = [number % _WORD for number in numbers]
    return struct.pack(f"<{len(words)}Q", *words)


def _signed(word: int) -> int:
    return word - _WORD if word >= _WORD // 2 else word


def _iter_oids(data: bytes) -> Iterator[str]:
    text = data.hex()
    return (text[at : at + 2 * _OID_BYTES] for at in range(0, len(text), 2 * _OID_BYTES))
