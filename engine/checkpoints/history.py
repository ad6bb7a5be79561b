"""The checkpoints of a workspace: taken, listed, found, and dropped when there are too many.

A checkpoint is a commit of its own, so dropping one never changes another. What the list shows comes from the commits
and the ledger alone; it needs one git process and no look at the workspace.
"""

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from engine.checkpoints.capture import Captured, decode_message, encode_message
from engine.errors import GitFailed, StoreDamaged, UnknownCheckpoint
from engine.host.paths import display
from engine.model import ChangeStats, Checkpoint, CheckpointKind, Gap, GapReason, TurnRef, Workspace
from engine.store.commits import write_commit
from engine.store.gaps import decode_gap, encode_gap
from engine.store.opened import Store
from engine.store.quarantine import names_below, read_quarantine
from engine.store.refs import RefRecord, after_ref, checkpoint_ref, find_ref, list_names, list_refs, update_refs
from engine.store.torn import find_torn

_LOG = logging.getLogger(__name__)
_SHORTEST_PREFIX = 4
_LONGEST_REASON = 120
_SAFETIES_KEPT = 3
_GIT_DIRECTORIES = frozenset({".git"})


@dataclass(frozen=True, slots=True)
class Held:
    """A checkpoint with what only the engine needs: its tree, what it excluded, how much ledger existed then."""

    checkpoint: Checkpoint
    tree: str
    excluded: frozenset[str]
    ledger_number: int


@dataclass(frozen=True, slots=True)
class Purpose:
    """Why a checkpoint is taken and for whom."""

    kind: CheckpointKind
    reason: str
    turn: TurnRef | None = None
    restore_token: str | None = None
    replaced_head: str | None = None


def list_held(store: Store, workspace: Workspace) -> list[Held]:
    """Return the checkpoints, newest first; what leads to nothing is left out, see `damage_notes`."""
    if not store.knows(workspace.hash):
        return []
    store.ensure()  # a list takes no lock, so nothing has repaired the store before it
    stats = store.ledger(workspace).stats_of()
    broken: list[str] = []
    checkpoints = checkpoint_ref(workspace.hash, 0).rpartition("/")[0]
    records = list_refs(store.git, checkpoints, broken, store.commits)
    aside = names_below(store.layout, checkpoints)
    torn = [name for name, _content in find_torn(store.layout, checkpoints)]
    store.remembered(workspace).broken = tuple(dict.fromkeys([*broken, *aside, *torn]))
    held = [_parse(record, stats) for record in records]
    return sorted(held, key=lambda item: item.checkpoint.sequence, reverse=True)


def damage_notes(store: Store, workspace: Workspace) -> tuple[str, ...]:
    """Return what to say of damage: checkpoints that the last list had to leave out, and a ledger that lost records."""
    notes = []
    count = len(store.remembered(workspace).broken)
    if count:
        subject = "1 checkpoint is" if count == 1 else f"{count} checkpoints are"
        notes.append(f"{subject} damaged and left out of the list; nothing was deleted: gateway checkpoints verify")
    if store.ledger(workspace).lost is not None:
        notes.append(
            "a line of the ledger cannot be read; what the agent wrote then counts as edited by hand: "
            "gateway checkpoints verify"
        )
    return tuple(notes)


def find_held(held: Sequence[Held], prefix: str) -> Held:
    """Return the checkpoint whose id begins with ``prefix``.

    Raises:
        UnknownCheckpoint: it is no id, too short, unknown, or several begin so.
    """
    wanted = prefix.lower()
    if not wanted or set(wanted) - set("0123456789abcdef"):
        raise UnknownCheckpoint(prefix, "an id has only the digits 0-9 and a-f")
    if len(wanted) < _SHORTEST_PREFIX:
        raise UnknownCheckpoint(prefix, f"give at least {_SHORTEST_PREFIX} characters of the id")
    found = [item for item in held if item.checkpoint.id.startswith(wanted)]
    if not found:
        raise UnknownCheckpoint(prefix, "there is none by that id; it may have been pruned")
    if len(found) > 1:
        raise UnknownCheckpoint(prefix, "several begin so; give more of the id")
    return found[0]


def get_held(store: Store, workspace: Workspace, held: Sequence[Held], prefix: str) -> Held:
    """Return the checkpoint among those just listed whose id begins with ``prefix``.

    Raises:
        UnknownCheckpoint: as `find_held`.
        StoreDamaged: it is, or may be, one that the list has to leave out.
    """
    try:
        return find_held(held, prefix)
    except UnknownCheckpoint as error:
        count = _damaged_that_may_be(store, workspace, prefix.lower())
        if not count:
            raise
        what = f"checkpoint {prefix[:8]} is not among those that can be read, and {count} cannot be"
        raise StoreDamaged(what) from error


