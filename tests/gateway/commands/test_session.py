"""``/new``, ``/stop``, ``/status``, ``/workspace``, ``/help`` and ``/whoami``."""

import re
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from gateway.agents.base import TurnContext
from gateway.commands.table import COMMANDS
from gateway.conversations import Wishes
from gateway.state.turns import TurnState
from tests.gateway.agent_kit import AGENT, Scripted
from tests.gateway.commands.kit import Chat, Gateway, rename, running_gateway, settings_for

SLOW = "$ echo be''gun; sleep 60; echo late > late.txt"
BEGUN = "begun"


async def test_new_session_remembers_nothing_and_keeps_files_and_checkpoints(chat: Chat, app: Path) -> None:
    await chat.say("/write app.py\nagent\n")

    said = await chat.say("/new")

    assert said.text.startswith(f"✨ New session in app ({app}).")
    assert await chat.head() is None
    assert (app / "app.py").read_bytes() == b"agent\n"
    assert "before write_file: app.py" in (await chat.say("/rollback")).text
    assert "There is nothing to redo" in (await chat.say("/redo")).text


async def test_stop_ends_the_turn_and_nothing_is_written_afterwards(gateway: Gateway, chat: Chat, app: Path) -> None:
    event = await chat.send(SLOW)
    await chat.gateway.platform.until_shown(BEGUN)

    said = await chat.say("/stop")
    answered = await chat.answer_to(event)

    assert said.text + answered.text == "⏹ Stopped."
    head = await chat.head()
    assert head is not None
    assert (await gateway.memory.turns.get(head)).state is TurnState.STOPPED
    assert not (app / "late.txt").exists()


async def test_a_turn_that_is_stopped_without_checkpoints_says_that_its_changes_stay(home: Path, app: Path) -> None:
    async with running_gateway(home, settings_for(app, checkpoints=False)) as gateway:
        event = await gateway.chat().send("$ echo half > app.py; echo be''gun; sleep 60")
        await gateway.platform.until_shown(BEGUN)
        said = await gateway.chat().say("/stop")
        answered = await gateway.chat().answer_to(event)

    assert said.text + answered.text == (
        "⏹ Stopped. No checkpoint covers this turn: whatever it had changed by then stays."
    )
    assert (app / "app.py").read_bytes() == b"half\n"


