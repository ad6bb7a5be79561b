"""Where each provider is reached, whatever else the environment says, and servers that speak OpenAI's API."""

from pathlib import Path

import pytest

from gateway.agents.model.agent import ModelAgent
from gateway.agents.model.reaching import reached
from gateway.config.agent import ModelChoice
from gateway.config.providers import PROVIDERS
from tests.gateway.agents.model.desk import chat_with
from tests.gateway.agents.model.server import KEY, Call, ModelServer, Says, model_server
from tests.gateway.commands.kit import running_gateway, settings_for


@pytest.fixture
def misleading(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL", "OLLAMA_BASE_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/elsewhere")
    for name in ("ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.setenv(name, "another")


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_provider_is_reached_at_its_own_address(misleading: None, provider: str) -> None:
    async with reached(ModelChoice("x", f"{provider}:a/m"), KEY) as model:
        assert str(model.base_url).rstrip("/") == PROVIDERS[provider].base_url


@pytest.mark.parametrize("provider", ["ollama", "openrouter"])
async def test_a_server_of_ones_own_answers_and_calls_tools(
    misleading: None, home: Path, app: Path, provider: str
) -> None:
    async with model_server("openai") as server:
        server.will(Says(calls=[Call("read_file", {"path": "src/a.py"})]), Says("It is one."))
        async with chat_with(server, home, app, model=f"{provider}:scripted-1") as chat:
            answer = await chat.say("what is a?")

    assert answer.lines[0] == "It is one."
    assert set(server.keys) == {KEY}


async def test_a_server_without_keys_is_sent_none_of_others(
    misleading: None, server: ModelServer, home: Path, app: Path
) -> None:
    server.will(Says("Hello."))

    async with chat_with(server, home, app, api_key=None) as chat:
        answer = await chat.say("hello")

    assert answer.lines[0] == "Hello."
    assert server.keys == ["none"]


async def test_a_name_that_a_provider_cannot_have_is_said(home: Path, app: Path) -> None:
    settings = settings_for(app, agent={"kind": "model", "model": "openrouter:m", "api_key": KEY})

    async with running_gateway(home, settings, agents={"model": ModelAgent(settings.agent)}) as gateway:
        answer = await gateway.chat().say("hello")

    assert "default (openrouter:m) cannot be used: OpenRouter model names must be prefixed" in answer.text
