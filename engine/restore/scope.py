"""What a restore is asked for, which paths that means, and whose changes go with it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from engine.checkpoints.capture import Captured
from engine.checkpoints.history import Held
from engine.checkpoints.manifest import covers
from engine.host.git import Git
from engine.model import CheckpointKind, EntryKind
from engine.restore.plan import Difference
from engine.restore.selection import Selection, matched_names
from engine.restore.sharing import Claim
from engine.store.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of a restore; see `engine.api.Engine.plan_restore`."""

    checkpoint_id: str
    selection: tuple[str, ...] = ()
    everything: bool = False
    turns: tuple[str, ...] = ()
    chat: str | None = None
    token: str | None = None


def find_passed(ledger: Ledger, target: Held, captured: Captured, differing: Collection[str]) -> list[Difference]:
    """Return the paths that tools changed since and that are as the checkpoint holds them all the same.

    What a person put there in between came and went; where tools took it away, it is to come back.
    """
    rows = captured.rows
    paths = sorted(ledger.written_after(target.ledger_number).difference(differing))
    entries = {path: rows[path].entry if path in rows else None for path in paths}
    return [Difference(path, entry, entry) for path, entry in entries.items()]


def scope_of(
    git: Git,
    request: Request,
    target: Held,
    ledger: Ledger,
    selection: Selection | None,
    differences: Sequence[Difference],
    *,
    captured: Captured,
) -> frozenset[str] | None:
    """Return the paths that a restore is limited to, ``None`` for all."""
    scope: frozenset[str] | None = None
    if request.turns:
        writes = [write for write in ledger.writes_of(request.turns) if write.number > target.ledger_number]
        unreached = frozenset(path for write in writes for path in write.unreached)
        scope = frozenset(path for write in writes for path in (*write.changes, *write.uncaptured))
        scope |= {difference.path for difference in differences if covers(unreached, difference.path)}
    if selection is not None:
        names = {d.path for d in differences} | {gap.path for gap in captured.gaps}
        chosen = _chosen(git, names, differences, selection)
        scope = chosen if scope is None else scope & chosen
    return scope


def _chosen(git: Git, names: set[str], differences: Sequence[Difference], selection: Selection) -> frozenset[str]:
    """Return the differing paths a selection means; a directory goes with its whole content."""
    directories = {d.path for d in differences if EntryKind.DIRECTORY in _kinds(d)}
    chosen = set(matched_names(git, names - directories, selection))
    others = names - directories - chosen
    for path in directories:
        below = f"{path}/"
        whole = any(p.startswith(below) for p in chosen) and not any(p.startswith(below) for p in others)
        if whole or selection.names_directory_of(path):
            chosen.add(path)
    return frozenset(chosen)


def claim_of(request: Request, target: Held, ledger: Ledger) -> Claim:
    """Say whose changes go: those of who asks, and of whom the checkpoint belongs to."""
    redoes = target.checkpoint.kind is CheckpointKind.SAFETY
    turns = frozenset(request.turns)
    if request.chat is None:
        return Claim(None, turns, redoes)
    chats = {request.chat}
    if target.checkpoint.turn is not None:
        chats.add(target.checkpoint.turn.chat)
    made_for = ledger.restore_by(target.checkpoint.restore_token) if target.checkpoint.restore_token else None
    if made_for is not None:
        chats.add(made_for.chat)
    return Claim(frozenset(chats), turns, redoes)


def _kinds(difference: Difference) -> set[EntryKind]:
    return {entry.kind for entry in (difference.now, difference.target) if entry is not None}
