"""A clock that jumps and a git that disappears: order, ids and files stay right."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Self

import pytest

import engine.checkpoints.history
import engine.store.opened
from engine.errors import GitUnavailable
from engine.model import Limits
from engine.upkeep.prune import prune
from engine.upkeep.retention import PrunePolicy
from tests.engine.lab import Lab, snapshot

DAY = timedelta(days=1)
Jump = Callable[[timedelta], None]


@pytest.fixture
def jump(monkeypatch: pytest.MonkeyPatch) -> Jump:
    """Set the clock that the engine reads to another time from now on."""
    offset = timedelta()
    now, now_ns = time.time, time.time_ns

    class Moved(datetime):
        """A clock that somebody has set."""

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return cls.fromtimestamp(now() + offset.total_seconds(), tz)

    def to(other: timedelta) -> None:
        nonlocal offset
        offset = other

    monkeypatch.setattr(engine.checkpoints.history, "datetime", Moved)
    monkeypatch.setattr(engine.store.opened, "datetime", Moved)
    monkeypatch.setattr(time, "time", lambda: now() + offset.total_seconds())
    monkeypatch.setattr(time, "time_ns", lambda: now_ns() + int(offset.total_seconds() * 1e9))
    return to


def test_clock_that_jumps_changes_neither_order_nor_ids(lab: Lab, jump: Jump) -> None:
    lab.edit("a", "0\n")
    for number, offset in enumerate((2 * DAY, -DAY, DAY, -2 * DAY), start=1):
        jump(offset)
        lab.engine = lab.open_engine()
        assert lab.write("a", f"{number}\n").notes == ()

    listed = lab.checkpoints()

    assert [item.sequence for item in listed] == [4, 3, 2, 1]
    assert len({item.id for item in listed}) == 4
    assert [item.taken_at.date() for item in listed] == [
        (datetime.now(UTC) + offset).date() for offset in (-2 * DAY, DAY, -DAY, 2 * DAY)
    ]
    for item, content in zip(listed, "3210", strict=True):
        lab.engine.apply_restore(lab.engine.plan_restore(lab.workspace, item.id, everything=True))
        assert lab.read("a") == f"{content}\n"
    assert lab.engine.upkeep.verify().findings == ()


def test_oldest_to_be_dropped_is_the_one_taken_first_whatever_its_date(lab: Lab, jump: Jump) -> None:
    lab.limits = Limits(max_snapshots=3)
    for number, offset in enumerate((2 * DAY, DAY, -DAY, -2 * DAY)):
        jump(offset)
        lab.edit("a", f"{number}\n")
        lab.engine.checkpoint(lab.workspace, str(number))
    assert [item.reason for item in lab.checkpoints()] == ["3", "2", "1"]

    report = lab.engine.upkeep.prune(PrunePolicy(max_snapshots=2))

    assert report.errors == ()
    assert [item.reason for item in lab.checkpoints()] == ["3", "2"]


@pytest.mark.parametrize("days", [-400, -1, 1])
def test_workspace_that_is_in_use_outlives_a_clock_set_wrong(lab: Lab, jump: Jump, days: int) -> None:
    lab.edit("a", "one\n")
    lab.write("a", "two\n")
    jump(days * DAY)

    report = prune(lab.engine.upkeep._store, PrunePolicy(retention_days=7), now=datetime.now(UTC) + days * DAY)

    assert report.errors == ()
    assert [item.reason for item in lab.checkpoints()] == ["before write_file: a"]
    lab.rollback()
    assert lab.read("a") == "one\n"


@pytest.mark.parametrize("offset", [-DAY, DAY])
def test_edit_is_seen_whatever_the_clock_says(lab: Lab, jump: Jump, offset: timedelta) -> None:
    lab.edit("a", "one\n")
    lab.engine.checkpoint(lab.workspace, "one")
    jump(offset)
    lab.edit("a", "two\n")
    os.utime(lab.root / "a", (0, 0))
    lab.engine.checkpoint(lab.workspace, "two")
    lab.edit("a", "six\n")
    os.utime(lab.root / "a", (0, 0))
    jump(timedelta())

    lab.rollback(1, everything=True)

    assert lab.read("a") == "two\n"


def test_git_that_disappears_between_plan_and_restore_leaves_everything(tmp_path: Path) -> None:
    directory = tmp_path / "programs"
    directory.mkdir()
    git = directory / "git"
    git.symlink_to(shutil.which("git") or "")
    lab = Lab(tmp_path, git=str(git))
    lab.edit("a", "one\n")
    lab.write("a", "two\n")
    subprocess.run([git, f"--git-dir={lab.store}", "gc", "--quiet", "--prune=now"], check=True)
    plan = lab.plan()
    before = snapshot(lab.home)
    git.rename(directory / "elsewhere")

    for _time in range(2):
        with pytest.raises(GitUnavailable, match="git cannot be used"):
            lab.engine.apply_restore(plan)
        lab.engine = lab.open_engine()
    result = lab.write("b", "bee\n")

    assert result.ok
    assert any("git cannot be used" in note for note in result.notes)
    (lab.root / "b").unlink()
    assert snapshot(lab.home) == before
    (directory / "elsewhere").rename(git)
    lab.engine = lab.open_engine()
    assert lab.engine.apply_restore(plan).complete
    assert lab.read("a") == "one\n"
