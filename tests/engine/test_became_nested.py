"""A directory that was captured and that a turn makes a nested repository: what is then out of reach is said."""

import pytest

from engine.model import Action, Checkpoint, PlanItem, RestorePlan
from tests.engine.lab import Lab, actions, paths, remove, snapshot


@pytest.fixture
def held(lab: Lab) -> Lab:
    """A workspace with a directory of a person's files."""
    for name in ("f1", "f2", "f3"):
        lab.edit(f"d/{name}", f"{name}\n")
    lab.edit("d/empty", "")
    lab.edit("other", "x\n")
    return lab


MADE = {"by init": "git init -q d", "by a file of that name": "echo x > d/.git"}


@pytest.mark.parametrize("made", MADE.values(), ids=MADE.keys())
def test_turn_says_how_much_was_captured_of_what_becomes_a_nested_repository(held: Lab, made: str) -> None:
    result = held.run(f"{made} && rm d/f1 && echo x > other2")

    assert "not captured (nested git repository): d (4 files in it captured until now)" in result.notes


@pytest.mark.parametrize("made", MADE.values(), ids=MADE.keys())
def test_undo_names_what_it_cannot_bring_back_in_a_new_nested_repository(held: Lab, made: str) -> None:
    held.run(f"{made} && rm d/f1 && echo AG > d/f2")
    before = snapshot(held.root)

    plan = undo(held)
    report = held.engine.apply_restore(plan)

    assert {path: item.why for path, item in items(plan).items() if path != "d"} == {
        "d/f1": "now nested git repository",
        "d/f2": "now nested git repository",
    }
    assert {"d/f1", "d/f2"} <= set(paths(report.not_captured))
    assert "d/f3" not in paths(report.not_captured)
    assert snapshot(held.root) == before


def test_once_the_repository_is_gone_all_that_was_captured_comes_back(held: Lab) -> None:
    held.run("git init -q d && rm d/f1 && echo AG > d/f2")
    remove(held.root / "d/.git")

    assert actions(undo(held)) == {"d/f1": Action.RESTORE, "d/f2": Action.KEEP_HAND_EDIT}
    held.rollback(1, "d", everything=True)

    assert [held.read(f"d/{name}") for name in ("f1", "f2", "f3")] == ["f1\n", "f2\n", "f3\n"]


def test_what_was_moved_away_stays_while_it_cannot_come_back_where_it_was(held: Lab) -> None:
    """Taken back where it is now and not restored where it was, it would stand nowhere on the disk."""
    held.run("mv d e && git init -q d && echo new > e/new && : > none")
    moved = snapshot(held.root, skip=["e/new", "none"])

    report = held.engine.apply_restore(undo(held))

    assert [(note.path, note.why) for note in report.copies] == [
        (f"e/{name}", f"d/{name} cannot be brought back") for name in ("f1", "f2", "f3")
    ]
    assert {"d/f1", "d/f2", "d/f3"} <= set(paths(report.not_captured))
    assert snapshot(held.root) == {path: what for path, what in moved.items() if path != "e/empty"}


def test_what_was_moved_away_is_there_after_a_redo_and_goes_once_its_origin_is_back(held: Lab) -> None:
    held.run("mv d e && git init -q d && echo new > e/new")
    before = snapshot(held.root)
    report = held.engine.apply_restore(undo(held))
    assert report.safety is not None

    held.engine.apply_restore(redo(held, report.safety))
    assert snapshot(held.root) == before

    remove(held.root / "d/.git")
    held.engine.apply_restore(undo(held))
    assert [held.read(f"d/{name}") for name in ("f1", "f2", "f3")] == ["f1\n", "f2\n", "f3\n"]
    assert not held.exists("e")


def test_moved_content_goes_when_it_is_named(held: Lab) -> None:
    held.run("mv d e && git init -q d")

    held.rollback(1, "e/f1")

    assert not held.exists("e/f1")
    assert held.exists("e/f2")


def test_diff_of_a_turn_names_what_it_put_out_of_reach(held: Lab) -> None:
    held.run("git init -q d && rm d/f1")
    first = held.engine.turn_diff(held.workspace, str(held.turn))
    held.run("echo x > d/f1 && rm other")
    second = held.engine.turn_diff(held.workspace, str(held.turn))

    assert first is not None
    assert (first.stats.files, [gap.path for gap in first.unreached]) == (0, ["d"])
    assert second is not None
    assert (second.stats.files, second.unreached) == (1, ())


def test_turn_that_only_writes_into_a_nested_repository_puts_nothing_out_of_reach(lab: Lab) -> None:
    lab.nested("tool")
    lab.run("echo x > tool/inner.txt")

    assert lab.engine.turn_diff(lab.workspace, str(lab.turn)) is None


def undo(lab: Lab) -> RestorePlan:
    """Plan to take back the last turn."""
    checkpoint = next(c for c in lab.checkpoints() if c.turn is not None and c.turn.turn == str(lab.turn))
    return lab.engine.plan_restore(lab.workspace, checkpoint.id, turns=[str(lab.turn)])


def redo(lab: Lab, safety: Checkpoint) -> RestorePlan:
    """Plan what brings back what an undo took: whatever it holds but for the nested repository."""
    return lab.engine.plan_restore(lab.workspace, safety.id, selection=("e",))


def items(plan: RestorePlan) -> dict[str, PlanItem]:
    return {item.path: item for item in plan.items}
