"""``/rollback``: the list, going back, hand-edits, files by name, and what the conversation does."""

import os
import re
import shlex
from pathlib import Path

import pytest

from tests.gateway.commands.kit import Chat, Gateway, running_gateway, settings_for, tree_of

ID = r"[0-9a-f]{7}"
TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d"


async def test_list_without_checkpoints_says_when_the_first_is_taken(chat: Chat, app: Path) -> None:
    said = await chat.say("/rollback")

    assert said.text == (
        f"There are no checkpoints of {app} yet. The first is taken before the agent changes something."
    )


async def test_list_shows_newest_first_with_reason_and_stats(chat: Chat, app: Path) -> None:
    await chat.say("/write app.py\none\ntwo\nthree\n")
    await chat.say("$ sed -i s/one/ONE/ app.py")

    said = await chat.say("/rollback")

    pattern = rf"""📸 Checkpoints for {re.escape(str(app))}:

  1\. {ID}  {TIME}  before terminal: sed -i s/one/ONE/ app\.py  \(1 file, \+1/-1\)
  2\. {ID}  {TIME}  before write_file: app\.py  \(1 file, \+1/-0\)

  /rollback <N>             restore to checkpoint N \(keeps your hand-edits\)
  /rollback <N> --all       full restore, overwriting your hand-edits too
  /rollback diff <N>        preview changes since checkpoint N
  /rollback <N> <file>      restore a single file from checkpoint N
"""
    assert re.fullmatch(pattern, said.text), said.text
    assert [button.label for button in said.buttons] == ["Diff 1", "Restore 1", "Diff 2", "Restore 2"]


@pytest.mark.parametrize("text", ["/read app.py", "$ ls", "/write\nx", "hello", "/patch\nnonsense"])
async def test_turn_that_changes_nothing_takes_no_checkpoint(chat: Chat, text: str) -> None:
    await chat.say(text)

    assert "There are no checkpoints" in (await chat.say("/rollback")).text


async def test_restore_keeps_hand_edits_and_undoes_the_conversation(chat: Chat, app: Path) -> None:
    await chat.say("/write app.py\nagent one\n")
    await chat.say("/write new.py\nagent two\n")
    (app / "notes.md").write_text("edited by hand\n")
    await chat.say("/rollback")

    said = await chat.say("/rollback 2")

    first, *rest = said.lines
    assert re.fullmatch(r"✅ Restored to checkpoint [0-9a-f]{8}: before write_file: app\.py", first)
    assert rest == [
        "  Restored: app.py",
        "  Removed: new.py",
        "↷ Kept your hand-edits: notes.md",
        "  Use /rollback 2 --all to restore those too.",
        "↩ Undid 2 turns. /redo brings files and turns back.",
    ]
    assert tree_of(app) == {"app.py": b"one\ntwo\n", "notes.md": b"edited by hand\n"}
    assert await chat.head() is None


async def test_restore_of_all_takes_hand_edits_too(chat: Chat, app: Path) -> None:
    before = tree_of(app)
    await chat.say("/write app.py\nagent\n")
    (app / "notes.md").write_text("edited by hand\n")
    await chat.say("/rollback")

    said = await chat.say("/rollback 1 --all")

    assert tree_of(app) == before
    assert "Kept" not in said.text


async def test_suggested_command_restores_the_kept_hand_edits(chat: Chat, app: Path) -> None:
    before = tree_of(app)
    await chat.say("/write app.py\nagent\n")
    (app / "notes.md").write_text("edited by hand\n")
    said = await chat.say("/rollback 1")
    suggested = re.search(r"Use (/rollback .+) to restore those too", said.text)
    assert suggested is not None

    await chat.say(suggested[1])

    assert tree_of(app) == before


