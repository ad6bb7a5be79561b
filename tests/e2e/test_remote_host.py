"""Commands on another host that shares the workspace: checkpoints hold as they do here."""

import json
from collections.abc import Iterator

import pytest

from tests.e2e.program import Program
from tests.e2e.scene import Scene
from tests.e2e.trees import differing
from tests.remote_host import RemoteHost, opened_host

THREE = "for name in a b c; do echo rebuilt > $name.out; done"
BY_PYTHON = "python3 - <<'EOF'\nopen('made.py', 'w').write('made\\n')\nopen('app.py', 'a').write('more\\n')\nEOF"


@pytest.fixture(scope="module")
def remote_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RemoteHost]:
    with opened_host(tmp_path_factory.mktemp("host")) as opened:
        yield opened


@pytest.fixture
def program(scene: Scene, remote_host: RemoteHost) -> Program:
    """A program whose commands run behind ssh, seen there under another path."""
    shared = scene.base / "shared"
    shared.symlink_to(scene.project)
    backend = {"kind": "ssh", **remote_host.options(path=str(shared))}
    workspaces = {"far": {"path": str(scene.project), "backend": backend}}
    scene.configure(json.dumps({"checkpoints": {"enabled": True}, "workspaces": workspaces}))
    return scene.start("--chat", "local")


def test_what_a_script_or_a_build_there_wrote_is_taken_back(scene: Scene, program: Program) -> None:
    scene.edit("app.py", "mine\n")
    for name in "abc":
        scene.edit(f"{name}.out", "old\n")
    before = scene.tree()

    assert "made.py (new)" in program.ask(f"$ {BY_PYTHON}").text
    assert scene.read("app.py") == "mine\nmore\n"
    assert "✅ Restored" in program.ask("/rollback 1").text
    assert differing(scene.tree(), before) == set()
    assert "3 files" in program.ask(f"$ {THREE}").text
    assert "✅ Restored" in program.ask("/rollback 1").text
    assert differing(scene.tree(), before) == set()
    assert program.ask("/status").line("Backend:") == "ssh"
    assert program.end() == 0
