"""Taking over the history of a store that other software made.

Each foreign checkpoint becomes one of ours: a commit without parents, with its subject as the reason and its date, that
says where it came from. They are numbered downwards from -1, so that they come before all that was taken here.

Order that matters in a crash, for each workspace:

1. the new commits are made in a scratch repository, which borrows the foreign objects;
2. one pack with all they need is put into the store;
3. a workspace the store did not know gets its base, so that it is never one that lost its names;
4. then its project file;
5. one transaction names all its checkpoints.

A crash before the last step leaves objects that nothing names, and the next import begins anew.
"""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from engine.checkpoints.capture import decode_message
from engine.errors import EngineError, ImportRefused
from engine.host.git import Git
from engine.model import Workspace
from engine.store.layout import Layout, workspace_hash
from engine.store.opened import Store
from engine.store.refs import RefRecord, after_ref, base_ref, checkpoint_ref, list_names, list_refs, update_refs
from engine.upkeep.adoption import Adopted, adopt, transfer
from engine.upkeep.debris import remove_tree, scratch_name
from engine.upkeep.foreign import ForeignStore, ForeignWorkspace, LeftOut, read_foreign
from engine.upkeep.heritage import Ancestor, read_heritage
from engine.upkeep.progress import Cancelled, Progress, Step, never, unheard
from engine.upkeep.projects import write_project
from engine.upkeep.proof import Prover

__all__ = ["ImportReport", "ImportedWorkspace", "LeftOut", "import_store"]