async def test_number_means_the_list_that_was_shown(chat: Chat, app: Path) -> None:
    await chat.say("/write app.py\n1\n")
    await chat.say("/write app.py\n2\n")
    await chat.say("/rollback")
    await chat.say("/rollback 2")
    assert (app / "app.py").read_bytes() == b"one\ntwo\n"
    await chat.say("/redo")

    said = await chat.say("/rollback 2")

    assert (app / "app.py").read_bytes() == b"one\ntwo\n"
    assert "before write_file: app.py" in said.lines[0]


async def test_without_a_shown_list_numbers_count_from_the_newest(chat: Chat, app: Path) -> None:
    await chat.say("/write app.py\n1\n")
    await chat.say("/write app.py\n2\n")

    await chat.say("/rollback 1")

    assert (app / "app.py").read_bytes() == b"1\n"


async def test_number_beyond_the_list_is_refused_with_the_length(chat: Chat, app: Path) -> None:
    await chat.say("/write app.py\n1\n")
    await chat.say("/rollback")

    said = await chat.say("/rollback 99")

    assert said.text == "There is no checkpoint 99: the list has 1 entry. /rollback shows it."
    assert (app / "app.py").read_bytes() == b"1\n"


async def test_checkpoint_is_named_by_the_beginning_of_its_id(chat: Chat, app: Path) -> None:
    await chat.say("/write app.py\n1\n")
    listed = await chat.say("/rollback")
    found = re.search(rf"1\. ({ID})", listed.text)
    assert found is not None

    said = await chat.say(f"/rollback {found[1]}")

    assert said.lines[0].startswith(f"✅ Restored to checkpoint {found[1]}")
    assert (app / "app.py").read_bytes() == b"one\ntwo\n"


async def test_pruned_checkpoint_is_said_to_be_pruned(home: Path, app: Path) -> None:
    async with running_gateway(home, settings_for(app, limits={"max_snapshots": 2})) as gateway:
        chat = gateway.chat()
        await chat.say("/write app.py\n1\n")
        await chat.say("/rollback")
        await chat.say("/write app.py\n2\n")
        await chat.say("/write app.py\n3\n")

        said = await chat.say("/rollback 1")

    assert re.fullmatch(
        r"Checkpoint 1 of the list, [0-9a-f]{8}, was pruned since\. /rollback shows the list\.", said.text
    )
    assert (app / "app.py").read_bytes() == b"3\n"


async def test_named_files_go_back_and_the_conversation_stays(chat: Chat, app: Path) -> None:
    await chat.say("$ echo agent > app.py; echo agent > new.txt; echo agent > notes.md")
    head = await chat.head()

    said = await chat.say("/rollback 1 app.py '*.txt'")

    assert tree_of(app) == {"app.py": b"one\ntwo\n", "notes.md": b"agent\n"}
    assert "  Restored: app.py\n  Removed: new.txt\n" in said.text
    assert said.lines[-1] == "The conversation stays as it is; the agent is told. /redo undoes this."
    assert await chat.head() == head


@pytest.mark.parametrize(
    "file_name",
    [
        "-rf",
        "--all",
        ":colon",
        ":(exclude)x",
        "[1].txt",
        "*",
        "back\\slash",
        "ends in a space ",
        "日本.txt",
        "it's",
        'a "b"',
    ],
)
async def test_file_of_any_name_goes_back_alone(chat: Chat, app: Path, file_name: str) -> None:
    await chat.say("/write other.txt\nx\n")
    await chat.say(f"/write {file_name}\nx\n")
    assert (app / file_name).read_text() == "x\n"

    said = await chat.say(f"/rollback 1 -- {shlex.quote(file_name)}")

    assert not (app / file_name).exists(), said.text
    assert sorted(tree_of(app)) == ["app.py", "notes.md", "other.txt"]


async def test_agent_is_told_of_files_that_went_back(gateway: Gateway, chat: Chat) -> None:
    await chat.say("/write app.py\nagent\n")

    await chat.say("/rollback 1 app.py")

    session = await gateway.memory.sessions.current(chat.place)
    assert session is not None
    notes = [message.content for message in await gateway.memory.messages.history(session.id) if message.role == "note"]
    assert notes == ["The user restored some files from an earlier checkpoint. Restored: app.py."]


