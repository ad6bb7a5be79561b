"""Which workspaces an explicit prune may delete because their directory was deleted, as shown before it is done.

The preview is bound to the deletion: what was not in it stays, and so does what is no longer exactly as it was shown.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from engine.store.opened import Store
from engine.upkeep.facts import WorkspaceFacts, read_workspaces
from engine.upkeep.projects import Project, State


@dataclass(frozen=True, slots=True)
class Orphan:
    """A workspace that is observably gone, exactly as it was when it was shown."""

    hash: str
    workdir: str
    last_touch: datetime | None
    checkpoints: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OrphanPreview:
    """What an explicit prune may delete, shown to a person first; ``kept`` are orphans whose deletion is not proved."""

    gone: tuple[Orphan, ...] = ()
    kept: tuple[tuple[str, str], ...] = ()
    """Workdir and why it stays."""


def preview_orphans(workspaces: Iterable[WorkspaceFacts]) -> OrphanPreview:
    """Return which workspaces are observably gone now."""
    gone: list[Orphan] = []
    kept: list[tuple[str, str]] = []
    for facts in workspaces:
        if facts.project is None or facts.state is not State.ORPHAN:
            continue
        doubt = facts.in_use or facts.doubt
        if doubt is None:
            gone.append(as_orphan(facts, facts.project))
        else:
            kept.append((facts.project.workdir, doubt))
    return OrphanPreview(tuple(gone), tuple(kept))


def as_orphan(facts: WorkspaceFacts, project: Project) -> Orphan:
    """Return what is shown of an orphan."""
    ids = tuple(item.commit for item in facts.checkpoints)
    return Orphan(facts.hash, project.workdir, project.last_touch, ids)


def read_orphans(store: Store) -> OrphanPreview:
    """Return what an explicit prune would delete now, to be shown and handed back in a `PrunePolicy`.

    Raises:
        GitFailed, GitUnavailable: the refs cannot be read.
        StorageFailed: the store cannot be looked at.
    """
    if not store.exists():
        return OrphanPreview()
    return preview_orphans(read_workspaces(store.layout, store.git))
