"""Trees, blobs and commits in the store: written by one ``git fast-import``, compared by ``git diff-tree``.

A capture is a commit without parents, so that dropping one never changes another. Everything a commit needs is in
the object store before a ref names it; a writer that dies leaves no ref.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from engine.errors import GitFailed
from engine.host.git import Git, GitProcess

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
_FINISH_TIMEOUT_S = 300.0  # a large pack is synced as a whole, in silence
_PADDING_BYTES = 65536


@dataclass(frozen=True, slots=True)
class TreeChange:
    """One path in which two trees differ; a mode of ``000000`` says that nothing stands there."""

    path: str
    old_mode: str
    new_mode: str
    old_oid: str
    new_oid: str


@dataclass(slots=True)
class CommitContent:
    """What a commit's tree is made of: an existing tree, minus ``deleted``, plus ``added`` (path → mode and id)."""

    base: str | None
    deleted: list[str] = field(default_factory=list)
    added: dict[str, tuple[str, str]] = field(default_factory=dict)


class ObjectWriter:
    """Writes blobs and commits in one stream; nothing is visible before the block of `open_writer` ends."""

    def __init__(self, process: GitProcess) -> None:
        self._process = process
        self._next_mark = 1
        self._write(b"feature done\n")

    def blob(self, size: int, chunks: Iterable[bytes]) -> str | None:
        """Write a blob of exactly ``size`` bytes and return its id.

        ``None`` says that ``chunks`` gave more or less; the blob is then cut or padded to keep the stream whole and
        must not be used.
        """
        digest = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
        self._write(b"blob\ndata %d\n" % size)
        left = size
        exact = True
        for chunk in chunks:
            if len(chunk) > left:
                exact = False
                break
            digest.update(chunk)
            self._write(chunk)
            left -= len(chunk)
        exact = exact and left == 0
        while left:
            padding = bytes(min(left, _PADDING_BYTES))
            self._write(padding)
            left -= len(padding)
        self._write(b"\n")
        return digest.hexdigest() if exact else None

    def commit(self, refs: Sequence[str], message: bytes, at_s: int, content: CommitContent) -> tuple[str, str]:
        """Write a commit without parents and point ``refs`` at it; return its id and its tree's."""
        mark = self._next_mark
        self._next_mark += 1
        self._write(b"commit %s\nmark :%d\n" % (refs[0].encode("ascii"), mark))
        self._write(b"committer Takeback <takeback@localhost> %d +0000\n" % at_s)
        self._write(b"data %d\n" % len(message))
        self._write(message)
        self._write(b"\n")
        if content.base is not None and content.base != EMPTY_TREE:
            self._write(b'M 040000 %s ""\n' % content.base.encode("ascii"))
        for path in content.deleted:
            self._write(b"D %s\n" % quote_path(path))
        for path, (mode, oid) in content.added.items():
            self._write(b"M %s %s %s\n" % (mode.encode("ascii"), oid.encode("ascii"), quote_path(path)))
        self._write(b"\n")
        for ref in refs[1:]:
            self._write(b"reset %s\nfrom :%d\n\n" % (ref.encode("ascii"), mark))
        tree = self._ask(b'ls :%d ""\n' % mark).split()
        commit = self._ask(b"get-mark :%d\n" % mark)
        # An empty tree is answered with the word "missing".
        return commit.decode("ascii"), tree[2].decode("ascii") if tree[0] == b"040000" else EMPTY_TREE

    def _ask(self, command: bytes) -> bytes:
        self._write(command)
        try:
            self._process.stdin.flush()
        except BrokenPipeError:
            answer = b""
        else:
            answer = self._process.stdout.readline().strip()
        if not answer:
            self._process.finish()
            raise GitFailed("fast-import", "it ended before the commit was written")
        return answer

    def finish(self) -> None:
        """End the stream and wait until objects and refs are durable.

        Raises:
            GitFailed: nothing was made visible.
        """
        self._write(b"done\n")
        self._process.advance(_FINISH_TIMEOUT_S)
        self._process.finish()

    def _write(self, data: bytes | memoryview) -> None:
        try:
            self._process.stdin.write(data)
            self._process.advance()
        except BrokenPipeError as error:
            self._process.finish()
            raise GitFailed("fast-import", "it ended before the stream did") from error


@contextmanager
def open_writer(git: Git) -> Iterator[ObjectWriter]:
    """Open an `ObjectWriter`; leaving the block normally makes all of it durable, an error makes none of it."""
    arguments = ["fast-import", "--quiet", "--force", "--done", "--date-format=raw"]
    with git.open(arguments) as process:
        writer = ObjectWriter(process)
        yield writer
        writer.finish()


def diff_trees(git: Git, old: str, new: str, pathspecs: Sequence[str] = (), *, with_trees: bool) -> list[TreeChange]:
    """Return where two trees or commits differ, in git's order.

    Args:
        git: the store.
        old: the first tree-ish.
        new: the second one.
        pathspecs: as a person typed them; none means everything.
        with_trees: also directories.

    Raises:
        GitFailed: a tree cannot be read or a pathspec is not one.
    """
    arguments = ["diff-tree", "-r", *(["-t"] if with_trees else []), "-z", "--raw", "--no-renames", old, new, "--"]
    out = git.run([*arguments, *pathspecs], literal_pathspecs=False)
    return list(_parse_raw(out))


def _parse_raw(out: bytes) -> Iterator[TreeChange]:
    fields = iter(out.split(b"\0"))
    for head in fields:
        if not head:
            return
        old_mode, new_mode, old_oid, new_oid, _status = head[1:].decode("ascii").split(" ")
        yield TreeChange(_decode(next(fields)), old_mode, new_mode, old_oid, new_oid)


def list_tree(git: Git, tree: str) -> dict[str, tuple[str, str]]:
    """Return every blob and gitlink of a tree: path → (git mode, id)."""
    listing: dict[str, tuple[str, str]] = {}
    for line in git.run(["ls-tree", "-r", "-z", "--full-tree", tree]).split(b"\0"):
        if line:
            head, path = line.split(b"\t", 1)
            mode, _kind, oid = head.decode("ascii").split(" ")
            listing[_decode(path)] = (mode, oid)
    return listing


def find_tree(git: Git, commit: str) -> str | None:
    """Return the tree of a commit, ``None`` if the store does not hold it."""
    try:
        return git.run(["rev-parse", "--verify", "--quiet", f"{commit}^{{tree}}"]).decode("ascii").strip()
    except GitFailed:
        return None


def missing_objects(git: Git, oids: Iterable[str]) -> list[str]:
    """Return those ids that the store does not hold."""
    wanted = sorted(set(oids))
    if not wanted:
        return []
    out = git.run(["cat-file", "--batch-check=%(objectname) %(objecttype)"], stdin="\n".join(wanted).encode() + b"\n")
    lines = out.decode("ascii", "replace").splitlines()
    return [line.split(" ")[0] for line in lines if line.endswith(" missing")]


def quote_path(path: str) -> bytes:
    """Return a path as ``fast-import`` reads it, any byte included."""
    raw = path.encode("utf-8", "surrogateescape")
    quoted = bytearray(b'"')
    for byte in raw:
        if byte in b'"\\':
            quoted += b"\\" + bytes([byte])
        elif byte < 0x20 or byte >= 0x7F:  # noqa: PLR2004 - what is not printable ASCII
            quoted += b"\\%03o" % byte
        else:
            quoted.append(byte)
    quoted += b'"'
    return bytes(quoted)


def _decode(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")
