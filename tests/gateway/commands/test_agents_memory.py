"""What the next request of an agent holds after something was taken back, and when a conversation has grown long."""

from pathlib import Path

from gateway.agents.base import TurnContext
from gateway.state.messages import Message, Role
from tests.gateway.agent_kit import AGENT, KIND, Scripted
from tests.gateway.commands.kit import running_gateway, settings_for

WORDY = "x" * 300


class Remembering:
    """Writes what it is told into a file, and keeps what it was shown each time."""

    def __init__(self) -> None:
        self.shown: list[list[Message]] = []
        self.notes: list[list[str]] = []

    async def act(self, context: TurnContext) -> str:
        self.shown.append([*await context.history()])
        self.notes.append([*context.notes])
        await context.tools.write_file("app.py", context.text.encode())
        return f"I wrote {context.text[:20]}."

    @property
    def last(self) -> str:
        """All that it was shown last, as one text."""
        return "\n".join(f"{message.role}: {message.content} {message.arguments}" for message in self.shown[-1])


async def test_next_request_after_a_rollback_holds_neither_the_turn_nor_its_edit_and_is_told(
    home: Path, app: Path
) -> None:
    remembering = Remembering()
    agents = {KIND: Scripted(remembering.act)}
    async with running_gateway(home, settings_for(app, agent=AGENT), agents=agents) as gateway:
        chat = gateway.chat()
        await chat.say("the first version")
        await chat.say("the second version")
        await chat.say("/rollback")
        await chat.say("/rollback 1")
        await chat.say("the third version")

    assert "the second version" not in remembering.last
    assert "user: the first version" in remembering.last
    told = (
        "The user restored the workspace to an earlier checkpoint. 1 turn before this point was taken back. "
        "Restored: app.py."
    )
    assert remembering.notes == [[], [], [told]]
    assert remembering.shown[-1][-1].content == told


async def test_redo_brings_the_turn_back_into_the_next_request(home: Path, app: Path) -> None:
    remembering = Remembering()
    agents = {KIND: Scripted(remembering.act)}
    async with running_gateway(home, settings_for(app, agent=AGENT), agents=agents) as gateway:
        chat = gateway.chat()
        for text in ("the first version", "/undo", "/redo", "the second version"):
            await chat.say(text)

    assert "user: the first version" in remembering.last
    assert [message.content for message in remembering.shown[-1] if message.role is Role.NOTE] == []


async def test_what_a_redo_left_as_it_was_is_told(home: Path, app: Path) -> None:
    remembering = Remembering()
    agents = {KIND: Scripted(remembering.act)}
    async with running_gateway(home, settings_for(app, agent=AGENT), agents=agents) as gateway:
        chat = gateway.chat()
        await chat.say("the first version")
        await chat.say("/undo")
        (app / "notes.md").write_text("by hand\n")
        await chat.say("/redo")
        await chat.say("the second version")

    assert [message.content for message in remembering.shown[-1] if message.role is Role.NOTE] == [
        "The user took something back and brought it back again, all but this. Kept as edited by the user: notes.md."
    ]


async def test_turns_are_counted_and_taken_back_as_ever_where_the_agent_has_a_summary(home: Path, app: Path) -> None:
    remembering = Remembering()
    settings = settings_for(app, agent={**AGENT, "history_characters": 2_000})
    async with running_gateway(home, settings, agents={KIND: Scripted(remembering.act)}) as gateway:
        chat = gateway.chat()
        for number in range(8):
            await chat.say(f"{number} {WORDY}")
        assert remembering.shown[-1][0].role is Role.SUMMARY
        status = (await chat.say("/status")).text

        undone = [(await chat.say("/undo")).text for _ in range(7)]
        await chat.say("again")

        assert "Last turn: #8 done: 7 xxx" in status
        assert all("↩ Undid 1 turn." in said for said in undone)
        assert (app / "app.py").read_text() == "again"
        roles = [message.role for message in remembering.shown[-1]]
        assert roles[:3] == [Role.USER, Role.TOOL, Role.ASSISTANT]
        assert Role.SUMMARY not in roles
        assert await chat.head() == 9
