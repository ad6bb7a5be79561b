"""A group that its platform gives another id stays the chat that it was: session, files and who may speak."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from anyio import to_thread

from adapters.contract import Inbound, Place, Reception
from gateway.access.admission import Rules
from tests.gateway.commands.kit import PLATFORM, Chat, Gateway, running_gateway, settings_for

OLD, NEW = Place(PLATFORM, "-5"), Place(PLATFORM, "-1005")
ADMITTED = Rules(circles=frozenset({"-5"}))


@pytest.fixture
async def gateway(home: Path, app: Path) -> AsyncIterator[Gateway]:
    async with running_gateway(home, settings_for(app), rules=ADMITTED) as gateway:
        yield gateway


class Group(Chat):
    """A chat that many speak in."""

    async def send(self, text: str, *, edited: bool = False, user: str = "ann", pressed: str | None = None) -> str:
        self.gateway.events += 1
        event_id = f"{self.gateway.run}-{self.gateway.events}"
        circles = (self.place.chat.partition("/")[0],)
        inbound = Inbound(self.place, user, event_id, text, edited=edited, circles=circles, pressed=pressed)
        reception = await self.gateway.hub.receive(inbound)
        assert reception.notice is None, reception.notice
        return event_id


async def move(gateway: Gateway, before: Place = OLD, now: Place = NEW) -> Reception:
    gateway.events += 1
    event_id = f"{gateway.run}-{gateway.events}"
    told = Inbound(now, "-5", event_id, "", circles=(now.chat,), addressed=False, continues=before)
    return await gateway.hub.receive(told)


async def test_a_conversation_goes_on_where_its_chat_has_moved(gateway: Gateway, app: Path):
    old, new = Group(gateway, OLD), Group(gateway, NEW)
    await old.say("/write app.py\nnew\n")
    await move(gateway)
    await move(gateway)
    status, undone = await new.say("/status"), await new.say("/undo")

    assert "Last turn: #1 done" in status.text
    assert undone.lines[1] == "  Restored: app.py"
    assert (app / "app.py").read_text() == "one\ntwo\n"
    assert await new.head() is None
    assert await old.head() is None
    sessions = await gateway.memory.database.fetch_all("SELECT id FROM sessions")
    assert len(sessions) == 1


async def test_it_is_one_chat_to_the_checkpoints_before_and_after(gateway: Gateway, app: Path):
    old, new = Group(gateway, OLD), Group(gateway, NEW)
    await old.say("/write app.py\nfirst\n")
    await move(gateway)
    await new.say("/write notes.md\nsecond\n")
    restored = await new.say("/rollback 2")

    assert restored.lines[1] == "  Restored: app.py, notes.md"
    assert "↩ Undid 2 turns." in restored.text
    workspace = await to_thread.run_sync(gateway.engine.open_workspace, str(app))
    checkpoints = await to_thread.run_sync(gateway.engine.checkpoints, workspace)
    assert {checkpoint.turn.chat for checkpoint in checkpoints if checkpoint.turn} == {f"{PLATFORM}:-5"}


async def test_a_button_of_the_old_place_acts_at_the_new_one(gateway: Gateway, app: Path):
    old = Group(gateway, OLD)
    buttons = (await old.say("/write app.py\nnew\n")).buttons
    await move(gateway)
    undo = next(button for button in buttons if button.command.startswith("/undo"))
    event_id = await old.send("", pressed=undo.token)
    answer = await old.answer_to(event_id)

    assert (app / "app.py").read_text() == "one\ntwo\n"
    assert {reply.place for reply in answer.replies} == {NEW}


async def test_a_turn_of_the_old_place_is_stopped_from_the_new_one(gateway: Gateway):
    old, new = Group(gateway, OLD), Group(gateway, NEW)
    running = await old.send("$ echo up; sleep 60")
    await gateway.platform.until_shown("\nup")
    await move(gateway)
    assert (await new.say("/stop")).text == ""

    assert (await old.answer_to(running)).text.startswith("⏹ Stopped.")


async def test_an_admitted_group_stays_admitted_also_in_its_topics(gateway: Gateway):
    await move(gateway)

    assert "Nothing is running." in (await Group(gateway, NEW).say("/stop")).text
    assert "Nothing is running." in (await Group(gateway, Place(PLATFORM, "-1005/7")).say("/stop")).text


async def test_of_a_group_that_nobody_knows_no_move_is_kept(gateway: Gateway):
    await move(gateway, Place(PLATFORM, "-6"), Place(PLATFORM, "-1006"))

    assert await gateway.memory.database.fetch_all("SELECT 1 FROM moves") == []


async def test_a_place_where_nothing_was_done_yet_gives_way(gateway: Gateway):
    old, new = Group(gateway, OLD), Group(gateway, NEW)
    await old.say("$ ls")
    await move(gateway, now=Place(PLATFORM, "-7"))  # admits the people of -7
    third = Place(PLATFORM, "-7")
    await move(gateway, before=third, now=NEW)
    await new.say("/rollback")

    assert await new.head() == 1
    assert await gateway.memory.database.check() == []


async def test_where_a_turn_was_begun_at_the_new_place_it_stays(home: Path, app: Path):
    async with running_gateway(home, settings_for(app)) as gateway:
        old, new = Group(gateway, OLD), Group(gateway, NEW)
        await old.say("$ echo 1")
        await new.say("$ echo 2")
        await move(gateway)

        assert await new.head() == 2
        assert await old.head() == 1
        assert "#2 done" in (await old.say("/status")).text


async def test_a_first_word_at_the_new_place_does_not_keep_the_conversation_away(home: Path, app: Path):
    async with running_gateway(home, settings_for(app)) as gateway:
        old, new = Group(gateway, OLD), Group(gateway, NEW)
        await old.say("$ echo 1")
        await new.say("/rollback")
        await move(gateway)

        assert await new.head() == 1
        assert await gateway.memory.database.check() == []
    async with running_gateway(home, settings_for(app)) as gateway:
        assert "#1 done" in (await Group(gateway, OLD).say("/status")).text
