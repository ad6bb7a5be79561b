"""``gateway sessions`` shows what the database holds."""

import json

import pytest

from gateway.cli.exits import Exit


@pytest.fixture
def session(gateway, workspace):
    """The id of a session with two turns, the second taken back."""
    gateway(
        "chat", "--checkpoints", "--workspace", str(workspace), stdin="$ rm notes.md\n$ echo two > notes.md\n/undo\n"
    )
    (listed,) = json.loads(gateway("sessions", "list", "--json").stdout)
    return listed["id"]


def test_the_list_has_a_line_for_each_session(gateway, session, workspace):
    (line,) = gateway("sessions", "list").stdout.splitlines()

    assert line.startswith(session)
    assert line.endswith(f"current  console:local@{workspace}  {workspace}  2 turns")


def test_what_a_program_calls_its_chat_reaches_no_terminal_as_it_is(gateway, workspace):
    said = json.dumps({"text": "$ echo one", "chat": "a\x1b[31m\nb"})
    gateway("chat", "--jsonl", "--workspace", str(workspace), stdin=f"{said}\n")

    (line,) = gateway("sessions", "list").stdout.splitlines()

    assert "console:a\\x1b[31m\\nb" in line
    assert line.endswith("  1 turn")


def test_a_conversation_is_shown_with_what_was_taken_back(gateway, session):
    shown = gateway("sessions", "show", session).stdout

    assert "Turn 1 (done)" in shown
    assert "Turn 2 (done, taken back)" in shown
    assert "    $ rm notes.md" in shown


def test_an_export_holds_turns_calls_and_restores(gateway, session):
    exported = json.loads(gateway("sessions", "export", session).stdout)

    assert [turn["active"] for turn in exported["turns"]] == [True, False]
    (call,) = [message for message in exported["turns"][0]["messages"] if message["role"] == "tool"]
    assert (call["tool_name"], call["arguments"], call["ok"]) == ("terminal", {"command": "rm notes.md"}, True)
    assert exported["turns"][0]["checkpoint_id"]
    assert [restore["kind"] for restore in exported["restores"]] == ["undo"]


@pytest.mark.parametrize("with_database", [True, False])
def test_an_unknown_session_is_said(gateway, workspace, with_database):
    if with_database:
        gateway("chat", "--workspace", str(workspace), stdin="/whoami\n")

    result = gateway("sessions", "show", "s-nope")

    assert result.returncode == Exit.ERROR
    assert result.stderr == "gateway: there is no session 's-nope'. See them with: gateway sessions list\n"


def test_without_a_database_there_are_no_sessions(gateway):
    assert gateway("sessions", "list").stdout.startswith("There are no sessions yet.")
    assert json.loads(gateway("sessions", "list", "--json").stdout) == []
