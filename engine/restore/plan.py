"""Deciding what a restore does, path by path, without doing any of it.

`classify` is a pure function of what differs, what the ledger says and what could not be captured. A path is touched
only when what stands there now is content Takeback itself put there, or when the person asked for everything.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from engine.checkpoints.manifest import covers, iter_parents
from engine.checkpoints.reading import blob_oid
from engine.checkpoints.unreached import LOST, MOVED, TAKEN_AWAY
from engine.host.paths import display
from engine.model import EFFECTIVE, Action, Entry, EntryKind, Gap, GapReason, PlanItem
from engine.store.ledger import Ledger, LedgerEntry

# Once the mode of a directory is restored it can be read, and what is in it restored, too.
_SHUT = "what is in it could not be read until now; restore it again with --all for that"
_MOVE_AWAY = "; move it away first, then restore it again"
_LOST = "the store has lost what it held then"
_EMPTY = blob_oid(b"")


@dataclass(frozen=True, slots=True)
class Difference:
    """One path in which the checkpoint and the workspace differ."""

    path: str
    target: Entry | None
    now: Entry | None


@dataclass(frozen=True, slots=True)
class Facts:
    """All that a decision rests on.

    ``everything`` asks for hand-edits too. ``scope`` limits the restore to these paths; ``None`` means all.
    ``occupied`` are paths where something stands that was not captured, ``written_since`` those that tools changed
    after the checkpoint, ``standing`` all that is captured now. ``shared`` says what to do where not everything that
    changed since is to go, also at paths that are as the checkpoint holds them. ``uncaptured`` says where tools changed
    what no capture holds, and why none does; ``named`` are paths that a person named exactly, ``lost`` those whose
    content in the checkpoint the store cannot give back. At and below ``unreached`` tools put what was captured out of
    the reach of captures, so that nobody knows who took away what is gone there.
    """

    sequence: int
    entries: Mapping[str, LedgerEntry]
    everything: bool
    scope: frozenset[str] | None
    target_gaps: Sequence[Gap]
    target_excluded: frozenset[str]
    now_gaps: Sequence[Gap]
    now_excluded: frozenset[str]
    occupied: frozenset[str]
    written_since: frozenset[str]
    standing: Collection[str]
    shared: Mapping[str, PlanItem]
    uncaptured: Mapping[str, str]
    named: frozenset[str]
    lost: frozenset[str] = frozenset()
    unreached: frozenset[str] = frozenset()


def classify(differences: Iterable[Difference], facts: Facts) -> tuple[PlanItem, ...]:
    """Return the plan's items in path order."""
    differences = tuple(differences)
    gaps = _GapLookup(facts)
    items = [
        _item(difference, facts, gaps)
        for difference in differences
        if facts.scope is None or difference.path in facts.scope
    ]
    known = {item.path for item in items}
    passed = (item for path, item in facts.shared.items() if path not in known)
    items += [item for item in passed if gaps.why(Difference(item.path, None, item.now)) is None]
    items = _with_copies_kept(_with_parents(items, differences, gaps), facts)
    items += gaps.unmentioned({item.path for item in items})
    items.sort(key=lambda item: item.path)
    return tuple(_without_needed_directories(_settle_swaps(items, facts), facts))


def _with_parents(items: Sequence[PlanItem], differences: Iterable[Difference], gaps: "_GapLookup") -> list[PlanItem]:
    """Have the directories made that are gone and without which nothing can come back, whoever removed them.

    Made on the way, without being noted, they would be taken for a person's when the restore is undone.
    """
    makes = (item for item in items if item.action in (Action.RESTORE, Action.MERGE) and item.target is not None)
    needed = {parent for item in makes for parent in iter_parents(item.path)}
    made = {
        difference.path: PlanItem(difference.path, Action.RESTORE, None, difference.target)
        for difference in differences
        if difference.path in needed
        and difference.now is None
        and _kind(difference.target) is EntryKind.DIRECTORY
        and gaps.now_at(difference.path) is None
    }
    return [*(item for item in items if item.path not in made), *made.values()]


def _with_copies_kept(items: Sequence[PlanItem], facts: Facts) -> list[PlanItem]:
    """Keep what holds the content of something that stays away: removed, it would stand nowhere any more."""
    away = {
        item.target.oid: item.path
        for item in reversed(items)
        if item.action is Action.NOT_CAPTURED and item.target is not None and item.target.kind is EntryKind.FILE
    }
    away.pop(_EMPTY, None)
    return [_kept_copy(item, away) if item.path not in facts.named else item for item in items] if away else list(items)


def _kept_copy(item: PlanItem, away: Mapping[str | None, str]) -> PlanItem:
    origin = None if item.now is None or item.now.oid is None else away.get(item.now.oid)
    if item.action is not Action.DELETE or origin is None:
        return item
    return replace(item, action=Action.KEEP_COPY, why=f"{display(origin)} cannot be brought back")


