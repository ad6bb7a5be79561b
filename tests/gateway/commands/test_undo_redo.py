"""``/undo``, ``/redo`` and ``/retry``: files and conversation move together, back and forth."""

import re
from functools import partial
from pathlib import Path

import pytest
from anyio import to_thread

from gateway.state.turns import TurnState, turn_ref
from tests.gateway.commands.kit import Chat, Gateway, rename, running_gateway, settings_for, times_of, tree_of


async def write(chat: Chat, *numbers: int) -> None:
    for number in numbers:
        await chat.say(f"/write app.py\n{number}\n")


async def test_undo_takes_back_the_last_turn_alone(chat: Chat, app: Path) -> None:
    await write(chat, 1)
    kept = await chat.head()
    await write(chat, 2)

    said = await chat.say("/undo")

    assert said.text == (
        "✅ Took back the last turn: /write app.py 2\n"
        "  Restored: app.py\n"
        "↩ Undid 1 turn. /redo brings files and turns back.\n"
    )
    assert (app / "app.py").read_bytes() == b"1\n"
    assert await chat.head() == kept


async def test_undo_goes_back_turn_by_turn(chat: Chat, app: Path) -> None:
    await write(chat, 1, 2, 3)

    await chat.say("/undo")
    await chat.say("/undo")

    assert (app / "app.py").read_bytes() == b"1\n"


async def test_undo_keeps_hand_edits_and_names_them(chat: Chat, app: Path) -> None:
    await chat.say("$ echo agent > app.py; echo agent > new.py")
    (app / "app.py").write_text("edited by hand\n")

    said = await chat.say("/undo")

    assert tree_of(app) == {"app.py": b"edited by hand\n", "notes.md": b"mine\n"}
    assert "↷ Kept your hand-edits: app.py\n" in said.text


async def test_undo_of_a_turn_without_checkpoint_says_that_only_the_conversation_moved(chat: Chat, app: Path) -> None:
    await chat.say("/read app.py")

    said = await chat.say("/undo")

    assert "Only the conversation moved: it has no checkpoint" in said.text
    assert said.lines[-1] == "↩ Undid 1 turn. /redo brings turns back."
    assert await chat.head() is None


async def test_undo_of_a_turn_that_changed_nothing_writes_no_file(chat: Chat, app: Path) -> None:
    await chat.say("$ rm -f nothing-there")
    before = times_of(app)

    await chat.say("/undo")

    assert times_of(app) == before
    assert await chat.head() is None


async def test_file_that_the_agent_looked_for_and_the_user_made_stays(chat: Chat, app: Path) -> None:
    await chat.say("/read missing.txt")
    (app / "missing.txt").write_text("mine\n")

    await chat.say("/undo")

    assert (app / "missing.txt").read_text() == "mine\n"


async def test_undo_in_one_chat_leaves_the_others_alone(gateway: Gateway, app: Path) -> None:
    ann, bob = gateway.chat("ann"), gateway.chat("bob")
    await ann.say("/write foo.txt\nann\n")
    await bob.say("/write bar.txt\nbob\n")
    (app / "notes.md").write_text("edited by hand\n")

    await ann.say("/undo")

    assert tree_of(app) == {"app.py": b"one\ntwo\n", "bar.txt": b"bob\n", "notes.md": b"edited by hand\n"}
    assert await bob.head() is not None


async def test_undo_never_loses_another_chats_line_in_silence(gateway: Gateway, app: Path) -> None:
    lines = [f"line {number}\n" for number in range(1, 100)]
    (app / "long.txt").write_text("".join(lines))
    ann, bob = gateway.chat("ann"), gateway.chat("bob")
    await ann.say("$ sed -i '1s/.*/ANN/' long.txt")
    await bob.say("$ sed -i '99s/.*/BOB/' long.txt")

    said = await ann.say("/undo")

    content = (app / "long.txt").read_text()
    assert content.endswith("BOB\n")
    assert "long.txt" in said.text


