"""Files that look like secrets, which are not read for everybody; and commands that hold a key."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from engine.api import Engine
from engine.model import ToolCall, TurnRef

CONTENT = "KEY=of-mine\n"


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(
        str(tmp_path / "checkpoints"),
        user_home=str(tmp_path / "home"),
        search_path=os.environ["PATH"],
        command_env={"PATH": os.environ["PATH"], "KEY": "secret-1"},
    )


@pytest.fixture
def call(engine: Engine, tmp_path: Path) -> ToolCall:
    root = tmp_path / "app"
    (root / ".takeback" / "inbox").mkdir(parents=True)
    (root / "credentials").mkdir()
    for name in (".env", "deploy.pem", "credentials/readme", ".takeback/inbox/deploy.key", ".env.example"):
        (root / name).write_text(CONTENT)
    (root / "harmless.txt").symlink_to(".env")
    (root / "old.pem").symlink_to("credentials/readme")
    return ToolCall(engine.open_workspace(str(root)), TurnRef("c", "s", "1"), guarded=True, operation="o")


@pytest.mark.parametrize("path", [".env", "./.env", "credentials/../.env", "deploy.pem", "harmless.txt", "old.pem"])
def test_a_file_that_looks_like_a_secret_is_read_for_a_person_alone(engine: Engine, call: ToolCall, path: str) -> None:
    refused = engine.read_file(replace(call, secret_files=False), path)

    assert not refused.ok
    assert refused.text.endswith("looks like a file of secrets, so it is not read: ask the person")
    assert engine.read_file(call, path).text == CONTENT


@pytest.mark.parametrize("path", ["credentials/readme", "credentials", ".takeback/inbox/deploy.key", ".env.example"])
def test_what_only_has_such_a_name_or_was_sent_is_read(engine: Engine, call: ToolCall, path: str) -> None:
    assert engine.read_file(replace(call, secret_files=False), path).ok


def test_a_command_is_kept_as_it_is_shown_and_runs_as_it_is(engine: Engine, call: ToolCall, tmp_path: Path) -> None:
    result = engine.terminal(replace(call, shown="echo *** > out"), "echo secret-1 > out")

    assert (tmp_path / "app" / "out").read_text() == "secret-1\n"
    assert result.checkpoint is not None
    assert result.checkpoint.reason == "before terminal: echo *** > out"
    kept = [path.read_bytes() for path in (tmp_path / "checkpoints").rglob("*") if path.is_file()]
    assert [content for content in kept if b"echo secret-1" in content] == []
