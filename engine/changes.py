"""What changed between two captures, and which of it is a tool's doing."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType

from engine.checkpoints.manifest import covers, iter_parents
from engine.model import Change, Entry, EntryKind, Gap
from engine.store.rows import Row, Rows

NO_WRITES: Mapping[str, Entry | None] = MappingProxyType({})


def compare_rows(before: Rows, after: Rows, gaps: Iterable[Gap], differing: Iterable[str]) -> tuple[Change, ...]:
    """Return what differs between two captures, leaving out what the second one could not capture.

    ``differing`` are the paths whose rows are not the same in both.
    """
    unknown = frozenset(gap.path for gap in gaps)
    changes = []
    for path in sorted(differing):
        old, new = before.get(path), after.get(path)
        old_entry, new_entry = old.entry if old else None, new.entry if new else None
        both_directories = _is_directory(old_entry) and _is_directory(new_entry)  # the mode of one is always known
        if covers(unknown, path) and not both_directories:
            continue
        if old_entry == new_entry or EntryKind.REPOSITORY in (_kind(old), _kind(new)):
            continue
        changes.append(Change(path, old_entry, new_entry))
    return tuple(changes)


def _kind(row: Row | None) -> EntryKind | None:
    return row.entry.kind if row else None


def written_as_planned(changes: Iterable[Change], writes: Mapping[str, Entry | None]) -> tuple[Change, ...]:
    """Return those changes that are exactly what a tool was to write, and the directories it made for them."""
    parents = {parent for path in writes for parent in iter_parents(path)}
    return tuple(
        change
        for change in changes
        if (change.path in writes and writes[change.path] == change.after)
        or (change.path in parents and change.before is None and _is_directory(change.after))
    )


def only_at(changes: Iterable[Change], named: Iterable[str]) -> tuple[Change, ...]:
    """Return those changes that lie at named paths, on the way to them, or below them."""
    wanted = frozenset(named)
    parents = {parent for path in wanted for parent in iter_parents(path)}
    return tuple(change for change in changes if change.path in parents or covers(wanted, change.path))


def without_others(changes: Iterable[Change], put: Mapping[str, Entry | None]) -> tuple[Change, ...]:
    """Leave out what others put there meanwhile, by their own account; what was changed on top of it stays."""
    own = (replace(change, before=put[change.path]) if change.path in put else change for change in changes)
    return tuple(change for change in own if change.before != change.after)


def _is_directory(entry: Entry | None) -> bool:
    return entry is not None and entry.kind is EntryKind.DIRECTORY