async def test_nothing_to_undo_is_said(chat: Chat) -> None:
    assert (await chat.say("/undo")).text == "There is nothing to undo: this session has no turn."


async def test_undo_button_of_an_older_turn_does_not_take_back_a_newer_one(chat: Chat, app: Path) -> None:
    first = await chat.say("/write app.py\n1\n")
    (button,) = [button for button in first.buttons if button.label == "Undo"]
    await write(chat, 2)

    said = await chat.say(button.command)

    assert re.match(r"Turn #\d+ is not the last one \(that is #\d+\), so it was not undone\.", said.text)
    assert (app / "app.py").read_bytes() == b"2\n"


async def test_undo_button_of_the_last_turn_takes_it_back(chat: Chat, app: Path) -> None:
    answered = await chat.say("/write app.py\n1\n")
    (button,) = [button for button in answered.buttons if button.label == "Undo"]

    await chat.say(button.command)

    assert (app / "app.py").read_bytes() == b"one\ntwo\n"


@pytest.mark.parametrize("command", ["/redo", "/rollback undo"])
async def test_redo_brings_files_and_turns_back(chat: Chat, app: Path, command: str) -> None:
    await write(chat, 1, 2)
    head = await chat.head()
    await chat.say("/rollback 2")

    said = await chat.say(command)

    assert (app / "app.py").read_bytes() == b"2\n"
    assert said.lines[0].startswith("✅ Restored to checkpoint ")
    assert said.lines[-1] == "↪ Brought back 2 turns."
    assert await chat.head() == head


async def test_restore_then_undo_gives_exactly_the_state_before(chat: Chat, app: Path) -> None:
    await write(chat, 1)
    (app / "notes.md").write_text("edited by hand\n")
    (app / "mine.txt").write_text("made by hand\n")
    before = tree_of(app)

    await chat.say("/rollback 1 --all")
    await chat.say("/rollback undo")

    assert tree_of(app) == before


async def test_second_redo_goes_on_to_the_next_older_restore(chat: Chat, app: Path) -> None:
    await write(chat, 1, 2, 3)
    head = await chat.head()
    await chat.say("/undo")
    await chat.say("/undo")

    await chat.say("/redo")
    assert (app / "app.py").read_bytes() == b"2\n"
    await chat.say("/redo")

    assert (app / "app.py").read_bytes() == b"3\n"
    assert await chat.head() == head
    assert (await chat.say("/redo")).text == "There is nothing to redo: no restore of this session stands."


async def test_redo_of_an_undo_that_moved_only_the_conversation_moves_only_it(chat: Chat, app: Path) -> None:
    await chat.say("/read app.py")
    head = await chat.head()
    await chat.say("/undo")
    before = times_of(app)

    said = await chat.say("/redo")

    assert "↪ Brought back 1 turn." in said.text
    assert times_of(app) == before
    assert await chat.head() == head


async def test_redo_is_stale_after_a_newer_turn_and_names_the_safety_checkpoint(chat: Chat, app: Path) -> None:
    await write(chat, 1)
    await chat.say("/undo")
    await chat.say("/write other.txt\nx\n")
    head = await chat.head()

    said = await chat.say("/redo")

    found = re.search(r"The files as they were before it: (/rollback [0-9a-f]{8})$", said.text)
    assert found is not None, said.text
    assert "you have gone on since the last restore" in said.text
    assert (app / "app.py").read_bytes() == b"one\ntwo\n"
    assert await chat.head() == head
    await chat.say(found[1])
    assert (app / "app.py").read_bytes() == b"1\n"


@pytest.mark.parametrize("restore", ["/undo", "/rollback 1", "/rollback 1 --all"])
async def test_redo_keeps_a_hand_edit_made_after_the_restore(chat: Chat, app: Path, restore: str) -> None:
    await write(chat, 1)
    await chat.say(restore)
    (app / "notes.md").write_text("edited by hand\n")
    (app / "app.py").write_text("also by hand\n")

    said = await chat.say("/redo")

    assert tree_of(app) == {"app.py": b"also by hand\n", "notes.md": b"edited by hand\n"}
    assert "↷ Kept your hand-edits: app.py, notes.md\n" in said.text


