"""``/stop`` in the middle of a request: it ends at once, and the turn is stored with what was done by then."""

from pathlib import Path

import anyio

from tests.gateway.agents.model.desk import chat_with
from tests.gateway.agents.model.server import Call, Fails, Hangs, ModelServer, Says


async def test_a_request_under_way_ends_when_the_turn_is_stopped(server: ModelServer, home: Path, app: Path) -> None:
    server.will(Says(calls=[Call("write_file", {"path": "new.py", "content": "n = 1\n"})]), Hangs(), Says("Again."))

    async with chat_with(server, home, app) as chat:
        event = await chat.send("make it")
        await server.until_asked(2)
        stopped = await chat.say("/stop")
        with anyio.fail_after(10):
            await server.left.wait()
        answer = await chat.answer_to(event)
        again = await chat.say("/retry")

    assert stopped.text == ""
    assert "⏹ Stopped." in answer.text
    assert "new.py (new)" in answer.text
    assert "Again." in again.text
    assert server.heard()[-1] == ("user", "make it")


async def test_waiting_for_another_try_ends_when_the_turn_is_stopped(
    openai: ModelServer, home: Path, app: Path
) -> None:
    openai.will(Fails(429, {}, {"retry-after": "600"}))

    async with chat_with(openai, home, app) as chat:
        event = await chat.send("hello")
        await chat.gateway.platform.until_shown("asks to wait; trying again in 600 s")
        await chat.say("/stop")
        answer = await chat.answer_to(event)

    assert "⏹ Stopped." in answer.text
    assert len(openai.requests) == 1
