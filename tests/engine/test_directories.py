"""Directories of their own: permission bits, and those that are there only because something empty is in them."""

import shutil
import stat

import pytest

from tests.engine.lab import Lab, actions, paths, snapshot


@pytest.mark.parametrize("everything", [False, True])
def test_directory_that_gained_an_empty_one_gets_its_permission_bits_back(lab: Lab, *, everything: bool) -> None:
    for directory in ("full", "other", "third"):
        lab.edit(f"{directory}/file", "one\n")
    lab.run("chmod 700 full; mkdir full/empty")

    report = lab.rollback(everything=everything)

    assert stat.S_IMODE((lab.root / "full").stat().st_mode) == 0o755
    assert paths(report.restored) == ["full"]
    assert paths(report.deleted) == ["full/empty"]


def test_directory_that_gained_an_empty_one_is_no_change_itself(lab: Lab) -> None:
    lab.edit("full/file", "one\n")
    lab.run("mkdir full/empty")

    plan = lab.plan()

    assert list(actions(plan)) == ["full/empty"]


def test_empty_directory_is_brought_back_by_its_name(lab: Lab) -> None:
    lab.edit("file", "one\n")
    (lab.root / "empty" / "inner").mkdir(parents=True)
    lab.run("rm -r empty; echo two > file")

    report = lab.rollback(1, "empty")

    assert paths(report.restored) == ["empty", "empty/inner"]
    assert (lab.root / "empty" / "inner").is_dir()
    assert lab.read("file") == "two\n"


def test_directory_that_a_person_removed_comes_and_goes_with_the_file_in_it(lab: Lab) -> None:
    lab.edit("d/e/file", "one\n")
    lab.edit("other/file", "two\n")
    (lab.root / "d/e").chmod(0o750)
    lab.run("mv d/e/file other/moved")
    shutil.rmtree(lab.root / "d")
    before = snapshot(lab.root)

    undone = lab.undo_turn(lab.turn, lab.checkpoints()[0])
    mode = stat.S_IMODE((lab.root / "d/e").stat().st_mode)
    redone = lab.undo_restore(undone)

    assert undone.kept == redone.kept == ()
    assert mode == 0o750
    assert snapshot(lab.root) == before


def test_directory_that_came_back_stays_with_what_a_person_put_into_it(lab: Lab) -> None:
    lab.edit("d/file", "one\n")
    lab.run("rm d/file")
    shutil.rmtree(lab.root / "d")
    undone = lab.undo_turn(lab.turn, lab.checkpoints()[0])
    lab.edit("d/mine", "mine\n")

    lab.undo_restore(undone)

    assert not lab.exists("d/file")
    assert lab.read("d/mine") == "mine\n"
