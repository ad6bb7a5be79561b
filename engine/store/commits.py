"""What the commits behind names say, remembered for as long as the files stay as they are that it was read from.

A commit never changes, but its file may go, or be spoiled. So what is remembered counts only while the commit's own
file, or where it has none each pack of the store, has the stamp that it was read under.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from engine.errors import GitFailed
from engine.host.git import Git
from engine.store.loose import object_path, read_loose, write_loose
from engine.store.stamps import file_stamp, packs_stamp

_MOST_REMEMBERED = 4096


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit's tree and message, and what it holds besides."""

    tree: str
    message: str
    parents: tuple[str, ...] = ()


def write_commit(git: Git, tree: str, message: bytes, at_s: int, parents: Sequence[str] = ()) -> str:
    """Write a commit of a tree durably, and return its id; nothing names it yet.

    Raises:
        OSError: it was not written.
    """
    who = f"Takeback <takeback@localhost> {at_s} +0000"
    lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents), f"author {who}", f"committer {who}", "", ""]
    return write_loose(git.git_dir, "commit", "\n".join(lines).encode("ascii") + message)


class Commits:
    """The commits of one store. Threads may share it: what two of them learn at once is the same."""

    def __init__(self, git: Git) -> None:
        self._git = git
        self._known: dict[str, tuple[object, Commit]] = {}

    def find(self, oids: Iterable[str]) -> dict[str, Commit]:
        """Return those of these commits that the store can give; one process at most, none for what is known.

        Raises:
            GitFailed: git ran out of time.
        """
        found: dict[str, Commit] = {}
        asked: dict[str, object] = {}
        packs: object = None
        for oid in dict.fromkeys(oids):
            stamp: object = file_stamp(object_path(self._git.git_dir, oid))
            spoiled = stamp is not None
            if stamp is None:
                stamp = packs = packs or packs_stamp(self._git.git_dir)
            commit = self._remembered(oid, stamp) or self._read_loose(oid, stamp)
            if commit is None:
                # A pack that stands in for a spoiled file may go while the file stays: that is not remembered.
                asked[oid] = None if spoiled else stamp
            else:
                found[oid] = commit
        found |= self._ask(asked)
        return found

    def _remembered(self, oid: str, stamp: object) -> Commit | None:
        known = self._known.get(oid)
        return known[1] if known is not None and known[0] == stamp else None

    def _read_loose(self, oid: str, stamp: object) -> Commit | None:
        try:
            held = read_loose(self._git.git_dir, oid)
        except OSError:
            return None  # git may find it elsewhere
        if held is None or held.kind != "commit":
            return None
        return self._remember(oid, stamp, held.content)

    def _remember(self, oid: str, stamp: object, content: bytes) -> Commit:
        commit = _parse(content)
        if stamp is None:
            return commit
        if len(self._known) >= _MOST_REMEMBERED:
            self._known.clear()
        self._known[oid] = stamp, commit
        return commit

    def _ask(self, asked: dict[str, object]) -> dict[str, Commit]:
        found = {}
        for oid, content in _read_all(self._git, list(asked)):
            found[oid] = self._remember(oid, asked[oid], content)
        return found


def _read_all(git: Git, oids: list[str]) -> Iterator[tuple[str, bytes]]:
    """Yield those commits that git can read, with their content."""
    if not oids:
        return
    try:
        out = git.run(["cat-file", "--batch"], stdin="".join(f"{oid}\n" for oid in oids).encode("ascii"))
    except GitFailed as error:
        if error.timed_out:
            raise
        if len(oids) > 1:  # git ends at what it cannot read; each by itself shows which that is
            for oid in oids:
                yield from _read_all(git, [oid])
        return
    at = 0
    while at < len(out):
        end = out.index(b"\n", at)
        fields = out[at:end].split()
        at = end + 1
        if len(fields) == 3:  # noqa: PLR2004 - id, kind and size; all else says missing
            size = int(fields[2])
            if fields[1] == b"commit":
                yield fields[0].decode("ascii"), out[at : at + size]
            at += size + 1


def _parse(content: bytes) -> Commit:
    header, _blank, message = content.partition(b"\n\n")
    first, *others = header.decode("utf-8", "replace").split("\n")
    parents = (line.removeprefix("parent ") for line in others if line.startswith("parent "))
    return Commit(first.removeprefix("tree "), message.lstrip(b"\n").decode("utf-8", "replace"), tuple(parents))
