"""What a process that died beside this one had begun is settled when this one is next asked."""

from pathlib import Path

from adapters.contract import Place
from gateway.state.memory import open_memory
from gateway.state.restores import RestoreKind
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
