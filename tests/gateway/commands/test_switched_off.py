"""Checkpoints off, git missing, a container: said in one sentence, and no git runs where they are off."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from engine.api import Engine
from tests.gateway.commands.kit import COMMAND_ENV, Chat, running_gateway, settings_for, tree_of

ASKS_FOR_CHECKPOINTS = ["/rollback", "/rollback 1", "/rollback diff 1", "/rollback 1 app.py", "/diff", "/diff session"]


class CountingEngine:
    """Makes an engine whose every git process is noted."""

    def __init__(self) -> None:
        self.ran: list[Sequence[str]] = []

    def __call__(self, home: str, user_home: str) -> Engine:
        return Engine(
            os.path.join(home, "checkpoints"),
            user_home=user_home,
            command_env=COMMAND_ENV,
            search_path=os.environ["PATH"],
            before_git=self.ran.append,
        )


@pytest.mark.parametrize("text", [*ASKS_FOR_CHECKPOINTS, "/checkpoints"])
async def test_off_says_every_way_to_turn_them_on(home: Path, app: Path, text: str) -> None:
    async with running_gateway(home, settings_for(app, checkpoints=False)) as gateway:
        said = (await gateway.chat().say(text)).text

    assert "Checkpoints are off here" in said
    assert all(way in said for way in ("/checkpoints on", "checkpoints.enabled: true", "gateway chat --checkpoints"))


async def test_off_runs_no_git_at_all(home: Path, app: Path) -> None:
    make = CountingEngine()
    async with running_gateway(home, settings_for(app, checkpoints=False), make_engine=make) as gateway:
        chat = gateway.chat()
        for text in (
            "/write app.py\nagent\n",
            "$ rm notes.md",
            *ASKS_FOR_CHECKPOINTS,
            "/status",
            "/undo",
            "/redo",
            "/new",
        ):
            await chat.say(text)

    assert make.ran == []
    assert not (home / "checkpoints").exists()


async def test_on_runs_git_so_that_the_count_means_something(home: Path, app: Path) -> None:
    make = CountingEngine()
    async with running_gateway(home, settings_for(app), make_engine=make) as gateway:
        await gateway.chat().say("/write app.py\nagent\n")

    assert make.ran != []


async def test_undo_with_checkpoints_off_moves_the_conversation_and_says_so(home: Path, app: Path) -> None:
    async with running_gateway(home, settings_for(app, checkpoints=False)) as gateway:
        chat = gateway.chat()
        await chat.say("/write app.py\nagent\n")

        said = await chat.say("/undo")

        assert "Only the conversation moved" in said.text
        assert (app / "app.py").read_bytes() == b"agent\n"
        assert await chat.head() is None


async def test_undo_of_a_covered_turn_is_not_done_by_half_once_they_are_off(chat: Chat, app: Path) -> None:
    await chat.say("/write app.py\nagent\n")
    head = await chat.head()
    await chat.say("/checkpoints off")

    said = await chat.say("/undo")

    assert "Checkpoints are off here" in said.text
    assert (app / "app.py").read_bytes() == b"agent\n"
    assert await chat.head() == head


async def test_switch_is_the_sessions_own(home: Path, app: Path) -> None:
    async with running_gateway(home, settings_for(app, checkpoints=False)) as gateway:
        ann, bob = gateway.chat("ann"), gateway.chat("bob")

        switched = await ann.say("/checkpoints on")
        await ann.say("/write app.py\nagent\n")

        assert "Checkpoints are on for this session" in switched.text
        assert "before write_file: app.py" in (await ann.say("/rollback")).text
        assert "Checkpoints are off here" in (await bob.say("/rollback")).text
        assert "are on already" in (await ann.say("/checkpoints on")).text
        assert "are off already" in (await bob.say("/checkpoints off")).text


async def test_session_diff_begins_where_they_were_turned_on(home: Path, app: Path) -> None:
    async with running_gateway(home, settings_for(app, checkpoints=False)) as gateway:
        chat = gateway.chat()
        await chat.say("/write early.txt\nx\n")
        await chat.say("/checkpoints on")
        (app / "notes.md").write_text("edited by hand\n")
        await chat.say("/write late.txt\nx\n")

        said = await chat.say("/diff session")

    assert "late.txt" in said.text
    assert "notes.md" in said.text
    assert "early.txt" not in said.text


async def test_state_names_the_newest_checkpoint(chat: Chat) -> None:
    assert "None has been taken yet." in (await chat.say("/checkpoints")).text
    await chat.say("/write app.py\nagent\n")

    said = (await chat.say("/checkpoints")).text

    assert "There is 1 checkpoint, at most 20 are kept." in said
    assert "before write_file: app.py" in said


@pytest.mark.parametrize("text", [*ASKS_FOR_CHECKPOINTS, "/checkpoints", "/checkpoints on"])
async def test_missing_git_is_the_reason_given(home: Path, app: Path, tmp_path: Path, text: str) -> None:
    empty = tmp_path / "bin"
    empty.mkdir()

    def without_git(home: str, user_home: str) -> Engine:
        return Engine(
            os.path.join(home, "checkpoints"), user_home=user_home, command_env=COMMAND_ENV, search_path=str(empty)
        )

    async with running_gateway(home, settings_for(app), make_engine=without_git) as gateway:
        chat = gateway.chat()
        written = await chat.say("/write app.py\nagent\n")

        said = (await chat.say(text)).text

    assert "git cannot be used" in said
    assert "Install git" in said
    assert (app / "app.py").read_bytes() == b"agent\n"
    assert "git cannot be used" in written.text


async def test_container_lists_host_checkpoints_and_refuses_the_rest_with_one_reason(home: Path, app: Path) -> None:
    async with running_gateway(home, settings_for(app)) as gateway:
        await gateway.chat().say("/write app.py\nagent\n")
    boxed = settings_for(app)
    boxed = boxed.model_copy(
        update={
            "workspaces": {
                "app": boxed.workspaces["app"].model_copy(
                    update={"backend": boxed.backend_of("app").model_copy(update={"kind": "docker"})}
                )
            }
        }
    )
    before = tree_of(app)

    async with running_gateway(home, boxed) as gateway:
        chat = gateway.chat()
        listed = (await chat.say("/rollback")).text
        refused = {text: (await chat.say(text)).text for text in [*ASKS_FOR_CHECKPOINTS[1:], "/checkpoints on"]}
        undone = (await chat.say("/undo")).text

    (reason,) = set(refused.values())
    assert "run in a container (docker)" in reason
    assert "before write_file: app.py" in listed
    assert listed.endswith(f"\n{reason}\n")
    assert f"Only the conversation moved: {reason}" in undone
    assert tree_of(app) == before
