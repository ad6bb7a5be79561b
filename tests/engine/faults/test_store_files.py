"""One file of the store, or one left in a workspace, is not as it should be: said or mended, never in the way."""

import errno
import fcntl
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from engine.errors import StorageFailed, StoreDamaged
from engine.host import durable, locks
from engine.host.leftovers import OLD_S
from engine.host.steps import TEMP_PREFIX
from engine.model import Limits
from engine.store.layout import Layout
from tests.engine.lab import Lab, snapshot

LEFT = f"{TEMP_PREFIX}0123456789abcdef"


def layout(lab: Lab) -> Layout:
    return Layout(str(lab.store.parent))


def full(*_arguments: object) -> NoReturn:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_index_that_cannot_be_written_costs_no_checkpoint(lab: Lab) -> None:
    lab.edit("a", "one\n")
    lab.engine.checkpoint(lab.workspace, "one")
    index = Path(layout(lab).index(lab.workspace.hash))
    index.unlink()
    index.mkdir()
    (index / "in the way").touch()
    for content in ("two\n", "three\n"):
        lab.edit("a", content)
        assert lab.engine.checkpoint(lab.workspace, content.strip()).created
        lab.engine = lab.open_engine()

    lab.rollback(2, everything=True)
    assert lab.read("a") == "two\n"
    shutil.rmtree(index)
    lab.rollback(4, everything=True)
    assert lab.read("a") == "one\n"
    assert index.is_file()


@pytest.mark.parametrize("line", [b"not json\n", b"[]\n", b'{"type":"write"}\n'])
def test_restore_that_needs_what_a_damaged_ledger_lost_names_the_file(lab: Lab, line: bytes) -> None:
    lab.edit("a", "one\n")
    lab.write("a", "two\n")
    plan = lab.plan()
    ledger = Path(layout(lab).ledger(lab.workspace.hash))
    ledger.write_bytes(line + ledger.read_bytes())
    lab.engine = lab.open_engine()
    before = snapshot(lab.root)

    assert [item.id for item in lab.checkpoints()] == [plan.target.id]
    for refused in (lab.plan, lambda: lab.engine.apply_restore(plan)):
        with pytest.raises(StoreDamaged, match=str(ledger)):
            refused()

    assert snapshot(lab.root) == before


def test_list_repairs_what_is_missing(lab: Lab) -> None:
    lab.edit("a", "one\n")
    lab.engine.checkpoint(lab.workspace, "one")
    (lab.store / "HEAD").unlink()
    lab.engine = lab.open_engine()

    assert [item.reason for item in lab.checkpoints()] == ["one"]


def test_checkpoint_stands_although_the_oldest_cannot_be_dropped(lab: Lab) -> None:
    lab.limits = Limits(max_snapshots=1)
    lab.edit("a", "one\n")
    lab.engine.checkpoint(lab.workspace, "one")
    lab.edit("a", "two\n")
    pending = lab.store / ".gc-pending"
    pending.mkdir()

    assert lab.engine.checkpoint(lab.workspace, "two").created

    assert [item.reason for item in lab.checkpoints()] == ["two", "one"]
    pending.rmdir()
    lab.edit("a", "three\n")
    lab.engine.checkpoint(lab.workspace, "three")
    assert [item.reason for item in lab.checkpoints()] == ["three"]


def test_what_the_system_refuses_is_said_with_its_file_and_changes_nothing(lab: Lab) -> None:
    lab.edit("a", "one\n")
    lab.write("a", "two\n")
    plan = lab.plan()
    before = snapshot(lab.root)
    shutil.rmtree(lab.store)
    lab.store.touch()

    with pytest.raises(StorageFailed, match=rf"{lab.store}.*: (Not a directory|File exists)\. .* try again"):
        lab.engine.apply_restore(plan)

    assert snapshot(lab.root) == before


