"""Whatever a machine looks like: hostile git settings, where the home lies, where the program starts."""

import os
import shutil
from pathlib import Path

import pytest

from tests.e2e.homes import refs
from tests.e2e.program import Program
from tests.e2e.scene import Scene
from tests.e2e.trees import differing, photograph

HOSTILE = (
    ("core.fsmonitor", "touch {marker}"),
    ("core.hooksPath", "{hooks}"),
    ("core.attributesFile", "{hooks}/attributes"),
    ("commit.gpgSign", "true"),
    ("gpg.program", "{hooks}/post-checkout"),
    ("diff.external", "touch {marker}"),
    ("diff.evil.textconv", "touch {marker}"),
    ("filter.evil.clean", "touch {marker}"),
    ("filter.evil.smudge", "touch {marker}"),
    ("init.templateDir", "{hooks}"),
    ("core.pager", "touch {marker}"),
    ("core.editor", "touch {marker}"),
)
"""Settings that make git run a program; each would touch the marker."""

HOOKS = ("post-checkout", "post-index-change", "pre-commit", "post-commit", "reference-transaction", "post-update")


def hostile(scene: Scene, marker: Path) -> str:
    """A git configuration that names a program wherever one can be named."""
    hooks = scene.base / "hooks"
    hooks.mkdir()
    (hooks / "attributes").write_text("* filter=evil diff=evil\n")
    for name in HOOKS:
        (hooks / name).write_text(f"#!/bin/sh\ntouch {marker}\n")
        (hooks / name).chmod(0o755)
    lines = []
    for key, value in HOSTILE:
        section, _, name = key.rpartition(".")
        head, _, rest = section.partition(".")
        title = f'{head} "{rest}"' if rest else head
        lines.append(f"[{title}]\n\t{name} = {value.format(marker=marker, hooks=hooks)}\n")
    return "".join(lines)


@pytest.mark.parametrize("place", ["nested repository", "workspace's repository", "person's own configuration"])
def test_no_configured_program_ever_runs(scene: Scene, place: str) -> None:
    marker = scene.base / "marker"
    scene.edit("a.py", "one\n")
    scene.edit(".gitattributes", "* filter=evil diff=evil\n")
    configuration = hostile(scene, marker)
    selection = ""
    if place == "nested repository":
        scene.edit("tool/.gitattributes", "* filter=evil diff=evil\n")
        scene.edit("tool/inner.txt", "inner\n")
        scene.repository("tool")
        target = scene.project / "tool/.git/config"
        selection = " a.py new.py"
    elif place == "workspace's repository":
        scene.repository()
        target = scene.project / ".git/config"
    else:
        target = scene.user_home / ".gitconfig"
        target.touch()
    target.write_text(target.read_text() + configuration)
    program = scene.start()

    program.ask("/write a.py\ntwo\n")
    program.ask("$ echo new > new.py")
    for text in (
        "/rollback",
        "/rollback diff 2",
        "/diff",
        "/diff session",
        f"/rollback 2{selection}",
        "/redo",
        "/undo",
    ):
        assert not program.ask(text).text.startswith(("Refused", "The checkpoint store"))

    assert scene.read("a.py") == "two\n"
    assert not marker.exists()
    if target != scene.user_home / ".gitconfig":
        scene.git("status", at=str(target.parent.parent))
        assert marker.exists()  # so the trap was armed


