"""``gateway checkpoints import`` as people run it."""

import json

import pytest

from gateway.cli.exits import Exit
from tests.engine.upkeep.foreign_kit import Foreign

STEM = "a1b2c3d4e5f60718"


@pytest.fixture
def foreign(tmp_path, workspace):
    """A store with two checkpoints of the workspace."""
    foreign = Foreign.made(tmp_path / "other" / "store")
    oldest = foreign.commit(foreign.tree({"notes.md": b"zero\n"}), "before write_file: notes.md", 1)
    newest = foreign.commit(foreign.tree({"notes.md": b"half\n"}), "before patch: notes.md", 2, oldest)
    foreign.name(f"refs/other/{STEM}", newest)
    foreign.project(STEM, str(workspace))
    return foreign


def test_history_is_taken_over_listed_with_its_origin_and_restored(gateway, foreign, workspace, tmp_path):
    base = str(tmp_path / "other")

    planned = gateway("checkpoints", "import", base, "--dry-run")
    done = gateway("checkpoints", "import", base)
    again = gateway("checkpoints", "import", base)
    listed = gateway("checkpoints", "list").stdout.splitlines()
    gateway("chat", "--checkpoints", "--workspace", str(workspace), stdin="/rollback 2\n")

    assert [result.returncode for result in (planned, done, again)] == [Exit.OK] * 3
    assert planned.stdout.splitlines()[-1] == f"Would import 2 checkpoints from {foreign.path}."
    assert done.stdout.splitlines() == [f"{workspace}: 2 checkpoints", f"Imported 2 checkpoints from {foreign.path}."]
    assert again.stdout.splitlines()[0] == f"{workspace}: 0 checkpoints (2 were imported before)"
    assert "before patch: notes.md" in listed[1]
    assert all(line.endswith(f"[imported from {foreign.path}]") for line in listed[1:3])
    assert (workspace / "notes.md").read_text() == "zero\n"
    assert gateway("checkpoints", "verify").returncode == Exit.OK


def test_what_is_left_out_is_named_and_gives_the_code_for_partly(gateway, foreign):
    foreign.name("refs/heads/main", foreign.git("rev-parse", f"refs/other/{STEM}"))

    text = gateway("checkpoints", "import", str(foreign.path))
    report = json.loads(gateway("checkpoints", "import", str(foreign.path), "--json").stdout)

    assert text.returncode == Exit.PARTLY
    assert "left out: refs/heads/main: no project file says which directory it belongs to" in text.stdout
    assert (report["imported"], report["complete"], report["workspaces"][0]["known"]) == (0, False, 2)
    assert report["left_out"][0]["what"] == "refs/heads/main"


def test_directory_without_a_store_is_refused(gateway, tmp_path):
    result = gateway("checkpoints", "import", str(tmp_path))

    assert result.returncode == Exit.ERROR
    assert result.stderr == (
        f"gateway: {tmp_path} cannot be imported: there is no store in it: neither objects/ nor store/objects/. "
        "Nothing was changed.\n"
    )
