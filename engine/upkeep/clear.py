"""Deleting what the store holds for good, as a person asked; the lock file is never part of it.

A directory is taken out of sight in one step before its content goes, so a crash leaves either all of it or none,
and what is half deleted is swept by the next prune.
"""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from engine.errors import EngineError
from engine.host import durable
from engine.store.opened import Store
from engine.upkeep.debris import remove_tree, set_aside
from engine.upkeep.facts import LegacyArchive, WorkspaceFacts, read_archives, read_workspaces, tree_bytes
from engine.upkeep.refusals import refusal

_JOURNAL = re.compile(r"[0-9a-f]{16}\.json")  # the notes of tools that run lie beside it under longer names


@dataclass(frozen=True, slots=True)
class ClearPreview:
    """What clearing would delete, to be shown before a person agrees.

    ``interrupted`` are the workspaces with a restore that a crash cut off: clearing gives up what it could bring back.
    ``under_way`` are those in which a command runs: clearing gives up the state before it.
    ``problem`` says why the checkpoints could not be counted.
    """

    base: str
    size_bytes: int = 0
    workspaces: tuple[str, ...] = ()
    checkpoints: int = 0
    legacy: tuple[LegacyArchive, ...] = ()
    interrupted: tuple[str, ...] = ()
    under_way: tuple[str, ...] = ()
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
    archives: tuple[LegacyArchive, ...] = ()
    problem = None
    size = 0
    try:
        size = tree_bytes(layout.base)
        archives = read_archives(layout)
        if store.exists():
            workspaces = read_workspaces(layout, store.git)
    except EngineError as error:
        problem = str(error)
    except OSError as error:
        problem = refusal(error, layout.base)
    interrupted = [facts for facts in workspaces if os.path.exists(layout.journal(facts.hash))]
    under_way = [facts for facts in workspaces if facts.in_use is not None and facts not in interrupted]
    return ClearPreview(
        layout.base,
        size,
        _names(workspaces),
        sum(len(facts.checkpoints) for facts in workspaces),
        archives,
        _names(interrupted),
        _names(under_way),
        problem,
    )


def _names(workspaces: Iterable[WorkspaceFacts]) -> tuple[str, ...]:
    return tuple(facts.workdir or facts.hash for facts in workspaces)


def clear_store(store: Store, *, give_up_interrupted: bool = False) -> ClearReport:
    """Delete every checkpoint of every workspace and the legacy archives.

    Args:
        store: the store.
        give_up_interrupted: also where a restore was cut off; otherwise nothing is deleted then.

    Raises:
        StoreBusy: somebody works in the store past the bounded wait; nothing was deleted.
        StorageFailed: the store cannot be looked at or locked; nothing was deleted.
    """
    layout = store.layout
    if not store.has_base():
        return ClearReport()
    is_new = not store.exists()  # and is made by taking the lock; older repositories are then set aside
    with store.alone("clearing the store"):
        interrupted = [name for name in os.listdir(os.path.dirname(layout.journal(""))) if _JOURNAL.fullmatch(name)]
        if interrupted and not give_up_interrupted:
            return ClearReport(errors=(_interrupted_note(len(interrupted)),))
        made = _delete(layout.base, ["store"])
        report = _delete(layout.base, [archive.name for archive in read_archives(layout)])
        report = report if is_new else _joined(made, report)
        try:
            durable.remove(layout.last_prune)
        except OSError as error:
            return replace(report, errors=(*report.errors, refusal(error, layout.last_prune)))
        return report


def _joined(first: ClearReport, second: ClearReport) -> ClearReport:
    return ClearReport(
        (*first.deleted, *second.deleted), first.freed_bytes + second.freed_bytes, (*first.errors, *second.errors)
    )


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
