"""Proving that the store holds what its checkpoints name: every object read whole and hashed, once."""

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from engine.errors import GitFailed
from engine.host.git import Git, GitProcess
from engine.store.reader import COPY_BYTES

_LONG_TIMEOUT_S = 1800.0
_TREE_MODE = b"40000"
_GITLINK_MODE = b"160000"
_OID_BYTES = 20
_HEADER_FIELDS = 3  # "<oid> <type> <size>"


@dataclass(frozen=True, slots=True)
class Damage:
    """An object that cannot be given back: where it is needed (``""`` is the root), which one, and why."""

    path: str
    oid: str
    why: str


class Prover:
    """Reads objects through one ``git cat-file --batch``, started anew whenever a damaged object ends it."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._stack = ExitStack()
        self._process: GitProcess | None = None
        self._commits: dict[str, tuple[str | None, tuple[Damage, ...]]] = {}
        self._blobs: dict[bytes, str | None] = {}
        self._trees: dict[str, tuple[Damage, ...]] = {}
        self.objects = 0
        self.size_bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def commit(self, oid: str) -> tuple[str | None, tuple[Damage, ...]]:
        """Prove a commit and all it holds; return its tree (``None`` if it cannot be read) and what is damaged."""
        if oid not in self._commits:
            self._commits[oid] = self._prove_commit(oid)
        return self._commits[oid]

    def _prove_commit(self, oid: str) -> tuple[str | None, tuple[Damage, ...]]:
        content, why = self.read(oid, b"commit")
        if content is None:
            return None, (Damage("", oid, why),)
        tree = content[len(b"tree ") :].split(b"\n", 1)[0].decode("ascii", "replace")
        return tree, self.tree(tree)

    def tree(self, oid: str) -> tuple[Damage, ...]:
        """Prove a tree and all below it; what was proved before is not read again."""
        known = self._trees.get(oid)
        if known is None:
            known = self._trees[oid] = tuple(self._prove_tree(oid))
        return known

    def _prove_tree(self, oid: str) -> Iterator[Damage]:
        content, why = self.read(oid, b"tree")
        if content is None:
            yield Damage("", oid, why)
            return
        for mode, name, entry in parse_tree(content):
            if mode == _GITLINK_MODE:
                continue
            path = name.decode("utf-8", "surrogateescape")
            if mode == _TREE_MODE:
                for damage in self.tree(entry.hex()):
                    yield Damage(f"{path}/{damage.path}" if damage.path else path, damage.oid, damage.why)
            elif (reason := self.blob(entry)) is not None:
                yield Damage(path, entry.hex(), reason)

    def blob(self, oid: bytes) -> str | None:
        """Prove a blob, once; return why it cannot be given back, ``None`` if it can."""
        if oid not in self._blobs:
            self._blobs[oid] = self.read(oid.hex(), b"blob", keep=False)[1] or None
        return self._blobs[oid]

    def read(self, oid: str, kind: bytes, *, keep: bool = True) -> tuple[bytes | None, str]:
        """Read and prove an object; return its content if ``keep``, and why it cannot be given back (``""`` if it can).

        git ends when it meets a damaged object, and when its deadline passes; so what failed is tried once more.
        """
        try:
            return self._attempt(oid, kind, keep=keep)
        except (GitFailed, BrokenPipeError):
            self._close()
        try:
            return self._attempt(oid, kind, keep=keep)
        except (GitFailed, BrokenPipeError) as error:
            self._close()
            return None, error.detail if isinstance(error, GitFailed) else "git ended while it read it"

    def _attempt(self, oid: str, kind: bytes, *, keep: bool) -> tuple[bytes | None, str]:
        process = self._open()
        process.stdin.write(oid.encode("ascii", "replace") + b"\n")
        process.stdin.flush()
        header = process.stdout.readline().split()
        if not header:
            process.finish()
            raise GitFailed("cat-file", "it ended early")
        if len(header) != _HEADER_FIELDS:
            return None, "it is missing"
        return self._take(process, header, kind, keep=keep)

    def _take(self, process: GitProcess, header: list[bytes], kind: bytes, *, keep: bool) -> tuple[bytes | None, str]:
        left = int(header[2])
        digest = hashlib.sha1(b"%s %d\0" % (header[1], left), usedforsecurity=False)
        self.objects += 1
        self.size_bytes += left
        kept = bytearray()
        while left:
            piece = process.read(min(left, COPY_BYTES))
            digest.update(piece)
            if keep:
                kept += piece
            left -= len(piece)
        process.read(1)  # a newline follows the content
        if digest.hexdigest().encode("ascii") != header[0]:
            return None, "its content is not what its id stands for"
        if header[1] != kind:
            return None, f"it is a {header[1].decode('ascii', 'replace')}, not a {kind.decode('ascii')}"
        return bytes(kept), ""

    def _open(self) -> GitProcess:
        if self._process is None:
            context = self._git.open(["cat-file", "--batch"], timeout_s=_LONG_TIMEOUT_S)
            self._process = self._stack.enter_context(context)
        return self._process

    def _close(self) -> None:
        self._process = None
        self._stack.close()


def parse_tree(content: bytes) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Yield mode, name and id of each entry of a tree."""
    position = 0
    while position < len(content):
        space = content.index(b" ", position)
        end = content.index(b"\0", space)
        yield content[position:space], content[space + 1 : end], content[end + 1 : end + 1 + _OID_BYTES]
        position = end + 1 + _OID_BYTES