async def test_redo_brings_back_what_a_restore_of_named_files_took(chat: Chat, app: Path) -> None:
    await chat.say("$ echo agent > app.py; echo agent > new.py")
    head = await chat.head()
    await chat.say("/rollback 1 app.py")

    await chat.say("/redo")

    assert tree_of(app) == {"app.py": b"agent\n", "new.py": b"agent\n", "notes.md": b"mine\n"}
    assert await chat.head() == head


async def test_restore_that_moves_nothing_does_not_stand_before_the_one_to_redo(chat: Chat, app: Path) -> None:
    await write(chat, 1)
    await chat.say("/rollback")
    await chat.say("/rollback 1")
    assert "No file had to be changed." in (await chat.say("/rollback 1")).text
    assert "No file had to be changed." in (await chat.say("/rollback 1 app.py")).text

    await chat.say("/redo")

    assert (app / "app.py").read_bytes() == b"1\n"


async def test_redo_that_changes_nothing_lets_the_next_one_mean_the_restore_before(chat: Chat, app: Path) -> None:
    await chat.say("$ echo agent > app.py; echo agent > new.py")
    await chat.say("/rollback")
    await chat.say("/rollback 1 app.py")
    await chat.say("/rollback 1 new.py")
    (app / "new.py").write_text("agent\n")
    assert "No file had to be changed." in (await chat.say("/redo")).text

    await chat.say("/redo")

    assert tree_of(app) == {"app.py": b"agent\n", "new.py": b"agent\n", "notes.md": b"mine\n"}
    assert (await chat.say("/redo")).text == "There is nothing to redo: no restore of this session stands."


async def test_going_back_to_an_abandoned_branch_says_what_went_and_what_came(chat: Chat, app: Path) -> None:
    await write(chat, 1, 2)
    head = await chat.head()
    await chat.say("/rollback 2")
    await write(chat, 3)
    stale = await chat.say("/redo")

    said = await chat.say(stale.text.rpartition(": ")[2])

    assert (app / "app.py").read_bytes() == b"2\n"
    assert said.lines[-2:] == [
        "↩ Undid 1 turn. /redo brings files and turns back.",
        "↪ Brought back 2 turns.",
    ]
    assert await chat.head() == head


async def test_nothing_to_redo_is_said(chat: Chat) -> None:
    await write(chat, 1)

    assert (await chat.say("/redo")).text == "There is nothing to redo: no restore of this session stands."


async def test_retry_takes_the_turn_back_and_runs_it_again(gateway: Gateway, chat: Chat, app: Path) -> None:
    await chat.say("$ echo x >> app.py")
    first = await chat.head()

    said = await chat.say("/retry")

    assert (app / "app.py").read_bytes() == b"one\ntwo\nx\n"
    assert "✅ Took back the last turn: $ echo x >> app.py" in said.text
    head = await chat.head()
    assert head is not None
    assert head != first
    turn = await gateway.memory.turns.get(head)
    assert (turn.text, turn.state, turn.parent_id) == ("$ echo x >> app.py", TurnState.DONE, None)


async def test_retry_without_a_turn_is_refused(chat: Chat) -> None:
    assert (await chat.say("/retry")).text == "There is nothing to undo: this session has no turn."


async def test_undo_of_a_turn_whose_checkpoint_was_dropped_moves_the_conversation_and_says_so(
    home: Path, app: Path
) -> None:
    async with running_gateway(home, settings_for(app, limits={"max_snapshots": 3})) as gateway:
        chat = gateway.chat()
        await write(chat, 1, 2, 3, 4)

        first = await chat.say("/undo")
        await chat.say("/undo")
        assert (app / "app.py").read_bytes() == b"2\n"
        last = await chat.say("/undo")

        assert "Restored: app.py" in first.text
        assert "Only the conversation moved: its checkpoint was dropped since" in last.text
        assert (app / "app.py").read_bytes() == b"2\n"
        assert "Undid 1 turn" in last.text


