"""A container that has the host's own path: nothing a chat does there reaches the host's files, and it says so."""

import json
from collections.abc import Iterator

import pytest

from tests.containers import LIMITS, Podman, opened_podman
from tests.e2e.program import Program
from tests.e2e.scene import Scene

REASON = "This workspace's commands run in a container (docker): its files belong to the sandbox, so no checkpoint"

IN_THE_CONTAINER = (
    "/write app.py\nboxed\n",
    "/write new/deep.txt\nboxed\n",
    "/patch\napp.py\n<<<<<<< SEARCH\nboxed\n=======\npatched\n>>>>>>> REPLACE\n",
    "/run rm -rf notes.md; echo shell > made.txt",
    "$ sed -i s/patched/sed/ app.py",
    "/read app.py",
)

REFUSED = (
    "/rollback 1",
    "/rollback 1 --all",
    "/rollback 1 app.py",
    "/rollback diff 1",
    "/diff",
    "/diff session",
    "/checkpoints on",
)

CONVERSATION = ("/rollback undo", "/undo", "/redo", "/undo", "/retry", "/new", "/rollback undo", "/redo", "/undo")


@pytest.fixture(scope="module")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Podman]:
    with opened_podman(tmp_path_factory.mktemp("podman")) as opened:
        yield opened


@pytest.fixture(autouse=True)
def no_container_is_left(podman: Podman, scene: Scene) -> Iterator[None]:
    """A program that a test kills at its end cannot remove its own."""
    yield
    scene.close()
    podman("rm", "-f", "-a", "-t", "0")


@pytest.fixture
def program(scene: Scene, podman: Podman) -> Program:
    """A program with two workspaces that are the same directory: one on the host, one in a container."""
    backend = {"kind": "docker", "cli": podman.cli, "image": podman.options()["image"], "args": list(LIMITS)}
    workspaces = {
        "here": {"path": str(scene.project)},
        "box": {"path": str(scene.project), "backend": backend},
    }
    scene.configure(
        json.dumps({"checkpoints": {"enabled": True}, "default_workspace": "here", "workspaces": workspaces})
    )
    return scene.start("--chat", "local")


def test_no_command_reaches_the_file_of_that_path_on_the_host(scene: Scene, program: Program, podman: Podman) -> None:
    scene.edit("app.py", "mine\n")
    scene.edit("notes.md", "mine\n")
    program.ask("/write app.py\nagent\n")
    entries = program.ask("/rollback").entries
    program.ask("/workspace box")
    before = scene.tree()

    said = {text: program.ask(text).text for text in IN_THE_CONTAINER}
    assert scene.tree() == before
    listed = program.ask("/rollback list")
    refused = [program.ask(text).text for text in REFUSED]
    moved = [program.ask(text).text for text in CONVERSATION]

    assert scene.tree() == before
    assert scene.read("app.py") == "agent\n"
    assert said["/read app.py"] == "sed"
    assert not any("checkpoint" in text for text in said.values())
    assert listed.entries == entries
    assert listed.text.rstrip().endswith(refused[0].rstrip())
    assert {text.rstrip() for text in refused} == {refused[0].rstrip()}
    assert refused[0].startswith(REASON)
    assert f"Only the conversation moved: {REASON}" in moved[1]
    assert not any("Restored" in text for text in moved)


def test_switching_the_workspace_changes_the_answers_at_once(scene: Scene, program: Program) -> None:
    scene.edit("app.py", "mine\n")
    program.ask("/write app.py\nagent\n")

    program.ask("/workspace box")
    assert program.ask("/rollback diff 1").text.startswith(REASON)
    assert "none: commands run in a container" in program.ask("/status").text
    program.ask("/workspace here")
    assert "-mine" in program.ask("/rollback diff 1").text
    assert "✅ Restored" in program.ask("/rollback 1 --all").text
    assert scene.read("app.py") == "mine\n"
    program.ask("/workspace box")
    assert program.ask("/rollback 1").text.startswith(REASON)


def test_the_command_line_lists_what_the_host_has_and_says_why_there_is_no_more(scene: Scene, program: Program) -> None:
    scene.edit("app.py", "mine\n")
    program.ask("/write app.py\nagent\n")
    program.ask("/workspace box")
    program.ask("/write app.py\nboxed\n")

    listed = scene.run("checkpoints", "list", str(scene.project))
    as_json = json.loads(scene.run("checkpoints", "list", "--json").stdout)

    assert listed.returncode == 0
    assert listed.stdout.count(b"before write_file: app.py") == 1
    assert b"In the workspace box: This workspace's commands run in a container (docker)" in listed.stdout
    assert as_json[0]["containers"] == {"box": "docker"}


def test_the_container_ends_with_the_program(scene: Scene, program: Program, podman: Podman) -> None:
    program.ask("/workspace box")
    assert "up" in program.ask("$ echo up").text
    assert len(podman.names()) == 1

    assert program.end() == 0
    assert podman.names() == []


def test_a_stop_ends_what_runs_in_the_container(scene: Scene, program: Program, podman: Podman) -> None:
    program.ask("/workspace box")
    program.ask("$ true")
    (name,) = podman.names()
    program.send("$ sleep 4711 & wait")
    podman("exec", name, "sh", "-c", "until ps | grep -q '[s]leep 4711'; do sleep 0.1; done")

    program.ask("/stop")

    assert "sleep 4711" not in podman("exec", name, "ps")


def test_a_missing_image_is_said_in_the_chat(scene: Scene, podman: Podman) -> None:
    backend = {"kind": "docker", "cli": podman.cli, "image": "localhost/none:1"}
    scene.configure(json.dumps({"workspaces": {"box": {"path": str(scene.project), "backend": backend}}}))
    program = scene.start("--chat", "local")

    for text in ("$ touch here", "/write here\nx\n", "/read here"):
        assert "the image 'localhost/none:1' is not on this machine; fetch it first:" in program.ask(text).text
    assert not scene.exists("here")
