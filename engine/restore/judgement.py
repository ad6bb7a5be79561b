"""Judging the paths that a restore shares with other chats, other turns, or a person's hand in between.

What is to go is taken out of them where git can merge it cleanly; else the path is kept as it is, and said.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from engine.checkpoints.history import Held
from engine.host.paths import display
from engine.model import Action, Entry, PlanItem, Workspace
from engine.restore.merge import Merger, Unmergeable
from engine.restore.plan import Difference, is_ours
from engine.restore.sharing import Claim, Shared, live_after, shared
from engine.store.acts import Act, acts_on
from engine.store.ledger import LedgerEntry
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
    """Judge those differing paths that stand as Takeback left them; the results of merges are put into the store.

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
    return judged


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
    try:
        result = merger.reverse(now, share.steps)
    except Unmergeable as refusal:
        judged.items[path] = _keep(difference, share, refusal.why)
        return
    if result == now:
        judged.items[path] = _keep(difference, share)
    elif result == difference.target:
        judged.items[path] = PlanItem(path, _action(result, Action.RESTORE), now, result)
    else:
        judged.items[path] = PlanItem(path, _action(result, Action.MERGE), now, result, _kept(share))
        judged.known[path] = _known(result, live_after(acts[-1].live_after, share.steps), acts, target)


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
