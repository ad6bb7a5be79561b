"""What status shows, and what it leaves alone."""

import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from engine.checkpoints.history import drop, list_held
from engine.errors import StorageFailed
from engine.upkeep.accounting import account
from engine.upkeep.clear import clear_store, preview_clear
from engine.upkeep.facts import tree_bytes
from engine.upkeep.marker import LastPrune, due, read_marker, write_marker
from engine.upkeep.orphans import read_orphans
from engine.upkeep.projects import State
from engine.upkeep.prune import prune
from engine.upkeep.retention import PrunePolicy
from engine.upkeep.status import read_projects, read_status
from engine.upkeep.verify import verify
from tests.engine.upkeep.kit import NOW, Kit, failing


def test_status_makes_no_store(kit: Kit):
    status = read_status(kit.store)

    assert not status.exists
    assert (status.total_bytes, status.projects, status.legacy) == (0, (), ())
    assert not (kit.home / "takeback").exists()
    assert kit.commands == []


def test_status_names_each_workspace_newest_first(kit: Kit):
    app, old = kit.workspace("app"), kit.workspace("old")
    kit.turns(old, 3)
    kit.turns(app, 2)
    kit.age(old, 9, datetime.now(UTC))
    Path(old.root, "noise.bin").unlink()
    os.rmdir(old.root)

    projects = read_status(kit.store).projects

    assert [(item.workdir, item.checkpoints, item.state) for item in projects] == [
        (app.root, 2, State.LIVE),
        (old.root, 3, State.ORPHAN),
    ]
    assert projects[1].last_touch is not None
    assert projects[0].created_at is not None


def test_status_measures_store_and_archives(kit: Kit):
    kit.turns(kit.workspace("app"), 2)
    kit.archive("legacy-20260506-050616", 5000)
    kit.archive("legacy-mine", 100)

    status = read_status(kit.store)

    assert [(item.name, item.size_bytes) for item in status.legacy] == [
        ("legacy-20260506-050616", 5000),
        ("legacy-mine", 100),
    ]
    assert status.legacy[0].archived_at == datetime(2026, 5, 6, 5, 6, 16, tzinfo=UTC)
    assert status.legacy_bytes == 5100
    assert status.store_bytes == tree_bytes(kit.store.layout.store)
    assert status.total_bytes == status.store_bytes + 5100 == tree_bytes(kit.store.layout.base)


def test_status_needs_one_git_command_and_opens_no_object(kit: Kit):
    for name in ("a", "b", "c"):
        kit.turns(kit.workspace(name), 2)
    kit.commands.clear()

    read_status(kit.store)

    assert [arguments[0] for arguments in kit.commands] == ["for-each-ref"]


def test_status_works_beside_whoever_holds_the_store(kit: Kit):
    kit.turns(kit.workspace("app"), 2)
    answers = []

    with kit.open_again().alone("a long gc"):
        thread = threading.Thread(target=lambda: answers.append(read_status(kit.store)))
        thread.start()
        thread.join(timeout=30)

    assert answers[0].projects[0].checkpoints == 2


def test_status_counts_what_the_next_prune_reclaims(kit: Kit):
    app = kit.workspace("app")
    kit.turns(app, 4)
    with kit.store.use(app, "a test"):
        drop(kit.store, app, [item.checkpoint for item in list_held(kit.store, app)[2:]])

    before = read_status(kit.store)
    prune(kit.store, PrunePolicy())
    after = read_status(kit.store)

    assert (before.dropped_refs, after.dropped_refs) == (2, 0)
    assert before.objects.loose > 0
    assert after.objects.compact


def test_torn_project_file_leaves_the_workspace_visible(kit: Kit):
    app = kit.workspace("app")
    kit.turns(app, 2)
    Path(kit.store.layout.project(app.hash)).write_text('{"workdir": "/co')

    (project,) = read_status(kit.store).projects

    assert (project.hash, project.workdir, project.checkpoints, project.state) == (app.hash, None, 2, State.UNKNOWN)


def test_status_of_a_store_git_cannot_read_says_why_and_still_measures(kit: Kit):
    kit.turns(kit.workspace("app"), 2)
    kit.fault = failing("for-each-ref")

    status = read_status(kit.store)

    assert status.projects == ()
    assert "for-each-ref" in (status.problem or "")
    assert status.store_bytes > 0


def test_name_of_any_bytes_is_shown_as_it_is(kit: Kit):
    app = kit.workspace(os.fsdecode(b"caf\xe9\n"))
    kit.turns(app, 1)

    (project,) = read_status(kit.store).projects

    assert project.workdir == app.root
    assert project.state is State.LIVE


def test_prune_is_due_once_in_the_interval(kit: Kit):
    kit.store.ensure()
    layout = kit.store.layout
    assert due(layout, 24, NOW)

    write_marker(layout, LastPrune(NOW, 3, 4, 5))

    assert read_marker(layout) == LastPrune(NOW, 3, 4, 5)
    assert not due(layout, 24, NOW + timedelta(hours=23, minutes=59))
    assert due(layout, 24, NOW + timedelta(hours=24))


def test_clock_set_back_and_a_torn_marker_do_not_stop_pruning(kit: Kit):
    kit.store.ensure()
    layout = kit.store.layout
    write_marker(layout, LastPrune(NOW + timedelta(days=400)))
    assert due(layout, 24, NOW)

    for torn in ("{", '{"at": "2026-03-16T12:00:00+00:00", "dropped": 1e400, "freed_bytes": 0, "errors": 0}'):
        Path(layout.last_prune).write_text(torn)

        assert read_marker(layout) is None
        assert due(layout, 24, NOW)


def test_marker_that_cannot_be_read_is_none_and_one_without_a_zone_means_utc(kit: Kit):
    kit.store.ensure()
    layout = kit.store.layout
    Path(layout.last_prune).write_text('{"at": "2026-03-16T12:00:00", "dropped": 1, "freed_bytes": 2, "errors": 3}')
    without_zone = read_marker(layout)
    Path(layout.last_prune).unlink()
    Path(layout.last_prune).mkdir()

    assert without_zone == LastPrune(NOW, 1, 2, 3)
    assert read_marker(layout) is None


def _as_a_file(path: Path) -> None:
    path.write_text("mine")


def _as_a_link_to_an_absent_disk(path: Path) -> None:
    path.symlink_to("/nonexistent/disk")


@pytest.mark.parametrize("name", ["", "store"])
@pytest.mark.parametrize("put", [_as_a_file, _as_a_link_to_an_absent_disk])
def test_store_that_cannot_be_looked_at_is_not_taken_for_none(kit: Kit, name: str, put: Callable[[Path], None]):
    path = Path(kit.store.layout.base, name)
    path.parent.mkdir(parents=True)
    put(path)

    status = read_status(kit.store)

    assert not status.exists
    assert str(path) in (status.problem or "")
    assert str(path) in (account(kit.store).problem or "")
    assert str(path) in (preview_clear(kit.store).problem or "")
    for look in (read_projects, read_orphans, verify, clear_store, lambda store: prune(store, PrunePolicy())):
        with pytest.raises(StorageFailed, match=str(path)):
            look(kit.store)