def test_full_disk_takes_the_lock_if_not_the_line_that_says_who(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for call in ("pwrite", "ftruncate"):
        monkeypatch.setattr(os, call, full)
    path = str(tmp_path / "lock")

    with (
        locks.hold(path, shared=False, wait_s=0, purpose="a test"),
        open(path, "rb") as other,
        pytest.raises(BlockingIOError),
    ):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)

    with locks.hold(path, shared=False, wait_s=0, purpose="another"):
        pass


def test_failure_is_told_as_it_was_although_tidying_up_fails_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def broken(*_arguments: object) -> NoReturn:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", full)
        patch.setattr(os, "unlink", broken)
        with pytest.raises(OSError, match="No space left on device"):
            durable.write_bytes(str(path), b"new")

    assert path.read_bytes() == b"old"


def test_old_temporary_file_goes_with_the_next_capture_and_a_young_one_stays(lab: Lab) -> None:
    lab.edit("dir/a", "one\n")
    lab.edit(f"dir/{LEFT}", "half")
    (lab.root / "dir" / f"{LEFT}0").touch()
    (lab.root / f"{TEMP_PREFIX}fedcba9876543210").symlink_to("dir")
    old = time.time() - OLD_S - 1
    young = [f"dir/{LEFT}"]
    for path in (f"dir/{LEFT}0", f"{TEMP_PREFIX}fedcba9876543210"):
        os.utime(lab.root / path, (old, old), follow_symlinks=False)

    lab.engine.checkpoint(lab.workspace, "one")

    assert sorted(snapshot(lab.root)) == ["dir", *young, f"dir/{LEFT}0", "dir/a"]  # the third is nobody's of ours
    os.utime(lab.root / "dir" / LEFT, (old, old))
    lab.engine.checkpoint(lab.workspace, "two")
    assert sorted(snapshot(lab.root)) == ["dir", f"dir/{LEFT}0", "dir/a"]


def test_selection_leaves_nothing_outside_the_store(lab: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "no such directory"))
    lab.edit("a", "one\n")
    lab.edit("b", "one\n")
    lab.run("rm a b")
    lab.edit("new", "x\n")
    before = sorted(snapshot(lab.store))

    report = lab.rollback(1, ":(glob)*", ":(exclude)b")

    assert [note.path for note in report.restored] == ["a"]
    assert [path for path in sorted(snapshot(lab.store)) if ".tmp-" in path] == []
    assert set(before) <= set(snapshot(lab.store))


@pytest.mark.parametrize("turns", [1, 2])
def test_ledger_that_lost_its_records_tells_nobodys_files_apart(lab: Lab, turns: int) -> None:
    lab.edit("a", "zero\n")
    for number in range(turns):
        lab.write("a", f"{number}\n")
    lab.edit("mine", "by hand\n")
    Path(layout(lab).ledger(lab.workspace.hash)).write_bytes(b"")
    before = snapshot(lab.root)

    with pytest.raises(StoreDamaged, match=r"has lost what was written after checkpoint .*--all"):
        lab.plan(turns)
    assert snapshot(lab.root) == before
    lab.rollback(turns, everything=True)
    lab.edit("a", "zero\n")
    lab.write("a", "anew\n")
    lab.rollback(1)

    assert lab.read("a") == "zero\n"


def test_write_without_checkpoints_sweeps_what_a_killed_one_left_long_ago_beside_it(lab: Lab) -> None:
    old = time.time() - OLD_S - 1
    young = f"dir/{TEMP_PREFIX}fedcba9876543210"
    for path in (f"dir/{LEFT}", f"elsewhere/{LEFT}", young):
        lab.edit(path, "half\n")
        if path != young:
            os.utime(lab.root / path, (old, old))

    lab.engine.write_file(replace(lab.call(), guarded=False), "dir/a", b"whole\n")

    assert sorted(snapshot(lab.root)) == ["dir", young, "dir/a", "elsewhere", f"elsewhere/{LEFT}"]
