"""Judging the paths that a restore shares with other chats, other turns, or a person's hand in between.

What is to go is taken out of them where git can merge it cleanly; else the path is kept as it is, and said.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from engine.checkpoints.history import Held
from engine.host.git import Git
from engine.host.paths import display
from engine.model import Action, Entry, PlanItem, Workspace
from engine.restore.merge import Merger, Unmergeable
from engine.restore.plan import Difference, is_ours
from engine.restore.sharing import Claim, Shared, Step, live_after, shared
from engine.store.acts import Act, acts_on
from engine.store.ledger import LedgerEntry
from engine.store.objects import missing_objects
from engine.store.opened import Store
from engine.store.reader import open_reader


@dataclass(slots=True)
class Judged:
    """What to do with each shared path, and what the ledger will know of those that are merged."""

    items: dict[str, PlanItem] = field(default_factory=dict)
    known: dict[str, LedgerEntry] = field(default_factory=dict)


def judge(
    store: Store,
    workspace: Workspace,
    target: Held,
    differences: Iterable[Difference],
    claim: Claim,
) -> Judged:
    """Judge those paths that stand as Takeback left them; the results of merges are put into the store.

    Paths that do not differ are judged too: what a person put there in between may have come and gone.

    Raises:
        GitFailed: git could not be asked.
    """
    ledger = store.ledger(workspace)
    candidates = {
        difference.path: difference
        for difference in differences
        if is_ours(ledger.entries.get(difference.path), difference.now, target.checkpoint.sequence)
    }
    acts = acts_on(ledger, candidates.keys())
    found = {}
    for path, difference in candidates.items():
        share = _share(acts[path], difference, ledger.entries[path], target, claim)
        if share is not None:
            found[path] = share
    judged = Judged()
    if found:
        with (
            open_reader(store.git) as reader,
            Merger(store.git, reader, store.layout.base, workspace.limits.max_file_size_bytes) as merger,
        ):
            for path, share in found.items():
                _decide(judged, merger, candidates[path], share, acts[path], target)
            merger.keep([item.target for item in judged.items.values() if item.target is not None])
        _leave_out_lost(store.git, judged)
    return judged


def _leave_out_lost(git: Git, judged: Judged) -> None:
    """Name those contents that the store no longer holds instead of promising them."""
    merged = {path: item for path, item in judged.items.items() if item.action is Action.MERGE}
    contents = {i.target.oid for i in merged.values() if i.target is not None and i.target.oid is not None}
    lost = set(missing_objects(git, contents))
    for path, item in merged.items():
        if item.target is not None and item.target.oid in lost:
            why = "the store no longer holds what stood there in between"
            judged.items[path] = replace(item, action=Action.NOT_CAPTURED, target=None, why=why)
            del judged.known[path]


def _share(
    acts: Sequence[Act], difference: Difference, entry: LedgerEntry, target: Held, claim: Claim
) -> Shared | None:
    if all(act.number <= target.ledger_number for act in acts):
        # A hand led away from what the last writer left and back to it.
        foreign = entry.by_agent and claim.chats is not None and entry.chat not in claim.chats
        writer = (display(entry.chat),)
        return Shared((), writer, writers=writer) if foreign else None
    return shared(acts, target.ledger_number, difference.target, difference.now, claim)


def _decide(
    judged: Judged, merger: Merger, difference: Difference, share: Shared, acts: Sequence[Act], target: Held
) -> None:
    path, now = difference.path, difference.now
    if share.forward:
        judged.items[path] = _keep(difference, share, "it was taken back and changed since")
        return
    steps: Sequence[Step] = share.steps
    try:
        result = merger.reverse(now, steps)
    except Unmergeable as refusal:
        steps = () if now is not None else _newest_that_reverse(merger, steps)
        if not steps:
            judged.items[path] = _keep(difference, share, refusal.why)
            return
        result = merger.reverse(now, steps)
    if result == now:
        if difference.target != now:
            judged.items[path] = _keep(difference, share)
    elif result == difference.target:
        judged.items[path] = PlanItem(path, _action(result, Action.RESTORE), now, result)
    else:
        judged.items[path] = PlanItem(path, _action(result, Action.MERGE), now, result, _kept(share))
        judged.known[path] = _known(result, live_after(acts[-1].live_after, steps), acts, target)


def _newest_that_reverse(merger: Merger, steps: Sequence[Step]) -> Sequence[Step]:
    """Return how far back a path can go where nothing stands now: what was last deleted comes back at least."""
    for count in range(len(steps) - 1, 0, -1):
        with suppress(Unmergeable):
            if merger.reverse(None, steps[:count]) is not None:
                return steps[:count]
    return ()


def _action(result: Entry | None, made: Action) -> Action:
    return Action.DELETE if result is None else made


def _keep(difference: Difference, share: Shared, why: str = "") -> PlanItem:
    action = Action.KEEP_OTHER_CHAT if share.others else Action.KEEP_HAND_EDIT
    said = "edited by hand in between"
    if share.others:
        said = f"written by {' and '.join(share.writers)}" if share.writers else f"changed by {_whose(share)}"
    return PlanItem(difference.path, action, difference.now, difference.target, f"{said}; {why}" if why else said)


def _kept(share: Shared) -> str:
    if share.writers:
        return f"keeps what {' and '.join(share.writers)} wrote"
    return f"keeps what {_whose(share)} took back" if share.others else "keeps what was edited by hand"


def _whose(share: Shared) -> str:
    return " and ".join(share.others)


def _known(result: Entry | None, live: tuple[int, ...], acts: Sequence[Act], target: Held) -> LedgerEntry:
    """Return what the ledger says of a merged content: its newest writer's, or what a person's hand left of it."""
    writers: Mapping[int, Act] = {act.number: act for act in acts}
    newest = writers[live[-1]] if live and live[-1] in writers else None
    if newest is None or newest.turn is None:
        return LedgerEntry(result, "", "", target.checkpoint.sequence, live)
    return LedgerEntry(result, newest.chat, newest.turn, None, live)
