"""Changing a few paths of a tree: only the directories above them are read and written, whatever else it holds."""

import hashlib
from collections.abc import Callable

from engine.store.objects import EMPTY_TREE

_DIRECTORY = "40000"
_OID_BYTES = 20

ReadTree = Callable[[str], bytes]
"""Returns the content of a tree by its id."""

WriteTree = Callable[[bytes], object]
"""Is given the content of each tree that is new, those below before those above."""


class TreeEdit:
    """Changes on top of a tree, kept in memory until `finish`.

    Args:
        base: the tree, ``None`` for an empty one.
        read: returns what a tree holds; called for the directories above what changes alone.
    """

    def __init__(self, base: str | None, read: ReadTree) -> None:
        self._root = _Directory(None if base == EMPTY_TREE else base, read)

    def remove(self, path: str) -> None:
        """Take away what stands at a path, also a directory with all in it, as far as there is anything."""
        *above, name = _names(path)
        directory: _Directory | None = self._root
        for part in above:
            directory = directory and directory.find(part)
        if directory is not None:
            directory.remove(name)

    def put(self, path: str, mode: str, oid: str) -> None:
        """Set what stands at a path, in place of whatever stands there or in the way."""
        *above, name = _names(path)
        directory = self._root
        for part in above:
            directory = directory.enter(part)
        directory.put(name, mode, oid)

    def finish(self, write: WriteTree) -> str:
        """Hand over the trees that are new and return the id of the whole."""
        return self._root.finish(write) or EMPTY_TREE


class _Directory:
    """One directory in the making; nothing of it is read before it is needed."""

    def __init__(self, oid: str | None, read: ReadTree) -> None:
        self._oid = oid
        self._read = read
        self._entries: dict[bytes, tuple[str, str]] | None = {} if oid is None else None
        self._opened: dict[bytes, _Directory] = {}
        self._changed = oid is None

    def find(self, name: bytes) -> "_Directory | None":
        """Return the directory of a name, ``None`` where there is none."""
        if name not in self._opened:
            entry = self._load().get(name)
            if entry is None or entry[0] != _DIRECTORY:
                return None
            self._opened[name] = _Directory(entry[1], self._read)
        return self._opened[name]

    def enter(self, name: bytes) -> "_Directory":
        """Return the directory of a name, made if there is none."""
        found = self.find(name)
        if found is None:
            self.remove(name)
            found = self._opened[name] = _Directory(None, self._read)
        return found

    def remove(self, name: bytes) -> None:
        """Take away an entry."""
        self._opened.pop(name, None)
        self._changed |= self._load().pop(name, None) is not None

    def put(self, name: bytes, mode: str, oid: str) -> None:
        """Set an entry."""
        self._opened.pop(name, None)
        self._load()[name] = (mode, oid)
        self._changed = True

    def _load(self) -> dict[bytes, tuple[str, str]]:
        if self._entries is None:
            self._entries = _parse(self._read(self._oid or ""))
        return self._entries

    def finish(self, write: WriteTree) -> str | None:
        """Hand over what is new and return the id, ``None`` for a directory that holds nothing."""
        for name, directory in self._opened.items():
            entries, oid = self._load(), directory.finish(write)
            wanted = None if oid is None else (_DIRECTORY, oid)
            if entries.get(name) != wanted:
                self._changed = True
                entries.pop(name, None)
                if wanted is not None:
                    entries[name] = wanted
        if not self._changed:
            return self._oid
        if not self._load():
            return None
        content = _encode(self._load())
        write(content)
        return hashlib.sha1(b"tree %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _names(path: str) -> list[bytes]:
    return path.encode("utf-8", "surrogateescape").split(b"/")


def _parse(content: bytes) -> dict[bytes, tuple[str, str]]:
    entries = {}
    at = 0
    while at < len(content):
        end = content.index(b"\0", at)
        mode, _space, name = content[at:end].partition(b" ")
        at = end + 1 + _OID_BYTES
        entries[name] = (mode.decode("ascii"), content[end + 1 : at].hex())
    return entries


def _encode(entries: dict[bytes, tuple[str, str]]) -> bytes:
    lines = sorted(
        # git orders a directory as if its name ended so
        (name + b"/" if mode == _DIRECTORY else name, b"%s %s\0%s" % (mode.encode("ascii"), name, bytes.fromhex(oid)))
        for name, (mode, oid) in entries.items()
    )
    return b"".join(line for _key, line in lines)