def _damaged_that_may_be(store: Store, workspace: Workspace, prefix: str) -> int:
    """Count the damaged checkpoints whose id begins so, or is lost with their names."""
    broken = store.remembered(workspace).broken
    if not broken:
        return 0
    commits: dict[str, str | None] = dict.fromkeys(broken)
    with suppress(ValueError):  # which verify says
        commits |= {entry.name: entry.commit for entry in read_quarantine(store.layout)}
    commits |= list_names(store.git, checkpoint_ref(workspace.hash, 0).rpartition("/")[0])
    return sum(commits[name] is None or str(commits[name]).startswith(prefix) for name in broken)


def covering(held: Sequence[Held], captured: Captured, turn: TurnRef | None) -> Held | None:
    """Return the checkpoint that already covers this moment: the turn's own, or the last one if nothing changed."""
    if turn is not None:
        for item in held:
            if item.checkpoint.turn == turn and item.checkpoint.kind is CheckpointKind.TURN:
                return item
    last = held[0] if held else None
    if last and last.checkpoint.kind is not CheckpointKind.SAFETY and _same_moment(last, captured):
        return last
    return None


def _same_moment(held: Held, captured: Captured) -> bool:
    """Whether a checkpoint says of a capture all there is to say: what it holds, and what it leaves out."""
    left_out = captured.excluded - _GIT_DIRECTORIES
    return held.tree == captured.tree and held.checkpoint.gaps == captured.gaps and held.excluded == left_out


def take(
    store: Store,
    workspace: Workspace,
    captured: Captured,
    purpose: Purpose,
    held: Sequence[Held],
    keep: Iterable[str] = (),
) -> Checkpoint:
    """Make a capture a checkpoint and drop the oldest beyond the limit, never one in ``keep``.

    Raises:
        GitFailed: no checkpoint was made.
    """
    # The number of one that leads to nothing is not given away: its name may come back from a backup.
    taken = [int(name.rpartition("/")[2]) for name in store.remembered(workspace).broken]
    sequence = max([*taken, held[0].checkpoint.sequence if held else 0]) + 1
    now = datetime.now(UTC)
    reason = one_line(purpose.reason)
    meta = {
        "kind": purpose.kind.value,
        "reason": reason,
        "taken_at": now.isoformat(timespec="milliseconds"),
        "sequence": sequence,
        "workdir": workspace.root,
        "turn": None if purpose.turn is None else [purpose.turn.chat, purpose.turn.session, purpose.turn.turn],
        "ledger": store.ledger(workspace).number,
        "restore_token": purpose.restore_token,
        "replaced_head": purpose.replaced_head,
        "gaps": [encode_gap(gap) for gap in captured.gaps],
        "excluded": sorted(captured.excluded - _GIT_DIRECTORIES),
    }
    store.touch(workspace)
    # 1. the commit is there; 2. it has a name; with the same step the oldest lose theirs.
    commit = write_commit(store.git, captured.tree, encode_message(reason, meta), int(time.time()))
    _name(store, workspace, (checkpoint_ref(workspace.hash, sequence), commit), _surplus(workspace, held, keep))
    return Checkpoint(
        commit,
        sequence,
        purpose.kind,
        reason,
        datetime.fromisoformat(str(meta["taken_at"])),
        purpose.turn,
        None,
        captured.gaps,
        purpose.restore_token,
        purpose.replaced_head,
    )


def _name(store: Store, workspace: Workspace, named: tuple[str, str], dropped: Sequence[Checkpoint]) -> None:
    """Name a commit and drop checkpoints in one step; where they cannot be dropped, at least name it."""
    try:
        _replace(store, workspace, [named], dropped)
    except (GitFailed, OSError) as error:
        if not dropped:
            raise
        # One too many does no harm, and the next checkpoint tries again.
        _LOG.warning("the oldest checkpoints were not dropped: %s", error)
        update_refs(store.git, set_to=[named])


def _surplus(workspace: Workspace, held: Sequence[Held], keep: Iterable[str]) -> list[Checkpoint]:
    """Return what is beyond the limit, counting the checkpoint that is being taken.

    Safety checkpoints go first, but for the newest few: going back and forth must not push out what there is to go
    back to.
    """
    kept = frozenset(keep)
    surplus = len(held) + 1 - workspace.limits.max_snapshots
    oldest_first = [item.checkpoint for item in reversed(held)]
    safeties = [item for item in oldest_first if item.kind is CheckpointKind.SAFETY][:-_SAFETIES_KEPT]
    others = [item for item in oldest_first if item not in safeties]
    droppable = [item for item in (*safeties, *others) if item.id not in kept]
    return droppable[: max(surplus, 0)]


