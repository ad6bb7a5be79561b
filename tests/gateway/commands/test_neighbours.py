"""What a process that died beside this one had begun is settled when this one is next asked."""

from pathlib import Path

import pytest

from adapters.contract import Place
from gateway.state.errors import ConversationWentOn
from gateway.state.memory import open_memory
from gateway.state.restores import Asked, RestoreKind
from gateway.state.turns import Turn, Turns, TurnState
from tests.gateway.commands.kit import Chat, Gateway


async def test_restore_of_a_dead_process_is_finished_before_the_next_command(home: Path, chat: Chat) -> None:
    await chat.say("/read app.py")
    session = await chat.gateway.memory.sessions.current(chat.place)
    assert session is not None
    async with open_memory(str(home)) as other:
        await other.restores.plan(session.id, token="t", kind=RestoreKind.UNDO, checkpoint_id=None, new_head=None)

    said = await chat.say("/undo")

    assert said.text == "There is nothing to undo: this session has no turn."
    assert "Takeback was ended in the middle of this restore; it is finished now." in (await chat.told()).text


async def test_turn_of_a_dead_process_is_told_where_replies_are_sent(home: Path, gateway: Gateway, chat: Chat) -> None:
    await chat.say("/read app.py")
    session = await gateway.memory.sessions.current(chat.place)
    assert session is not None
    async with open_memory(str(home)) as other:
        await other.turns.begin(session.id, "theirs")
        elsewhere = await other.sessions.start(Place("elsewhere", "c"), workspace=session.workspace, root=session.root)
        await other.turns.begin(elsewhere.id, "theirs, elsewhere")
        owner = other.instance.id

    await chat.say("/undo")

    told = await chat.told()
    assert told.text.count("⏸ The Takeback process that ran this turn has ended.") == 1
    waiting = await gateway.memory.database.fetch_all("SELECT owner FROM outbox WHERE state = 'pending'")
    assert [row["owner"] for row in waiting] == [owner], "a start that serves that platform takes it over"
    assert await gateway.memory.turns.running(elsewhere.id) is None


async def test_turn_of_a_living_process_is_left_alone(home: Path, gateway: Gateway, chat: Chat) -> None:
    await chat.say("/read app.py")
    session = await gateway.memory.sessions.current(chat.place)
    assert session is not None
    async with open_memory(str(home)) as other:
        turn = await other.turns.begin(session.id, "theirs")

        said = await chat.say("/new")

        running = await gateway.memory.turns.running(session.id)
        assert running is not None
        assert running.id == turn.id
        assert said.text == "busy: another Takeback process runs a turn in this chat. /stop it there first."


async def test_turn_of_a_living_process_is_shown_and_not_called_nothing(home: Path, chat: Chat) -> None:
    await chat.say("/read app.py")
    session = await chat.gateway.memory.sessions.current(chat.place)
    assert session is not None
    async with open_memory(str(home)) as other:
        await other.turns.begin(session.id, "theirs")

        stop, status = await chat.say("/stop"), await chat.say("/status")

    assert stop.text.startswith(
        "Nothing runs here. Another Takeback process runs turn #2 of this chat: /stop it there."
    )
    assert "Running: turn #2 for " in status.text


async def test_turn_that_another_process_begins_while_one_is_taken_back_stays(
    home: Path, chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The turn taken back has no checkpoint, so nobody is kept from the workspace meanwhile."""
    await chat.say("/read app.py")
    session = await chat.gateway.memory.sessions.current(chat.place)
    assert session is not None
    head = Turns.head

    async with open_memory(str(home)) as other:

        async def head_and_another_turn(turns: Turns, session_id: str) -> Turn | None:
            found = await head(turns, session_id)
            await other.turns.finish((await other.turns.begin(session_id, "theirs")).id, TurnState.DONE)
            return found

        monkeypatch.setattr(Turns, "head", head_and_another_turn)
        said = await chat.say("/undo")

    assert "went on in another Takeback process meanwhile. Nothing was changed" in said.text
    assert await chat.head() == 2
    assert await chat.gateway.memory.database.fetch_all("SELECT 1 FROM restores") == []


async def test_turn_that_another_process_runs_is_not_taken_back(home: Path, chat: Chat) -> None:
    async with open_memory(str(home)) as other:
        session = await chat.gateway.memory.sessions.start(chat.place, workspace="app", root="/w")
        turn = await other.turns.begin(session.id, "theirs")
        asked = Asked("t", RestoreKind.UNDO, None)

        with pytest.raises(ConversationWentOn):
            await chat.gateway.memory.restores.move(session.id, asked, old_head=turn.id, note=None)

        assert await chat.head() == turn.id
