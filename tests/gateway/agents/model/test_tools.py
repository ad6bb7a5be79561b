"""The tools as a model calls them: every mistake is a result that it can learn from, and never ends the turn."""

from pathlib import Path

import pytest

from gateway.agents.model.tools import TOOLS, parse_call, schema, shortened
from tests.gateway.agents.model.desk import chat_with
from tests.gateway.agents.model.server import Call, ModelServer, Says


@pytest.mark.parametrize(
    ("name", "arguments", "wanted"),
    [
        ("fly", {}, "There is no tool fly. There are: read_file, list_files, search, write_file, patch, terminal."),
        ("read_file", {}, "The arguments of read_file do not fit: path: Field required. Nothing was done."),
        ("read_file", {"path": "a", "first": 0}, "first: Input should be greater than or equal to 1"),
        ("read_file", {"path": "a", "where": 1}, "where: Extra inputs are not permitted"),
        ("terminal", '{"command": "ls', "The arguments of terminal are not valid JSON ("),
        ("terminal", '["ls"]', "The arguments of terminal must be a JSON object."),
        ("terminal", "", "command: Field required"),
        ("terminal", None, "command: Field required"),
    ],
)
def test_a_call_that_makes_no_sense_is_explained(name: str, arguments: dict[str, object] | str, wanted: str) -> None:
    with pytest.raises(ValueError, match=r"\S") as caught:
        parse_call(name, arguments)

    assert wanted in str(caught.value)


def test_every_tool_says_what_it_takes() -> None:
    for name, arguments in TOOLS.items():
        described = schema(arguments)
        assert described["type"] == "object", name
        assert described["additionalProperties"] is False
        assert arguments.__doc__, name
        assert "title" not in str(described)


def test_a_long_result_keeps_its_beginning_and_its_end() -> None:
    text = shortened("a" * 100 + "b" * 100 + "c" * 100, 90)

    assert text == "a" * 60 + "\n[… 210 characters left out …]\n" + "c" * 30


async def test_mistakes_and_refusals_are_results_and_the_model_goes_on(
    server: ModelServer, home: Path, app: Path
) -> None:
    server.will(
        Says(
            calls=[
                Call("fly", {"to": "the moon"}),
                Call("read_file", {"path": "../../etc/passwd"}),
                Call("patch", {"text": "no patch"}),
                Call("terminal", {"command": "exit 3"}),
                Call("read_file", {"path": "gone.py"}),
            ]
        ),
        Says("Nothing worked."),
    )

    async with chat_with(server, home, app) as chat:
        answer = await chat.say("try things")

    results = [words[1] for words in server.heard() if words[0] == "error"]
    assert answer.lines[0] == "Nothing worked."
    assert len(results) == 5
    assert "There is no tool fly" in results[0]
    assert "leads out" in results[1] or "outside" in results[1]
    assert "neither a unified diff" in results[2]
    assert "3" in results[3]
    assert "there is no such file" in results[4]


async def test_arguments_that_are_no_json_come_back_as_a_mistake(server: ModelServer, home: Path, app: Path) -> None:
    server.will(Says(calls=[Call("terminal", raw='{"command": "touch x"')]), Says("Sorry."))

    async with chat_with(server, home, app) as chat:
        answer = await chat.say("touch x")

    assert answer.lines[0] == "Sorry."
    assert "not valid JSON" in server.heard()[-1][1]
    assert not (app / "x").exists()


async def test_a_model_that_cannot_call_tools_is_given_up(openai: ModelServer, home: Path, app: Path) -> None:
    openai.will(*[Says(calls=[Call("bash", {"cmd": "ls"})])] * 4)

    async with chat_with(openai, home, app) as chat:
        answer = await chat.say("list it")

    assert "does not manage to call the tools" in answer.text
    assert len(openai.requests) == 4


async def test_what_a_person_denies_is_told_to_the_model(
    openai: ModelServer, home: Path, app: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    openai.will(Says(calls=[Call("terminal", {"command": f"touch {outside}"})]), Says("Then not."))

    async with chat_with(openai, home, app) as chat:
        event = await chat.send("touch it")
        await chat.gateway.platform.until_sent(str(outside))
        await chat.say("/deny")
        answer = await chat.answer_to(event)

    assert "Then not." in answer.text
    assert openai.heard()[-1][0] == "error"
    assert "a person was asked and said no" in openai.heard()[-1][1]
    assert not outside.exists()


async def test_a_long_output_is_shown_to_the_model_in_part(openai: ModelServer, home: Path, app: Path) -> None:
    (app / "long.txt").write_text("line\n" * 20_000)
    openai.will(Says(calls=[Call("read_file", {"path": "long.txt"})]), Says("Long."))

    async with chat_with(openai, home, app) as chat:
        await chat.say("read it")

    result = openai.heard()[-1][1]
    assert len(result) < 31_000
    assert "characters left out" in result
