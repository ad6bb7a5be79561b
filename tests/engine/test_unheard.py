"""Changes that no directory watch tells of: none is lost around a command that may change anything."""

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from engine.checkpoints.capture import Captured, capture
from engine.checkpoints.history import Held, list_held
from engine.model import Limits
from tests.engine.lab import Lab

SCRIPTS = ("echo K > d2/f", "rm d2/f", "rm -r d2", "mv d2 d3")


@pytest.fixture
def warm(lab: Lab) -> Lab:
    """A workspace whose changes are listened to, and a script that nobody understands beforehand."""
    for name in ("d1/f", "d2/f", "d3x"):
        lab.edit(name, f"first of {name}\n")
    for number in range(2):
        lab.write("warm", f"{number}\n")
    return lab


@contextmanager
def mapped(path: Path) -> Iterator[mmap.mmap]:
    """A file open for writing through memory alone, as a database keeps it."""
    with open(path, "r+b") as stream:
        memory = mmap.mmap(stream.fileno(), 0)
    try:
        yield memory
    finally:
        memory.close()


def undo(lab: Lab) -> None:
    lab.undo_turn(lab.turn, lab.checkpoints()[0])


def run_script(lab: Lab, tmp_path: Path, text: str) -> None:
    (tmp_path / "script").write_text(text)
    lab.run(f"sh {tmp_path}/script")


@pytest.mark.parametrize("script", SCRIPTS)
def test_what_was_written_through_a_mapping_comes_back(warm: Lab, tmp_path: Path, script: str) -> None:
    with mapped(warm.root / "d2" / "f") as memory:
        warm.write("warm", "again\n")
        memory[:5] = b"FIRST"

        run_script(warm, tmp_path, script)
        undo(warm)

        assert warm.read("d2/f") == "FIRST of d2/f\n"


@pytest.mark.parametrize("script", SCRIPTS)
def test_what_was_written_through_a_name_outside_comes_back(warm: Lab, tmp_path: Path, script: str) -> None:
    os.link(warm.root / "d2" / "f", tmp_path / "outside")
    warm.write("warm", "again\n")
    with open(tmp_path / "outside", "r+b") as stream:
        stream.write(b"FIRST")

    run_script(warm, tmp_path, script)
    undo(warm)

    assert warm.read("d2/f") == "FIRST of d2/f\n"


def test_what_was_written_through_a_new_name_inside_comes_back(warm: Lab) -> None:
    os.link(warm.root / "d2" / "f", warm.root / "d1" / "new")
    warm.write("warm", "again\n")
    with open(warm.root / "d1" / "new", "r+b") as stream:
        stream.write(b"FIRST")

    warm.run("rm d2/f")
    undo(warm)

    assert warm.read("d2/f") == "FIRST of d2/f\n"


def test_what_a_command_changes_through_another_name_is_its_doing(warm: Lab, tmp_path: Path) -> None:
    os.link(warm.root / "d1" / "f", tmp_path / "outside")
    os.link(warm.root / "d2" / "f", warm.root / "d2" / "other")
    warm.write("warm", "again\n")

    run_script(warm, tmp_path, f"echo K > {tmp_path}/outside")
    first = warm.checkpoints()[0].stats
    warm.run("echo K > d2/other")
    second = warm.checkpoints()[0].stats
    undo(warm)

    assert first is not None
    assert first.files == 1
    assert second is not None
    assert second.files == 2
    assert warm.read("d2/f") == "first of d2/f\n"


@pytest.mark.parametrize("command", ["mv d2 d3", "rm -r d2", "cp -r d1/. d2", "rm d2/*", "find d2 -name f -delete"])
def test_directory_that_a_command_names_is_looked_at_as_a_whole(warm: Lab, command: str) -> None:
    with mapped(warm.root / "d2" / "f") as memory:
        warm.write("warm", "again\n")
        memory[:5] = b"FIRST"

        warm.run(command)
        undo(warm)

        assert warm.read("d2/f") == "FIRST of d2/f\n"


def test_link_that_a_command_writes_through_is_followed(warm: Lab) -> None:
    (warm.root / "link").symlink_to("d2/f")
    with mapped(warm.root / "d2" / "f") as memory:
        warm.write("warm", "again\n")
        memory[:5] = b"FIRST"

        warm.run("echo K > link")
        undo(warm)

        assert warm.read("d2/f") == "FIRST of d2/f\n"


@pytest.mark.parametrize("everything", [False, True])
def test_what_is_written_through_a_mapping_once_more_does_not_stand_in_a_restores_way(
    lab: Lab, *, everything: bool
) -> None:
    lab.edit("f", "first of f\n")
    lab.write("f", "agent of f\n")
    with mapped(lab.root / "f") as memory:
        memory[:5] = b"ONE.."
        for number in range(4):  # by the last of them its times are old enough to be believed
            lab.write("warm", f"{number}\n")
        memory[:5] = b"TWO.."  # while its page was not written out its times stay

        report = lab.rollback(5, everything=everything)

        assert report.failed == ()
        assert [note.path for note in report.kept] == ([] if everything else ["f"])
        assert lab.read("f") == ("first of f\n" if everything else "TWO.. of f\n")
        lab.undo_restore(report)
        assert lab.read("f") == "TWO.. of f\n"


def test_uncaptured_things_that_a_script_removes_are_named(lab: Lab, tmp_path: Path) -> None:
    lab.limits = Limits(max_file_size_bytes=10)
    for name in ("build/out", "node_modules/a/index.js", ".venv/x", ".idea/x", "a.log", "__pycache__/y.pyc", "z.o"):
        lab.edit(name, "x\n")
    lab.edit("large", "more than ten bytes\n")
    lab.write("a", "1\n")
    (tmp_path / "script").write_text("rm -rf build node_modules .venv .idea __pycache__ *.log z.o large")

    result = lab.run(f"sh {tmp_path}/script")

    assert [note for note in result.notes if "gone now" in note] == [
        "not captured (excluded): .idea (and gone now), .venv (and gone now), a.log (and gone now) (+2)",
        "not captured (too large): large (and gone now)",
    ]
    assert result.checkpoint is not None


@pytest.mark.parametrize("command", ["python3 -c 'import os; os.remove(\"d2/f\")'", "rm d2/f"], ids=["script", "known"])
def test_what_is_saved_between_the_look_and_the_command_comes_back(
    warm: Lab, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    def saved_meanwhile(*arguments: Any) -> list[Held]:
        monkeypatch.undo()
        warm.edit("d2/f", "saved in the last moment\n")
        return list_held(*arguments)

    monkeypatch.setattr("engine.guard.list_held", saved_meanwhile)
    result = warm.run(command)
    assert result.checkpoint is not None
    assert not warm.exists("d2/f")
    undo(warm)

    assert warm.read("d2/f") == "saved in the last moment\n"


def test_the_checkpoint_of_a_known_command_holds_what_was_saved_during_the_look(
    warm: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    def saved_meanwhile(*arguments: Any, **named: Any) -> Captured:
        monkeypatch.undo()
        captured = capture(*arguments, **named)
        warm.edit("d2/f", "saved in the last moment\n")
        return captured

    monkeypatch.setattr("engine.guard.capture", saved_meanwhile)
    result = warm.run("rm d2/f")
    assert result.checkpoint is not None
    warm.engine.apply_restore(warm.engine.plan_restore(warm.workspace, result.checkpoint.id, everything=True))

    assert warm.read("d2/f") == "saved in the last moment\n"
