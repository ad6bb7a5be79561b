"""Deleting what the store holds for good, as a person asked; the lock file is never part of it.

A directory is taken out of sight in one step before its content goes, so a crash leaves either all of it or none,
and what is half deleted is swept by the next prune.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from engine.errors import EngineError
from engine.host import durable
from engine.store.opened import Store
from engine.upkeep.debris import remove_tree, set_aside
from engine.upkeep.facts import LegacyArchive, WorkspaceFacts, read_archives, read_workspaces, tree_bytes


@dataclass(frozen=True, slots=True)
class ClearPreview:
    """What clearing would delete, to be shown before a person agrees.

    ``interrupted`` are the workspaces with a restore that a crash cut off: clearing gives up what it could bring back.
    ``problem`` says why the checkpoints could not be counted.
    """

    base: str
    size_bytes: int = 0
    workspaces: tuple[str, ...] = ()
    checkpoints: int = 0
    legacy: tuple[LegacyArchive, ...] = ()
    interrupted: tuple[str, ...] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class ClearReport:
    """What was deleted, relative to the base, and what could not be; ``errors`` are sentences."""

    deleted: tuple[str, ...] = ()
    freed_bytes: int = 0
    errors: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether all that was asked for is gone."""
        return not self.errors


def preview_clear(store: Store) -> ClearPreview:
    """Return what `clear_store` would delete; never raises for a damaged store."""
    layout = store.layout
    workspaces: list[WorkspaceFacts] = []
    problem = None
    if layout.exists():
        try:
            workspaces = read_workspaces(layout, store.git)
        except EngineError as error:
            problem = str(error)
    return ClearPreview(
        layout.base,
        tree_bytes(layout.base),
        tuple(facts.workdir or facts.hash for facts in workspaces),
        sum(len(facts.checkpoints) for facts in workspaces),
        read_archives(layout),
        tuple(facts.workdir or facts.hash for facts in workspaces if os.path.exists(layout.journal(facts.hash))),
        problem,
    )


def clear_store(store: Store, *, give_up_interrupted: bool = False) -> ClearReport:
    """Delete every checkpoint of every workspace and the legacy archives.

    Args:
        store: the store.
        give_up_interrupted: also where a restore was cut off; otherwise nothing is deleted then.

    Raises:
        StoreBusy: somebody works in the store past the bounded wait; nothing was deleted.
    """
    layout = store.layout
    if not os.path.isdir(layout.base):
        return ClearReport()
    with store.alone("clearing the store"):
        journals = os.path.join(layout.store, "journal")
        interrupted = [n for n in os.listdir(journals) if n.endswith(".json") and not n.endswith(".running.json")]
        if interrupted and not give_up_interrupted:
            return ClearReport(errors=(_interrupted_note(len(interrupted)),))
        names = ["store", *(archive.name for archive in read_archives(layout))]
        report = _delete(layout.base, names)
        durable.remove(layout.last_prune)
        return report


def _interrupted_note(count: int) -> str:
    what = "a restore was" if count == 1 else f"{count} restores were"
    return (
        f"{what} cut off by a crash and can only be finished with the store; nothing was deleted. "
        "Start the gateway once to finish it, or clear with -f to give it up"
    )


def clear_archives(store: Store) -> ClearReport:
    """Delete the legacy archives.

    Raises:
        StoreBusy: somebody works in the store past the bounded wait; nothing was deleted.
    """
    archives = read_archives(store.layout)
    if not archives:
        return ClearReport()
    with store.alone("clearing legacy archives"):
        return _delete(store.layout.base, [archive.name for archive in archives])


def _delete(base: str, names: Sequence[str]) -> ClearReport:
    deleted: list[str] = []
    errors: list[str] = []
    freed = 0
    for name in names:
        path = os.path.join(base, name)
        try:
            size = tree_bytes(path)
            remove_tree(set_aside(path))
        except OSError as error:
            errors.append(f"{path} could not be deleted: {error.strerror or error}")
        else:
            deleted.append(name)
            freed += size
    return ClearReport(tuple(deleted), freed, tuple(errors))
