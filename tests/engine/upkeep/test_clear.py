"""Clearing: all of it or none of it, and never the lock."""

import os
from pathlib import Path

import pytest

from engine.errors import StoreBusy
from engine.model import TurnRef
from engine.store.journal import RunningNote, write_running
from engine.upkeep.clear import ClearReport, clear_archives, clear_store, preview_clear
from engine.upkeep.debris import sweep
from engine.upkeep.marker import read_marker
from engine.upkeep.prune import prune
from engine.upkeep.retention import PrunePolicy
from engine.upkeep.verify import verify
from tests.engine.upkeep.kit import Kit, failing, make_old


def test_clear_deletes_every_checkpoint_and_archive_and_keeps_the_lock(kit: Kit):
    app = kit.workspace("app")
    kit.turns(app, 2)
    kit.archive("legacy-20260101-000000")
    lock = os.stat(kit.store.lock_path).st_ino

    report = clear_store(kit.store)

    assert report.complete
    assert report.deleted == ("store", "legacy-20260101-000000")
    assert report.freed_bytes > 4096
    assert os.listdir(kit.store.layout.base) == []
    assert os.stat(kit.store.lock_path).st_ino == lock


def test_store_can_be_used_right_after_it_was_cleared(kit: Kit):
    app = kit.workspace("app")
    kit.note_turn(app, kit.turns(app, 2)[0], "noise.bin")
    clear_store(kit.open_again())

    taken = kit.checkpoint(app)

    assert kit.ids(app) == [taken.id]
    assert kit.content(taken.id, "noise.bin") == Path(app.root, "noise.bin").read_bytes()
    assert verify(kit.store).findings == ()


def test_cleared_store_was_never_pruned(kit: Kit):
    kit.turns(kit.workspace("app"), 1)
    prune(kit.store, PrunePolicy())
    assert read_marker(kit.store.layout) is not None

    clear_store(kit.store)

    assert read_marker(kit.store.layout) is None


def test_preview_says_what_would_be_lost(kit: Kit):
    app, other = kit.workspace("app"), kit.workspace("other")
    kit.turns(app, 2)
    kit.turns(other, 3)
    kit.archive("legacy-20260101-000000")

    preview = preview_clear(kit.store)

    assert set(preview.workspaces) == {app.root, other.root}
    assert preview.checkpoints == 5
    assert [item.name for item in preview.legacy] == ["legacy-20260101-000000"]
    assert preview.size_bytes > 4096
    assert preview.interrupted == ()


def test_preview_of_a_damaged_store_says_that_it_cannot_count(kit: Kit):
    kit.turns(kit.workspace("app"), 2)
    kit.fault = failing("for-each-ref")

    preview = preview_clear(kit.store)

    assert "for-each-ref" in (preview.problem or "")
    assert preview.size_bytes > 0


def test_interrupted_restore_is_only_given_up_when_asked(kit: Kit):
    app = kit.workspace("app")
    kit.turns(app, 2)
    Path(kit.store.layout.journal(app.hash)).write_text("{}")

    refused = clear_store(kit.store)
    assert not refused.complete
    assert "cut off by a crash" in refused.errors[0]
    assert preview_clear(kit.store).interrupted == (app.root,)
    assert len(kit.ids(app)) == 2

    assert clear_store(kit.store, give_up_interrupted=True).complete
    assert not kit.store.layout.exists()


def test_clear_is_busy_while_somebody_works_in_the_store(kit: Kit):
    app = kit.workspace("app")
    kit.turns(app, 1)

    with kit.open_again().use(app, "a long capture"), pytest.raises(StoreBusy):
        clear_store(kit.store)

    assert len(kit.ids(app)) == 1


def test_archives_are_cleared_alone(kit: Kit):
    app = kit.workspace("app")
    kit.turns(app, 1)
    kit.archive("legacy-20260101-000000", 5000)
    kit.archive("legacy-mine", 100)

    report = clear_archives(kit.store)

    assert report.deleted == ("legacy-20260101-000000", "legacy-mine")
    assert report.freed_bytes == 5100
    assert os.listdir(kit.store.layout.base) == ["store"]
    assert len(kit.ids(app)) == 1


def test_link_that_is_called_like_an_archive_is_left_alone(kit: Kit, tmp_path: Path):
    kit.turns(kit.workspace("app"), 1)
    mine = tmp_path / "mine"
    mine.mkdir()
    link = Path(kit.store.layout.base, "legacy-link")
    link.symlink_to(mine)

    assert clear_archives(kit.store).deleted == ()
    assert clear_store(kit.store).deleted == ("store",)
    assert link.is_symlink()
    assert mine.exists()


def test_clearing_nothing_makes_nothing(kit: Kit):
    assert clear_store(kit.store).deleted == ()
    assert clear_archives(kit.store).deleted == ()
    assert not (kit.home / "takeback").exists()


def test_what_a_killed_clear_left_is_swept_later(kit: Kit):
    kit.turns(kit.workspace("app"), 1)
    half = Path(kit.store.layout.base, ".deleting-0123456789ab")
    os.rename(kit.store.layout.store, half)
    make_old(half)

    with kit.store.alone("a test"):
        assert sweep(kit.store.layout) == [half.name]

    assert verify(kit.store).healthy


def test_command_under_way_is_shown_and_is_no_interrupted_restore(kit: Kit):
    app = kit.workspace("app")
    taken = kit.turns(app, 1)[0]
    write_running(kit.store.layout, app, RunningNote(TurnRef("c", "s", "t"), "before x", os.getpid(), "i", taken.id))

    preview = preview_clear(kit.store)
    report = clear_store(kit.store)

    assert (preview.under_way, preview.interrupted) == ((app.root,), ())
    assert report.deleted == ("store",)


def test_clearing_twice_deletes_nothing_the_second_time(kit: Kit):
    kit.turns(kit.workspace("app"), 1)
    clear_store(kit.store)

    assert clear_store(kit.store) == ClearReport()
    assert os.listdir(kit.store.layout.base) == []


def test_older_repositories_that_were_never_set_aside_are_cleared_too(kit: Kit):
    older = Path(kit.store.layout.base, "0123456789abcdef")
    older.mkdir(parents=True)
    (older / "HEAD").write_bytes(b"x" * 500)

    report = clear_store(kit.store)

    assert [name[:7] for name in report.deleted] == ["legacy-"]
    assert report.freed_bytes == 500
    assert os.listdir(kit.store.layout.base) == []


def test_marker_that_cannot_be_removed_does_not_hide_what_was_deleted(kit: Kit):
    kit.turns(kit.workspace("app"), 1)
    marker = Path(kit.store.layout.last_prune)
    (marker / "mine").mkdir(parents=True)

    report = clear_store(kit.store)

    assert report.deleted == ("store",)
    assert report.errors == (f"{marker}: Is a directory",)
