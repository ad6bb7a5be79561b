"""What a model is told before the conversation, and of a conversation that was summed up."""

from pathlib import Path

from gateway.agents.model.prompt import WORKSPACE_CHARACTERS, own_prompt
from tests.gateway.agents.model.desk import chat_with
from tests.gateway.agents.model.server import Call, Fails, ModelServer, Says


async def test_the_workspace_adds_its_own_words_in_part_where_they_are_many(
    openai: ModelServer, home: Path, app: Path
) -> None:
    (app / "AGENTS.md").write_text("Use tabs.\n" + "x" * WORKSPACE_CHARACTERS)
    openai.will(Says("Yes."))

    async with chat_with(openai, home, app) as chat:
        await chat.say("tabs?")
        recorded = await chat.gateway.memory.database.fetch_all("SELECT 1 FROM messages WHERE role = 'tool'")

    told = openai.instructions()
    assert told.startswith(own_prompt())
    assert "The workspace says in its AGENTS.md:\n\nUse tabs.\n" in told
    assert told.endswith("(10 characters more: read_file shows them)")
    assert recorded == []


def test_the_prompt_is_short_and_says_what_taking_back_means() -> None:
    assert len(own_prompt()) < 2_500
    assert "take back" in own_prompt()


async def test_a_conversation_summed_up_by_hand_is_told_as_its_summary(
    openai: ModelServer, home: Path, app: Path
) -> None:
    openai.will(
        Says(calls=[Call("read_file", {"path": "src/a.py"})]),
        Says("It is one."),
        Says("The person asked what a is; it is one."),
        Says("As I said."),
        Says("It is one."),
    )

    async with chat_with(openai, home, app) as chat:
        await chat.say("what is a?")
        compacted = await chat.say("/compact")
        again = await chat.say("/compact")
        await chat.say("sure?")
        summed = openai.heard()
        await chat.say("/undo")
        await chat.say("/undo")
        await chat.say("what is a?")

    assert "Summed up in 38 characters (by: model default)." in compacted.text
    assert "nothing was said since" in again.text
    assert [words for words in openai.heard(2)[0] if "read_file" in words] != []
    assert summed[0][1].endswith("The person asked what a is; it is one.")
    assert summed[1:] == [("user", "sure?")]
    assert "The person asked" not in str(openai.heard())


async def test_a_summary_that_the_model_does_not_make_is_made_without_it(
    openai: ModelServer, home: Path, app: Path
) -> None:
    openai.will(Says("Hello."), Fails(400))

    async with chat_with(openai, home, app) as chat:
        await chat.say("hello")
        compacted = await chat.say("/compact")

    assert "(by: plain)" in compacted.text
