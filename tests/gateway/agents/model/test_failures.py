"""What happens when a model's server does not answer as it should: what is said, and that the turn is stored."""

from pathlib import Path

import pytest
from pydantic_ai.exceptions import ModelAPIError, ModelTimeoutError, UnexpectedModelBehavior
from pydantic_ai.messages import ModelRequest, UserPromptPart

from gateway.agents.model.asking import Asker
from gateway.agents.model.failures import SENTENCES, sentence
from gateway.agents.model.limits import Budget, Limits
from gateway.agents.model.reaching import reached
from gateway.config.agent import ModelChoice
from tests.gateway.agents.model.desk import AT_ONCE, chat_with
from tests.gateway.agents.model.server import KEY, Breaks, Call, Fails, Hangs, ModelServer, Says
from tests.gateway.commands.kit import Gateway


def openai_error(message: str, code: str | None = None) -> dict[str, object]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}


def anthropic_error(message: str, kind: str) -> dict[str, object]:
    return {"type": "error", "error": {"type": kind, "message": message}}


async def states(gateway: Gateway) -> list[str]:
    rows = await gateway.memory.database.fetch_all("SELECT state FROM turns ORDER BY id")
    return [row["state"] for row in rows]


@pytest.mark.parametrize(
    ("status", "message", "wanted"),
    [
        (401, f"Incorrect API key provided: {KEY}", "refuses the key (status 401). Set its api_key"),
        (403, f"not yours: {KEY}", "refuses the key (status 403): not yours: ***. Set its api_key"),
        (404, "no such model", "There is no model scripted-1 at its server (status 404): no such model."),
        (402, "pay first", "has nothing left to spend: pay first."),
        (400, "odd request", "does not take the request (status 400): odd request."),
    ],
)
async def test_what_will_not_pass_is_said_at_once(
    server: ModelServer, home: Path, app: Path, status: int, message: str, wanted: str
) -> None:
    server.will(Fails(status, {"error": {"message": message, "type": "some_error"}}))

    async with chat_with(server, home, app) as chat:
        answer = await chat.say("hello")
        ended = await states(chat.gateway)

    assert wanted in answer.text
    assert KEY not in answer.text
    assert ended == ["failed"]
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("act", "wanted"),
    [
        (Fails(429, {"error": {"message": "slow down"}}, {"retry-after": "0"}), "asked too often just now: slow down."),
        (Fails(500, {"error": {"message": "oops"}}), "fails (status 500): oops."),
        (Fails(503, "<html>down</html>"), "fails (status 503): <html>down</html>."),
        (Fails(529, {"error": {"message": "busy"}}), "is overloaded (status 529)."),
        (Breaks(), "broke off"),
        (Breaks(politely=True), ("answered what cannot be read", "broke off")),
    ],
    ids=["429", "500", "503", "529", "broken", "ended early"],
)
async def test_what_may_pass_is_tried_again_a_few_times(
    server: ModelServer, home: Path, app: Path, act: Fails | Breaks, wanted: str | tuple[str, str]
) -> None:
    if isinstance(wanted, tuple):
        wanted = wanted[server.wire == "anthropic"]
    server.will(act, act, act)

    async with chat_with(server, home, app) as chat:
        answer = await chat.say("hello")
        ended = await states(chat.gateway)

    assert wanted in answer.text
    assert "/retry tries again" in answer.text
    assert ended == ["failed"]
    assert len(server.requests) == 3


@pytest.mark.parametrize("act", [Fails(429, {}, {"retry-after": "0"}), Fails(502), Breaks()])
async def test_what_passes_costs_nothing_but_time(
    server: ModelServer, home: Path, app: Path, act: Fails | Breaks
) -> None:
    server.will(Says(calls=[Call("terminal", {"command": "echo once >> log"})]), act, Says("Done."))

    async with chat_with(server, home, app) as chat:
        answer = await chat.say("log it")
        ended = await states(chat.gateway)

    assert answer.lines[0] == "Done."
    assert ended == ["done"]
    assert (app / "log").read_text() == "once\n"


async def test_a_server_that_asks_to_wait_longer_than_the_turn_has_is_not_waited_for(
    openai: ModelServer, home: Path, app: Path
) -> None:
    openai.will(Fails(429, {"error": {"message": "slow down"}}, {"retry-after": "3600"}))

    async with chat_with(openai, home, app, max_minutes=1) as chat:
        answer = await chat.say("hello")

    assert "It asks to wait 3600 s." in answer.text
    assert len(openai.requests) == 1


async def test_a_server_that_is_not_there_is_named(server: ModelServer, home: Path, app: Path) -> None:
    async with chat_with(server, home, app, base_url="http://127.0.0.1:9") as chat:
        answer = await chat.say("hello")
        ended = await states(chat.gateway)

    assert "at http://127.0.0.1:9) cannot be reached" in answer.text
    assert "Look whether it runs" in answer.text
    assert ended == ["failed"]


async def test_a_conversation_that_is_too_long_is_summed_up_once_and_asked_again(
    server: ModelServer, home: Path, app: Path
) -> None:
    if server.wire == "openai":
        too_long = Fails(400, openai_error("This model's maximum context length is 10", "context_length_exceeded"))
    else:
        too_long = Fails(400, anthropic_error("prompt is too long: 10 tokens > 9 maximum", "invalid_request_error"))
    words = "w" * 25_000
    server.will(Says("Read."), too_long, Says("They said w."), Says("Fine again."))

    async with chat_with(server, home, app) as chat:
        await chat.say(words)
        answer = await chat.say("and?")
        made_by = await chat.gateway.memory.database.fetch_all("SELECT made_by FROM compactions")

    assert answer.lines[0] == "Fine again."
    assert [row["made_by"] for row in made_by] == ["model default"]
    summing, again = server.heard(2), server.heard(3)
    assert words in summing[0][1]
    assert "tools" not in server.requests[2]
    assert again[0][1].endswith("They said w.")
    assert again[-1] == ("user", "and?")
    assert words not in str(again)


