"""What the store holds and how large it is, read beside whoever works in it: no lock is taken, nothing is made."""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from engine.errors import EngineError
from engine.store.layout import Layout
from engine.store.opened import Store
from engine.store.quarantine import names_below
from engine.store.torn import find_torn
from engine.upkeep.facts import LegacyArchive, WorkspaceFacts, read_archives, read_pending, read_workspaces, tree_bytes
from engine.upkeep.marker import LastPrune, read_marker
from engine.upkeep.objects import Bulk, read_bulk
from engine.upkeep.projects import State
from engine.upkeep.refusals import refusal

__all__ = ["LegacyArchive", "ProjectStatus", "State", "StoreStatus", "read_projects", "read_status"]


@dataclass(frozen=True, slots=True)
class ProjectStatus:
    """One workspace in the store; ``workdir`` is ``None`` where its project file is missing or torn."""

    hash: str
    workdir: str | None
    checkpoints: int
    created_at: datetime | None
    last_touch: datetime | None
    state: State


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """The store as ``gateway checkpoints status`` shows it; sizes are what the files hold, in bytes.

    ``dropped_refs`` are checkpoints dropped whose space the next prune reclaims. ``problem`` says why the workspaces
    could not be read; the sizes are right all the same, unless not even ``exists`` could be told. ``quarantined`` are
    names that led to nothing and were set aside, ``torn`` those that hold nothing and still stand.
    """

    base: str
    exists: bool
    total_bytes: int = 0
    store_bytes: int = 0
    legacy: tuple[LegacyArchive, ...] = ()
    projects: tuple[ProjectStatus, ...] = ()
    dropped_refs: int = 0
    objects: Bulk = field(default_factory=Bulk)
    last_prune: LastPrune | None = None
    problem: str | None = None
    quarantined: tuple[str, ...] = ()
    torn: tuple[str, ...] = ()

    @property
    def legacy_bytes(self) -> int:
        """The size of all legacy archives."""
        return sum(archive.size_bytes for archive in self.legacy)


def read_status(store: Store) -> StoreStatus:
    """Return what the store holds, most recently used workspace first; never raises for a damaged one."""
    try:
        return _read_status(store)
    except EngineError as error:
        return StoreStatus(store.layout.base, exists=False, problem=str(error))
    except OSError as error:
        return StoreStatus(store.layout.base, exists=False, problem=refusal(error, store.layout.base))


def _read_status(store: Store) -> StoreStatus:
    layout = store.layout
    if not store.has_base():
        return StoreStatus(layout.base, exists=False)
    store_bytes = tree_bytes(layout.store)
    archives = read_archives(layout)
    projects: list[ProjectStatus] = []
    problem = None
    exists = store.exists()
    if exists:
        try:
            projects = read_projects(store)
        except EngineError as error:
            problem = str(error)
    return StoreStatus(
        layout.base,
        exists,
        store_bytes + sum(archive.size_bytes for archive in archives) + _rest_bytes(layout, archives),
        store_bytes,
        archives,
        tuple(projects),
        len(read_pending(layout)),
        read_bulk(layout),
        read_marker(layout),
        problem,
        tuple(names_below(layout, "refs")),
        _torn(layout),
    )


def _torn(layout: Layout) -> tuple[str, ...]:
    with suppress(OSError):  # what cannot be read is no news to whoever reads the disk
        return tuple(name for name, _content in find_torn(layout))
    return ()


def read_projects(store: Store) -> list[ProjectStatus]:
    """Return the workspaces, most recently used first.

    Raises:
        GitFailed, GitUnavailable: the refs cannot be read.
        StorageFailed: the store cannot be looked at.
    """
    if not store.exists():
        return []
    found = [_status(facts) for facts in read_workspaces(store.layout, store.git)]
    return sorted(found, key=lambda item: (-item.last_touch.timestamp() if item.last_touch else 0.0, item.hash))


def read_problem(store: Store) -> str | None:
    """Return why the workspaces cannot be read, ``None`` if they can or if there is no store yet; nothing is measured.

    Runs git once, and only where there is a store.
    """
    try:
        read_projects(store)
    except EngineError as error:
        return str(error)
    except OSError as error:
        return refusal(error, store.layout.base)
    return None


def _status(facts: WorkspaceFacts) -> ProjectStatus:
    project = facts.project
    return ProjectStatus(
        facts.hash,
        facts.workdir,
        len(facts.checkpoints),
        project.created_at if project else None,
        project.last_touch if project else None,
        facts.state,
    )


def _rest_bytes(layout: Layout, archives: Sequence[LegacyArchive]) -> int:
    """Return the size of what lies beside the store and the archives."""
    measured = {os.path.basename(layout.store), *(archive.name for archive in archives)}
    with os.scandir(layout.base) as entries:
        return sum(
            tree_bytes(entry.path) if entry.is_dir(follow_symlinks=False) else entry.stat(follow_symlinks=False).st_size
            for entry in entries
            if entry.name not in measured
        )
