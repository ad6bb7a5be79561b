"""Google's API: the library's own client against a server on loopback that answers as Google does."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from gateway.agents.model.agent import ModelAgent
from tests.gateway.agents.model.desk import AT_ONCE
from tests.gateway.agents.model.server import KEY
from tests.gateway.commands.kit import running_gateway, settings_for

Parts = list[dict[str, Any]]


@asynccontextmanager
async def google(*answers: Parts | int) -> AsyncIterator[tuple[str, list[tuple[str, dict[str, Any]]]]]:
    """Give these answers in order, a number being an error's; the address, and what came in: key and body."""
    heard: list[tuple[str, dict[str, Any]]] = []

    async def answer(request: web.Request) -> web.Response:
        heard.append((request.headers["x-goog-api-key"], await request.json()))
        parts = answers[len(heard) - 1]
        if isinstance(parts, int):
            error = {"code": parts, "message": "no such key", "status": "UNAUTHENTICATED"}
            return web.json_response({"error": error}, status=parts)
        chunk = {
            "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 3, "totalTokenCount": 12},
            "modelVersion": "scripted-1",
        }
        return web.Response(text=f"data: {json.dumps(chunk)}\r\n\r\n", content_type="text/event-stream")

    app = web.Application()
    app.router.add_post("/v1beta/models/{call}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", heard
    finally:
        await runner.cleanup()


async def test_googles_models_answer_and_call_tools(home: Path, app: Path) -> None:
    call = [{"functionCall": {"name": "read_file", "args": {"path": "src/a.py"}}}]
    async with google(call, [{"text": "It is one."}], 401) as (base_url, heard):
        section = {"kind": "model", "model": "google:scripted-1", "base_url": base_url, "api_key": KEY}
        settings = settings_for(app, agent=section)
        agents = {"model": ModelAgent(settings.agent, patience=AT_ONCE)}
        async with running_gateway(home, settings, agents=agents) as gateway:
            answer = await gateway.chat().say("what is a?")
            refused = await gateway.chat().say("sure?")

    assert answer.lines[0] == "It is one."
    assert "Σ 2 requests · 18 tokens in, 6 out" in answer.text
    assert "refuses the key (status 401)" in refused.text
    assert {key for key, _body in heard} == {KEY}
    tools = heard[0][1]["tools"][0]["functionDeclarations"]
    assert {tool["name"] for tool in tools} >= {"read_file", "patch", "terminal"}
    results = [part["functionResponse"] for part in heard[1][1]["contents"][-1]["parts"]]
    assert [result["name"] for result in results] == ["read_file"]
    assert "a = 1" in str(results[0]["response"])
