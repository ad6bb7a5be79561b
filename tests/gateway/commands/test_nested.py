"""Workspaces with nested repositories: said in the list, refused where they would be reached, the rest restored."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.gateway.commands.kit import Chat, tree_of


@pytest.fixture
def nested(app: Path) -> Path:
    """A repository inside the workspace, with a commit."""
    tool = app / "tool"
    tool.mkdir()
    (tool / "t.py").write_text("tool\n")
    git = ["git", "-C", str(tool), "-c", "user.name=t", "-c", "user.email=t@example.org"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *arguments], check=True, timeout=30)
    return tool


async def test_list_names_the_nested_repository(chat: Chat, nested: Path) -> None:
    await chat.say("/write app.py\nagent\n")

    assert "[nested git repos not captured: tool]" in (await chat.say("/rollback")).text


@pytest.mark.parametrize("form", ["/rollback 1", "/rollback 1 --all", "/rollback 1 tool", "/rollback 1 tool/t.py"])
async def test_restore_that_would_reach_it_is_refused_with_nothing_changed(
    chat: Chat, app: Path, nested: Path, form: str
) -> None:
    await chat.say("/write app.py\nagent\n")
    listed = (await chat.say("/rollback")).text
    before, head = tree_of(app), await chat.head()

    said = await chat.say(form)

    assert said.text == (
        "Refused, nothing was changed: the checkpoint does not hold the nested git repositories tool. "
        "Restore files outside them by name: /rollback <N> <file>"
    )
    assert tree_of(app) == before
    assert await chat.head() == head
    assert (await chat.say("/rollback")).text == listed


async def test_file_outside_it_goes_back(chat: Chat, app: Path, nested: Path) -> None:
    await chat.say("/write app.py\nagent\n")

    await chat.say("/rollback 1 app.py")

    assert (app / "app.py").read_bytes() == b"one\ntwo\n"


async def test_preview_shows_the_diff_and_that_a_whole_restore_is_refused(chat: Chat, nested: Path) -> None:
    await chat.say("/write app.py\nagent\n")

    said = await chat.say("/rollback diff 1")

    assert "+agent\n" in said.text
    assert re.match(
        r"/rollback [0-9a-f]{8} would be refused: the checkpoint does not hold the nested git repositories tool\.",
        said.lines[-1],
    )
    assert "[nested git repos not captured: tool]" in said.text


async def test_turn_is_undone_and_redone_beside_it(chat: Chat, app: Path, nested: Path) -> None:
    await chat.say("$ echo agent > app.py; rm notes.md")
    after, head = tree_of(app), await chat.head()

    await chat.say("/undo")
    assert (app / "app.py").read_bytes() == b"one\ntwo\n"
    assert (app / "notes.md").read_bytes() == b"mine\n"
    await chat.say("/redo")

    assert tree_of(app) == after
    assert await chat.head() == head


async def test_hint_for_kept_hand_edits_names_the_files(chat: Chat, app: Path, nested: Path) -> None:
    await chat.say("$ echo agent > app.py; echo agent > 'my notes.md'")
    (app / "my notes.md").write_text("edited by hand\n")

    said = await chat.say("/undo")

    found = re.search(r"Use (/rollback .+) to restore those too", said.text)
    assert found is not None, said.text
    assert found[1].endswith(" --all -- 'my notes.md'")
    await chat.say(found[1])
    assert not (app / "my notes.md").exists()


async def test_hint_holds_no_name_that_cannot_be_typed(chat: Chat, app: Path, nested: Path) -> None:
    await chat.say("$ touch $'line\\nbreak' plain.txt")
    (app / "line\nbreak").write_text("edited by hand\n")
    (app / "plain.txt").write_text("edited by hand\n")

    said = await chat.say("/undo")

    assert "↷ Kept your hand-edits: line\\nbreak, plain.txt\n" in said.text
    assert re.search(r"Use /rollback [0-9a-f]{8} --all -- plain\.txt to restore those too", said.text)


async def test_undo_says_what_it_left_in_a_new_nested_repository_and_how_to_get_it(chat: Chat, app: Path) -> None:
    (app / "d").mkdir()
    for name in ("one", "two"):
        (app / "d" / name).write_text(f"{name}\n")
    did = await chat.say("$ git init -q d && rm d/one")

    shown = await chat.say("/diff")
    said = await chat.say("/undo")

    assert "not captured (nested git repository): d (2 files in it captured until now)" in did.text
    assert shown.lines == [
        "The last turn changed no file that is captured now: $ git init -q d && rm d/one",
        "[nested git repos not captured: d]",
    ]
    assert said.lines[1] == "  No file was changed."
    assert "⚠ Not captured, left as it is: d/one (now nested git repository)" in said.text
    step = re.search(r"was not restored: take d/\.git away, then (/rollback \w+ --all -- d)$", said.text, re.MULTILINE)
    assert step is not None
    shutil.rmtree(app / "d/.git")
    await chat.say(step[1])
    assert (app / "d/one").read_text() == "one\n"


async def test_undo_keeps_what_was_moved_out_of_a_new_nested_repository(chat: Chat, app: Path) -> None:
    (app / "d").mkdir()
    (app / "d/one").write_text("one\n")
    await chat.say("$ mv d e; git init -q d; echo x > e/new")

    said = await chat.say("/undo")

    assert "↷ Kept, because it is the only copy: e/one (d/one cannot be brought back)" in said.text
    assert (app / "e/one").read_text() == "one\n"
    assert not (app / "e/new").exists()
