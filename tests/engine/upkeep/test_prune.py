"""Pruning a real store by its rules."""

import errno
import os
import re
from datetime import timedelta
from pathlib import Path

import pytest

from engine.checkpoints.history import find_held, list_held
from engine.errors import StoreBusy, UnknownCheckpoint
from engine.model import Entry, EntryKind, TurnRef
from engine.store.journal import JournalItem, RestoreJournal, RunningNote, clear_running, write_restore, write_running
from engine.store.objects import list_tree
from engine.store.refs import update_refs
from engine.upkeep.findings import Severity
from engine.upkeep.marker import due, read_marker
from engine.upkeep.progress import Step
from engine.upkeep.prune import Outcome, prune
from engine.upkeep.retention import PrunePolicy, Rule
from engine.upkeep.verify import verify
from tests.engine.upkeep.kit import NOW, Kit, failing, make_old, no_fault

EVERYTHING_STAYS = PrunePolicy(retention_days=None, max_snapshots=None, max_size_bytes=None)


def test_every_listed_checkpoint_restores_after_a_prune(kit: Kit):
    app = kit.workspace("app")
    contents = {}
    for number in range(25):
        kit.write(app, "a.txt", b"%d" % number)
        contents[kit.checkpoint(app).id] = b"%d" % number
    oldest = kit.ids(app)[:5]

    report = prune(kit.store, PrunePolicy(max_snapshots=20))

    assert report.outcome is Outcome.DONE
    assert [item.name for item in report.decisions] == oldest
    assert len(kit.ids(app)) == 20
    assert {found: kit.content(found, "a.txt") for found in kit.ids(app)} == {
        found: contents[found] for found in kit.ids(app)
    }
    assert verify(kit.store).healthy


def test_pruned_checkpoint_says_that_it_may_have_been_pruned(kit: Kit):
    app = kit.workspace("app")
    first = kit.turns(app, 3)[0]

    prune(kit.store, PrunePolicy(max_snapshots=2))

    with pytest.raises(UnknownCheckpoint, match="may have been pruned"):
        find_held(list_held(kit.store, app), first.id)


def test_dropping_one_checkpoint_leaves_the_ids_of_the_others(kit: Kit):
    app = kit.workspace("app")
    kit.turns(app, 4)
    before = kit.ids(app)

    prune(kit.store, PrunePolicy(max_snapshots=2))

    assert kit.ids(app) == before[2:]


def test_state_after_a_turn_goes_with_its_checkpoint(kit: Kit):
    app = kit.workspace("app")
    for checkpoint in kit.turns(app, 3):
        kit.write(app, "noise.bin", os.urandom(100))
        kit.note_turn(app, checkpoint, "noise.bin")

    prune(kit.store, PrunePolicy(max_snapshots=2))

    assert [name for name in kit.refs(app) if name.startswith("after/")] == ["after/00000002", "after/00000003"]


def test_old_workspace_leaves_nothing_behind_and_others_all(kit: Kit):
    old, new = kit.workspace("old"), kit.workspace("new")
    for workspace in (old, new):
        checkpoint = kit.turns(workspace, 2)[-1]
        kit.note_turn(workspace, checkpoint, "noise.bin")
    kit.age(old, 8)
    kit.age(new, 6)
    kept = kit.refs(new)
    ledger = Path(kit.store.layout.ledger(new.hash)).read_bytes()

    report = prune(kit.store, PrunePolicy(), now=NOW)

    assert report.outcome is Outcome.DONE
    assert {item.rule for item in report.decisions} == {Rule.RETENTION}
    assert kit.refs(new) == kept
    assert Path(kit.store.layout.ledger(new.hash)).read_bytes() == ledger
    assert not [path for path in Path(kit.store.layout.base).rglob("*") if old.hash in path.name]
    assert verify(kit.store).findings == ()


def test_pruned_workspace_can_be_used_again_at_once(kit: Kit):
    app = kit.workspace("app")
    kit.note_turn(app, kit.turns(app, 2)[-1], "noise.bin")
    kit.age(app, 8)
    prune(kit.store, PrunePolicy(), now=NOW)

    again = kit.checkpoint(app)

    assert again.sequence == 1
    assert kit.store.ledger(app).records == []
    assert kit.content(again.id, "noise.bin") == Path(app.root, "noise.bin").read_bytes()


def test_baseline_of_a_live_session_survives_all_other_history(kit: Kit):
    app = kit.workspace("app")
    kit.note_turn(app, kit.turns(app, 2)[-1], "noise.bin")
    content = Path(app.root, "noise.bin").read_bytes()
    baseline = kit.begin_session(app, "live")
    kit.begin_session(app, "ended")
    kit.turns(app, 1)
    kit.age(app, 30)

    report = prune(kit.store, PrunePolicy(ended_sessions=frozenset({"ended"})), now=NOW)

    assert report.outcome is Outcome.DONE
    assert kit.refs(app) == ["base", "sessions/live"]
    assert kit.content(baseline, "noise.bin") == content
    assert kit.store.knows(app.hash)
    assert kit.store.ledger(app).records == []
    assert [item.reason for item in report.kept] == ["not used for 30 days, kept for 7, but one session is still open"]