async def test_undo_of_a_turn_that_was_cut_off_names_the_state_before_it(chat: Chat, app: Path) -> None:
    await write(chat, 1)
    memory, engine = chat.gateway.memory, chat.gateway.engine
    session = await memory.sessions.current(chat.place)
    assert session is not None
    turn = await memory.turns.begin(session.id, "$ ./build")
    workspace = await to_thread.run_sync(engine.open_workspace, str(app))
    taken = await to_thread.run_sync(
        partial(engine.checkpoint, workspace, "before terminal: ./build", turn=turn_ref(session, turn.id))
    )
    await memory.turns.finish(turn.id, TurnState.INTERRUPTED)
    (app / "app.py").write_bytes(b"half\n")
    assert taken.checkpoint is not None

    said = await chat.say("/undo")
    assert f"/rollback {taken.checkpoint.id[:8]} --all takes it back" in said.text
    assert (app / "app.py").read_bytes() == b"half\n"
    await chat.say(f"/rollback {taken.checkpoint.id[:8]} --all")

    assert (app / "app.py").read_bytes() == b"1\n"


@pytest.mark.parametrize("opening", ["$ sh", "$ touch notes.md > app.py; sh"])
async def test_undo_of_a_turn_that_could_not_be_noted_names_the_state_before_it(
    home: Path, chat: Chat, app: Path, opening: str
) -> None:
    await write(chat, 1)
    [ledger] = (home / "checkpoints" / "store" / "ledgers").iterdir()

    script = home / "script"
    script.write_text(f"mv {ledger} {ledger}.away; mkdir {ledger}; echo half > app.py")
    await chat.say(f"{opening} {script}")
    rename(ledger, "no ledger")
    rename(ledger.with_name(f"{ledger.name}.away"), ledger.name)
    said = await chat.say("/undo")

    listed = await chat.say("/rollback")
    short = re.search(r"/rollback ([0-9a-f]{8}) --all takes it back", said.text)
    assert short is not None
    assert "noted" in said.lines[-1]
    assert f"1. {short[1][:7]}" in listed.text
    assert (app / "app.py").read_bytes() == b"half\n"
    await chat.say(f"/rollback {short[1]} --all")
    assert (app / "app.py").read_bytes() == b"1\n"


async def test_undo_and_redo_outlive_a_restart(home: Path, app: Path) -> None:
    async with running_gateway(home, settings_for(app)) as gateway:
        await write(gateway.chat(), 1, 2)
        head = await gateway.chat().head()
        await gateway.chat().say("/rollback")
    async with running_gateway(home, settings_for(app)) as gateway:
        await gateway.chat().say("/rollback 2")
    assert (app / "app.py").read_bytes() == b"one\ntwo\n"

    async with running_gateway(home, settings_for(app)) as gateway:
        await gateway.chat().say("/redo")

        assert (app / "app.py").read_bytes() == b"2\n"
        assert await gateway.chat().head() == head


async def test_undo_names_the_directory_of_a_checkpoint_when_the_workspace_has_moved(chat: Chat, app: Path) -> None:
    await chat.say("/write app.py\nagent\n")
    moved = moved_with_link(app)

    said = await chat.say("/undo")

    assert f"Only the conversation moved: its checkpoint is one of {app}, and the workspace is {moved} now" in said.text
    assert (moved / "app.py").read_text() == "agent\n"
    move_back(moved, app)
    await chat.say("/redo")
    await chat.say("/undo")
    assert (app / "app.py").read_text() == "one\ntwo\n"


def moved_with_link(directory: Path) -> Path:
    """Move a directory elsewhere and leave a symbolic link to it."""
    moved = directory.with_name("moved")
    directory.rename(moved)
    directory.symlink_to(moved)
    return moved


def move_back(moved: Path, directory: Path) -> None:
    directory.unlink()
    moved.rename(directory)
