"""What a tool did beyond the reach of captures: what none held before it, and what none can hold after it."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice

from engine.checkpoints.capture import Captured
from engine.checkpoints.manifest import covers, iter_parents
from engine.checkpoints.source import is_made_anew
from engine.errors import GitFailed
from engine.host.git import Git
from engine.host.paths import display
from engine.model import Change, Entry, EntryKind, Gap, GapReason, Workspace
from engine.store.soundness import find_unsound

LOST = "lost by the store"
"""Why no capture holds what stood somewhere, although one did."""

MOVED = "moved here from what no checkpoint holds"
"""Why a file may be the only copy of what stood elsewhere before."""

TAKEN_AWAY = "; taken away"
"""What follows the reason why no capture holds something, where a tool removed or moved it."""

_NAMES_SHOWN = 3
_GONE = "and gone now"
_MOST_IDENTIFIED = 2000

Identities = Mapping[str, tuple[int, int, int]]
"""Paths with the device, inode and time of what stands there."""
_CONTENT_KINDS = (EntryKind.FILE, EntryKind.SYMLINK)


def new_gaps(before: Captured, after: Captured) -> tuple[Gap, ...]:
    """Return the gaps that were not there before, each with how much in it was captured until now."""
    return tuple(_with_count(gap, before, after) for gap in _new_gaps(before, after))


def _new_gaps(before: Captured, after: Captured) -> list[Gap]:
    known = {(gap.path, gap.reason) for gap in before.gaps}
    return [gap for gap in after.gaps if (gap.path, gap.reason) not in known]


def _with_count(gap: Gap, before: Captured, after: Captured) -> Gap:
    count = sum(_was_held(before, path) and _has_gone(after, path) for path in before.rows.iter_below(gap.path))
    if not count:
        return gap
    said = f"{count} {'file' if count == 1 else 'files'} in it captured until now"
    return replace(gap, detail=f"{gap.detail}; {said}" if gap.detail else said)


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


def gone_since(gone: Iterable[Gap]) -> dict[str, str]:
    """Return what went that no capture holds, and why none does."""
    return {gap.path: f"{gap.reason.value}{TAKEN_AWAY}" for gap in gone}


def identities(workspace: Workspace, captured: Captured) -> Identities:
    """Look at what stands there and no capture holds, so that it can be found again under another name."""
    missed = (path for path in captured.excluded if not is_made_anew(path.rpartition("/")[2]))
    paths = chain((gap.path for gap in captured.gaps), missed)
    found = ((path, _identity(workspace, path)) for path in islice(paths, _MOST_IDENTIFIED))
    return {path: identity for path, identity in found if identity is not None}


def moved_in(workspace: Workspace, known: Identities, after: Captured, changes: Iterable[Change]) -> dict[str, str]:
    """Return the changed files that are, or lie in, what stood under another name before and no capture held there."""
    files = [change.path for change in changes if change.after is not None and change.after.kind in _CONTENT_KINDS]
    if not files:
        return {}
    # The old name may have been given to something else by now.
    wanted = {identity for path, identity in known.items() if _identity(workspace, path) != identity}
    if not wanted:
        return {}
    places = {path for file in files for path in (file, *iter_parents(file))}
    moved = frozenset(path for path in places if _identity(workspace, path) in wanted)
    return {path: MOVED for path in files if path in after.rows and covers(moved, path)}


def _identity(workspace: Workspace, path: str) -> tuple[int, int, int] | None:
    try:
        status = os.lstat(os.path.join(workspace.root, path))
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns  # an inode's number is soon given to another file


def out_of_reach(before: Captured, after: Captured) -> dict[str, str]:
    """Return where a tool put what was captured out of reach, as where a file grew too large, and why it is."""
    return {
        gap.path: gap.reason.value
        for gap in _new_gaps(before, after)
        if any(
            _was_held(before, path) and _has_gone(after, path) for path in (gap.path, *before.rows.iter_below(gap.path))
        )
    }


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
