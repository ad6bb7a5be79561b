"""What a model is told after something was taken back: neither the turns that went nor what they did, and why."""

from pathlib import Path

from tests.gateway.agents.model.desk import chat_with
from tests.gateway.agents.model.server import Call, ModelServer, Says


def edit(name: str, number: int) -> Call:
    return Call("write_file", {"path": f"src/{name}.py", "content": f"{name} = {number}\n"})


async def test_an_edit_that_was_undone_is_neither_in_the_request_nor_is_its_turn(
    server: ModelServer, home: Path, app: Path
) -> None:
    server.will(Says(calls=[edit("a", 2)]), Says("a is two now."), Says("What now?"))

    async with chat_with(server, home, app) as chat:
        await chat.say("make a two")
        await chat.say("/rollback 1")
        await chat.say("and now?")

    assert [words for words in server.heard() if "a = 2" in str(words) or "make a two" in str(words)] == []
    (note, asked) = server.heard()
    assert note[0] == "user"
    assert "src/a.py" in note[1]
    assert asked == ("user", "and now?")


async def test_a_turn_without_a_checkpoint_is_undone_and_only_the_conversation_moves(
    server: ModelServer, home: Path, app: Path
) -> None:
    server.will(Says("The answer is 42."), Says("I do not remember."))

    async with chat_with(server, home, app) as chat:
        await chat.say("think of a number")
        undone = await chat.say("/undo")
        await chat.say("which number?")

    assert "conversation" in undone.text
    assert "42" not in str(server.heard())
    assert "think of a number" not in str(server.heard())
    assert server.heard()[-1] == ("user", "which number?")


async def test_what_was_taken_back_returns_with_redo(openai: ModelServer, home: Path, app: Path) -> None:
    openai.will(Says(calls=[edit("a", 2)]), Says("a is two now."), Says("Yes."))

    async with chat_with(openai, home, app) as chat:
        await chat.say("make a two")
        await chat.say("/undo")
        await chat.say("/redo")
        await chat.say("is a two?")

    assert openai.heard()[:4] == [
        ("user", "make a two"),
        ("call", "write_file", '{"path":"src/a.py","content":"a = 2\\n"}'),
        ("result", openai.heard()[2][1]),
        ("assistant", "a is two now."),
    ]
    assert openai.heard()[-1] == ("user", "is a two?")


async def test_a_new_session_begins_with_nothing(openai: ModelServer, home: Path, app: Path) -> None:
    openai.will(Says("Noted."), Says("No idea."))

    async with chat_with(openai, home, app) as chat:
        await chat.say("the word is kiwi")
        await chat.say("/new")
        await chat.say("which word?")

    assert openai.heard() == [("user", "which word?")]


async def test_retry_asks_the_same_without_the_first_answer(openai: ModelServer, home: Path, app: Path) -> None:
    openai.will(Says(calls=[edit("a", 2)]), Says("First try."), Says("Second try."))

    async with chat_with(openai, home, app) as chat:
        await chat.say("try it")
        answer = await chat.say("/retry")

    assert "Second try." in answer.text
    assert (app / "src" / "a.py").read_text() == "a = 1\n"
    assert openai.heard()[-1] == ("user", "try it")
    assert "First try" not in str(openai.heard())


async def test_what_is_told_after_several_steps_back_and_forth_is_what_stands(
    openai: ModelServer, home: Path, app: Path
) -> None:
    for number, name in enumerate("abc", 1):
        openai.will(Says(calls=[edit(name, 2)]), Says(f"{number}."))
    openai.will(Says("I see."), Says("I see more."))

    async with chat_with(openai, home, app) as chat:
        for name in "abc":
            await chat.say(f"edit {name}")
        for text in ("/undo", "/undo", "/redo"):
            await chat.say(text)
        await chat.say("one is gone?")
        once = notes(openai)
        for text in ("/undo", "/undo"):
            await chat.say(text)
        await chat.say("and now?")

    assert once == ["The user took back the last turn. 1 turn before this point was taken back. Restored: src/c.py."]
    assert notes(openai) == [
        "The user took back the last turn. 1 turn before this point was taken back. No file was changed by that.",
        "The user took back the last turn. 1 turn before this point was taken back. Restored: src/b.py.",
    ]
    assert [words for words in openai.heard() if "edit b" in str(words) or "one is gone" in str(words)] == []


def notes(server: ModelServer) -> list[str]:
    """What the last request's notes of what was taken back say, in order."""
    mark = "[Note from the program that runs you] "
    return [words[1].removeprefix(mark) for words in server.heard() if words[1].startswith(mark)]
