"""What a person did between a checkpoint and a later tool: it comes back, or it is named."""

import os

from engine.api import PrunePolicy
from engine.model import GapReason, Limits
from tests.engine.lab import Lab, paths, snapshot

MEGABYTE = 1024 * 1024


def test_a_persons_file_that_the_agent_removed_comes_back(lab: Lab) -> None:
    lab.run("touch t1")
    lab.edit("u", "USER\n")
    lab.run("rm u")

    report = lab.rollback(2)

    assert lab.read("u") == "USER\n"
    assert paths(report.deleted) == ["t1"]
    assert [(note.path, note.why) for note in report.merged] == [("u", "keeps what was edited by hand")]


def test_a_persons_file_that_the_agent_moved_comes_back_where_it_was(lab: Lab) -> None:
    lab.run("touch t1")
    lab.edit("u", "USER\n")
    before = snapshot(lab.root)
    lab.run("mv u v")
    moved = snapshot(lab.root)

    report = lab.rollback(2)
    assert lab.read("u") == "USER\n"
    assert sorted(paths(report.deleted)) == ["t1", "v"]
    lab.undo_restore(report)

    assert snapshot(lab.root) == moved
    assert before != moved


def test_what_a_person_wrote_between_tools_of_a_turn_outlasts_a_prune(lab: Lab) -> None:
    """Several times in one turn, a script, a command and a file tool take it away; no checkpoint ever held it."""
    for name in ("a", "b", "c", "d"):
        lab.edit(name, f"first {name}\n")
    lab.run("echo agent > x")
    lab.edit("a", "mine a\n")
    lab.edit("new", "mine new\n")
    lab.run("rm a", new_turn=False)
    lab.edit("b", "mine b\n")
    lab.run('python3 -c \'import os; os.remove("b"); os.remove("new")\'', new_turn=False)
    lab.edit("c", "mine c\n")
    lab.write("c", "agent c\n", new_turn=False)
    lab.run("echo more >> x", new_turn=False)

    lab.engine.upkeep.prune(PrunePolicy())
    report = lab.undo_turn(lab.turn, lab.checkpoints()[0])

    assert report.complete
    assert {name: lab.read(name) for name in ("a", "b", "c", "d", "new")} == {
        "a": "mine a\n", "b": "mine b\n", "c": "mine c\n", "d": "first d\n", "new": "mine new\n"
    }  # fmt: skip
    assert not lab.exists("x")


def test_a_persons_directory_that_the_agent_removed_comes_back(lab: Lab) -> None:
    lab.run("touch t1")
    lab.edit("d/e/u", "USER\n")
    (lab.root / "d").chmod(0o700)
    lab.run("rm -r d")

    lab.rollback(2)

    assert lab.read("d/e/u") == "USER\n"
    assert (lab.root / "d").stat().st_mode & 0o777 == 0o700


def test_a_persons_edit_of_the_agents_file_comes_back_where_the_agent_removed_it(lab: Lab) -> None:
    lab.run("touch t1")
    lab.write("t2", "agent\n")
    lab.edit("t2", "by hand\n")
    lab.run("rm t2")

    lab.rollback(3)

    assert lab.read("t2") == "by hand\n"
    assert not lab.exists("t1")


def test_what_the_agent_made_and_removed_itself_stays_away(lab: Lab) -> None:
    lab.run("touch t1")
    lab.write("t2", "agent\n")
    lab.run("rm t2")

    report = lab.rollback(3)

    assert not lab.exists("t2")
    assert paths(report.deleted) == ["t1"]
    assert report.merged == ()


def test_persons_file_in_a_directory_that_took_a_files_place_keeps_it_by_plan(lab: Lab) -> None:
    lab.edit("f", "file\n")
    lab.edit("d/x", "inside\n")
    taken = lab.run("rm -r f d; mkdir f; echo y > f/y; echo d > d").checkpoint
    assert taken is not None
    lab.edit("f/user", "USER\n")

    report = lab.undo_turn(1, taken)

    assert report.failed == ()
    assert [(note.path, note.why) for note in report.not_captured if note.path == "f"] == [
        ("f", "the directory holds f/user, which stays")
    ]
    assert (lab.read("f/user"), lab.read("f/y"), lab.read("d/x")) == ("USER\n", "y\n", "inside\n")


