"""Restores from request to report: plan, safety checkpoint, journal, apply, ledger, and finishing after a crash.

Order that matters in a crash:

1. the safety checkpoint holds what stands now, and the store what was merged;
2. the journal holds the plan;
3. files change;
4. the ledger says what was put back, with the report;
5. the journal goes.

Before 2 nothing has changed. Between 2 and 5 the next start goes on from the journal, and what was done already is
found done.
"""

import os
import secrets
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from engine.checkpoints.capture import Captured, capture, look
from engine.checkpoints.feed import Feed
from engine.checkpoints.history import Held, Purpose, get_held, list_held, take
from engine.errors import BadSelection, EngineError, NestedRepositoryRefused, SafetyFailed, StoreDamaged
from engine.host.files import Fault, Tree
from engine.host.leftovers import remove_leftovers
from engine.host.paths import display
from engine.model import (
    EFFECTIVE,
    Action,
    CheckpointKind,
    PlanItem,
    RestorePlan,
    RestoreReport,
    TurnRef,
    Workspace,
)
from engine.restore.apply import Outcome, apply_items
from engine.restore.differences import below_directories, find_differences, read_bare, without_standing
from engine.restore.judgement import Judged, judge
from engine.restore.place import enter_place, require_place, require_same_place
from engine.restore.plan import Facts, classify, is_full, ledger_after
from engine.restore.reports import decode_report, dropped, encode_report, make_report
from engine.restore.safety import find_lost, find_stale, holds_what_goes, name_merged, prove_contents
from engine.restore.scope import Request, claim_of, find_passed, scope_of
from engine.restore.selection import (
    Selection,
    matched_in_checkpoint,
    matched_names,
    parse_selection,
    refuse_nested,
)
from engine.restore.trust import require_ledger
from engine.store.journal import (
    JournalItem,
    RestoreJournal,
    clear_restore,
    read_restore,
    set_restore_aside,
    write_restore,
)
from engine.store.ledger import LedgerEntry, RestoreRecord, append_record
from engine.store.opened import Store
from engine.store.reader import ObjectReader, open_reader
from engine.store.refs import merged_ref, update_refs

