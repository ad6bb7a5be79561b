"""Directories of their own: permission bits, and those that are there only because something empty is in them."""

import stat

import pytest

from tests.engine.lab import Lab, actions, paths


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