def test_checkpoint_whose_gaps_are_of_another_moment_is_not_used_again(lab: Lab) -> None:
    lab.limits = Limits(max_file_size_bytes=MEGABYTE)
    lab.edit("s", "small\n")
    lab.edit("b3", b"x" * 2 * MEGABYTE)
    first = lab.run("rm b3").checkpoint
    lab.edit("b6", b"y" * 3 * MEGABYTE)

    second = lab.run("truncate -s 90 b6").checkpoint
    assert first is not None
    assert second is not None
    report = lab.undo_turn(2, second)

    assert second.id != first.id
    assert [gap.path for gap in second.gaps] == ["b6"]
    assert paths(report.not_captured) == ["b6"]
    assert (lab.root / "b6").stat().st_size == 90


def test_checkpoint_that_excluded_something_else_is_not_used_again(lab: Lab) -> None:
    lab.edit(".gitignore", "*.dat\n")
    first = lab.run("rm -f nothing").checkpoint
    lab.edit("y.dat", "mine\n")

    second = lab.run("rm -f nothing").checkpoint

    assert first is not None
    assert second is not None
    assert second.id != first.id


def test_what_was_too_large_before_a_tool_cut_it_within_the_turn_stays(lab: Lab) -> None:
    lab.limits = Limits(max_file_size_bytes=MEGABYTE)
    taken = lab.run("touch t1").checkpoint
    assert taken is not None
    lab.edit("b6", b"y" * 3 * MEGABYTE)
    lab.run("truncate -s 90 b6", new_turn=False)

    report = lab.undo_turn(1, taken)
    assert paths(report.deleted) == ["t1"]
    assert [note.path for note in report.not_captured] == ["b6"]
    assert "too large before it was changed" in report.not_captured[0].why
    lab.rollback(2, "b6")

    assert not lab.exists("b6")


def test_file_that_the_agent_grew_too_large_has_a_checkpoint_to_go_back_to(lab: Lab) -> None:
    lab.limits = Limits(max_file_size_bytes=MEGABYTE)
    lab.edit("p.txt", "PRECIOUS\n")

    result = lab.run("python3 -c \"open('p.txt', 'w').write('x' * 2000000)\"")
    assert result.checkpoint is not None
    undone = lab.undo_turn(1, result.checkpoint)
    refused = lab.rollback(1, "p.txt")
    os.rename(lab.root / "p.txt", lab.root / "p.large")
    brought = lab.rollback(1, "p.txt")

    assert [gap.path for gap in result.checkpoint.gaps] == []
    assert any("p.txt" in note and "it is older" in note for note in result.notes)
    assert paths(undone.not_captured) == ["p.txt"]
    assert [note.path for note in refused.not_captured] == ["p.txt"]
    assert "move it away first" in refused.not_captured[0].why
    assert paths(brought.restored) == ["p.txt"]
    assert lab.read("p.txt") == "PRECIOUS\n"
    assert (lab.root / "p.large").stat().st_size == 2000000


def test_older_content_of_what_was_too_large_is_brought_back_by_name(lab: Lab) -> None:
    lab.limits = Limits(max_file_size_bytes=MEGABYTE)
    lab.edit("p.txt", "PRECIOUS\n")
    lab.edit("s", "one\n")
    lab.run("python3 -c \"open('p.txt', 'w').write('x' * 2000000)\"")
    later = lab.write("s", "two\n").checkpoint
    assert later is not None
    os.rename(lab.root / "p.txt", lab.root / "p.large")

    whole = lab.rollback(1)
    assert not lab.exists("p.txt")
    named = lab.engine.plan_restore(lab.workspace, later.id, selection=["p.txt"])
    lab.engine.apply_restore(named)

    assert [(gap.path, gap.reason, gap.older) for gap in later.gaps] == [("p.txt", GapReason.TOO_LARGE, True)]
    assert "p.txt" in paths(whole.not_captured)
    assert lab.read("p.txt") == "PRECIOUS\n"
