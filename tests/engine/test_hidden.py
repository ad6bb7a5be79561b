"""Files that rules hide: what tools did to them comes back, and what cannot come back is said."""

import os
import subprocess
from pathlib import Path

import pytest

from engine.model import CheckpointKind, Limits
from tests.engine.lab import Lab, paths, snapshot


def test_ignored_file_comes_back_through_every_undo_and_redo(lab: Lab) -> None:
    lab.edit(".gitignore", "*.log\n")
    first = lab.write("n.log", "one\n").checkpoint
    second = lab.write("n.log", "two\n").checkpoint
    assert first is not None
    assert second is not None

    undone = [lab.undo_turn(2, second), lab.undo_turn(1, first)]
    assert not lab.exists("n.log")
    lab.undo_restore(undone[1])
    assert lab.read("n.log") == "one\n"
    lab.undo_restore(undone[0])

    assert lab.read("n.log") == "two\n"


def test_deletion_of_an_ignored_file_can_be_taken_back_and_done_again(lab: Lab) -> None:
    lab.edit(".gitignore", "*.log\n")
    lab.edit("o.log", "mine\n")
    taken = lab.run("rm o.log").checkpoint
    assert taken is not None

    report = lab.undo_turn(1, taken)
    assert lab.read("o.log") == "mine\n"
    lab.undo_restore(report)

    assert not lab.exists("o.log")


def test_what_an_older_checkpoint_did_not_capture_is_said(lab: Lab) -> None:
    lab.edit(".gitignore", "*.log\n")
    lab.edit("x.log", "mine\n")
    lab.edit("s", "one\n")
    lab.write("s", "two\n")
    lab.run("rm x.log")

    report = lab.rollback(2)

    assert lab.read("s") == "one\n"
    assert paths(report.not_captured) == ["x.log"]


def test_hidden_file_that_a_command_removed_unnamed_is_said(lab: Lab) -> None:
    lab.edit(".gitignore", "*.dat\n")
    lab.edit("y.dat", "mine\n")
    lab.edit("__pycache__/x.pyc", "made anew\n")

    result = lab.run("python3 -c \"import os, shutil; os.remove('y.dat'); shutil.rmtree('__pycache__')\"")

    assert [note for note in result.notes if "y.dat" in note and "gone now" in note]
    assert "__pycache__" not in "".join(result.notes)


def test_undoing_a_turn_names_the_gap_it_left(lab: Lab) -> None:
    lab.limits = Limits(max_file_size_bytes=1000)
    lab.edit("big", "x" * 2000)
    lab.edit("other", "x" * 2000)
    lab.edit("s", "one\n")
    taken = lab.run("rm big; echo two > s").checkpoint
    assert taken is not None

    report = lab.undo_turn(1, taken)

    assert lab.read("s") == "one\n"
    assert paths(report.not_captured) == ["big"]


def test_going_back_and_forth_does_not_push_out_what_there_is_to_go_back_to(lab: Lab) -> None:
    lab.limits = Limits(max_snapshots=6)
    lab.edit("d/x", "precious\n")
    before = snapshot(lab.root)
    first = lab.run("rm -rf d").checkpoint
    second = lab.write("a", "1\n").checkpoint
    assert first is not None
    assert second is not None

    for _time in range(8):
        lab.undo_restore(lab.undo_turn(2, second))
    lab.undo_turn(2, second)
    lab.undo_turn(1, first)

    assert snapshot(lab.root) == before
    assert len([c for c in lab.checkpoints() if c.kind is CheckpointKind.SAFETY]) == 4


def test_removed_repository_of_the_workspace_is_said(lab: Lab) -> None:
    lab.git("init", "-q")
    lab.edit("a", "one\n")

    result = lab.run("rm -rf .git; echo b > a")

    assert [note for note in result.notes if ".git" in note and "gone now" in note]