@dataclass(frozen=True, slots=True)
class ImportedWorkspace:
    """What was taken over of one workspace; ``known`` checkpoints were there from an earlier import."""

    workdir: str
    hash: str
    imported: int = 0
    known: int = 0
    left_out: tuple[LeftOut, ...] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import took over, or would; ``left_out`` belongs to no workspace."""

    source: str
    dry_run: bool = False
    workspaces: tuple[ImportedWorkspace, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    cancelled: bool = False

    @property
    def imported(self) -> int:
        """How many checkpoints are new."""
        return sum(workspace.imported for workspace in self.workspaces)

    @property
    def complete(self) -> bool:
        """Whether nothing was left out."""
        return not self.left_out and not any(item.left_out or item.error for item in self.workspaces)


def import_store(
    store: Store, directory: str, *, dry_run: bool = False, progress: Progress = unheard, cancelled: Cancelled = never
) -> ImportReport:
    """Take over the history of the store at ``directory``; what was taken over before is not taken twice.

    Args:
        store: the store that gets it.
        directory: the other store, or the directory that holds it as ``store/``; nothing in it is changed.
        dry_run: only say what would be taken over.
        progress: told about each workspace.
        cancelled: asked between two workspaces.

    Raises:
        ImportRefused: there is no store, or not one that can be read safely; nothing was changed.
        GitUnavailable: git cannot be used.
    """
    foreign = read_foreign(directory)
    if os.path.realpath(store.layout.store) == foreign.path:
        raise ImportRefused(foreign.path, "it is this very store")
    if not dry_run:
        store.ensure()
    done: list[ImportedWorkspace] = []
    was_cancelled = False
    with _scratch(store, foreign) as scratch, Prover(scratch) as prover:
        for number, workspace in enumerate(foreign.workspaces):
            if cancelled():
                was_cancelled = True
                break
            progress(Step("importing workspaces", number, len(foreign.workspaces), prover.size_bytes))
            done.append(_Import(store, scratch, prover, foreign.path, dry_run=dry_run).run(workspace))
    return ImportReport(foreign.path, dry_run, tuple(done), foreign.left_out, was_cancelled)


@contextmanager
def _scratch(store: Store, foreign: ForeignStore) -> Iterator[Git]:
    """Make a repository of ours that borrows the foreign objects and nothing else of that store."""
    parent = store.layout.base if store.has_base() else tempfile.gettempdir()
    path = os.path.join(parent, scratch_name())
    os.mkdir(path, 0o700)
    try:
        layout = Layout(path)
        layout.ensure()
        with open(os.path.join(layout.store, "objects", "info", "alternates"), "wb") as stream:
            stream.write(os.fsencode(foreign.objects) + b"\n")
        yield store.git.at(layout.store)
    finally:
        remove_tree(path)


class _Import:
    """One workspace on its way from one store to the other."""

    def __init__(self, store: Store, scratch: Git, prover: Prover, source: str, *, dry_run: bool) -> None:
        self._store = store
        self._scratch = scratch
        self._prover = prover
        self._source = source
        self._dry_run = dry_run

    def run(self, foreign: ForeignWorkspace) -> ImportedWorkspace:
        """Take a workspace over; what goes wrong with it is its own affair, and changes nothing of it."""
        workspace = Workspace(foreign.workdir, foreign.workdir, workspace_hash(foreign.workdir))
        unfit: list[LeftOut] = []
        try:
            ancestors, left_out = read_heritage(self._prover, foreign.tips)
            if self._dry_run:
                known = self._known(workspace) if self._store.exists() else {}
            else:
                with self._store.use(workspace, "an import"):
                    known = self._known(workspace)
                    fresh = [item for item in ancestors if item.commit not in known]
                    if fresh:
                        unfit = self._take(workspace, foreign, fresh, list(known.values()))
        except (EngineError, OSError) as error:
            return ImportedWorkspace(foreign.workdir, workspace.hash, error=str(error))
        old = sum(item.commit in known for item in ancestors)
        new = len(ancestors) - old - len(unfit)
        return ImportedWorkspace(foreign.workdir, workspace.hash, new, old, (*left_out, *unfit))

    def _known(self, workspace: Workspace) -> dict[str, RefRecord]:
        """Return what earlier imports brought, by its foreign id."""
        records = list_refs(self._store.git, checkpoint_ref(workspace.hash, 0).rpartition("/")[0])
        known = {}
        for record in records:
            imported = decode_message(record.message)[1].get("imported")
            if isinstance(imported, dict):
                known[str(imported.get("commit"))] = record
        return known

    def _take(
        self,
        workspace: Workspace,
        foreign: ForeignWorkspace,
        fresh: Sequence[Ancestor],
        earlier: Sequence[RefRecord],
    ) -> list[LeftOut]:
        adopted, left_out = adopt(self._scratch, workspace, self._source, fresh)
        if not adopted:
            return left_out
        transfer(self._scratch, self._store.git, [item.commit for item in adopted])
        if list_names(self._store.git, base_ref(workspace.hash)) == {}:
            update_refs(self._store.git, set_to=[(base_ref(workspace.hash), adopted[-1].commit)])
        path = self._store.layout.project(workspace.hash)
        if not self._store.knows(workspace.hash):
            write_project(path, workspace.root, foreign.created_at, datetime.now(UTC))
        self._name(workspace, adopted, earlier)
        return left_out

    def _name(self, workspace: Workspace, adopted: Sequence[Adopted], earlier: Sequence[RefRecord]) -> None:
        """Number all that was ever imported by its time; what was taken here keeps its numbers."""
        before = [
            Adopted(record.commit, _time_of(record), number)
            for record in earlier
            if (number := int(record.name.rpartition("/")[2])) < 0
        ]
        before.sort(key=lambda item: item.number or 0)
        ordered = _merged(before, adopted)
        numbers = range(-len(ordered), 0)
        after = list_names(self._store.git, after_ref(workspace.hash, 0).rpartition("/")[0])
        moved = {
            after_ref(workspace.hash, number): after[name]
            for number, item in zip(numbers, ordered, strict=True)
            if item.number is not None and (name := after_ref(workspace.hash, item.number)) in after
        }
        stale = [name for name in after if int(name.rpartition("/")[2]) < 0 and name not in moved]
        named = zip(numbers, ordered, strict=True)
        set_to = [(checkpoint_ref(workspace.hash, number), item.commit) for number, item in named]
        update_refs(self._store.git, set_to=[*set_to, *moved.items()], delete=stale)


def _merged(before: Sequence[Adopted], adopted: Sequence[Adopted]) -> list[Adopted]:
    """Merge two histories by time; neither changes its own order."""
    merged: list[Adopted] = []
    rest = list(adopted)
    for item in before:
        while rest and rest[0].taken_at < item.taken_at:
            merged.append(rest.pop(0))
        merged.append(item)
    return merged + rest


def _time_of(record: RefRecord) -> datetime:
    return datetime.fromisoformat(str(decode_message(record.message)[1]["taken_at"]))
