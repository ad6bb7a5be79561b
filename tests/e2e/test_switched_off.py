"""Checkpoints off, or no git to take them with: it is said, and the agent works all the same."""

from pathlib import Path

import pytest

from tests.e2e.broken_git import WatchedGit, path_without_git
from tests.e2e.program import Program
from tests.e2e.scene import Scene
from tests.e2e.trees import differing

EVERY_KIND_OF_MESSAGE = (
    "/write a.py\ntwo\n",
    "$ rm -rf b.py",
    "$ python3 -c 'print(1)'",
    "/read a.py",
    "/status",
    "/checkpoints",
    "/undo",
    "/redo",
    "/new",
    "/workspace",
)

RESTORING = ("/rollback", "/rollback list", "/rollback 1", "/rollback 1 --all", "/rollback diff 1", "/diff session")


def off(scene: Scene, git: WatchedGit) -> Program:
    return scene.start("--workspace", str(scene.project), PATH=git.path)


def test_off_says_how_to_turn_them_on_and_runs_no_git_at_all(scene: Scene, tmp_path: Path) -> None:
    git = WatchedGit(tmp_path / "git")
    scene.edit("a.py", "one\n")
    scene.edit("b.py", "one\n")
    program = off(scene, git)

    for text in RESTORING:
        said = program.ask(text).text
        for way in ("/checkpoints on", "checkpoints.enabled: true", "gateway chat --checkpoints"):
            assert way in said, text
    for text in EVERY_KIND_OF_MESSAGE:
        assert program.ask(text).text

    assert program.end() == 0
    assert git.calls() == []
    assert not (scene.home / "checkpoints" / "store").exists()
    assert (scene.read("a.py"), scene.exists("b.py")) == ("two\n", False)


def test_on_runs_git_so_that_no_call_above_means_something(scene: Scene, tmp_path: Path) -> None:
    git = WatchedGit(tmp_path / "git")
    program = scene.start(PATH=git.path)

    program.ask("/write a.py\none\n")

    assert git.calls()


def test_turned_on_in_the_chat_they_cover_what_comes_then(scene: Scene, tmp_path: Path) -> None:
    git = WatchedGit(tmp_path / "git")
    scene.edit("a.py", "one\n")
    program = off(scene, git)
    program.ask("/write a.py\ntwo\n")

    turned_on = program.ask("/checkpoints on")
    program.ask("/write a.py\nthree\n")
    listed = program.ask("/rollback")
    restored = program.ask("/rollback 1")

    assert turned_on.text.startswith("Checkpoints are on for this session from the next turn on.")
    assert len(listed.entries) == 1
    assert restored.text.startswith("✅")
    assert scene.read("a.py") == "two\n"
    program.ask("/checkpoints off")
    calls = git.calls()
    program.ask("/write a.py\nfour\n")
    assert "/checkpoints on" in program.ask("/rollback").text
    assert git.calls() == calls


@pytest.mark.parametrize("way", ["configuration", "environment"])
def test_every_way_to_turn_them_on_works(scene: Scene, way: str) -> None:
    scene.edit("a.py", "one\n")
    if way == "configuration":
        scene.configure("checkpoints: {enabled: true}\n")
    program = scene.start(
        "--workspace",
        str(scene.project),
        **({"TAKEBACK_CHECKPOINTS__ENABLED": "1"} if way == "environment" else {}),
    )

    program.ask("/write a.py\ntwo\n")
    program.ask("/rollback 1")

    assert scene.read("a.py") == "one\n"


def test_missing_git_is_said_and_the_tools_go_on(scene: Scene, tmp_path: Path) -> None:
    scene.edit("a.py", "one\n")
    program = scene.start(PATH=path_without_git(tmp_path / "programs"))

    written = program.ask("/write a.py\ntwo\n")
    run = program.ask("$ echo new > b.py; ls | cat")
    patched = program.ask("/patch\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-two\n+three\n")
    before = scene.tree()

    assert "git" in written.line("⚠ no checkpoint was taken:")
    assert "b.py" in run.text
    assert patched.text.startswith("patch: a.py written")
    assert scene.read("a.py") == "three\n"
    for text in RESTORING:
        said = program.ask(text).text
        assert said.startswith("There are no checkpoints because git cannot be used: "), text
        assert "Install git" in said, text
    assert differing(before, scene.tree()) == set()


def test_git_that_comes_back_is_used_at_once(scene: Scene, tmp_path: Path) -> None:
    scene.edit("a.py", "one\n")
    program = scene.start(PATH=f"{path_without_git(tmp_path / 'programs')}:{tmp_path / 'later'}")
    program.ask("/write a.py\ntwo\n")
    WatchedGit(tmp_path / "later")

    guarded = program.ask("/write a.py\nthree\n")
    program.ask("/rollback 1")

    assert "⚠" not in guarded.text
    assert scene.read("a.py") == "two\n"