def _without_needed_directories(items: Sequence[PlanItem], facts: Facts) -> list[PlanItem]:
    """Leave out the removal of directories in which something stays, so that nothing is promised that is not done."""
    going = {item.path for item in items if item.action is Action.DELETE}
    if not any(_kind(item.now) is EntryKind.DIRECTORY for item in items if item.path in going):
        return list(items)
    made = {item.path for item in items if item.action in (Action.RESTORE, Action.MERGE)}
    staying = (set(facts.standing) | facts.now_excluded | {gap.path for gap in facts.now_gaps} | made) - going
    needed = {parent for path in staying for parent in iter_parents(path)}
    return [item for item in items if item.path not in going & needed]


class _GapLookup:
    """Which paths one of the two sides cannot speak for."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._now = {gap.path: gap for gap in facts.now_gaps}
        self._target = {gap.path: gap for gap in facts.target_gaps}
        self._now_paths = frozenset(self._now)
        self._target_paths = frozenset(self._target)

    def why(self, difference: Difference) -> str | None:
        """Return why a path is left alone because it is not captured, ``None`` if it is."""
        path, named = difference.path, difference.path in self._facts.named
        if path in self._facts.lost:
            return _LOST
        now = self.now_at(path)
        if now is not None:
            return f"{now}{_MOVE_AWAY}" if named and difference.target is not None else now
        at_target = self._target_at(difference)
        if at_target is not None:
            return None if named and self._holds_older(difference) else at_target
        if path in self._facts.uncaptured and not named:
            return _uncaptured_said(self._facts.uncaptured[path])
        return None

    def is_known_mode(self, difference: Difference) -> bool:
        """Whether the mode of a directory is to change that could not be read, which it is known without."""
        path = difference.path
        return (
            _kind(difference.target) is _kind(difference.now) is EntryKind.DIRECTORY
            and any(_is_unreadable(gaps.get(path)) for gaps in (self._now, self._target))
            and not any(covers(paths, path.rpartition("/")[0]) for paths in (self._now_paths, self._target_paths))
        )

    def is_shut(self, path: str) -> bool:
        """Whether what stands at a path now could not be read."""
        return _is_unreadable(self._now.get(path))

    def now_at(self, path: str) -> str | None:
        """Return why what stands at a path now is not captured, ``None`` if it is."""
        if covers(self._now_paths, path):
            return f"now {_nearest(self._now, path).reason.value}"
        return "excluded now" if path in self._facts.occupied else None

    def _target_at(self, difference: Difference) -> str | None:
        path = difference.path
        if covers(self._target_paths, path):
            return f"{_nearest(self._target, path).reason.value} in the checkpoint"
        if difference.target is None and covers(self._facts.target_excluded, path):
            return "excluded in the checkpoint"
        return None

    def _holds_older(self, difference: Difference) -> bool:
        """Whether the checkpoint holds the content captured last of what it could not capture."""
        gap = self._target.get(difference.path)
        return gap is not None and gap.older and difference.target is not None

    def unmentioned(self, mentioned: set[str]) -> list[PlanItem]:
        """Return an item for each gap that no difference speaks of, so that it is said.

        A restore of some paths leaves out the gaps that were there before and still are: they have nothing to do with
        it. What came or went since may have been its turn's doing.
        """
        scope = self._facts.scope
        lasting = self._now_paths & self._target_paths
        found = [
            PlanItem(path, Action.NOT_CAPTURED, None, None, self._said(gap))
            for path, gap in {**self._target, **self._now}.items()
            if path not in mentioned and (scope is None or path in scope or path not in lasting)
        ]
        known = mentioned | self._now_paths | self._target_paths
        found += [
            PlanItem(
                path,
                Action.NOT_CAPTURED,
                None,
                None,
                why if why.endswith(TAKEN_AWAY) else f"{why} before it was changed",
            )
            for path, why in self._facts.uncaptured.items()
            if path not in known and (scope is None or path in scope)
        ]
        known |= self._facts.uncaptured.keys()
        hidden = (path for path in self._facts.written_since - known if scope is None or path in scope)
        found += [
            PlanItem(path, Action.NOT_CAPTURED, None, None, "excluded in the checkpoint")
            for path in hidden
            if covers(self._facts.target_excluded, path)
        ]
        return found

    def _said(self, gap: Gap) -> str:
        why = f"{gap.reason.value}: {gap.detail}" if gap.detail else gap.reason.value
        in_the_way = gap.path in self._facts.named and self._now.get(gap.path) is gap and gap.older
        return f"{why}{_MOVE_AWAY}" if in_the_way else why


def _is_unreadable(gap: Gap | None) -> bool:
    return gap is not None and gap.reason is GapReason.UNREADABLE


def _uncaptured_said(why: str) -> str:
    if why == LOST:
        return _LOST
    if why == MOVED:
        return f"{MOVED}; name it to remove it"
    return f"{why.removesuffix(TAKEN_AWAY)} before it was changed; name it to restore it"


def _taken_away_said(why: str) -> str:
    return why if why.endswith(TAKEN_AWAY) else f"{why} before it was changed"


def _nearest(gaps: Mapping[str, Gap], path: str) -> Gap:
    while path not in gaps:
        path = path.rpartition("/")[0]
    return gaps[path]


def _item(difference: Difference, facts: Facts, gaps: _GapLookup) -> PlanItem:
    path, target, now = difference.path, difference.target, difference.now
    uncaptured = None if gaps.is_known_mode(difference) else gaps.why(difference)
    if uncaptured is not None or EntryKind.REPOSITORY in (_kind(target), _kind(now)):
        return PlanItem(path, Action.NOT_CAPTURED, now, target, uncaptured or "nested git repository")
    action = Action.DELETE if target is None else Action.RESTORE
    why = _SHUT if gaps.is_shut(path) else ""
    # Where nothing stands nothing is overwritten.
    wanted = now is None and (path in facts.named or covers(facts.unreached, path))
    if facts.everything or wanted:
        return PlanItem(path, action, now, target, why)
    entry = facts.entries.get(path)
    if not is_ours(entry, now, facts.sequence):
        return PlanItem(path, Action.KEEP_HAND_EDIT, now, target, "changed by hand")
    if path in facts.shared:
        return facts.shared[path]
    return PlanItem(path, action, now, target, why)


def is_ours(entry: LedgerEntry | None, now: Entry | None, sequence: int) -> bool:
    """Whether what stands at a path is content Takeback put there and this restore may take away.

    Content that an earlier restore brought back is somebody's hand-edit on the way further back, and merely what the
    restore put there on the way forward again.
    """
    if entry is None or entry.state != now:
        return False
    return entry.restored_from is None or sequence > entry.restored_from


def _kind(entry: Entry | None) -> EntryKind | None:
    return None if entry is None else entry.kind


def _settle_swaps(items: Sequence[PlanItem], facts: Facts) -> list[PlanItem]:
    """Make the items agree where a directory has to become something else, or something else a directory."""
    by_path = {item.path: item for item in items}
    for item in items:
        if item.action not in EFFECTIVE:
            continue
        if _kind(item.now) is EntryKind.DIRECTORY and _kind(item.target) not in (None, EntryKind.DIRECTORY):
            _settle_directory_to_other(item, by_path, facts)
    for item in items:
        if by_path[item.path].action in EFFECTIVE:
            _settle_below_other(item, by_path)
    return [by_path[item.path] for item in items]


def _settle_directory_to_other(item: PlanItem, by_path: dict[str, PlanItem], facts: Facts) -> None:
    """Keep a directory, and all below, if anything in it has to stay."""
    below = f"{item.path}/"
    stays = [p for p, other in by_path.items() if p.startswith(below) and other.action is not Action.DELETE]
    # What is standing there outside the scope of this restore stays too.
    stays += [path for path in facts.standing if path.startswith(below) and path not in by_path]
    stays += [path for path in facts.now_excluded if path.startswith(below)]
    stays += [gap.path for gap in facts.now_gaps if gap.path.startswith(below)]
    if not stays:
        return
    why = f"the directory holds {display(min(stays))}, which stays"
    for path, other in by_path.items():
        if path == item.path or (path.startswith(below) and other.action is Action.DELETE):
            by_path[path] = replace(other, action=Action.NOT_CAPTURED, why=why)


def _settle_below_other(item: PlanItem, by_path: dict[str, PlanItem]) -> None:
    """Keep what would have to go below something that stays and is no directory."""
    parent = item.path.rpartition("/")[0]
    while parent:
        other = by_path.get(parent)
        blocks = other is not None and other.action not in EFFECTIVE
        if other is not None and blocks and other.now is not None and other.now.kind is not EntryKind.DIRECTORY:
            why = f"{display(parent)} stays as it is"
            by_path[item.path] = replace(by_path[item.path], action=other.action, why=why)
            return
        parent = parent.rpartition("/")[0]


def ledger_after(
    items: Iterable[tuple[str, Entry | None]], known_then: Mapping[str, LedgerEntry], sequence: int
) -> dict[str, LedgerEntry]:
    """Return the ledger entries that describe what a restore put back.

    Where the ledger of the checkpoint's moment knew the same content, it is the agent's again; otherwise it is what
    the restore took from the checkpoint.
    """
    entries = {}
    for path, state in items:
        then = known_then.get(path)
        if then is not None and then.state == state:
            entries[path] = then
        else:
            entries[path] = LedgerEntry(state, "", "", sequence, then.live if then else ())
    return entries


def is_full(ledger: Ledger, *, everything: bool) -> bool:
    """Whether hand-edits go too: asked for, or nothing of the agent's is known to tell them from."""
    return everything or ledger.empty
