"""The cap on the store: what has to go goes, no more, and never the last."""

import os
from pathlib import Path

import pytest

from engine.upkeep.facts import read_workspaces, tree_bytes
from engine.upkeep.objects import freed_by, read_bulk
from engine.upkeep.prune import Outcome, prune
from engine.upkeep.retention import PrunePolicy, Rule
from engine.upkeep.status import read_status
from engine.upkeep.verify import verify
from tests.engine.upkeep.kit import NOW, Kit

KB = 1000


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
    for workspace in both:
        kit.turns(workspace, 3, 100 * KB)

    report = prune(kit.store, capped(50 * KB))

    assert [len(kit.ids(workspace)) for workspace in both] == [1, 1]
    assert report.outcome is Outcome.DONE
    assert "over its cap" in report.notes[0]
    assert "every workspace keeps one checkpoint" in report.notes[0]


def test_store_over_its_cap_with_one_checkpoint_each_runs_no_gc_again(kit: Kit):
    kit.turns(kit.workspace("app"), 1, 100 * KB)
    prune(kit.store, capped(50 * KB))
    assert kit.gcs() == 1

    for _time in range(3):
        report = prune(kit.store, capped(50 * KB))

        assert "over its cap" in report.notes[0]
    assert kit.gcs() == 1


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


def test_orphans_and_baselines_are_not_sacrificed_to_the_cap(kit: Kit):
    app, gone = kit.workspace("app"), kit.workspace("gone")
    kit.turns(gone, 3, 100 * KB)
    kit.turns(app, 1, 100 * KB)
    kit.begin_session(app, "s1")
    kit.turns(app, 2, 100 * KB)
    Path(gone.root, "noise.bin").unlink()
    os.rmdir(gone.root)

    report = prune(kit.store, capped(50 * KB))

    assert len(kit.ids(gone)) == 3
    assert "sessions/s1" in kit.refs(app)
    assert {item.workspace for item in report.decisions} == {app.hash}


@pytest.mark.parametrize("dry_run", [True, False])
def test_each_drop_by_size_says_why_and_how_much(kit: Kit, dry_run: bool):
    app = kit.workspace("app")
    kit.turns(app, 4, 100 * KB)
    policy = PrunePolicy(retention_days=None, max_snapshots=None, max_size_bytes=300 * KB, dry_run=dry_run)

    report = prune(kit.store, policy, now=NOW)

    assert report.decisions
    for item in report.decisions:
        assert item.rule is Rule.SIZE
        assert item.reason == "the store is over its cap of 0.3 MB"
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