Own = frozenset[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan with what applying it needs."""

    plan: RestorePlan
    target: Held
    captured: Captured
    held: list[Held]
    known: Mapping[str, LedgerEntry]


class Restores:
    """Plans and performs the restores of one store.

    Args:
        store: the store.
        own: device and inode of Takeback's own directories, as they are now.
        fault: called before each operation that changes a workspace file (fault injection).
        feed: what tells of changes between captures; a plan that is shown goes by it, one that is performed does not.
    """

    def __init__(
        self, store: Store, own: "OwnDirectories", fault: Fault | None = None, feed: Feed | None = None
    ) -> None:
        self._store = store
        self._own = own
        self._fault = fault
        self._feed = feed

    def plan(self, workspace: Workspace, request: Request) -> Planned:
        """Plan a restore; the caller holds ``store.use``. What has to be refused is refused before anything is written.

        Raises:
            UnknownCheckpoint: no such checkpoint.
            RestoreRefused: a nested repository would be reached, or the selection cannot be used.
            StoreDamaged: the checkpoint cannot be read.
        """
        with open_reader(self._store.git) as reader:
            return self._plan_soundly(workspace, request, reader, to_apply=False)

    def _plan_to_apply(self, workspace: Workspace, request: Request, reader: ObjectReader) -> Planned:
        """Plan with what stands there read, where the plan takes it away and it is not what it seemed to be."""
        planned = self._plan_soundly(workspace, request, reader, to_apply=True)
        with self._open_tree(workspace) as tree:
            stale = find_stale(tree, planned.plan)
        return self._plan(workspace, request, reader, anew=True, unread=stale) if stale else planned

    def _plan_soundly(self, workspace: Workspace, request: Request, reader: ObjectReader, *, to_apply: bool) -> Planned:
        """Plan; where the store cannot give back what the plan needs, prove and mend all of the base first.

        Before a plan is applied it is seen that what is about to go is in the store to come back.
        """
        remembered = self._store.remembered(workspace)
        if remembered.proved:
            with suppress(StoreDamaged):
                planned = self._plan(workspace, request, reader, anew=to_apply)
                if not to_apply or holds_what_goes(reader, planned.plan, planned.captured):
                    return planned
            remembered.proved = False
        return self._plan(workspace, request, reader, anew=to_apply)

    def _plan(
        self,
        workspace: Workspace,
        request: Request,
        reader: ObjectReader,
        *,
        anew: bool,
        unread: frozenset[str] = frozenset(),
    ) -> Planned:
        held = list_held(self._store, workspace)
        target = get_held(self._store, workspace, held, request.checkpoint_id)
        if not request.everything:
            require_ledger(self._store, workspace, held, target)
            require_place(self._store, workspace, held[0])
            require_same_place(self._store, workspace, request, target)
        elif anew:
            enter_place(self._store, workspace, held[0])
        selection = self._selection(workspace, target, request, reader)
        feed = None if self._feed is None else self._feed.of(workspace)
        forced = self._store.ledger(workspace).present()
        captured = capture(self._store, workspace, self._own(), forced, feed=feed, anew=anew, unread=unread)
        items, known = self._items(workspace, request, target, captured, selection, reader, thorough=anew)
        ledger = self._store.ledger(workspace)
        plan = RestorePlan(
            workspace,
            target.checkpoint,
            request.token or secrets.token_hex(8),
            items,
            request.selection,
            request.turns,
            request.everything,
            ledger_empty=not request.turns and not request.everything and is_full(ledger, everything=False),
            chat=request.chat,
        )
        return Planned(plan, target, captured, held, known)

    def _selection(
        self, workspace: Workspace, target: Held, request: Request, reader: ObjectReader
    ) -> Selection | None:
        nested = target.checkpoint.nested_repositories
        if not request.selection:
            if nested and not request.turns:
                raise NestedRepositoryRefused(nested)
            return None
        with self._open_tree(workspace) as tree:
            selection = parse_selection(request.selection, tree, self._store.git, target.tree)
        matched = matched_in_checkpoint(self._store.git, target.tree, selection)
        refuse_nested(selection, nested, matched)
        if not matched and not any(map(selection.names_directory_of, read_bare(reader, target.tree))):
            rows = look(self._store, workspace, self._own(), self._store.ledger(workspace).present()).rows
            if not matched_names(self._store.git, rows, selection):
                raise BadSelection(" ".join(request.selection), "matches no file in the checkpoint or now")
        return selection

    def _items(
        self,
        workspace: Workspace,
        request: Request,
        target: Held,
        captured: Captured,
        selection: Selection | None,
        reader: ObjectReader,
        *,
        thorough: bool,
    ) -> tuple[tuple[PlanItem, ...], Mapping[str, LedgerEntry]]:
        ledger = self._store.ledger(workspace)
        differences = find_differences(self._store, workspace, target, captured, reader)
        passed = find_passed(ledger, target, captured, {difference.path for difference in differences})
        scope = scope_of(
            self._store.git, request, target, ledger, selection, [*differences, *passed], captured=captured
        )
        with self._open_tree(workspace) as tree:
            differences = without_standing(tree, differences, captured.gaps)
        everything = request.everything if request.turns else is_full(ledger, everything=request.everything)
        judged = Judged()
        if not everything:
            in_scope = [d for d in (*differences, *passed) if scope is None or d.path in scope]
            judged = judge(self._store, workspace, target, in_scope, claim_of(request, target, ledger))
        with self._open_tree(workspace) as tree:
            absent = (d.path for d in (*differences, *passed) if d.now is None)
            occupied = frozenset(path for path in absent if tree.signature(path) is not None)
        wanted = {d.path: d.target for d in differences if scope is None or d.path in scope}
        facts = Facts(
            target.checkpoint.sequence,
            ledger.entries,
            everything,
            scope,
            target.checkpoint.gaps,
            target.excluded,
            captured.gaps,
            captured.excluded,
            occupied,
            ledger.written_after(target.ledger_number),
            below_directories(captured.rows, (*differences, *passed)),
            judged.items,
            ledger.uncaptured_after(target.ledger_number),
            selection.named if selection is not None else frozenset(),
            find_lost(reader, wanted, thorough=thorough),
            ledger.unreached_after(target.ledger_number),
        )
        items = classify(differences, facts)
        if facts.lost and not any(item.action in EFFECTIVE for item in items):
            names = ", ".join(display(path) for path in sorted(facts.lost)[:3])
            raise StoreDamaged(f"it has lost what checkpoint {target.checkpoint.id[:8]} held of {names}")
        return items, judged.known

    def apply(self, shown: RestorePlan, turn: TurnRef | None, replaced_head: str | None) -> RestoreReport:
        """Perform a plan; the caller holds ``store.use``.

        What changed since the plan was shown is planned anew, and named in the report.

        Raises:
            RestoreRefused: nothing was changed.
            StoreDamaged: nothing was changed.
        """
        with open_reader(self._store.git) as reader:
            return self._apply(shown, turn, replaced_head, reader)

    def _apply(
        self, shown: RestorePlan, turn: TurnRef | None, replaced_head: str | None, reader: ObjectReader
    ) -> RestoreReport:
        request = Request(shown.target.id, shown.selection, shown.everything, shown.turns, shown.chat, shown.token)
        planned = self._plan_to_apply(shown.workspace, request, reader)
        plan = planned.plan
        replanned = _replanned(shown, plan)
        items = tuple(_journal_item(item, planned.known) for item in plan.items)
        chat = plan.chat or (turn.chat if turn else "")
        journal = RestoreJournal(
            plan.token, plan.target.id, "", plan.everything, plan.ledger_empty, replanned, items, chat
        )
        if not plan.effective:
            return make_report(plan.target, None, journal, Outcome(), resumed=False)
        safety = self._safety(planned, turn, replaced_head, reader)
        journal = replace(journal, safety=safety.checkpoint.id)
        name_merged(self._store.git, plan)
        write_restore(self._store.layout, plan.workspace, journal)
        return self._perform(plan.workspace, planned.target, safety, journal, reader, resumed=False)

    def _safety(self, planned: Planned, turn: TurnRef | None, replaced_head: str | None, reader: ObjectReader) -> Held:
        plan = planned.plan
        reason = f"before rollback to {plan.target.id[:8]}"
        purpose = Purpose(CheckpointKind.SAFETY, reason, turn, plan.token, replaced_head)
        try:
            with self._open_tree(plan.workspace) as tree:
                prove_contents(self._store.git, reader, tree, plan)
            number = self._store.ledger(plan.workspace).number
            taken = take(self._store, plan.workspace, planned.captured, purpose, planned.held, keep=(plan.target.id,))
        except (EngineError, OSError) as error:
            raise SafetyFailed(str(error)) from error
        return Held(taken, planned.captured.tree, planned.captured.excluded, number)

    def _perform(
        self,
        workspace: Workspace,
        target: Held,
        safety: Held,
        journal: RestoreJournal,
        reader: ObjectReader,
        *,
        resumed: bool,
    ) -> RestoreReport:
        with self._open_tree(workspace) as tree:
            outcome = apply_items(tree, reader, journal.items)
        ledger = self._store.ledger(workspace)
        put_back = {item.path: item.target for item in outcome.done}
        known_then = ledger.as_of(target.ledger_number, put_back)
        entries = ledger_after(put_back.items(), known_then, target.checkpoint.sequence)
        entries |= {item.path: item.known for item in outcome.done if item.known is not None}
        report = make_report(target.checkpoint, safety, journal, outcome, resumed=resumed)
        record = RestoreRecord(
            ledger.number + 1,
            journal.token,
            target.checkpoint.id,
            journal.safety,
            entries,
            encode_report(report),
            journal.chat,
            {item.path: item.now for item in outcome.done},
            self._store.place(workspace),
        )
        append_record(self._store.layout.ledger(workspace.hash), record)
        self._clear(workspace, journal)
        return report

    def _clear(self, workspace: Workspace, journal: RestoreJournal) -> None:
        clear_restore(self._store.layout, workspace)
        if any(item.action == Action.MERGE for item in journal.items):
            # Left over by a crash it does no harm: the next restore that merges sets it anew.
            update_refs(self._store.git, delete=[merged_ref(workspace.hash)])

    def resume(self, workspace: Workspace) -> RestoreReport | None:
        """Finish a restore that a crash interrupted; the caller holds ``store.use``.

        Raises:
            StoreDamaged: the journal, or what it names, cannot be read; the files are as the crash left them.
        """
        try:
            journal = read_restore(self._store.layout, workspace)
        except ValueError as error:
            aside = set_restore_aside(self._store.layout, workspace)
            raise StoreDamaged(
                f"the journal of an interrupted restore of {workspace.root} cannot be read ({error}); "
                f"it is kept in {aside}"
            ) from error
        if journal is None:
            return None
        known = self._store.ledger(workspace).restore_by(journal.token)
        held = {item.checkpoint.id: item for item in list_held(self._store, workspace)}
        target, safety = held.get(journal.target), held.get(journal.safety)
        if target is None or safety is None:
            aside = set_restore_aside(self._store.layout, workspace)
            gone = (journal.target if target is None else journal.safety)[:8]
            raise StoreDamaged(
                f"an interrupted restore of {workspace.root} needs checkpoint {gone}, which is gone; "
                f"its plan is kept in {aside}"
            )
        if known is not None:  # the crash came after step 4
            self._clear(workspace, journal)
            return decode_report(known.report, target.checkpoint, safety)
        with self._open_tree(workspace) as tree:
            remove_leftovers(tree, (item.path for item in journal.items))
        with open_reader(self._store.git) as reader:
            return self._perform(workspace, target, safety, journal, reader, resumed=True)

    def outcome(self, workspace: Workspace, token: str) -> RestoreReport | None:
        """Return what became of a restore, ``None`` if it changed nothing; the caller holds ``store.use``."""
        record = self._store.ledger(workspace).restore_by(token)
        if record is None:
            return None
        held = {item.checkpoint.id: item for item in list_held(self._store, workspace)}
        target, safety = held.get(record.target), held.get(record.safety or "")
        checkpoint = target.checkpoint if target else dropped(record.target)
        return decode_report(record.report, checkpoint, safety)

    def _open_tree(self, workspace: Workspace) -> Tree:
        return Tree.open(workspace.root) if self._fault is None else Tree.open(workspace.root, self._fault)


class OwnDirectories:
    """Device and inode of directories that are never captured, looked up when asked."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = tuple(paths)

    def __call__(self) -> Own:
        """Return them as they are now."""
        found = set()
        for path in self._paths:
            try:
                status = os.stat(path)
            except OSError:
                continue
            found.add((status.st_dev, status.st_ino))
        return frozenset(found)


def _journal_item(item: PlanItem, known: Mapping[str, LedgerEntry]) -> JournalItem:
    entry = known.get(item.path) if item.action in EFFECTIVE else None
    return JournalItem(item.path, item.action.value, item.now, item.target, item.why, entry)


def _replanned(shown: RestorePlan, fresh: RestorePlan) -> tuple[str, ...]:
    before = {item.path: item for item in shown.items}
    now = {item.path: item for item in fresh.items}
    return tuple(sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path)))
