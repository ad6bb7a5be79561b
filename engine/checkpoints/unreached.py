"""What a tool did beyond the reach of captures: what none held before it, and what none can hold after it."""

import os
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from engine.checkpoints.capture import Captured
from engine.checkpoints.source import is_made_anew
from engine.errors import GitFailed
from engine.host.git import Git
from engine.host.paths import display
from engine.model import Change, Entry, EntryKind, Gap, GapReason, Workspace
from engine.store.soundness import find_unsound

NO_REASONS: Mapping[str, str] = MappingProxyType({})
LOST = "lost by the store"
"""Why no capture holds what stood somewhere, although one did."""

_NAMES_SHOWN = 3
_GONE = "and gone now"
_CONTENT_KINDS = (EntryKind.FILE, EntryKind.SYMLINK)


def new_gaps(before: Captured, after: Captured) -> tuple[Gap, ...]:
    """Return the gaps that were not there before."""
    known = {(gap.path, gap.reason) for gap in before.gaps}
    return tuple(gap for gap in after.gaps if (gap.path, gap.reason) not in known)


def vanished(workspace: Workspace, before: Captured, after: Captured) -> tuple[Gap, ...]:
    """Return what was there before, was not captured and is gone; what tools make anew by themselves is left out."""
    excluded = sorted(path for path in before.excluded - after.excluded if not is_made_anew(path.rpartition("/")[2]))
    captured = {gap.path for gap in after.gaps}
    reasons = dict.fromkeys(excluded, GapReason.EXCLUDED)
    reasons |= {gap.path: gap.reason for gap in before.gaps if gap.path not in captured and not gap.older}
    return tuple(
        Gap(path, reason, _GONE)
        for path, reason in sorted(reasons.items())
        if path not in after.rows and not os.path.lexists(os.path.join(workspace.root, path))
    )


def out_of_reach(before: Captured, after: Captured) -> bool:
    """Whether a tool put what was captured out of reach, such as a file that grew too large."""
    gaps = {gap.path for gap in new_gaps(before, after)}
    reached = (path for gap in gaps for path in (gap, *before.rows.iter_below(gap)))
    return any(_was_held(before, path) and _has_gone(after, path) for path in reached)


def _was_held(before: Captured, path: str) -> bool:
    row = before.rows.get(path)
    return row is not None and row.entry.kind in _CONTENT_KINDS and not row.older


def _has_gone(after: Captured, path: str) -> bool:
    row = after.rows.get(path)
    return row is None or row.older


def uncaptured_before(before: Captured, changes: Iterable[Change]) -> dict[str, str]:
    """Return which of the changed paths held something before that no capture holds, and why none does."""
    gaps = {gap.path: gap.reason.value for gap in before.gaps}
    paths = before.excluded | gaps.keys()
    found = {}
    for change in changes:
        path = change.path
        while path and path not in paths:
            path = path.rpartition("/")[0]
        if path:
            found[change.path] = gaps.get(path, GapReason.EXCLUDED.value)
    return found


def lost_before(git: Git, before: Mapping[str, Entry | None]) -> tuple[str, ...]:
    """Return which of these paths held what the store cannot give back; none where git cannot be asked."""
    held = {path: entry.oid for path, entry in before.items() if entry is not None and entry.kind in _CONTENT_KINDS}
    try:
        lost = find_unsound(git, (oid for oid in held.values() if oid is not None))
    except GitFailed:
        return ()
    return tuple(sorted(path for path, oid in held.items() if oid in lost))


def lost_note(paths: Sequence[str]) -> tuple[str, ...]:
    """Say which paths held what the store lost, three names."""
    if not paths:
        return ()
    more = f" (+{len(paths) - _NAMES_SHOWN})" if len(paths) > _NAMES_SHOWN else ""
    names = ", ".join(map(display, paths[:_NAMES_SHOWN]))
    return (f"the store has lost the content of {names}{more} as it was before: it cannot be taken back",)