def test_git_variables_that_point_elsewhere_are_ignored(scene: Scene) -> None:
    scene.edit("a.py", "one\n")
    scene.repository()
    elsewhere = scene.base / "elsewhere"
    scene.edit(str(elsewhere / "theirs.txt"), "theirs\n")
    scene.repository(str(elsewhere))
    before = photograph(scene.project / ".git"), photograph(elsewhere)
    names = ("GIT_DIR", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR")
    program = scene.start(
        GIT_WORK_TREE=str(elsewhere),
        GIT_INDEX_FILE=str(elsewhere / ".git/index"),
        GIT_NAMESPACE="theirs",
        **{name: str(elsewhere / ".git") for name in names},
    )

    program.ask("/write a.py\ntwo\n")
    program.ask("/rollback")
    program.ask("/rollback 1")

    assert scene.read("a.py") == "one\n"
    assert (photograph(scene.project / ".git"), photograph(elsewhere)) == before
    assert any("/checkpoints/" in name for name in refs(scene.home))


def test_neither_an_unreadable_configuration_nor_a_named_git_has_a_say(scene: Scene) -> None:
    scene.edit("a.py", "one\n")
    (scene.user_home / ".gitconfig").write_text("[broken\n")
    named = scene.base / "git"
    named.write_text(f"#!/bin/sh\ntouch {scene.base}/marker\n")
    named.chmod(0o755)
    program = scene.start(GIT_PYTHON_GIT_EXECUTABLE=str(named))

    written = program.ask("/write a.py\ntwo\n")
    restored = program.ask("/rollback 1")

    assert "⚠" not in written.text
    assert restored.text.startswith("✅")
    assert scene.read("a.py") == "one\n"
    assert not (scene.base / "marker").exists()


@pytest.mark.parametrize("kind", ["linked worktree", "submodule", "no git at all"])
def test_every_kind_of_workspace_is_taken_back_whole(scene: Scene, kind: str) -> None:
    scene.edit("a.py", "one\n")
    if kind == "linked worktree":
        scene.repository()
        scene.git("worktree", "add", "-q", "-b", "side", str(scene.base / "work"))
        scene.project = scene.base / "work"
    elif kind == "submodule":
        scene.repository()
        outer = scene.base / "outer"
        scene.repository(str(outer))
        scene.git(
            "-c", "protocol.file.allow=always", "submodule", "-q", "add", str(scene.project), "sub", at=str(outer)
        )
        scene.project = outer / "sub"
    program = scene.start()
    before = scene.tree()

    program.ask("$ rm a.py; echo new > new.py")
    restored = program.ask("/rollback 1")

    assert differing(before, scene.tree()) == set()
    assert restored.text.startswith("✅")
    assert "not captured" not in restored.text.lower()


@pytest.mark.parametrize("path", ["user", "link", ".", "/", "home", "home/checkpoints"])
def test_home_and_what_holds_it_and_takebacks_own_are_never_a_workspace(scene: Scene, path: str) -> None:
    (scene.base / "link").symlink_to("user")
    (scene.home / "checkpoints").mkdir(parents=True)
    (scene.user_home / "a").write_text("one\n")
    scene.environment["HOME"] = str(scene.base / "link")
    forbidden = scene.base / path

    refused = scene.run("chat", "--workspace", str(forbidden), "--checkpoints", stdin=b"$ echo two > a\n")
    assert refused.returncode == 1
    assert refused.stdout == b""
    assert str(forbidden.resolve()) in refused.stderr.decode()
    scene.configure(f"checkpoints: {{enabled: true}}\nworkspaces: {{it: {{path: {forbidden}}}}}\n")
    program = scene.start("--checkpoints")
    for text in ("/write a\ntwo\n", "$ echo two > a", "/rollback", "/rollback 1"):
        said = program.ask(text).text
        assert f"{forbidden.resolve()} cannot be a workspace: it is " in said
        assert said.endswith("Choose another: /workspace")

    assert (scene.user_home / "a").read_text() == "one\n"
    assert not (scene.home / "a").exists()
    assert os.listdir(scene.home / "checkpoints") == []


def test_gateways_own_home_in_the_workspace_is_never_captured_or_restored(scene: Scene) -> None:
    scene.home = scene.project / "state"
    scene.environment["TAKEBACK_HOME"] = str(scene.home)
    scene.edit("a.py", "one\n")
    program = scene.start()
    program.ask("/write a.py\ntwo\n")
    program.ask("$ echo new > new.py")
    listed = program.ask("/rollback")
    previewed = program.ask("/rollback diff 2")

    restored = program.ask("/rollback 2 --all")

    assert all("[not captured: state (Takeback's own store)]" in entry for entry in listed.entries)
    assert restored.line("Restored:") == "a.py"
    assert restored.line("Removed:") == "new.py"
    assert "state/" not in previewed.text + restored.text + "".join(previewed.files.values())
    assert program.ask("/status").line("Last turn:") == "none yet"
    assert program.ask("/redo").line("↪") == "Brought back 2 turns."
    assert program.end() == 0


def test_relative_paths_mean_the_chats_workspace_wherever_the_program_starts(scene: Scene, program: Program) -> None:
    scene.edit("a.py", "one\n")
    (scene.user_home / "a.py").write_text("the program's own directory\n")

    program.ask("/write a.py\ntwo\n")
    program.ask("/write sub/b.py\nnew\n")
    where = program.ask("$ pwd; cat a.py > c.py")
    escape = program.ask("/write ../user/a.py\nescaped\n")

    assert (scene.read("a.py"), scene.read("sub/b.py"), scene.read("c.py")) == ("two\n", "new\n", "two\n")
    assert where.lines[0] == str(scene.project)
    assert program.ask("/read a.py").text == "two"
    assert escape.text.startswith("write_file: ../user/a.py: ")
    assert (scene.user_home / "a.py").read_text() == "the program's own directory\n"
    assert os.listdir(scene.user_home) == ["a.py"]


def test_directory_that_vanishes_is_said_and_comes_back_to_its_history(scene: Scene, program: Program) -> None:
    scene.edit("a.py", "one\n")
    program.ask("/write a.py\ntwo\n")
    aside = scene.base / "aside"
    shutil.move(scene.project, aside)

    for text in ("/write a.py\nthree\n", "/rollback", "/rollback 1", "/undo", "/diff"):
        assert "there is no such directory" in program.ask(text).text
    assert not scene.project.exists()
    shutil.move(aside, scene.project)

    program.ask("/rollback")
    assert program.ask("/rollback 1").text.startswith("✅")
    assert scene.read("a.py") == "one\n"