def test_baselines_stay_when_nobody_says_which_sessions_live(kit: Kit):
    app = kit.workspace("app")
    kit.turns(app, 1)
    kit.begin_session(app, "s1")

    prune(kit.store, PrunePolicy(max_snapshots=1))

    assert "sessions/s1" in kit.refs(app)


def test_dry_run_lists_what_the_prune_then_does_and_changes_nothing(kit: Kit):
    app, old = kit.workspace("app"), kit.workspace("old")
    kit.turns(app, 6, 50_000)
    kit.turns(old, 2)
    kit.age(old, 8)
    kit.age(app, 1)
    kit.archive("legacy-20260101-000000")
    policy = PrunePolicy(max_snapshots=5, max_size_bytes=200_000)
    before = sorted(Path(kit.store.layout.base).rglob("*"))

    planned = prune(kit.store, PrunePolicy(**{**_fields(policy), "dry_run": True}), now=NOW)
    untouched = sorted(Path(kit.store.layout.base).rglob("*"))
    done = prune(kit.store, policy, now=NOW)

    assert untouched == before
    assert planned.dry_run
    assert not done.dry_run
    assert {(item.rule, item.name) for item in done.decisions} == {(item.rule, item.name) for item in planned.decisions}
    assert {item.rule for item in done.decisions} == {Rule.RETENTION, Rule.COUNT, Rule.SIZE}
    assert abs(planned.freed_bytes - done.freed_bytes) < 0.2 * done.freed_bytes
    assert due(kit.store.layout, 24, NOW + timedelta(hours=23)) is False


def _fields(policy: PrunePolicy) -> dict[str, object]:
    return {name: getattr(policy, name) for name in PrunePolicy.__dataclass_fields__}


def test_old_archive_goes_and_a_young_one_stays(kit: Kit):
    kit.turns(kit.workspace("app"), 1)
    old, young = kit.archive("legacy-20260301-000000", 100_000), kit.archive("legacy-20260315-000000")

    report = prune(kit.store, PrunePolicy(), now=NOW)

    assert [item.name for item in report.decisions] == [old.name]
    assert report.freed_bytes > 90_000
    assert not old.exists()
    assert young.exists()


def test_checkpoints_an_interrupted_restore_names_stay(kit: Kit):
    app = kit.workspace("app")
    taken = kit.turns(app, 6)
    entry = Entry(EntryKind.FILE, 0o644, "0" * 40)
    items = (JournalItem("noise.bin", "restore", None, entry, ""),)
    journal = RestoreJournal("token", taken[0].id, taken[5].id, False, False, (), items)
    write_restore(kit.store.layout, app, journal)
    kit.age(app, 100)

    report = prune(kit.store, PrunePolicy(max_snapshots=3, max_size_bytes=0), now=NOW)

    assert kit.ids(app) == [taken[0].id, taken[5].id]
    assert "a restore was interrupted" in report.kept[0].reason
    assert os.path.exists(kit.store.layout.journal(app.hash))


def test_damaged_journal_keeps_its_workspace(kit: Kit):
    app = kit.workspace("app")
    kit.turns(app, 1)
    Path(kit.store.layout.journal(app.hash)).write_text('{"half')
    kit.age(app, 100)

    prune(kit.store, PrunePolicy(), now=NOW)

    assert len(kit.ids(app)) == 1


def test_state_before_a_running_command_survives_another_capture_and_a_prune(kit: Kit):
    app = kit.workspace("app")
    kit.write(app, "a.txt", b"before the command")
    with kit.store.use(app, "a test"):
        state = kit.captured(app)
        note = RunningNote(TurnRef("chat", "session", "1"), "before terminal: make", os.getpid(), "x", state.commit)
        running = write_running(kit.store.layout, app, note)
    kit.write(app, "a.txt", b"another chat wrote this")
    kit.checkpoint(app)

    prune(kit.store, PrunePolicy())

    assert kit.content(state.commit, "a.txt") == b"before the command"
    assert not any("running" in name for name in kit.refs(app))
    clear_running(running)
    kit.turns(app, 1)
    prune(kit.store, PrunePolicy())
    assert kit.objects() == len({*list_objects(kit)})


def list_objects(kit: Kit) -> list[str]:
    out = kit.store.git.run(["rev-list", "--objects", "--all"])
    return [line.split(b" ")[0].decode() for line in out.splitlines()]


