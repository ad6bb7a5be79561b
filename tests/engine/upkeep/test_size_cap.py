"""The cap on the store: what has to go goes, no more, and never the last."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from engine.model import Limits
from engine.upkeep.facts import read_workspaces, tree_bytes
from engine.upkeep.holdings import Hold, Holding, OverCap, over_cap_note
from engine.upkeep.objects import freed_by, read_bulk
from engine.upkeep.preview import preview_prune
from engine.upkeep.prune import Outcome, prune
from engine.upkeep.retention import PrunePolicy, Rule
from engine.upkeep.status import read_status
from engine.upkeep.verify import verify
from tests.engine.upkeep.kit import NOW, Kit, make_old

KB = 1000
MIB = 1024 * 1024


def capped(size_bytes: int) -> PrunePolicy:
    return PrunePolicy(retention_days=None, max_snapshots=None, max_size_bytes=size_bytes)


def store_bytes(kit: Kit) -> int:
    return tree_bytes(kit.store.layout.store)


def test_cap_holds_after_many_turns_of_noise_and_status_shows_what_was_freed(kit: Kit):
    app = kit.workspace("app")
    kit.turns(app, 40, 100 * KB)
    before = store_bytes(kit)

    report = prune(kit.store, capped(1000 * KB))
    status = read_status(kit.store)

    assert report.outcome is Outcome.DONE
    assert status.store_bytes <= 1000 * KB
    assert status.last_prune is not None
    assert status.last_prune.freed_bytes == report.freed_bytes
    assert abs(before - store_bytes(kit) - report.freed_bytes) < KB
    assert verify(kit.store).healthy


def test_no_more_is_dropped_than_the_cap_needs(kit: Kit):
    app = kit.workspace("app")
    kit.turns(app, 10, 100 * KB)
    prune(kit.store, capped(10_000 * KB))

    report = prune(kit.store, capped(store_bytes(kit) - 250 * KB))

    assert len(report.decisions) == 3
    assert all(90 * KB < (item.size_bytes or 0) < 110 * KB for item in report.decisions)


def test_oldest_of_each_workspace_goes_in_turn(kit: Kit):
    first, second = kit.workspace("first"), kit.workspace("second")
    kit.turns(first, 5, 100 * KB)
    kit.turns(second, 5, 100 * KB)
    kit.age(first, 3)
    kit.age(second, 2)
    prune(kit.store, capped(10_000 * KB))

    report = prune(kit.store, capped(store_bytes(kit) - 250 * KB))

    assert [(item.workspace, item.sequence) for item in report.decisions] == [
        (first.hash, 1),
        (second.hash, 1),
        (first.hash, 2),
    ]


def test_every_workspace_keeps_one_and_the_prune_says_that_this_is_too_much(kit: Kit):
    both = [kit.workspace("first"), kit.workspace("second")]
    for workspace, size in zip(both, (100 * KB, 200 * KB), strict=True):
        kit.turns(workspace, 3, size)

    report = prune(kit.store, capped(50 * KB))

    assert [len(kit.ids(workspace)) for workspace in both] == [1, 1]
    assert report.outcome is Outcome.DONE
    assert report.over_cap is not None
    assert report.over_cap.excess_bytes == store_bytes(kit) - 50 * KB
    newest = report.over_cap.holdings[0]
    assert (newest.hold, newest.count, newest.largest) == (Hold.NEWEST, 2, both[1].root)
    assert 300 * KB < newest.size_bytes < 310 * KB
    assert report.notes == (over_cap_note(report.over_cap),)


def test_note_of_a_cap_out_of_reach_names_what_holds_the_space_and_what_to_do():
    held = (
        Holding(Hold.NEWEST, 2, 9 * MIB, "/code/app", 7 * MIB),
        Holding(Hold.SESSION, 1, 4 * MIB, "/code/app", 4 * MIB),
        Holding(Hold.NOT_FOUND, 1, 3 * MIB, "/disk/b", 3 * MIB),
        Holding(Hold.UNDER_WAY, 1, 2 * MIB, "/code/app", 2 * MIB),
        Holding(Hold.RECORDS, 3, MIB),
    )

    note = over_cap_note(OverCap(10 * MIB, 9 * MIB, held))

    assert note == (
        "the store stays 9.0 MB over its cap of 10.0 MB, and no rule lets more go. "
        "It holds 9.0 MB of 2 workspaces, one checkpoint each and the state captured last (the most, 7.0 MB, of "
        "/code/app); 4.0 MB of 1 open session, the state each began with (the most, 4.0 MB, of /code/app); "
        "3.0 MB of 1 workspace whose directory is not found (the most, 3.0 MB, of /disk/b); "
        "2.0 MB that unfinished work needs (the most, 2.0 MB, of /code/app); 1.0 MB of indexes and other records. "
        "What helps: see which files are large (gateway checkpoints status); "
        "end sessions that are over (/new in their chats, or a lower session_idle_days); "
        "mount the disk that is missing, or drop what was deleted (gateway prune --orphans); "
        "let the gateway finish what was cut off (gateway run); "
        "raise checkpoints.max_total_size_mb, or give up all history (gateway checkpoints clear)"
    )


@pytest.mark.parametrize("name", ["tmp_pack_XYZ123", ".tmp-4711-pack-0123.pack"])
def test_nothing_is_dropped_for_what_killed_processes_left_lately(kit: Kit, name: str):
    app = kit.workspace("app")
    kit.turns(app, 3, 10 * KB)
    prune(kit.store, capped(10_000 * KB))
    debris = Path(kit.store.layout.store, "objects", "pack", name)
    debris.write_bytes(bytes(1000 * KB))

    planned = preview_prune(kit.store, capped(500 * KB), NOW)
    report = prune(kit.store, capped(500 * KB))
    make_old(debris)
    later = prune(kit.store, capped(500 * KB))

    assert (planned.decisions, report.decisions, later.decisions) == ((), (), ())
    assert planned.notes == report.notes
    assert "drops nothing for it" in report.notes[0]
    assert later.notes == ()
    assert len(kit.ids(app)) == 3
    assert store_bytes(kit) < 500 * KB


def test_store_over_its_cap_with_one_checkpoint_each_runs_no_gc_again(kit: Kit):
    app = kit.workspace("app")
    kit.turns(app, 1, 100 * KB)
    prune(kit.store, capped(50 * KB))
    assert kit.gcs() == 1

    for _time in range(3):
        report = prune(kit.store, capped(50 * KB))

        assert "over its cap" in report.notes[0]
    assert kit.gcs() == 1


def test_checkpoint_in_a_store_over_its_cap_runs_no_gc(kit: Kit):
    app = replace(kit.workspace("app"), limits=Limits(max_snapshots=1))
    kit.turns(app, 1, 100 * KB)
    prune(kit.store, capped(50 * KB))
    before = len(kit.commands)

    kit.turns(app, 3, 100 * KB)

    assert len(kit.ids(app)) == 1
    ran = {arguments[0] for arguments in kit.commands[before:]}
    assert ran.isdisjoint({"gc", "repack", "prune", "maintenance", "pack-refs"}), ran


def test_nothing_is_dropped_when_reclaiming_alone_is_enough(kit: Kit):
    app = kit.workspace("app")
    for number in range(5):
        kit.write(app, "draft.bin", os.urandom(200 * KB))
        with kit.store.use(app, f"a test {number}"):
            kit.captured(app)  # bases that no checkpoint keeps
    kit.turns(app, 3)

    report = prune(kit.store, capped(500 * KB))

    assert report.decisions == ()
    assert len(kit.ids(app)) == 3
    assert store_bytes(kit) < 500 * KB


def test_content_that_another_workspace_also_holds_frees_nothing(kit: Kit):
    first, second = kit.workspace("first"), kit.workspace("second")
    shared = os.urandom(300 * KB)
    for workspace in (first, second):
        kit.write(workspace, "shared.bin", shared)
        kit.checkpoint(workspace)
    Path(first.root, "shared.bin").unlink()
    kit.turns(first, 1)
    facts = {item.hash: item for item in read_workspaces(kit.store.layout, kit.store.git)}
    oldest, newest = facts[first.hash].checkpoints
    other = [item.commit for item in facts[second.hash].checkpoints]

    kept, _size = freed_by(kit.store.git, [newest.commit, *other], [[oldest.commit]])
    gone, _size = freed_by(kit.store.git, [newest.commit], [other, [oldest.commit]])

    assert kept[0] < KB
    assert gone[0] < KB
    assert gone[1] > 295 * KB


def test_commit_under_several_names_counts_for_the_last_to_go_and_never_when_one_stays(kit: Kit):
    app = kit.workspace("app")
    first, second = (item.id for item in kit.turns(app, 2, 100 * KB))

    shared, _size = freed_by(kit.store.git, [second], [[first], [first]])
    kept, _size = freed_by(kit.store.git, [first, second], [[first]])

    assert shared[0] == 0
    assert shared[1] > 95 * KB
    assert kept == [0]


def test_preview_promises_nothing_where_all_was_reclaimed(kit: Kit):
    kit.turns(kit.workspace("app"), 3)
    prune(kit.store, capped(10_000 * KB))

    assert preview_prune(kit.store, capped(10_000 * KB), NOW).freed_bytes == 0


def test_preview_knows_that_reclaiming_alone_is_enough(kit: Kit):
    app = kit.workspace("app")
    for number in range(5):
        kit.write(app, "draft.bin", os.urandom(200 * KB))
        with kit.store.use(app, f"a test {number}"):
            kit.captured(app)
    kit.turns(app, 3)
    policy = PrunePolicy(retention_days=None, max_snapshots=None, max_size_bytes=500 * KB, dry_run=True)

    report = prune(kit.store, policy)

    assert report.decisions == ()
    assert report.freed_bytes > 750 * KB


def test_what_a_drop_frees_is_what_reclaiming_then_gives(kit: Kit):
    app = kit.workspace("app")
    for number in range(8):
        kit.write(app, f"dir/{number}.bin", os.urandom(30 * KB * (number + 1)))
        if number % 2:
            Path(app.root, f"dir/{number - 1}.bin").unlink()
        kit.checkpoint(app)
    prune(kit.store, capped(10_000 * KB))
    facts = read_workspaces(kit.store.layout, kit.store.git)[0]
    drops = [[item.commit] for item in facts.checkpoints[:-1]]
    freed, _kept = freed_by(kit.store.git, [facts.checkpoints[-1].commit, facts.base or ""], drops)
    before = store_bytes(kit)

    prune(kit.store, PrunePolicy(retention_days=None, max_snapshots=1, max_size_bytes=None))

    assert abs(before - store_bytes(kit) - sum(freed)) < 3 * KB


@pytest.mark.parametrize("dry_run", [True, False])
def test_orphans_and_baselines_are_not_sacrificed_to_the_cap(kit: Kit, dry_run: bool):
    app, gone = kit.workspace("app"), kit.workspace("gone")
    kit.turns(gone, 3, 100 * KB)
    kit.turns(app, 1, 60 * KB)
    kit.begin_session(app, "s1")
    kit.turns(app, 2, 100 * KB)
    Path(gone.root, "noise.bin").unlink()
    os.rmdir(gone.root)

    report = prune(kit.store, replace(capped(50 * KB), dry_run=dry_run))

    assert len(kit.ids(gone)) == 3
    assert "sessions/s1" in kit.refs(app)
    assert {item.workspace for item in report.decisions} == {app.hash}
    assert report.over_cap is not None
    held = {item.hold: round(item.size_bytes / KB, -1) for item in report.over_cap.holdings}
    assert held.pop(Hold.RECORDS) < 40
    assert held == {Hold.NOT_FOUND: 300, Hold.NEWEST: 100, Hold.SESSION: 60}


@pytest.mark.parametrize("dry_run", [True, False])
def test_each_drop_by_size_says_why_and_how_much(kit: Kit, dry_run: bool):
    app = kit.workspace("app")
    kit.turns(app, 4, 100 * KB)
    policy = PrunePolicy(retention_days=None, max_snapshots=None, max_size_bytes=300 * KB, dry_run=dry_run)

    report = prune(kit.store, policy, now=NOW)

    assert report.decisions
    for item in report.decisions:
        assert item.rule is Rule.SIZE
        assert item.reason == "the store is over its cap of 293.0 KB"
        assert item.size_bytes is not None
        assert item.size_bytes > 95 * KB


def test_count_of_object_files_says_whether_reclaiming_would_help(kit: Kit):
    app = kit.workspace("app")
    kit.turns(app, 2, 10 * KB)
    loose = read_bulk(kit.store.layout)
    prune(kit.store, capped(10_000 * KB))

    assert loose.loose > 0
    assert loose.loose_bytes > 20 * KB
    assert not loose.compact
    assert read_bulk(kit.store.layout).compact
