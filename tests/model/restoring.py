"""What a restore does to each path, predicted from what DESIGN says of it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from tests.model.source import REPOSITORY, Capture
from tests.model.trees import Node, Tree, below, has_free_way, make_parents, parents


class Fate(StrEnum):
    """What becomes of one path."""

    RESTORE = "restored"
    DELETE = "removed"
    MERGE = "merged"
    KEEP = "kept as hand-edit"
    OTHER = "kept for others"
    UNCAPTURED = "not captured"

    @property
    def changes(self) -> bool:
        return self in {Fate.RESTORE, Fate.DELETE, Fate.MERGE}


@dataclass(frozen=True, slots=True)
class Mark:
    """What the ledger says of a path: what was put there last, ``None`` for a deletion, and by whom.

    ``restored_from`` is the number of the checkpoint that brought back content which is not the agent's.
    """

    node: Node | None
    chat: str
    restored_from: int | None = None

    def goes_back_to(self, sequence: int) -> bool:
        """Whether a checkpoint may take it away: content that a restore brought back is nobody's before that."""
        return self.restored_from is None or sequence > self.restored_from


Ledger = Mapping[str, Mark]


@dataclass(frozen=True, slots=True)
class Act:
    """One change of one path by a tool, or by a restore, which belongs to no turn."""

    number: int
    chat: str
    turn: object | None
    before: Node | None
    after: Node | None


@dataclass(frozen=True, slots=True)
class Item:
    """One path of a plan; ``shared`` is one in which others had a hand, so that it may go one way or another."""

    fate: Fate
    now: Node | None
    target: Node | None
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Wish:
    """What a restore is asked for: whose work goes, of one turn if it is named, and which paths (``None`` for all).

    ``since`` is the last act before the checkpoint.
    """

    sequence: int
    since: int
    everything: bool
    chats: Collection[str]
    turn: object | None
    scope: Collection[str] | None


@dataclass(frozen=True, slots=True)
class Known:
    """What a plan is made from: the whole tree, both captures, the ledger and the acts it adds up.

    ``unsure`` are the paths of which the ledger is not known for certain. ``outcome`` is what the product made of the
    tree, looked at for shared paths alone; ``None`` before it did anything.
    """

    tree: Tree
    target: Capture
    now: Capture
    ledger: Ledger
    acts: Mapping[str, Sequence[Act]]
    unsure: Collection[str]
    outcome: Tree | None


@dataclass(slots=True)
class Done:
    """What a restore did."""

    done: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


Plan = dict[str, Item]


def differences(target: Capture, now: Capture) -> dict[str, tuple[Node | None, Node | None]]:
    """Return the paths that differ, each with what it was and what it is."""
    paths = target.rows.keys() | now.rows.keys()
    both = {path: (target.rows.get(path), now.rows.get(path)) for path in sorted(paths)}
    return {path: pair for path, pair in both.items() if pair[0] != pair[1]}


def plan(known: Known, wish: Wish) -> Plan:
    """Decide what becomes of each path that differs."""
    plan = {
        path: _item(path, before, after, known, wish)
        for path, (before, after) in differences(known.target, known.now).items()
        if wish.scope is None or path in wish.scope
    }
    for path, item in plan.items():
        if item.fate.changes and item.now is not None and item.now.is_directory and _is_leaf(item.target):
            _keep_whole(path, plan, known.now)
    for path, item in plan.items():
        if item.fate.changes:
            plan[path] = replace(item, fate=_fate_below(path, plan) or item.fate)
    return plan


def _is_leaf(node: Node | None) -> bool:
    return node is not None and not node.is_directory


def _item(path: str, before: Node | None, after: Node | None, known: Known, wish: Wish) -> Item:
    fate = _certain_fate(path, before, after, known, wish)
    return _shared_item(path, before, after, known, wish) if fate is None else Item(fate, after, before)


def _certain_fate(path: str, before: Node | None, after: Node | None, known: Known, wish: Wish) -> Fate | None:
    """What DESIGN says of a path, ``None`` where it leaves it to what can be merged."""
    action = Fate.DELETE if before is None else Fate.RESTORE
    if _is_uncaptured(path, before, after, known):
        return Fate.UNCAPTURED
    if wish.everything:
        return action
    if path in known.unsure:
        return None
    mark = known.ledger.get(path)
    if mark is None or mark.node != after or not mark.goes_back_to(wish.sequence):
        return Fate.KEEP
    later = [act for act in known.acts.get(path, ()) if act.number > wish.since]
    if not later:
        return action if mark.restored_from is not None or mark.chat in wish.chats else Fate.OTHER
    return action if _is_own(later, before, after, wish) else None