def test_note_of_a_lost_state_does_not_stop_a_prune(kit: Kit):
    app = kit.workspace("app")
    kit.turns(app, 2)
    note = RunningNote(TurnRef("chat", "session", "1"), "before terminal: make", os.getpid(), "x", "1" * 40)
    write_running(kit.store.layout, app, note)

    report = prune(kit.store, PrunePolicy())

    assert report.errors == ()


def test_dropped_space_is_reclaimed_and_nothing_stays_pending(kit: Kit):
    app = kit.workspace("app")
    kit.turns(app, 10, 100_000)

    report = prune(kit.store, PrunePolicy(max_snapshots=2))

    assert 750_000 < report.freed_bytes < 850_000
    assert not os.path.exists(kit.store.layout.gc_pending)
    assert kit.gcs() == 1


def test_compact_store_is_left_alone(kit: Kit):
    app = kit.workspace("app")
    kit.turns(app, 3)
    prune(kit.store, PrunePolicy())
    before = kit.gcs()

    report = prune(kit.store, PrunePolicy())

    assert report.decisions == ()
    assert kit.gcs() == before == 1


def test_unnamed_objects_are_reclaimed_without_any_drop(kit: Kit):
    app = kit.workspace("app")
    for number in range(3):  # bases that no checkpoint was made of
        kit.write(app, "a.bin", os.urandom(50_000))
        with kit.store.use(app, f"a test {number}"):
            kit.captured(app)
    kit.checkpoint(app)

    report = prune(kit.store, PrunePolicy())

    assert report.decisions == ()
    assert report.freed_bytes > 95_000


def test_nothing_is_made_where_there_is_no_store(kit: Kit):
    report = prune(kit.store, PrunePolicy())

    assert report.outcome is Outcome.DONE
    assert not os.path.exists(kit.store.layout.base)


@pytest.mark.parametrize("command", ["for-each-ref", "update-ref"])
def test_nothing_is_dropped_when_the_names_cannot_be_read_or_changed(kit: Kit, command: str):
    app = kit.workspace("app")
    kit.turns(app, 5)
    before = kit.refs(app)
    kit.fault = failing(command)

    report = prune(kit.store, PrunePolicy(max_snapshots=2))
    kit.fault = no_fault

    assert report.outcome is Outcome.PARTLY
    assert len(report.errors) == 1
    assert command in report.errors[0]
    assert report.decisions == ()
    assert kit.refs(app) == before
    assert kit.gcs() == 0


@pytest.mark.parametrize(("command", "kept"), [("gc", 6), ("rev-list", 6), ("cat-file", 8)])
def test_failed_step_stops_before_any_drop_by_size(kit: Kit, command: str, kept: int):
    app = kit.workspace("app")
    kit.turns(app, 8, 100_000)
    kit.fault = failing(command)

    report = prune(kit.store, PrunePolicy(max_snapshots=6, max_size_bytes=100_000))
    kit.fault = no_fault

    assert report.outcome is Outcome.PARTLY
    assert len(report.errors) == 1
    assert [item.rule for item in report.decisions] == [Rule.COUNT] * (8 - kept)
    assert len(kit.ids(app)) == kept


def test_failed_gc_is_made_up_for_by_the_next_prune(kit: Kit):
    app = kit.workspace("app")
    kit.turns(app, 8, 100_000)
    kit.fault = failing("gc")
    prune(kit.store, PrunePolicy(max_snapshots=2))
    kit.fault = no_fault
    assert os.path.exists(kit.store.layout.gc_pending)

    report = prune(kit.store, PrunePolicy(max_snapshots=2))

    assert report.decisions == ()
    assert report.freed_bytes > 550_000
    assert not os.path.exists(kit.store.layout.gc_pending)


def test_failed_prune_is_not_due_again_at_once_and_says_how_many_errors(kit: Kit):
    kit.turns(kit.workspace("app"), 3)
    kit.fault = failing("gc")

    prune(kit.store, PrunePolicy(max_snapshots=2), now=NOW)

    last = read_marker(kit.store.layout)
    assert last is not None
    assert (last.at, last.dropped, last.errors) == (NOW, 1, 1)


def test_what_needs_no_room_goes_first_and_a_refusal_is_said_by_its_path(kit: Kit):
    """Where no note can be made of what is dropped, as on a full disk, no name may go; an archive needs no note."""
    kit.turns(kit.workspace("app"), 3)
    archive = kit.archive("legacy-20260101-000000")
    pending, marker = Path(kit.store.layout.gc_pending), Path(kit.store.layout.last_prune)
    pending.symlink_to("elsewhere")
    marker.mkdir()

    report = prune(kit.store, PrunePolicy(max_snapshots=1), now=NOW)

    assert [item.name for item in report.decisions] == [archive.name]
    assert not archive.exists()
    assert report.errors[0] == f"{pending}: {os.strerror(errno.ELOOP)}"
    assert re.fullmatch(r"the time of this prune could not be noted: /.*: Is a directory", report.errors[1])