async def test_a_conversation_that_stays_too_long_is_said(openai: ModelServer, home: Path, app: Path) -> None:
    too_long = Fails(400, openai_error("maximum context length", "context_length_exceeded"))
    openai.will(too_long, too_long)

    async with chat_with(openai, home, app) as chat:
        answer = await chat.say("and?")

    assert "is too long for the model" in answer.text
    assert "/new begins anew" in answer.text


async def test_an_error_in_the_middle_of_an_answer_is_one_too(server: ModelServer, home: Path, app: Path) -> None:
    if server.wire == "openai":
        body = {"error": {"message": "gone wrong", "code": "server_error", "type": "server_error"}}
    else:
        body = {"error": {"type": "api_error", "message": "gone wrong"}}
    fails = Fails(200, body, in_stream=True)
    server.will(fails, fails, fails)

    async with chat_with(server, home, app) as chat:
        answer = await chat.say("hello")

    assert "gone wrong" in answer.text
    assert "so far" not in answer.text


async def test_a_refusal_is_said(server: ModelServer, home: Path, app: Path) -> None:
    server.will(Says(ends="content_filter" if server.wire == "openai" else "refusal"))

    async with chat_with(server, home, app) as chat:
        answer = await chat.say("hello")
        ended = await states(chat.gateway)

    assert "declines to answer this" in answer.text
    assert ended == ["failed"]


async def test_an_answer_that_the_filter_cuts_is_not_taken_for_a_whole_one(
    server: ModelServer, home: Path, app: Path
) -> None:
    server.will(Says("First you take", ends="content_filter" if server.wire == "openai" else "refusal"))

    async with chat_with(server, home, app) as chat:
        answer = await chat.say("hello")
        ended = await states(chat.gateway)

    assert answer.lines[0] == "First you take"
    assert "✂ Cut off: the content filter of the model default" in answer.text
    assert ended == ["failed"]


async def test_what_people_were_told_of_a_failure_is_none_of_the_models_own_words(
    server: ModelServer, home: Path, app: Path
) -> None:
    server.will(
        Says("I look round.", calls=[Call("terminal", {"command": "ls"})]),
        Fails(400, {"error": {"message": "odd request"}}),
        Says("Here I am."),
    )

    async with chat_with(server, home, app) as chat:
        await chat.say("hello")
        await chat.say("again?")

    ended = [words for words in server.heard() if "odd request" in str(words)]
    assert [words[0] for words in ended] == ["user"]
    assert ended[0][1].startswith("[Note from the program that runs you] This turn ended here. People were told: ✖ ")
    assert ("assistant", "I look round.") in server.heard()
    assert server.heard()[-1] == ("user", "again?")


async def test_an_empty_answer_is_said(openai: ModelServer, home: Path, app: Path) -> None:
    openai.will(Says())

    async with chat_with(openai, home, app) as chat:
        answer = await chat.say("hello")
        ended = await states(chat.gateway)

    assert "answered nothing" in answer.text
    assert ended == ["failed"]


async def test_an_answer_that_is_cut_off_says_so(server: ModelServer, home: Path, app: Path) -> None:
    server.will(Says("As I was say", ends="length" if server.wire == "openai" else "max_tokens"))

    async with chat_with(server, home, app) as chat:
        answer = await chat.say("hello")

    assert answer.lines[0] == "As I was say"
    assert "✂ Cut off" in answer.text


async def test_a_server_that_falls_silent_is_not_asked_again(server: ModelServer) -> None:
    server.will(Hangs())
    choice = ModelChoice("slow", server.model, server.base_url)

    async with reached(choice, KEY, silence_s=0.2) as model:
        asker = Asker(model, Budget(Limits()), progress=lambda _text: None, stream=lambda _text: None, patience=AT_ONCE)
        with pytest.raises(ModelTimeoutError) as caught:
            await asker.ask([ModelRequest([UserPromptPart("hello")])], "Be brief.")

    assert "did not answer in time" in sentence(caught.value, choice, ())
    assert len(server.requests) == 1


def test_every_error_of_the_library_has_a_sentence() -> None:
    choice = ModelChoice("x", "openai:m")

    for kind in (ModelAPIError, UnexpectedModelBehavior):
        for error in (kind, *subclasses(kind)):
            assert any(parent in SENTENCES for parent in error.__mro__), error
    assert "ZeroDivisionError" in sentence(ZeroDivisionError(), choice, ())


def subclasses(kind: type[Exception]) -> list[type[Exception]]:
    return [known for below in kind.__subclasses__() for known in (below, *subclasses(below))]


async def test_a_turn_that_became_too_long_goes_on_with_less_of_its_results(
    openai: ModelServer, home: Path, app: Path
) -> None:
    (app / "long.txt").write_text("line\n" * 4_000)
    too_long = Fails(400, openai_error("maximum context length", "context_length_exceeded"))
    openai.will(Says(calls=[Call("read_file", {"path": "long.txt"})]), too_long, Says("Lines."))

    async with chat_with(openai, home, app) as chat:
        answer = await chat.say("what is in it?")

    assert answer.lines[0] == "Lines."
    before, after = (openai.heard(number)[-1] for number in (1, 2))
    assert len(before[1]) == 20_000
    assert before[0] == after[0] == "result"
    assert len(after[1]) < 2_100
