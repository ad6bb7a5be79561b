"""Two processes over one home and workspace: each sees the other's turn, and settles what a killed one left."""

import pytest

from tests.e2e.program import Program
from tests.e2e.scene import Scene


@pytest.fixture
def beside(scene: Scene, program: Program) -> Program:
    """A second process, which has started; the first made one change before."""
    program.ask("/write m\none\n")
    second = scene.start()
    second.ask("/help", chat="of nobody")
    return second


def test_what_restores_is_busy_while_the_other_process_runs_a_turn_of_the_chat(
    scene: Scene, program: Program, beside: Program
) -> None:
    begun, gate = scene.waypoint("begun"), scene.waypoint("gate")
    program.send(f"$ echo two > m; {begun.reach}; {gate.stop_here}; echo late > late")
    begun.wait()
    before = scene.everything()

    refused = beside.ask("/undo")

    assert refused.text.startswith(
        f"busy: process {program.process.pid} (the console chat local@{scene.project}, since "
    )
    assert refused.text.endswith(" runs a turn in this chat. /stop it there first.")
    scene.assert_unchanged(before)
    gate.let_pass()
    assert "late (new)" in program.answer().text
    assert beside.ask("/undo").text.startswith("✅ Took back the last turn: $ echo two")
    assert (scene.read("m"), scene.exists("late")) == ("one\n", False)


def test_what_restores_is_busy_while_the_other_process_works_in_the_workspace(
    scene: Scene, program: Program, beside: Program
) -> None:
    begun, gate = scene.waypoint("begun"), scene.waypoint("gate")
    beside.ask("/write n\nof b\n", chat="b")
    program.send(f"$ {begun.reach}; {gate.stop_here}; echo two > m")
    begun.wait()
    before = scene.everything()

    refused = beside.ask("/undo", chat="b")

    assert refused.text.startswith(
        f"busy: process {program.process.pid} (the console chat local@{scene.project}, since "
    )
    assert refused.text.endswith(" is at work in this workspace. /stop there first, or try again later.")
    scene.assert_unchanged(before)
    gate.let_pass()
    program.answer()
    assert beside.ask("/undo", chat="b").line("Removed:") == "n"


def test_undo_beside_a_killed_process_takes_back_its_turn(scene: Scene, program: Program, beside: Program) -> None:
    begun, gate = scene.waypoint("begun"), scene.waypoint("gate")
    program.send(f"$ echo two > m; {begun.reach}; {gate.stop_here}")
    begun.wait()
    program.kill()

    undone = beside.ask("/undo")

    assert "✅ Took back the last turn: $ echo two" in undone.text
    assert "The turn was cut off" in undone.text
    assert "✎ 1 file, +1/-1: m" in beside.ask("/write m\nthree\n").text
    assert [said["text"].split(".")[0] for said in beside.heard if said.get("text", "").startswith("⏸")] == [
        "⏸ The Takeback process that ran this turn has ended"
    ]


def test_a_turn_that_waited_for_a_process_that_is_killed_goes_on(
    scene: Scene, program: Program, beside: Program
) -> None:
    begun, gate = scene.waypoint("begun"), scene.waypoint("gate")
    program.send(f"$ {begun.reach}; {gate.stop_here}")
    begun.wait()
    beside.send("/write m\nthree\n")
    assert beside.hear()["text"].startswith("⏳ Waiting: process ")

    program.kill()

    assert "✎ 1 file, +1/-1: m" in beside.answer().text
    assert scene.read("m") == "three\n"
