"""How far one turn may go, and what is said where it may not."""

from pathlib import Path

import pytest

from gateway.agents.model.limits import Budget, LimitReached, Limits
from tests.gateway.agents.model.desk import chat_with
from tests.gateway.agents.model.server import Call, Hangs, ModelServer, Says, model_server
from tests.gateway.commands.kit import Gateway

LOOK = Says("Looking.", [Call("read_file", {"path": "src/a.py"})])


async def state(gateway: Gateway) -> str:
    rows = await gateway.memory.database.fetch_all("SELECT state FROM turns ORDER BY id DESC")
    return str(rows[0]["state"])


@pytest.mark.parametrize(
    ("limit", "requests", "wanted"),
    [
        ({"max_steps": 2}, 2, "Stopped at the limit of 2 steps for one turn (agent.max_steps)."),
        ({"max_tokens": 220}, 2, "Stopped at the limit of 220 tokens for one turn (agent.max_tokens)."),
    ],
)
async def test_a_turn_that_goes_on_and_on_is_ended_at_its_limit(
    openai: ModelServer, home: Path, app: Path, limit: dict[str, int], requests: int, wanted: str
) -> None:
    openai.will(LOOK, LOOK, LOOK)

    async with chat_with(openai, home, app, **limit) as chat:
        answer = await chat.say("look at it")
        ended = await state(chat.gateway)

    assert wanted in answer.text
    assert 'Say "continue" to go on from here' in answer.text
    assert answer.lines[0] == "Looking."
    assert len(openai.requests) == requests
    assert ended == "failed"


async def test_a_model_that_never_ends_is_left_when_the_time_is_over(
    server: ModelServer, home: Path, app: Path
) -> None:
    server.will(Hangs())

    async with chat_with(server, home, app, max_minutes=0.005) as chat:
        answer = await chat.say("hello")
        ended = await state(chat.gateway)
        await server.left.wait()

    assert "Stopped at the limit of 0.005 minutes" in answer.text
    assert ended == "failed"


async def test_what_was_done_before_a_limit_is_remembered_by_the_next_turn(
    openai: ModelServer, home: Path, app: Path
) -> None:
    openai.will(LOOK, Says("It is one."))

    async with chat_with(openai, home, app, max_steps=1) as chat:
        await chat.say("look at it")
        await chat.say("continue")

    assert openai.heard()[:3] == [
        ("user", "look at it"),
        ("call", "read_file", '{"path":"src/a.py"}'),
        ("result", "a = 1\n"),
    ]
    assert openai.heard()[-1] == ("user", "continue")


async def test_costs_add_up_to_a_limit_and_unknown_ones_to_none() -> None:
    budget = Budget(Limits(cost_usd=0.5))

    budget.took(10, 1, None)
    budget.begin_step()
    assert budget.usage().cost_dollars is None
    budget.took(10, 1, 0.25)
    budget.begin_step()
    budget.took(10, 1, 0.25)
    with pytest.raises(LimitReached, match=r"limit of \$0.5 for one turn \(agent.max_cost_usd\)"):
        budget.begin_step()
    assert budget.usage().cost_dollars == 0.5


async def test_a_known_price_is_told_and_bounds_the_turn(home: Path, app: Path) -> None:
    async with model_server("anthropic", "claude-haiku-4-5") as server:
        dear = Says("Looking.", [Call("read_file", {"path": "src/a.py"})], tokens=(100_000, 100))
        server.will(dear, dear)
        async with chat_with(server, home, app, max_cost_usd=0.15) as chat:
            answer = await chat.say("look at it")

    assert "Stopped at the limit of $0.15 for one turn (agent.max_cost_usd)." in answer.text
    assert "Σ 2 requests · 200,000 tokens in, 200 out · $0.2010" in answer.text