def _is_uncaptured(path: str, before: Node | None, after: Node | None, known: Known) -> bool:
    """Whether one of both sides cannot speak for a path."""
    target, now = known.target, known.now
    return (
        REPOSITORY in (before, after)
        or _covers(now.gaps | target.gaps, path)
        or (after is None and path in known.tree)
        or (before is None and _covers(target.excluded, path))
    )


def _is_own(acts: Sequence[Act], before: Node | None, after: Node | None, wish: Wish) -> bool:
    """Whether everything since the checkpoint is to go, and nobody's hand came in between."""
    nodes = [before, *(node for act in acts for node in (act.before, act.after)), after]
    chain = all(one == other for one, other in zip(nodes[::2], nodes[1::2], strict=True))
    turn = wish.turn is None or all(act.turn is wish.turn for act in acts)
    return chain and turn and all(act.chat in wish.chats for act in acts)


def _shared_item(path: str, before: Node | None, after: Node | None, known: Known, wish: Wish) -> Item:
    """Take over what the product made of a path: kept as it was, brought back to a state it was in, or merged."""
    found = after if known.outcome is None else known.outcome.get(path)
    if found == after:
        return Item(Fate.OTHER, after, before, shared=True)
    if found is None or found == before:
        return Item(Fate.DELETE if found is None else Fate.RESTORE, after, found, shared=True)
    was = [act.before for act in known.acts.get(path, ()) if act.number > wish.since]
    kinds = {node.kind for node in (before, found, after) if node is not None}
    assert found in was or kinds == {"file"}, f"{path!a} became something that it never was: {found}"
    return Item(Fate.MERGE, after, found, shared=True)


def _covers(paths: Collection[str], path: str) -> bool:
    return path in paths or any(parent in paths for parent in parents(path))


def _keep_whole(path: str, plan: Plan, now: Capture) -> None:
    """A directory that has to become something else stays, and all in it, when anything in it has to stay."""
    inside = [other for other in plan if other.startswith(f"{path}/")]
    left = [other for other in (*now.excluded, *now.gaps) if other.startswith(f"{path}/")]
    if left or any(plan[other].fate is not Fate.DELETE for other in inside):
        for other in [path, *inside]:
            if other == path or plan[other].fate is Fate.DELETE:
                plan[other] = replace(plan[other], fate=Fate.UNCAPTURED)


def _fate_below(path: str, plan: Plan) -> Fate | None:
    """What would have to go below something that stays, and is no directory, shares its fate."""
    for parent in parents(path):
        item = plan.get(parent)
        if item is not None and not item.fate.changes and _is_leaf(item.now):
            return item.fate
    return None


def perform(tree: Tree, plan: Plan) -> Done:
    """Carry a plan out in memory: deepest deletions first, then what comes back, from the top."""
    result = Done()
    for path in sorted((p for p, item in plan.items() if item.fate is Fate.DELETE), reverse=True):
        if not below(tree, path):
            tree.pop(path, None)
        result.done.append(path)
    made = sorted(path for path, item in plan.items() if item.fate in {Fate.RESTORE, Fate.MERGE})
    for path in made:
        target = plan[path].target
        if target is not None and _put(tree, path, target):
            result.done.append(path)
        else:
            result.failed.append(path)
    return result


def _put(tree: Tree, path: str, target: Node) -> bool:
    standing = tree.get(path)
    if not has_free_way(tree, path):
        return False
    make_parents(tree, path)
    if standing is not None and standing.is_directory and not target.is_directory and below(tree, path):
        return False
    tree[path] = target
    return True


def ledger_after(done: Done, plan: Plan, ledger: Ledger, then: Ledger, sequence: int) -> dict[str, Mark]:
    """Return the ledger after a restore: content that was the agent's at the checkpoint is the agent's again."""
    after = dict(ledger)
    for path in done.done:
        target, mark = plan[path].target, then.get(path)
        after[path] = mark if mark is not None and mark.node == target else Mark(target, "", restored_from=sequence)
    return after


def chosen(named: Collection[str], target: Capture, now: Capture) -> set[str]:
    """Return the paths that plain paths mean: themselves, all below, and directories that hold nothing else."""
    differing = differences(target, now)
    directories = {path for path, pair in differing.items() if any(node and node.is_directory for node in pair)}
    names = (differing.keys() | now.gaps) - directories
    meant = {path for path in names if _covers(named, path)}
    whole = {path for path in directories if _inside(path, meant) and not _inside(path, names - meant)}
    return meant | whole | {path for path in directories if _covers(named, path)}


def _inside(directory: str, paths: Collection[str]) -> bool:
    return any(path.startswith(f"{directory}/") for path in paths)