def drop(store: Store, workspace: Workspace, checkpoints: Sequence[Checkpoint]) -> None:
    """Drop checkpoints; their space is reclaimed by the next prune."""
    _replace(store, workspace, [], checkpoints)


def _replace(
    store: Store, workspace: Workspace, named: Sequence[tuple[str, str]], dropped: Sequence[Checkpoint]
) -> None:
    names = [checkpoint_ref(workspace.hash, item.sequence) for item in dropped]
    after = [after_ref(workspace.hash, item.sequence) for item in dropped]
    if names:
        with open(store.layout.gc_pending, "ab") as pending:
            pending.write("".join(f"{name}\n" for name in names).encode("ascii"))
    update_refs(store.git, set_to=named, delete=[*names, *after])


def keep_after(store: Store, workspace: Workspace, found: Held, state: Captured, captured: Captured) -> None:
    """Name the state after a tool, so that what the turn changed can be shown as long as its checkpoint lives.

    What a person edited between two tools of the turn is in no checkpoint, and the later tool may have taken it away:
    the name then holds the state before that tool, too.

    Args:
        store: the store.
        workspace: the workspace.
        found: the checkpoint of the turn.
        state: the state before the tool.
        captured: the state after it.

    Raises:
        OSError: it is not named.
    """
    name = after_ref(workspace.hash, found.checkpoint.sequence)
    earlier = find_ref(store.git, name, store.commits)
    held = [] if state.tree == (found.tree if earlier is None else earlier.tree) else [state.commit]
    if earlier is not None and earlier.parents:
        held.append(earlier.commit)
    commit = captured.commit
    if held:
        commit = write_commit(store.git, captured.tree, encode_message("after", {}), int(time.time()), held)
    update_refs(store.git, set_to=[(name, commit)])


def drop_after(store: Store, workspace: Workspace, sequence: int) -> None:
    """Forget the state after a tool again, of which no ledger tells."""
    update_refs(store.git, delete=[after_ref(workspace.hash, sequence)])


def gap_notes(gaps: Iterable[Gap]) -> tuple[str, ...]:
    """Return a sentence per reason why something is not captured, three names each."""
    by_reason: dict[GapReason, list[Gap]] = {}
    for gap in gaps:
        by_reason.setdefault(gap.reason, []).append(gap)
    return tuple(_gap_note(reason, found) for reason, found in by_reason.items())


def _gap_note(reason: GapReason, gaps: Sequence[Gap]) -> str:
    shown = [_gap_name(gap) for gap in gaps[:3]]
    more = f" (+{len(gaps) - 3})" if len(gaps) > len(shown) else ""
    return f"not captured ({reason.value}): {', '.join(shown)}{more}"


def _gap_name(gap: Gap) -> str:
    details = [gap.detail] if gap.detail else []
    if gap.older:
        details.append("the content captured last is kept, it is older")
    return f"{display(gap.path)} ({'; '.join(details)})" if details else display(gap.path)


def _parse(record: RefRecord, stats: Mapping[str, ChangeStats]) -> Held:
    subject, meta = decode_message(record.message)
    turn = meta.get("turn")
    checkpoint = Checkpoint(
        record.commit,
        int(record.name.rpartition("/")[2]),
        CheckpointKind(meta.get("kind", CheckpointKind.MANUAL.value)),
        str(meta.get("reason", subject)),
        _time(meta),
        TurnRef(*turn) if turn else None,
        stats.get(record.commit),
        tuple(decode_gap(gap) for gap in meta.get("gaps", ())),
        meta.get("restore_token"),
        meta.get("replaced_head"),
        (meta.get("imported") or {}).get("from"),
    )
    return Held(checkpoint, record.tree, frozenset(meta.get("excluded", ())), int(meta.get("ledger", 0)))


def one_line(text: str) -> str:
    """Return one line that any terminal and chat can show, a command's own backslashes as they are."""
    shown = "".join(char if char.isprintable() else display(char) for char in text)
    return shown if len(shown) <= _LONGEST_REASON else f"{shown[: _LONGEST_REASON - 1]}…"


def _time(meta: Mapping[str, Any]) -> datetime:
    return datetime.fromisoformat(str(meta.get("taken_at", "1970-01-01T00:00:00+00:00")))
