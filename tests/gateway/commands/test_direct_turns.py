"""The direct agent's turns, from message to receipt, over real tools."""

import re
from pathlib import Path

import pytest

from gateway.state.turns import TurnState
from tests.gateway.commands.kit import Chat, Gateway

DIFF = """\
--- a/app.py
+++ b/app.py
@@ -1,2 +1,2 @@
 one
-two
+TWO
"""


@pytest.mark.parametrize("content", ["", "x", "x\n", "\n x \r\n\n", "日本\n", "a\tb\\n"])
async def test_content_is_written_exactly_as_it_stands(chat: Chat, app: Path, content: str) -> None:
    await chat.say(f"/write out.txt\n{content}")

    assert (app / "out.txt").read_bytes() == content.encode()


async def test_written_file_is_in_the_receipt_with_its_checkpoint(chat: Chat) -> None:
    said = await chat.say("/write my new file.txt\nx\n")

    assert re.search(r"^✎ 1 file, \+1/-0: my new file\.txt \(new\) · checkpoint [0-9a-f]{7}$", said.text, re.MULTILINE)
    assert [button.label for button in said.buttons] == ["Diff", "Undo"]


async def test_patch_is_applied_and_taken_back(chat: Chat, app: Path) -> None:
    said = await chat.say(f"/patch\n{DIFF}")
    assert (app / "app.py").read_bytes() == b"one\nTWO\n"
    assert "✎ 1 file, +1/-1: app.py" in said.text

    await chat.say("/undo")

    assert (app / "app.py").read_bytes() == b"one\ntwo\n"


async def test_patch_that_does_not_fit_changes_nothing_and_says_why(gateway: Gateway, chat: Chat, app: Path) -> None:
    said = await chat.say("/patch\n" + DIFF.replace("-two", "-three"))

    assert (app / "app.py").read_bytes() == b"one\ntwo\n"
    assert "app.py" in said.text
    assert said.buttons == []
    head = await chat.head()
    assert head is not None
    assert (await gateway.memory.turns.get(head)).state is TurnState.FAILED


async def test_file_is_shown_without_a_receipt(chat: Chat) -> None:
    said = await chat.say("/read app.py")

    assert said.text == "one\ntwo\n"
    assert said.buttons == []


async def test_command_shows_its_output_and_its_exit_code(chat: Chat) -> None:
    said = await chat.say("$ echo out; echo err >&2; exit 3")

    assert "out\n" in said.text
    assert "err\n" in said.text
    assert "3" in said.lines[-1]


async def test_script_that_writes_is_covered_without_being_understood(chat: Chat, app: Path) -> None:
    await chat.say("$ python3 - <<'EOF'\nopen('gen.txt', 'w').write('x')\nEOF")
    assert (app / "gen.txt").read_text() == "x"

    await chat.say("/rollback 1")

    assert not (app / "gen.txt").exists()


async def test_edit_between_two_commands_of_the_agent_stays_a_hand_edit(chat: Chat, app: Path) -> None:
    await chat.say("$ echo agent > app.py")
    (app / "notes.md").write_text("edited by hand\n")
    await chat.say("$ echo more >> app.py")

    said = await chat.say("/rollback 2")

    assert (app / "app.py").read_bytes() == b"one\ntwo\n"
    assert "↷ Kept your hand-edits: notes.md\n" in said.text


async def test_hidden_secret_that_is_not_captured_is_said(chat: Chat, app: Path) -> None:
    (app / ".gitignore").write_text(".env\n")

    said = await chat.say("/write .env\nKEY=1\n")

    assert (app / ".env").read_bytes() == b"KEY=1\n"
    assert said.text.count("⚠ not captured (looks like a secret): .env\n") == 1


async def test_path_outside_the_workspace_is_refused(chat: Chat, app: Path) -> None:
    said = await chat.say("/write ../outside.txt\nx\n")

    assert not (app.parent / "outside.txt").exists()
    assert "outside the workspace" in said.text


async def test_one_message_is_one_turn(gateway: Gateway, chat: Chat) -> None:
    for text in ("$ ls", "/read app.py", "hello"):
        await chat.say(text)

    session = await gateway.memory.sessions.current(chat.place)
    assert session is not None
    assert [turn.text for turn in await gateway.memory.turns.active(session.id)] == ["hello", "/read app.py", "$ ls"]
