"""Planning a prune with its size cap, without dropping anything."""

import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from engine.errors import EngineError
from engine.store.opened import Store
from engine.upkeep.dangling import foresee_dangling, quarantine_note, within_grace
from engine.upkeep.debris import waiting_bytes
from engine.upkeep.drops import lacking, split_commits, split_nameless, without
from engine.upkeep.facts import WorkspaceFacts, read_archives, read_pending, read_workspaces, tree_bytes
from engine.upkeep.holdings import OverCap, find_over_cap, over_cap_note
from engine.upkeep.objects import freed_by, read_bulk
from engine.upkeep.refusals import refusal
from engine.upkeep.report import PruneReport, debris_note
from engine.upkeep.retention import Decision, PrunePlan, PrunePolicy, Target, enough, plan_prune, size_order


def preview_prune(store: Store, policy: PrunePolicy, now: datetime) -> PruneReport:
    """Plan as a prune would. What a drop frees is counted without repacking, so the size cap may list some too many."""
    size = 0
    try:
        size = tree_bytes(store.layout.base)
        aside = foresee_dangling(store.layout, store.git, now)
        gone = {entry.name for entry in aside}
        found = [lacking(facts, gone) for facts in read_workspaces(store.layout, store.git)]
        workspaces, _cut_off = split_nameless(found, read_pending(store.layout), aside)
        plan = plan_prune(workspaces, read_archives(store.layout), policy, now)
        if within_grace(aside, now):
            report = _preview_drops(plan, size)
        else:
            report = _preview_sizes(store, policy, workspaces, plan, size)
    except EngineError as error:
        return PruneReport(dry_run=True, errors=(str(error),), before_bytes=size, after_bytes=size)
    except OSError as error:
        reason = refusal(error, store.layout.base)
        return PruneReport(dry_run=True, errors=(reason,), before_bytes=size, after_bytes=size)
    return replace(report, notes=(quarantine_note(aside, now), *report.notes)) if aside else report


def _preview_drops(plan: PrunePlan, size: int) -> PruneReport:
    """Say what goes where no space is reclaimed: of the size only what needs no reclaiming."""
    after = size - sum(item.size_bytes or 0 for item in plan.decisions if item.target is Target.ARCHIVE)
    return PruneReport(
        dry_run=True, decisions=plan.decisions, kept=plan.kept, before_bytes=size, after_bytes=max(after, 0)
    )


def _preview_sizes(
    store: Store, policy: PrunePolicy, workspaces: Sequence[WorkspaceFacts], plan: PrunePlan, size: int
) -> PruneReport:
    by_rule = [item for item in plan.decisions if item.target is not Target.ARCHIVE]
    left = without(workspaces, by_rule)
    cap = policy.max_size_bytes
    order = [] if cap is None else size_order(left, cap)
    kept, drops = split_commits(workspaces, [*by_rule, *order])
    freed, kept_bytes = freed_by(store.git, kept, drops, with_kept=True)
    waiting = waiting_bytes(store.layout)
    unreachable = _unreachable_bytes(store, kept_bytes + sum(freed) + waiting)
    store_bytes = tree_bytes(store.layout.store) - waiting - unreachable - sum(freed[: len(by_rule)])
    archives = sum(item.size_bytes or 0 for item in plan.decisions if item.target is Target.ARCHIVE)
    chosen: list[Decision] = []
    over_cap: OverCap | None = None
    if cap is not None and store_bytes > cap:
        by_size = freed[len(by_rule) :]
        count = enough(by_size, store_bytes - cap)
        chosen = [replace(item, size_bytes=size) for item, size in zip(order[:count], by_size, strict=False)]
        if sum(by_size) < store_bytes - cap:
            over_cap = find_over_cap(store.git, without(left, chosen), store_bytes - sum(by_size), cap)
    notes = [] if over_cap is None else [over_cap_note(over_cap)]
    if cap is not None and store_bytes <= cap < store_bytes + waiting:
        notes.append(debris_note(waiting, cap))
    gone = unreachable + sum(freed[: len(by_rule) + len(chosen)]) + archives
    return PruneReport(
        dry_run=True,
        decisions=(*plan.decisions, *chosen),
        kept=plan.kept,
        notes=tuple(notes),
        before_bytes=size,
        after_bytes=max(size - gone, 0),
        over_cap=over_cap,
    )


def _unreachable_bytes(store: Store, known_bytes: int) -> int:
    """Return about how much reclaiming would free without any drop; nothing where a prune would not even begin to."""
    if read_bulk(store.layout).compact and not os.path.exists(store.layout.gc_pending):
        return 0
    return max(tree_bytes(os.path.join(store.layout.store, "objects")) - known_bytes, 0)