@pytest.mark.parametrize("steps", range(3))
def test_cancelled_prune_stops_between_two_steps_and_is_due_again(kit: Kit, steps: int):
    app = kit.workspace("app")
    kit.turns(app, 5)
    kit.archive("legacy-20260101-000000")
    asked = 0

    def cancelled() -> bool:
        nonlocal asked
        asked += 1
        return asked > steps

    report = prune(kit.store, PrunePolicy(max_snapshots=2), now=NOW, cancelled=cancelled)

    assert report.outcome is Outcome.CANCELLED
    assert len(report.decisions) == [0, 1, 4][steps]
    assert kit.gcs() == 0
    assert due(kit.store.layout, 24, NOW)
    assert verify(kit.store).healthy


def test_progress_counts_and_says_what_was_freed(kit: Kit):
    kit.turns(kit.workspace("app"), 5, 100_000)
    steps: list[Step] = []

    prune(kit.store, PrunePolicy(max_snapshots=2), progress=steps.append)

    assert [step.what for step in steps] == ["dropped", "reclaiming space", "reclaiming space"]
    assert steps[0].done == 3
    assert steps[-1].size_bytes > 250_000


def test_lost_names_stop_a_prune_before_it_deletes_what_they_stood_for(kit: Kit):
    app, other = kit.workspace("app"), kit.workspace("other")
    kit.turns(app, 3)
    prune(kit.store, PrunePolicy())
    kit.turns(other, 3)
    names = Path(kit.store.layout.store, "packed-refs")
    saved = names.read_bytes()
    names.unlink()

    planned = prune(kit.store, PrunePolicy(max_snapshots=1, dry_run=True))
    report = prune(kit.store, PrunePolicy(max_snapshots=1))

    assert report.outcome is Outcome.PARTLY
    assert app.root in report.errors[0]
    assert planned.errors == report.errors
    assert report.decisions == ()
    assert kit.gcs() == 1
    found = verify(kit.store)
    assert [(finding.severity, finding.workspace) for finding in found.findings] == [(Severity.ERROR, app.hash)]
    names.write_bytes(saved)
    assert len(kit.ids(app)) == 3
    assert verify(kit.store).healthy


def test_deletion_that_was_cut_off_is_finished_whatever_the_rules_say_now(kit: Kit):
    app = kit.workspace("app")
    kit.turns(app, 2)
    names = [f"refs/takeback/{app.hash}/{name}" for name in kit.refs(app)]
    Path(kit.store.layout.gc_pending).write_text("".join(f"{name}\n" for name in names))
    update_refs(kit.store.git, delete=names)
    assert verify(kit.store).healthy

    report = prune(kit.store, EVERYTHING_STAYS)

    assert report.outcome is Outcome.DONE
    assert not kit.store.knows(app.hash)
    assert kit.objects() == 0


def test_debris_that_cannot_be_swept_does_not_let_the_store_grow(kit: Kit, monkeypatch: pytest.MonkeyPatch):
    app = kit.workspace("app")
    kit.turns(app, 3)
    stuck = Path(kit.store.layout.store, "fast_import_crash_1")
    stuck.write_text("crash")
    make_old(stuck)
    unlink = os.unlink

    def failing_unlink(path: str, *, dir_fd: int | None = None) -> None:
        if path == str(stuck):
            raise OSError(errno.EPERM, os.strerror(errno.EPERM), path)
        unlink(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", failing_unlink)

    report = prune(kit.store, PrunePolicy(max_snapshots=1))

    assert len(kit.ids(app)) == 1
    assert kit.gcs() == 1
    assert report.outcome is Outcome.PARTLY
    assert "fast_import_crash_1" in report.errors[0]


def test_prune_is_busy_while_somebody_works_in_the_store(kit: Kit):
    app = kit.workspace("app")
    kit.turns(app, 5)

    with kit.open_again().use(app, "a long capture"), pytest.raises(StoreBusy) as busy:
        prune(kit.store, PrunePolicy(max_snapshots=1))
    who = rf"process {os.getpid()} \(a long capture, since \d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00\)"
    assert re.fullmatch(who, busy.value.holder)

    assert len(kit.ids(app)) == 5


def test_prune_works_from_another_process_that_remembers_the_workspace(kit: Kit):
    app = kit.workspace("app")
    kit.turns(app, 5)
    kit.age(app, 30)
    prune(kit.open_again(), PrunePolicy(), now=NOW)

    taken = kit.checkpoint(app)

    assert kit.ids(app) == [taken.id]
    assert list_tree(kit.store.git, taken.id)["noise.bin"]
    assert verify(kit.store).healthy
