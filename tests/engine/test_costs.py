"""What lists, comparisons and restores cost: processes of git, and objects read, whatever a workspace weighs."""

import os
import subprocess

import pytest

from engine.store.loose import LooseObject, read_loose
from tests.engine.lab import Lab


class Meter:
    """The git processes that were started, and the objects that were read."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.read: list[str] = []

    def take(self) -> list[str]:
        """Return the processes since the last time, and begin anew."""
        started, self.started, self.read = self.started, [], []
        return started


@pytest.fixture
def meter(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Meter:
    """Measures what the lab's engine does."""
    meter = Meter()

    def reading(git_dir: str, oid: str) -> LooseObject | None:
        meter.read.append(oid)
        return read_loose(git_dir, oid)

    monkeypatch.setattr("engine.store.reader.read_loose", reading)
    lab.settings["before_git"] = lambda arguments: meter.started.append(arguments[0])
    lab.engine = lab.open_engine()
    assert lab.engine.availability() is None
    return meter


def fill(lab: Lab, files: int) -> None:
    for number in range(files):
        lab.edit(f"d{number % 7}/e{number % 3}/f{number}.py", f"{number}\n")


def pack(lab: Lab) -> None:
    command = ["git", "--git-dir", str(lab.store), "gc", "--quiet", "--prune=now"]
    subprocess.run(command, check=True, env={"PATH": os.environ["PATH"]})


def test_git_processes_of_lists_comparisons_and_restores(lab: Lab, meter: Meter) -> None:
    fill(lab, 40)
    for number in range(3):
        lab.write("d1/e1/f1.py", f"by the agent {number}\n")
    meter.take()

    listed = lab.checkpoints()
    assert meter.take() == []
    lab.engine.find_checkpoint(lab.workspace, listed[1].id[:8])
    assert meter.take() == []
    lab.engine.diff(lab.workspace, listed[1].id)
    assert meter.take() == ["diff-tree"]
    lab.engine.turn_diff(lab.workspace, "3")
    assert meter.take() == ["diff-tree"]
    plan = lab.plan(2)
    assert meter.take() == ["diff-tree"]
    report = lab.engine.apply_restore(plan)
    assert meter.take() == []

    assert [note.path for note in report.restored] == ["d1/e1/f1.py"]
    assert lab.read("d1/e1/f1.py") == "by the agent 0\n"


def test_git_processes_where_everything_is_packed(lab: Lab, meter: Meter) -> None:
    fill(lab, 40)
    for number in range(3):
        lab.write("d1/e1/f1.py", f"by the agent {number}\n")
    pack(lab)
    meter.take()

    lab.checkpoints()
    assert meter.take() == ["cat-file"]
    lab.checkpoints()
    assert meter.take() == []
    plan = lab.plan(2)
    # The first for the commit that is built upon, two more as files of the base are gone: once, it is proved again.
    assert meter.take() == ["cat-file", "ls-tree", "cat-file", "diff-tree", "cat-file"]
    lab.plan(2)
    assert meter.take() == []
    report = lab.engine.apply_restore(plan)
    # One says that the contents are there, the other reads all that is proved and all that is put back.
    assert meter.take() == ["cat-file", "cat-file"]

    assert [note.path for note in report.restored] == ["d1/e1/f1.py"]


def test_dropping_the_oldest_costs_no_process_more(lab: Lab, meter: Meter) -> None:
    lab.limits = type(lab.limits)(max_snapshots=2)
    fill(lab, 3)
    for number in range(3):
        lab.write("a.txt", f"{number}\n")
    plan = lab.plan()
    meter.take()

    lab.engine.apply_restore(plan)

    assert meter.take() == ["update-ref"]
    assert len(lab.checkpoints()) == 2


def test_what_a_restore_reads_does_not_grow_with_the_workspace(lab: Lab, meter: Meter) -> None:
    read = []
    for files in (21, 210):
        fill(lab, files)
        lab.write("d1/e1/f1.py", f"by the agent, beside {files}\n")
        plan = lab.plan()
        meter.take()

        lab.engine.apply_restore(plan)

        read.append(len(meter.read))

    assert read[0] == read[1]
    assert read[0] < 20