async def test_next_request_holds_neither_edit_nor_turn_but_a_note(gateway: Gateway, chat: Chat, app: Path) -> None:
    await chat.say("/write app.py\nsecret plan\n")
    (app / "notes.md").write_text("edited by hand\n")

    await chat.say("/rollback 1")

    session = await gateway.memory.sessions.current(chat.place)
    assert session is not None
    history = await gateway.memory.messages.history(session.id)
    assert [message.role for message in history] == ["note"]
    assert history[0].content == (
        "The user restored the workspace to an earlier checkpoint. 1 turn before this point was taken back. "
        "Restored: app.py. Kept as edited by the user: notes.md."
    )


@pytest.mark.parametrize(
    ("paths", "says"),
    [
        ("nothing.txt", "nothing.txt"),
        ("../outside", "../outside"),
        ("/etc/passwd", "/etc/passwd"),
        (".git/config", ".git"),
    ],
)
async def test_selection_that_cannot_be_used_changes_nothing(chat: Chat, app: Path, paths: str, says: str) -> None:
    await chat.say("/write app.py\nagent\n")
    before = tree_of(app)
    listed = (await chat.say("/rollback")).text

    said = await chat.say(f"/rollback 1 {paths}")

    assert says in said.text
    assert "Nothing was changed." in said.text
    assert tree_of(app) == before
    assert (await chat.say("/rollback")).text == listed


async def test_preview_shows_stat_diff_and_plan(chat: Chat, app: Path) -> None:
    await chat.say("/write app.py\none\nTWO\n")
    await chat.say("/write new.py\nx\n")
    (app / "notes.md").write_text("edited by hand\n")
    await chat.say("/rollback")

    said = await chat.say("/rollback diff 2")

    assert re.match(
        r"Changes since checkpoint [0-9a-f]{8}: before write_file: app\.py  \(3 files, \+3/-2\)\n\n", said.text
    )
    assert "3 files changed" in said.text
    assert "-two\n+TWO\n" in said.text
    assert said.text.endswith(
        "\n/rollback 2 would do this:\n  restore: app.py\n  remove: new.py\n  keep your hand-edit: notes.md\n"
    )
    assert said.files == []


async def test_preview_is_what_the_restore_does(chat: Chat, app: Path) -> None:
    await chat.say("/write app.py\n1\n")
    (app / "notes.md").write_text("edited by hand\n")
    await chat.say("/rollback")

    preview = await chat.say("/rollback diff 1")
    await chat.say("/rollback 1")

    assert "restore: app.py\n  keep your hand-edit: notes.md\n" in preview.text
    assert tree_of(app) == {"app.py": b"one\ntwo\n", "notes.md": b"edited by hand\n"}


async def test_directories_go_without_saying_beside_their_files(chat: Chat, app: Path) -> None:
    await chat.say("$ mkdir -p pkg/deep && echo x > pkg/deep/a.py && mkdir empty")
    assert (await chat.say("/diff")).lines[0].endswith("(1 file, +1/-0)")

    preview = await chat.say("/rollback diff 1")
    said = await chat.say("/rollback 1")

    assert "  remove: empty, pkg/deep/a.py\n" in preview.text
    assert "  Removed: empty, pkg/deep/a.py\n" in said.text
    assert sorted(os.listdir(app)) == ["app.py", "notes.md"]


async def test_long_diff_comes_as_a_file_too(chat: Chat) -> None:
    await chat.say("/write big.txt\n" + "".join(f"line {number}\n" for number in range(5000)))

    said = await chat.say("/rollback diff 1")

    (whole,) = said.files
    assert re.fullmatch(rf"rollback-{ID}\.diff", whole.name)
    assert b"+line 4999\n" in whole.content
    assert len(said.text) < 4000
    assert f"more lines, whole in {whole.name}" in said.text


