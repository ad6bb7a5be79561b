"""What a turn's captures cost: git processes, directories listed, files opened, whatever a workspace weighs."""

import os
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from tests.engine.lab import Lab, snapshot

DIRECTORIES = 7


class Meter:
    """The git processes that were started, the directories listed, and the files whose content was read."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.listed = 0
        self.opened = 0

    def take(self) -> tuple[list[str], int, int]:
        """Return what was counted since the last time, and begin anew."""
        counted = self.started, self.listed, self.opened
        self.started, self.listed, self.opened = [], 0, 0
        return counted


@pytest.fixture
def meter(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Meter:
    """Measures what the lab's engine does; names in the store do not count as directories or files of a workspace."""
    meter = Meter()
    scandir: Callable[..., Any] = os.scandir
    open_: Callable[..., int] = os.open

    def listing(path: object = ".") -> object:
        meter.listed += isinstance(path, int)
        return scandir(path)

    def opening(path: object, flags: int, *arguments: Any, **named: Any) -> int:
        meter.opened += named.get("dir_fd") is not None and str(path).endswith(".py")
        return open_(path, flags, *arguments, **named)

    monkeypatch.setattr(os, "scandir", listing)
    monkeypatch.setattr(os, "open", opening)
    lab.settings["before_git"] = lambda arguments: meter.started.append(arguments[0])
    lab.engine = lab.open_engine()
    assert lab.engine.availability() is None
    return meter


def fill(lab: Lab, files: int) -> None:
    for number in range(files):
        lab.edit(f"d{number % DIRECTORIES}/e/f{number}.py", f"{number}\n")


def warm_up(lab: Lab, meter: Meter) -> None:
    lab.write("d1/e/f1.py", "warm\n")
    lab.run("rm -f nothing")
    meter.take()


@pytest.mark.parametrize("files", [20, 200])
def test_a_turn_that_writes_a_file_costs_the_same_in_any_workspace(lab: Lab, meter: Meter, files: int) -> None:
    fill(lab, files)
    warm_up(lab, meter)

    lab.write("d1/e/f1.py", "written\n")
    started, listed, opened = meter.take()

    assert started == ["diff-tree"]
    assert listed == 0
    assert opened < 10


@pytest.mark.parametrize("command", ["rm -f nothing", "sh -c :"])
def test_a_command_that_changes_nothing_costs_nothing(lab: Lab, meter: Meter, command: str) -> None:
    fill(lab, 50)
    warm_up(lab, meter)

    lab.run(command)

    assert meter.take()[:2] == ([], 0)


def test_edits_of_a_person_cost_what_they_touch(lab: Lab, meter: Meter) -> None:
    fill(lab, 50)
    warm_up(lab, meter)
    lab.edit("d2/e/by-hand.py", "by hand\n")
    lab.edit("d3/new/by-hand.py", "by hand\n")

    lab.run("rm d1/e/f1.py")
    started, listed, _opened = meter.take()

    assert started == ["diff-tree"]
    assert listed == 1  # the directory that is new


def test_a_turn_whose_trees_are_packed_reads_them_with_one_process(lab: Lab, meter: Meter) -> None:
    fill(lab, 50)
    warm_up(lab, meter)
    command = ["git", "--git-dir", str(lab.store), "gc", "--quiet", "--prune=now"]
    subprocess.run(command, check=True, env={"PATH": os.environ["PATH"]})
    lab.checkpoints()
    lab.engine.diff(lab.workspace, lab.checkpoints()[0].id)
    meter.take()

    lab.write("d1/e/f1.py", "written\n")
    started, _listed, _opened = meter.take()

    assert sorted(started) == ["cat-file", "diff-tree"]


def test_what_is_written_without_git_is_sound_to_git(lab: Lab, meter: Meter) -> None:
    fill(lab, 20)
    warm_up(lab, meter)
    before = snapshot(lab.root)
    lab.run(
        "rm -r d1; mkdir d1; ln -s nowhere d1/link; chmod 700 d2; printf x > 'd3/ü'; chmod +x d4/e/f4.py; mkdir d5/g"
    )
    after = snapshot(lab.root)
    assert "fast-import" not in meter.take()[0]

    checked = ["git", "--git-dir", str(lab.store), "fsck", "--full", "--strict"]
    done = subprocess.run(checked, check=True, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True)
    report = lab.rollback()

    assert "error" not in done.stderr
    assert snapshot(lab.root) == before
    lab.undo_restore(report)
    assert snapshot(lab.root) == after
