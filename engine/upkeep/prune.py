"""Doing what a prune decided: drop refs, reclaim their space, measure, and only then decide on more.

Order that matters in a crash:

1. ``.gc-pending`` names what is dropped;
2. the refs go, all or none;
3. the index, the ledger and at last the project file of a workspace that is gone go;
4. git reclaims the space, holding the store's lock itself in case we are killed;
5. ``.gc-pending`` goes.

A crash after any step leaves a store that is whole; the next prune sees what is pending and goes on. The first step
that fails ends the prune: more history is never dropped to make up for space that could not be reclaimed.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from engine.errors import EngineError
from engine.host import durable
from engine.model import Workspace
from engine.store.index import drop_index
from engine.store.journal import running_paths
from engine.store.layout import REF_ROOT
from engine.store.objects import missing_objects
from engine.store.opened import Store
from engine.store.quarantine import Quarantined
from engine.store.refs import RUNNING, running_ref, update_refs
from engine.upkeep.dangling import quarantine_note, settle_dangling, within_grace
from engine.upkeep.debris import remove_tree, set_aside, sweep, waiting_bytes
from engine.upkeep.drops import refs_of, split_commits, split_nameless, without
from engine.upkeep.facts import WorkspaceFacts, read_archives, read_pending, read_workspaces, tree_bytes
from engine.upkeep.holdings import OverCap, find_over_cap, over_cap_note
from engine.upkeep.marker import LastPrune, write_marker
from engine.upkeep.objects import freed_by, read_bulk
from engine.upkeep.preview import preview_prune
from engine.upkeep.progress import Cancelled, Progress, Step, never, unheard
from engine.upkeep.refusals import refusal
from engine.upkeep.report import Outcome, PruneReport, debris_note
from engine.upkeep.retention import Decision, Kept, PrunePolicy, Target, enough, plan_prune, size_order

__all__ = ["Outcome", "PruneReport", "prune"]

_GC_TIMEOUT_S = 3600.0


@dataclass(slots=True)
class _Done:
    """What has happened so far."""

    decisions: list[Decision] = field(default_factory=list)
    kept: tuple[Kept, ...] = ()
    errors: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    swept: list[str] = field(default_factory=list)
    cancelled: bool = False
    over_cap: OverCap | None = None


class _Stopped(Exception):
    """The prune was cancelled between two steps."""


def prune(
    store: Store,
    policy: PrunePolicy,
    *,
    now: datetime | None = None,
    progress: Progress = unheard,
    cancelled: Cancelled = never,
) -> PruneReport:
    """Drop what the policy says and reclaim the space; the marker is the caller's question (`marker.due`).

    Args:
        store: the store; nothing is made where there is none.
        policy: the rules.
        now: the time that ages are counted to.
        progress: told about each step.
        cancelled: asked between two steps.

    Raises:
        StoreBusy: somebody works in the store past the bounded wait; nothing was changed.
        StorageFailed: the store cannot be looked at or locked; nothing was changed.
    """
    if not store.has_base():
        return PruneReport(policy.dry_run)
    now = now or datetime.now(UTC)
    if policy.dry_run:
        with store.beside("a prune's preview"):
            return preview_prune(store, policy, now)
    with store.alone("a prune") as lock:
        return _Prune(store, policy, now, lock, progress, cancelled).run()


class _Prune:
    """One prune, with the store to itself."""

    def __init__(
        self, store: Store, policy: PrunePolicy, now: datetime, lock: int, progress: Progress, cancelled: Cancelled
    ) -> None:
        self._store = store
        self._layout = store.layout
        self._policy = policy
        self._now = now
        self._lock = lock
        self._progress = progress
        self._cancelled = cancelled
        self._before_bytes = tree_bytes(self._layout.base)
        self._done = _Done()

    def run(self) -> PruneReport:
        try:
            self._work()
        except _Stopped:
            self._done.cancelled = True
        except EngineError as error:
            self._done.errors.append(str(error))
        except OSError as error:
            self._done.errors.append(refusal(error, self._layout.store))
        return self._finish()

    def _work(self) -> None:
        try:
            self._done.swept = sweep(self._layout)
        except OSError as error:  # no reason to let the store grow
            self._done.errors.append(f"debris could not be swept: {refusal(error, self._layout.store)}")
        aside = settle_dangling(self._layout, self._store.git, self._now)
        if aside:
            self._done.notes.append(quarantine_note(aside, self._now))
        workspaces = self._finish_deletions(read_workspaces(self._layout, self._store.git), aside)
        plan = plan_prune(workspaces, read_archives(self._layout), self._policy, self._now)
        self._done.kept = plan.kept
        # First what needs no room to go: on a full disk the rest can only follow it.
        for item in plan.decisions:
            if item.target is Target.ARCHIVE:
                self._drop_archive(item)
        decisions = [item for item in plan.decisions if item.target is not Target.ARCHIVE]
        self._drop(workspaces, decisions)
        self._drop_idle_ledgers(without(workspaces, decisions))
        if within_grace(aside, self._now):
            return
        if self._pending() or not read_bulk(self._layout).compact:
            self._reclaim()
        self._fit()

    def _finish_deletions(
        self, workspaces: Sequence[WorkspaceFacts], aside: Sequence[Quarantined]
    ) -> list[WorkspaceFacts]:
        """Forget the workspaces whose deletion was cut off after step 2; return those that have names."""
        named, nameless = split_nameless(workspaces, read_pending(self._layout), aside)
        for facts in nameless:
            self._forget(facts.hash)
        return named

    def _drop(self, workspaces: Sequence[WorkspaceFacts], decisions: Sequence[Decision]) -> None:
        """Drop refs in one transaction, then what belongs to workspaces that lost their last checkpoint."""
        if not decisions:
            return
        self._go_on()
        by_hash = {facts.hash: facts for facts in workspaces}
        names = sorted({name for item in decisions for name in refs_of(item, by_hash[item.workspace or ""])})
        if names:
            self._note_pending(names)
        update_refs(self._store.git, delete=names)
        self._done.decisions += decisions
        for item in decisions:
            if item.target is Target.WORKSPACE and item.workspace is not None:
                self._forget(item.workspace)
        self._say("dropped", len(self._done.decisions), len(self._done.decisions))

    def _forget(self, workspace_hash: str) -> None:
        """Remove what the store knows of a workspace; its project file last, so that a crash leaves it findable."""
        layout = self._layout
        drop_index(layout.index(workspace_hash))
        for path in (
            layout.ledger(workspace_hash),
            *running_paths(layout, Workspace("", "", workspace_hash)),
            layout.lock(workspace_hash),
            layout.project(workspace_hash),
        ):
            durable.remove(path)

    def _drop_idle_ledgers(self, workspaces: Iterable[WorkspaceFacts]) -> None:
        """Remove the ledger of a workspace without checkpoints: nothing is left that it could be compared with.

        The numbers of its checkpoints begin anew, and what the ledger says of the old ones must not be read as theirs.
        """
        for facts in workspaces:
            if not facts.checkpoints and facts.in_use is None:
                durable.remove(self._layout.ledger(facts.hash))

    def _drop_archive(self, decision: Decision) -> None:
        self._go_on()
        remove_tree(set_aside(os.path.join(self._layout.base, decision.name)))
        self._done.decisions.append(decision)
        self._say("dropped", len(self._done.decisions), None)

    def _reclaim(self) -> None:
        """Let git delete every object that nothing names any more and pack the rest."""
        self._go_on()
        self._say("reclaiming space", 0, None)
        pins = self._pin_running()
        self._store.git.run(["gc", "--prune=now", "--quiet"], timeout_s=_GC_TIMEOUT_S, keep_open=[self._lock])
        update_refs(self._store.git, delete=pins)
        durable.remove(self._layout.gc_pending)
        self._say("reclaiming space", 1, 1)

    def _pin_running(self) -> list[str]:
        """Name the states before commands that are under way, for the length of a gc; return those names."""
        workspaces = read_workspaces(self._layout, self._store.git)
        pins = {running_ref(facts.hash, i): commit for facts in workspaces for i, commit in enumerate(facts.running)}
        lost = set(missing_objects(self._store.git, pins.values()))
        update_refs(self._store.git, set_to=[(name, commit) for name, commit in pins.items() if commit not in lost])
        left_over = [
            f"{REF_ROOT}/{facts.hash}/{name}"
            for facts in workspaces
            for name in facts.others
            if name.startswith(RUNNING)
        ]
        return sorted({*left_over, *(name for name, commit in pins.items() if commit not in lost)})

    def _fit(self) -> None:
        """Bring the store under its cap, deciding on as many drops as are needed by what each of them frees.

        Debris that is too young to be swept is not held against the history: it goes by itself.
        """
        cap = self._policy.max_size_bytes
        while cap is not None:
            waiting = waiting_bytes(self._layout)
            size = tree_bytes(self._layout.store) - waiting
            excess = size - cap
            if excess <= 0:
                if excess + waiting > 0:
                    self._done.notes.append(debris_note(waiting, cap))
                return
            self._go_on()
            workspaces = read_workspaces(self._layout, self._store.git)
            order = size_order(workspaces, cap)
            if not order:
                self._done.over_cap = find_over_cap(self._store.git, workspaces, size, cap)
                self._done.notes.append(over_cap_note(self._done.over_cap))
                return
            freed, _kept = freed_by(self._store.git, *split_commits(workspaces, order))
            chosen = order[: enough(freed, excess)]
            sized = [replace(item, size_bytes=size) for item, size in zip(chosen, freed, strict=False)]
            self._drop(workspaces, sized)
            self._reclaim()

    def _pending(self) -> bool:
        return os.path.exists(self._layout.gc_pending)

    def _note_pending(self, names: Iterable[str]) -> None:
        with open(self._layout.gc_pending, "ab", opener=_open_private) as pending:
            pending.write("".join(f"{name}\n" for name in names).encode("utf-8", "surrogateescape"))
            pending.flush()
            os.fsync(pending.fileno())

    def _go_on(self) -> None:
        if self._cancelled():
            raise _Stopped

    def _say(self, what: str, done: int, total: int | None) -> None:
        freed = self._before_bytes - tree_bytes(self._layout.base)
        self._progress(Step(what, done, total, max(freed, 0)))

    def _finish(self) -> PruneReport:
        done = self._done
        report = PruneReport(
            dry_run=False,
            decisions=tuple(done.decisions),
            kept=done.kept,
            errors=tuple(done.errors),
            notes=tuple(done.notes),
            swept=tuple(done.swept),
            before_bytes=self._before_bytes,
            after_bytes=tree_bytes(self._layout.base),
            cancelled=done.cancelled,
            over_cap=done.over_cap,
        )
        if done.cancelled:
            return report
        last = LastPrune(self._now, len(report.decisions), report.freed_bytes, len(report.errors))
        try:
            write_marker(self._layout, last)
        except OSError as error:
            reason = refusal(error, self._layout.last_prune)
            return replace(report, errors=(*report.errors, f"the time of this prune could not be noted: {reason}"))
        return report


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)