async def test_safety_checkpoint_is_listed_with_its_reason(chat: Chat) -> None:
    await chat.say("/write app.py\nagent\n")
    restored = await chat.say("/rollback 1")
    target = restored.lines[0].split()[4].rstrip(":")

    listed = await chat.say("/rollback")

    assert re.match(rf"  1\. {ID}  {TIME}  before rollback to {target}", listed.lines[2])


async def test_restoring_a_safety_checkpoint_brings_the_turns_back(chat: Chat, app: Path) -> None:
    await chat.say("/write app.py\n1\n")
    await chat.say("/write app.py\n2\n")
    head = await chat.head()
    await chat.say("/rollback 2")
    await chat.say("/rollback")

    said = await chat.say("/rollback 1")

    assert (app / "app.py").read_bytes() == b"2\n"
    assert said.lines[-1] == "↪ Brought back 2 turns."
    assert await chat.head() == head


async def test_checkpoint_from_another_chat_undoes_the_turns_begun_after_it(gateway: Gateway, app: Path) -> None:
    ann, bob = gateway.chat("ann"), gateway.chat("bob")
    await ann.say("/write a.txt\n1\n")
    kept = await ann.head()
    await bob.say("/write b.txt\n1\n")
    await ann.say("/write c.txt\n1\n")
    await ann.say("/rollback")

    said = await ann.say("/rollback 2")

    assert "before write_file: b.txt" in said.lines[0]
    assert "↩ Undid 1 turn." in said.text
    assert await ann.head() == kept


async def test_checkpoint_of_an_older_session_undoes_all_of_this_one(chat: Chat, app: Path) -> None:
    await chat.say("/write a.txt\n1\n")
    await chat.say("/new")
    await chat.say("/write b.txt\n1\n")
    await chat.say("$ echo 2 > b.txt")

    said = await chat.say("/rollback 3")

    assert "↩ Undid 2 turns." in said.text
    assert sorted(tree_of(app)) == ["app.py", "notes.md"]
    assert await chat.head() is None


async def test_restore_that_changes_no_file_still_moves_the_conversation(chat: Chat, app: Path) -> None:
    await chat.say("/write app.py\nagent\n")
    (app / "app.py").write_text("one\ntwo\n")

    said = await chat.say("/rollback 1")

    assert "  No file had to be changed.\n" in said.text
    assert said.lines[-1] == "↩ Undid 1 turn. /redo brings turns back."


async def test_every_path_is_named_in_a_file_where_the_reply_counts(chat: Chat, app: Path) -> None:
    await chat.say("$ for n in $(seq 10 40); do echo x > f$n.txt; done; rm notes.md")

    said = await chat.say("/rollback 1")

    (whole,) = said.files
    assert re.fullmatch(r"restore-[0-9a-f]{8}\.txt", whole.name)
    assert (
        "  Removed: f10.txt, f11.txt, f12.txt, f13.txt, f14.txt, f15.txt, f16.txt, f17.txt, f18.txt, f19.txt (+21)\n"
        in said.text
    )
    assert all(f"Removed: f{number}.txt\n" in whole.content.decode() for number in range(10, 41))
    assert "Restored: notes.md\n" in whole.content.decode()


async def test_names_of_any_characters_are_shown_as_they_are(chat: Chat, app: Path) -> None:
    for file_name in ("my_file_[1].py", "<x>&.txt", "a`b*c_d.md"):
        await chat.say(f"/write {file_name}\nx\n")
    await chat.say("$ touch 'line\nbreak'")

    said = await chat.say("/rollback 4")

    assert "  Removed: <x>&.txt, a`b*c_d.md, line\\nbreak, my_file_[1].py\n" in said.text
    assert sorted(tree_of(app)) == ["app.py", "notes.md"]