def test_what_no_checkpoint_holds_stays_where_a_script_moved_it(lab: Lab, tmp_path: Path) -> None:
    lab.edit(".gitignore", ".env\n*.sqlite\ndata/\n")
    for name in (".env", "db.sqlite", "data/one", "build/made", "src/a"):
        lab.edit(name, f"{name}\n")
        os.utime(lab.root / name, (1_700_000_000, 1_700_000_000))
    lab.write("first", "1\n")
    (tmp_path / "script").write_text(
        "mv .env env.bak; mv db.sqlite db.bak; mv data dat; mv build b2; cp -p src/a src/b"
    )

    result = lab.run(f"sh {tmp_path}/script")
    report = lab.undo_turn(lab.turn, lab.checkpoints()[0])

    assert result.checkpoint is not None
    kept = {"env.bak": ".env\n", "db.bak": "db.sqlite\n", "dat/one": "data/one\n", "b2/made": "build/made\n"}
    assert {name: lab.read(name) for name in kept} == kept
    assert not lab.exists("src/b")
    left = {note.path: note.why for note in report.not_captured}
    assert left == {
        **dict.fromkeys(kept, "moved here from what no checkpoint holds; name it to remove it"),
        **dict.fromkeys((".env", "db.sqlite", "data", "build"), "excluded; taken away"),
    }


def test_what_no_checkpoint_holds_stays_also_where_its_name_was_given_away(lab: Lab, tmp_path: Path) -> None:
    lab.edit(".gitignore", "*.hid\n")
    for name in ("a.hid", "b.hid", "app", "app.log"):
        lab.edit(name, f"{name}\n")
        os.utime(lab.root / name, (1_700_000_000, 1_700_000_000))
    lab.write("first", "1\n")
    (tmp_path / "script").write_text(
        "mv app.log saved; touch app.log; mv a.hid kept; echo fresh > a.hid; mv app t; mv b.hid app; mv t b.hid"
    )

    lab.run(f"sh {tmp_path}/script")
    report = lab.undo_turn(lab.turn, lab.checkpoints()[0])

    assert {name: lab.read(name) for name in ("saved", "kept", "app")} == {
        "saved": "app.log\n", "kept": "a.hid\n", "app": "b.hid\n"
    }  # fmt: skip
    left = {note.path for note in report.not_captured if "moved here" in note.why}
    assert left == {"saved", "kept", "app"}


def test_file_that_gets_the_place_of_an_ignored_one_on_disk_is_taken_back(lab: Lab, tmp_path: Path) -> None:
    lab.edit(".gitignore", "*.tmp\n")
    lab.edit("old.tmp", "x\n")
    lab.edit("app.py", "1\n")
    lab.write("first", "1\n")
    (tmp_path / "script").write_text("rm -f old.tmp; sed -i s/1/2/ app.py; echo new > made")

    lab.run(f"sh {tmp_path}/script")
    lab.undo_turn(lab.turn, lab.checkpoints()[0])

    assert (lab.read("app.py"), lab.exists("made")) == ("1\n", False)


def test_secret_that_a_known_command_moves_stays_where_it_is_now(lab: Lab) -> None:
    lab.edit(".gitignore", ".env\n")
    lab.edit(".env", "KEY=1\n")
    lab.write("first", "1\n")

    lab.run("mv .env env.bak")
    report = lab.undo_turn(lab.turn, lab.checkpoints()[0])

    assert lab.read("env.bak") == "KEY=1\n"
    assert "moved here" in {note.path: note.why for note in report.not_captured}["env.bak"]


@pytest.mark.parametrize("levels", [190, 205, 2000])
def test_directories_however_deep_cost_no_checkpoint(lab: Lab, tmp_path: Path, levels: int) -> None:
    lab.edit("d1/f", "mine\n")
    lab.write("first", "1\n")
    deeper = f"import os\nfor _ in range({levels}): os.mkdir('a'); os.chdir('a')\nopen('end', 'w').close()\n"
    (tmp_path / "deeper.py").write_text(deeper)
    (tmp_path / "script").write_text(f"rm -rf d1; python3 {tmp_path}/deeper.py")

    result = lab.run(f"sh {tmp_path}/script")
    report = lab.undo_turn(lab.turn, lab.checkpoints()[0])

    assert lab.read("d1/f") == "mine\n"
    assert [note for note in result.notes if "nested deeper than 200 levels" in note] == list(result.notes)
    assert bool(result.notes) == bool(report.not_captured) == (levels > 200)
    assert lab.exists("a") == (levels > 200)
    subprocess.run(["rm", "-rf", lab.root], check=True)  # deeper than Python's own way of removing it
