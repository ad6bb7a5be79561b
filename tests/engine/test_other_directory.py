"""Another directory where the workspace was, as of a disk that is not mounted: nothing is written into it unasked."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.errors import RestoreRefused
from tests.engine.lab import Lab, remove, snapshot


@pytest.fixture
def replaced(lab: Lab) -> Lab:
    """A workspace of which a turn changed files, and in whose place another directory stands."""
    lab.edit("d/kept", "kept\n")
    lab.edit("d/gone", "gone\n")
    lab.run("rm d/gone; echo new > d/new")
    lab.root.rename(lab.home / "elsewhere")
    lab.root.mkdir()
    lab.edit("other", "somebody's\n")
    return lab


ASKED: dict[str, Callable[[Lab], object]] = {
    "undo of the turn": lambda lab: lab.undo_turn(lab.turn, lab.checkpoints()[0]),
    "rollback": lambda lab: lab.rollback(),
    "rollback of a file": lambda lab: lab.rollback(1, "d/gone"),
    "preview": lambda lab: lab.plan(),
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED.keys())
def test_restore_into_another_directory_is_refused_however_often(replaced: Lab, ask: Callable[[Lab], object]) -> None:
    before, checkpoints = snapshot(replaced.root), replaced.checkpoints()

    for _again in range(2):
        with pytest.raises(RestoreRefused, match="is a disk not mounted"):
            ask(replaced)
        replaced.engine.diff(replaced.workspace, checkpoints[0].id)  # which captures it
        replaced.engine.begin_session(replaced.workspace, "the next one")

    assert snapshot(replaced.root) == before
    assert replaced.checkpoints() == checkpoints


def test_everything_is_restored_into_it_when_that_is_asked_for(replaced: Lab) -> None:
    report = replaced.rollback(1, everything=True)

    assert report.complete
    assert replaced.read("d/gone") == "gone\n"
    replaced.undo_restore(report)
    assert replaced.exists("other")


def test_turn_can_be_undone_once_the_directory_is_back(replaced: Lab) -> None:
    with pytest.raises(RestoreRefused):
        replaced.rollback()
    remove(replaced.root)
    (replaced.home / "elsewhere").rename(replaced.root)

    replaced.rollback()

    assert replaced.read("d/gone") == "gone\n"
    assert not replaced.exists("d/new")


def come_back(lab: Lab) -> None:
    """The directory from before stands there again, as when its disk is mounted."""
    remove(lab.root)
    (lab.home / "elsewhere").rename(lab.root)


def test_what_was_restored_into_it_is_not_removed_from_the_one_that_comes_back(replaced: Lab) -> None:
    inside = snapshot(replaced.home / "elsewhere")
    report = replaced.rollback(1, everything=True)
    come_back(replaced)

    with pytest.raises(RestoreRefused, match="was done in another directory"):
        replaced.undo_restore(report)
    for number in range(len(replaced.checkpoints())):
        if replaced.checkpoints()[number].restore_token is None:
            assert replaced.rollback(number + 1).complete
    assert replaced.read("d/gone") == "gone\n"
    assert replaced.read("d/kept") == "kept\n"
    assert {path for path in inside if not replaced.exists(path)} == {"d/new"}  # which the agent had made there


def test_turn_in_it_is_told_and_takes_nothing_back_of_the_one_before(replaced: Lab) -> None:
    first, earlier = replaced.checkpoints()[0], replaced.turn
    told = replaced.run("echo agent > d; echo more > other")
    again = replaced.run("echo again > other")
    stands = snapshot(replaced.root)

    with pytest.raises(RestoreRefused, match="was done in another directory"):
        replaced.undo_turn(earlier, first)
    unchanged = snapshot(replaced.root)
    replaced.undo_turn(replaced.turn, replaced.checkpoints()[0])
    replaced.undo_turn(replaced.turn - 1, replaced.checkpoints()[2])

    assert "is a disk not mounted?" in told.notes[0]
    assert again.notes == ()
    assert unchanged == stands
    assert replaced.read("other") == "somebody's\n"


def test_what_was_done_before_is_taken_back_in_the_one_that_comes_back(replaced: Lab) -> None:
    first, earlier = replaced.checkpoints()[0], replaced.turn
    replaced.run("echo agent > d; echo more > other")
    come_back(replaced)

    replaced.undo_turn(earlier, first)

    assert replaced.read("d/gone") == "gone\n"
    assert not replaced.exists("d/new")
    assert replaced.run("echo on > d/kept").notes == ()


def test_turn_that_made_the_directory_anew_is_undone(lab: Lab) -> None:
    lab.edit("a", "a\n")
    lab.run(f"mv {lab.root} {lab.home}/away; mkdir {lab.root}; cd {lab.root}; echo b > b")

    lab.undo_turn(lab.turn, lab.checkpoints()[0])

    assert lab.read("a") == "a\n"
    assert not lab.exists("b")


def test_directory_with_something_left_of_it_is_the_workspace(replaced: Lab) -> None:
    replaced.edit("d/kept", "copied\n")

    replaced.rollback()

    assert replaced.read("d/gone") == "gone\n"


def test_directory_that_was_never_noted_is_the_workspace(replaced: Lab) -> None:
    (project,) = (replaced.store / "projects").iterdir()
    forget_directory(project)

    replaced.rollback()

    assert replaced.read("d/gone") == "gone\n"


def forget_directory(project: Path) -> None:
    value = json.loads(project.read_text())
    del value["root"]
    project.write_text(json.dumps(value))
