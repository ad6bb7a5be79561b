"""Rows in the format of git's index, version 2 (gitformat-index), for git to compare with what is there."""

import hashlib
import struct
from collections.abc import Sequence

from engine.model import EntryKind
from engine.store.rows import Row

_HEADER = struct.Struct(">4sII")
_ENTRY = struct.Struct(">IIIIIIIIII20sH")
_SIGNATURE = b"DIRC"
_VERSION = 2
_SECOND_NS = 1_000_000_000
_WORD = 0xFFFF_FFFF
_LONGEST_NAME = 0xFFF  # a longer name is as long as it is
_EXECUTABLE = 0o100
_PADDING = [bytes(8 - over) for over in range(8)]
_MODE_LINK, _MODE_FILE, _MODE_PROGRAM = 0o120000, 0o100644, 0o100755

Listed = tuple[bytes, Row, tuple[int, int]]
"""A path, its row, and who owns it."""


def encode_listing(listed: Sequence[Listed]) -> bytes:
    """Return a whole file; git keeps only the lower half of long numbers, and so does this."""
    pieces = [_HEADER.pack(_SIGNATURE, _VERSION, len(listed))]
    for path, row, (uid, gid) in sorted(listed, key=lambda one: one[0]):
        mtime_s, mtime_ns = divmod(row.mtime_ns, _SECOND_NS)
        ctime_s, ctime_ns = divmod(row.ctime_ns, _SECOND_NS)
        entry = _ENTRY.pack(
            ctime_s & _WORD,
            ctime_ns,
            mtime_s & _WORD,
            mtime_ns,
            row.dev & _WORD,
            row.ino & _WORD,
            _mode(row),
            uid & _WORD,
            gid & _WORD,
            row.size & _WORD,
            bytes.fromhex(row.entry.oid or ""),
            min(len(path), _LONGEST_NAME),
        )
        # One to eight NULs end a name, so that the next entry begins at a multiple of eight.
        pieces += (entry, path, _PADDING[(len(entry) + len(path)) % 8])
    body = b"".join(pieces)
    return body + hashlib.sha1(body, usedforsecurity=False).digest()


def _mode(row: Row) -> int:
    if row.entry.kind is EntryKind.SYMLINK:
        return _MODE_LINK
    return _MODE_PROGRAM if row.entry.mode & _EXECUTABLE else _MODE_FILE
