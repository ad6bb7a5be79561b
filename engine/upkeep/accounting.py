"""Where the space goes: what each workspace alone holds, and the largest files with the checkpoints that hold them.

Walks every object, so it is for a person who asks, never for a tool's way. Nothing is locked; what a prune moves
meanwhile makes it fail, not lie.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from engine.errors import EngineError, GitFailed
from engine.host.git import Git
from engine.store.layout import RESERVED
from engine.store.opened import Store
from engine.upkeep.drops import commits_of
from engine.upkeep.facts import WorkspaceFacts, read_workspaces
from engine.upkeep.objects import INDEX_ENTRY_BYTES, walk_objects
from engine.upkeep.refusals import refusal

_BATCH = 20_000
_SHOWN_FILES = 10
_LONG_TIMEOUT_S = 1800.0


@dataclass(frozen=True, slots=True)
class WorkspaceUse:
    """What one workspace alone holds: what dropping all of it would free, in bytes."""

    hash: str
    workdir: str | None
    unique_bytes: int


@dataclass(frozen=True, slots=True)
class LargeFile:
    """One content of one file: what it takes in the store, how large it is, and the checkpoints that hold it."""

    path: str
    stored_bytes: int
    size_bytes: int
    workdir: str | None
    checkpoints: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Accounting:
    """Where the space goes; ``shared_bytes`` is held by several workspaces. ``problem`` says why it is not known."""

    workspaces: tuple[WorkspaceUse, ...] = ()
    shared_bytes: int = 0
    largest: tuple[LargeFile, ...] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class _Sized:
    """A blob with its sizes, and where it was met first."""

    stored_bytes: int
    size_bytes: int
    oid: str
    owner: int
    path: str


def account(store: Store) -> Accounting:
    """Return where the space goes, largest first; never raises for a damaged store."""
    try:
        if not store.exists():
            return Accounting()
        workspaces = read_workspaces(store.layout, store.git)
        return _Accountant(store.git, workspaces).run()
    except EngineError as error:
        return Accounting(problem=str(error))
    except OSError as error:
        return Accounting(problem=refusal(error, store.layout.base))


class _Accountant:
    """One walk from the first workspace to the last and one back.

    An object is met first in the first workspace that holds it, and on the way back in the last one; where these are
    the same, no other holds it.
    """

    def __init__(self, git: Git, workspaces: Sequence[WorkspaceFacts]) -> None:
        self._git = git
        self._workspaces = workspaces
        self._commits = [list(commits_of(facts).values()) for facts in workspaces]

    def run(self) -> Accounting:
        last = {oid: owner for owner, oid, _path in self._walk(reversed(range(len(self._workspaces))))}
        unique = [0] * len(self._workspaces)
        shared = 0
        large: list[_Sized] = []
        met = self._walk(range(len(self._workspaces)))
        while batch := list(islice(met, _BATCH)):
            for found in self._sized(batch, large):
                owner, oid, stored = found
                if last.get(oid) == owner:
                    unique[owner] += stored
                else:
                    shared += stored
            large = sorted(large, key=lambda item: (-item.stored_bytes, item.path))[:_SHOWN_FILES]
        uses = [WorkspaceUse(f.hash, f.workdir, size) for f, size in zip(self._workspaces, unique, strict=True)]
        uses.sort(key=lambda use: (-use.unique_bytes, use.hash))
        return Accounting(tuple(uses), shared, tuple(self._largest(large)))

    def _walk(self, order: Iterable[int]) -> Iterator[tuple[int, str, str]]:
        owners: dict[str, int] = {}
        for number in order:
            for commit in self._commits[number]:
                owners.setdefault(commit, number)
        return walk_objects(self._git, owners)

    def _sized(self, batch: Sequence[tuple[int, str, str]], large: list[_Sized]) -> Iterator[tuple[int, str, int]]:
        form = "--batch-check=%(objecttype) %(objectsize:disk) %(objectsize)"
        stdin = "".join(f"{oid}\n" for _owner, oid, _path in batch).encode("ascii")
        lines = self._git.run(["cat-file", form], stdin=stdin, timeout_s=_LONG_TIMEOUT_S).decode("ascii").splitlines()
        for (owner, oid, path), line in zip(batch, lines, strict=True):
            if line.endswith(" missing"):
                raise GitFailed("cat-file", f"object {oid} went while it was looked at; look again")
            kind, stored, size = line.split(" ")
            if kind == "blob" and path.partition("/")[0] != RESERVED:
                large.append(_Sized(int(stored), int(size), oid, owner, path))
            yield owner, oid, int(stored) + INDEX_ENTRY_BYTES

    def _largest(self, large: Sequence[_Sized]) -> Iterator[LargeFile]:
        for item in large:
            facts = self._workspaces[item.owner]
            checkpoints = {held.commit: None for held in reversed(facts.checkpoints)}
            holding = self._holding(item, checkpoints)
            yield LargeFile(item.path, item.stored_bytes, item.size_bytes, facts.workdir, tuple(holding))

    def _holding(self, item: _Sized, checkpoints: Mapping[str, None]) -> Iterator[str]:
        """Yield the checkpoints that hold this content at this path, newest first."""
        if "\n" in item.path or not checkpoints:
            return
        stdin = "".join(f"{commit}:{item.path}\n" for commit in checkpoints).encode("utf-8", "surrogateescape")
        out = self._git.run(["cat-file", "--batch-check=%(objectname)"], stdin=stdin, timeout_s=_LONG_TIMEOUT_S)
        for commit, line in zip(checkpoints, out.splitlines(), strict=True):
            if line == item.oid.encode("ascii"):
                yield commit