async def test_a_turn_that_takes_long_to_end_is_said_to_be_stopping(
    home: Path, app: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.turns.running.STOP_LIMIT_S", 0.01)
    begun, may_end = anyio.Event(), anyio.Event()

    async def act(_context: TurnContext) -> str:
        begun.set()
        with anyio.CancelScope(shield=True):
            await may_end.wait()
        await anyio.lowlevel.checkpoint()
        return "never said"

    agent = Scripted(act)
    async with running_gateway(home, settings_for(app, agent=AGENT), agents={agent.kind: agent}) as gateway:
        event = await gateway.chat().send("x")
        await begun.wait()
        said = await gateway.chat().say("/stop")
        may_end.set()
        answered = await gateway.chat().answer_to(event)

    assert said.text == "⏹ Stopping: it can write nothing any more, and says here when it has ended."
    assert answered.text == "⏹ Stopped."


async def test_stop_without_a_turn_says_so(chat: Chat) -> None:
    assert (await chat.say("/stop")).text == "Nothing is running."


async def test_files_of_a_stopped_turn_can_be_taken_back(chat: Chat, app: Path) -> None:
    event = await chat.send("$ echo half > app.py; echo be''gun; sleep 60")
    await chat.gateway.platform.until_shown(BEGUN)
    await chat.say("/stop")
    await chat.answer_to(event)
    assert (app / "app.py").read_bytes() == b"half\n"

    await chat.say("/undo")

    assert (app / "app.py").read_bytes() == b"one\ntwo\n"


@pytest.mark.parametrize("text", ["/rollback 1", "/rollback undo", "/redo", "/undo", "/retry", "/new"])
async def test_what_restores_is_refused_while_a_turn_runs(chat: Chat, app: Path, text: str) -> None:
    await chat.say("/write app.py\nagent\n")
    event = await chat.send(SLOW)
    await chat.gateway.platform.until_shown(BEGUN)

    said = await chat.say(text)

    assert said.text == "busy: a turn is running, /stop first"
    assert (app / "app.py").read_bytes() == b"agent\n"
    await chat.say("/stop")
    await chat.answer_to(event)


async def test_status_and_list_are_answered_while_a_turn_runs(chat: Chat, app: Path) -> None:
    await chat.say("/write app.py\nagent\n")
    event = await chat.send(SLOW)
    await chat.gateway.platform.until_shown(BEGUN)

    status = (await chat.say("/status")).text
    listed = (await chat.say("/rollback")).text
    previewed = (await chat.say("/rollback diff 2")).text

    assert "+agent\n" in previewed
    assert re.search(r"Running: turn #\d+ for \d+ s: \$ echo", status)
    assert "before write_file: app.py" in listed
    await chat.say("/stop")
    await chat.answer_to(event)


async def test_restore_waits_for_another_chats_turn_and_is_refused_then(gateway: Gateway, app: Path) -> None:
    ann, bob = gateway.chat("ann"), gateway.chat("bob")
    await ann.say("/write app.py\nagent\n")
    event = await bob.send(SLOW)
    await gateway.platform.until_shown(BEGUN)

    said = await ann.say("/rollback 1")

    assert said.text == ("busy: the test chat bob is at work in this workspace. /stop there first, or try again later.")
    assert (app / "app.py").read_bytes() == b"agent\n"
    assert await ann.head() is not None
    await bob.say("/stop")
    await bob.answer_to(event)


async def test_status_says_where_the_chat_stands(chat: Chat, app: Path) -> None:
    await chat.say("/write app.py\nagent\n")

    said = await chat.say("/status")

    pattern = rf"""Session: s-[0-9a-f]+, since \d{{4}}-\d\d-\d\d \d\d:\d\d
Workspace: app \({re.escape(str(app))}\)
Backend: local
Agent: direct
Checkpoints: on
Last turn: #\d+ done: /write app\.py agent
Last checkpoint: [0-9a-f]{{8}}, before turn #\d+
Running: nothing"""
    assert re.fullmatch(pattern, said.text), said.text


async def test_status_counts_what_waits_and_names_the_head_after_an_undo(chat: Chat) -> None:
    await chat.say("/read app.py")
    await chat.say("/read notes.md")
    await chat.say("/undo")
    event = await chat.send(SLOW)
    await chat.gateway.platform.until_shown(BEGUN)
    queued = [await chat.send(text) for text in ("/read app.py", "/read notes.md")]

    during = (await chat.say("/status")).text
    await chat.say("/stop")
    for waiting in (event, *queued):
        await chat.answer_to(waiting)
    await chat.say("/undo")

    assert "Waiting: 2 messages" in during
    assert "Last turn: #3 running: $ echo" in during
    assert "Last turn: #4 done: /read app.py" in (await chat.say("/status")).text


async def test_status_names_another_chat_at_work_in_the_workspace_and_since_when(
    home: Path, app: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    async with running_gateway(home, settings_for(app, other)) as gateway:
        ann, bob, cleo = gateway.chat("ann"), gateway.chat("bob"), gateway.chat("cleo")
        await cleo.say("/workspace other")
        event = await bob.send(SLOW)
        await gateway.platform.until_shown(BEGUN)

        here, his, there = [(await chat.say("/status")).text for chat in (ann, bob, cleo)]
        await bob.say("/stop")
        await bob.answer_to(event)
        afterwards = (await ann.say("/status")).text

    assert re.search(r"^At work here too: the test chat bob, since \d{4}-\d\d-\d\d \d\d:\d\d$", here, re.MULTILINE)
    assert [said for said in (his, there, afterwards) if "At work here too" in said] == []


async def test_status_of_a_fresh_chat_names_nothing(home: Path, app: Path) -> None:
    async with running_gateway(home, settings_for(app, checkpoints=False)) as gateway:
        said = (await gateway.chat().say("/status")).text

    assert "Checkpoints: off (/checkpoints on)" in said
    assert "Last turn: none yet" in said
    assert "Last checkpoint: none in this session" in said


async def test_workspace_is_chosen_by_name_and_numbers_do_not_cross(home: Path, app: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "o.txt").write_text("other\n")
    async with running_gateway(home, settings_for(app, other)) as gateway:
        chat = gateway.chat()
        await chat.say("/write app.py\nagent\n")
        await chat.say("/rollback")

        switched = await chat.say("/workspace other")
        await chat.say("/write o.txt\nagent\n")
        await chat.say("/rollback 1")

        assert switched.text.startswith(f"📂 Now in other ({other}), in a new session.")
        assert (other / "o.txt").read_bytes() == b"other\n"
        assert (app / "app.py").read_bytes() == b"agent\n"
        listed = (await chat.say("/workspace")).text
        assert listed.startswith(f"This chat works in other ({other}).")
        assert "\n  app" in listed


async def test_a_chats_switch_stays_in_its_next_session_and_is_said(home: Path, app: Path) -> None:
    async with running_gateway(home, settings_for(app)) as gateway:
        chat = gateway.chat()
        await chat.say("/checkpoints off")
        said = await chat.say("/new")
        status = (await chat.say("/status")).text
        await chat.say("/write app.py\nagent\n")
        assert (await chat.say("/undo")).text.startswith("✅ Took back the last turn")
        await chat.say("/checkpoints on")
        back = await chat.say("/new")

        assert said.text.endswith("Checkpoints stay off, as this chat chose; /checkpoints on changes that.")
        assert "Checkpoints: off (chosen in this chat with /checkpoints; /new keeps it)" in status
        assert (app / "app.py").read_bytes() == b"agent\n"
        assert back.text.endswith("Checkpoints stay on, as this chat chose; /checkpoints off changes that.")
        assert "Checkpoints: on\n" in (await gateway.chat("other").say("/status")).text


async def test_a_chats_switch_is_for_the_workspace_it_was_chosen_in(home: Path, app: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    async with running_gateway(home, settings_for(app, other)) as gateway:
        chat = gateway.chat()
        await chat.say("/checkpoints off")
        await chat.say("/workspace other")
        there = (await chat.say("/status")).text
        await chat.say("/workspace app")

        assert "Checkpoints: on\n" in there
        assert "Checkpoints: off (chosen" in (await chat.say("/status")).text


async def test_the_command_lines_switch_goes_before_what_a_chat_chose_earlier(
    home: Path, app: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    settings = settings_for(app, other)
    async with running_gateway(home, settings) as gateway:
        for text in ("/checkpoints off", "/workspace other", "/checkpoints off"):
            await gateway.chat().say(text)

    async with running_gateway(home, settings.with_checkpoints(on=True), wishes=Wishes(checkpoints=True)) as gateway:
        chat = gateway.chat()
        here = (await chat.say("/status")).text
        await chat.say("/workspace app")
        there = (await chat.say("/status")).text
        await chat.say("/checkpoints off")
        await chat.say("/new")

        assert "Checkpoints: on\n" in here
        assert "Checkpoints: on\n" in there
        assert "Checkpoints: off (chosen" in (await chat.say("/status")).text


ODD_NAMES = (
    *("..", ".", "/", "~", "~root", "./app", "app/", "/etc/passwd", "../app", "a/../app", "//app", "app/../app"),
    *("a\0b", "\0", "app\0", "app\x1b[2J", "app\u202e", "app\u200b", "\udcff", "app\nother"),
    *(
        "\u0430pp",
        "\uff41\uff50\uff50",
        "\u00e1pp",
        "APP",
        "App",
        "ap",
        "'app'",
        '"app"',
        "$HOME",
        "${HOME}",
        "C:\\app",
        "file:///etc",
    ),
    *("app other", "app;ls", "*", "a" * 10_000, "--", "-a", "None", "0"),
)


async def test_workspace_is_never_a_path_whatever_it_is_called(chat: Chat, gateway: Gateway, app: Path) -> None:
    session = (await chat.say("/status")).lines[0]

    for odd in ODD_NAMES:
        said = (await chat.say(f"/workspace {odd}")).text
        assert said.startswith(("A chat cannot name a path", "There is no workspace ")), odd
        assert said.isprintable(), odd
        assert len(said) < 400, odd
        assert "/workspace lists them." in said, odd

    assert (await chat.say("/status")).lines[0] == session
    assert [row.workspace for row in await gateway.memory.sessions.recent()] == ["app"]


@pytest.mark.parametrize("typed", ["ap", "APP", "\u0430pp", "app\u200b", "'app'"])
async def test_nearest_workspace_is_suggested(chat: Chat, typed: str) -> None:
    assert "Did you mean /workspace app?" in (await chat.say(f"/workspace {typed}")).text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("/workspace app", "This chat works in app already."),
        ("/workspace ap", "There is no workspace ap. Did you mean /workspace app?"),
        ("/workspace /etc", "A chat cannot name a path"),
        ("/workspace ../x", "A chat cannot name a path"),
        ("/workspace", "No other is configured"),
    ],
)
async def test_workspace_is_never_a_path_and_mistakes_are_named(chat: Chat, text: str, says: str) -> None:
    session = await chat.say("/status")

    assert says in (await chat.say(text)).text
    assert (await chat.say("/status")).lines[0] == session.lines[0]


async def test_directory_that_is_gone_is_said_and_the_chat_goes_on(chat: Chat, app: Path) -> None:
    await chat.say("/status")
    rename(app, "moved")

    refused = [(await chat.say(text)).text for text in ("$ ls", "/rollback", "/new")]
    rename(app.with_name("moved"), app.name)

    assert all(str(app) in said for said in refused), refused
    assert "Running: nothing" in (await chat.say("/status")).text
    assert "app.py" in (await chat.say("$ ls")).text


async def test_relative_paths_mean_the_chats_workspace(home: Path, app: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    async with running_gateway(home, settings_for(app, other)) as gateway:
        ann, bob = gateway.chat("ann"), gateway.chat("bob")
        await bob.say("/workspace other")

        await ann.say("/write here.txt\nann\n")
        await bob.say("$ echo bob > here.txt")

    assert (app / "here.txt").read_text() == "ann\n"
    assert (other / "here.txt").read_text() == "bob\n"


async def test_help_has_every_form_of_every_command(chat: Chat) -> None:
    said = (await chat.say("/help")).text

    assert all(usage.form in said and usage.does in said for command in COMMANDS for usage in command.usages)
    assert "$ COMMAND" in said
    assert "/write PATH" in said


async def test_help_for_one_command_shows_it_alone(chat: Chat) -> None:
    said = (await chat.say("/help undo")).text

    assert said == "  /undo  take back the last turn: its files and its place in the conversation\n"


async def test_whoami_shows_the_ids_to_copy(chat: Chat) -> None:
    said = await chat.say("/whoami")

    assert said.text == "User: ann\nChat: main\nPlatform: test\nAdmitted as: admin"


async def test_unknown_command_is_no_turn(chat: Chat) -> None:
    said = await chat.say("/rolback")

    assert said.text == "There is no command /rolback. Did you mean /rollback? /help lists them."
    assert await chat.head() is None


async def test_edited_message_does_not_run_again(chat: Chat, app: Path) -> None:
    await chat.say("/write app.py\nagent\n")
    for text in ("/rollback 1", "$ rm app.py"):
        await chat.answer_to(await chat.send(text, edited=True))

    assert (app / "app.py").read_bytes() == b"agent\n"


async def test_status_all_names_a_persons_sessions_the_workspaces_and_the_totals(gateway: Gateway, app: Path) -> None:
    ann, group, other = gateway.chat("ann"), gateway.chat("group"), gateway.chat("other")
    await ann.say("/write app.py\none")
    await group.say("/write app.py\ntwo")
    await group.say("/undo")
    await other.answer_to(await other.send("/write app.py\nthree", user="bob"))

    lines = (await ann.say("/status all")).text.split("\n")

    sessions = lines[1 : lines.index("")]
    assert [line.split(":")[0] for line in sessions] == [f"  group in app ({app})", f"  ann in app ({app})"]
    assert sessions[0].endswith(": all taken back")
    assert re.search(r": turn #\d+ done: /write app\.py one$", sessions[1])
    taken = len((await ann.say("/rollback")).text.split("  before ")) - 1
    assert taken >= 3
    assert f"  app: {app}, checkpoints on, {taken} checkpoints" in lines
    assert re.fullmatch(rf"Checkpoints: {taken} in all, \d+\.\d MB", lines[-1])


async def test_status_all_asks_no_store_where_checkpoints_are_off(home: Path, app: Path) -> None:
    async with running_gateway(home, settings_for(app, checkpoints=False)) as gateway:
        said = (await gateway.chat().say("/status all")).text

    assert said.startswith("Your sessions of late:\n  none\n")
    assert said.endswith("\n\nCheckpoints: off everywhere")
    assert not (home / "checkpoints").exists()
