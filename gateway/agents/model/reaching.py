"""Makes the model library's object for a configured model, with a connection of its own for one turn."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import cache
from ssl import SSLContext
from typing import Any

import httpx2
from anyio import to_thread
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model
from pydantic_ai.profiles import ModelProfile

from gateway.agents.choosing import ModelUnusable
from gateway.config.agent import ModelChoice
from gateway.config.providers import PROVIDERS
from gateway.render import one_line

CONNECT_S = 10.0
"""How long a connection may take to be made."""

SILENCE_S = 300.0
"""How long a server may send nothing: a model on a small machine reads for minutes before it says a word."""

NO_KEY = "none"
"""What is sent where no key is configured: the libraries insist on one, and a server without keys looks at none."""


@asynccontextmanager
async def reached(choice: ModelChoice, key: str | None, *, silence_s: float = SILENCE_S) -> AsyncIterator[Model[Any]]:
    """Have a model at hand; its connections are closed at the end. The key goes to its server and nowhere else.

    Raises:
        ModelUnusable: its provider has no such thing.
    """
    timeout = httpx2.Timeout(silence_s, connect=min(CONNECT_S, silence_s))
    # In threads: files are read for it.
    trusted = await to_thread.run_sync(_trusted)
    async with httpx2.AsyncClient(timeout=timeout, verify=trusted, follow_redirects=False) as client:
        yield await to_thread.run_sync(_make, choice, key or NO_KEY, client)


def _make(choice: ModelChoice, key: str, client: httpx2.AsyncClient) -> Model[Any]:
    base_url = choice.base_url or PROVIDERS[choice.provider].base_url
    try:
        return _MAKERS[choice.provider](choice, base_url, key, client)
    except UserError as error:
        raise ModelUnusable(f"{choice.shown} cannot be used: {one_line(error.message, 300)}") from error


@cache
def _trusted() -> SSLContext:
    return httpx2.create_ssl_context()


def _openai(choice: ModelChoice, base_url: str, key: str, client: httpx2.AsyncClient) -> Model[Any]:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    if choice.base_url is None:
        provider = OpenAIProvider(base_url=base_url, api_key=key, http_client=client)
        return OpenAIChatModel(choice.name, provider=provider, profile=_whole())
    # Whatever else speaks this API is not asked for what OpenAI alone can do.
    other = OpenAICompatibleProvider("openai-compatible", base_url=base_url, api_key=key, http_client=client)
    return OpenAIChatModel(choice.name, provider=other, profile=_whole())


def _openai_responses(choice: ModelChoice, base_url: str, key: str, client: httpx2.AsyncClient) -> Model[Any]:
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return OpenAIResponsesModel(
        choice.name, provider=OpenAIProvider(base_url=base_url, api_key=key, http_client=client)
    )


def _openrouter(choice: ModelChoice, _base_url: str, key: str, client: httpx2.AsyncClient) -> Model[Any]:
    if choice.base_url is not None:
        return _openai(choice, choice.base_url, key, client)
    from pydantic_ai.models.openrouter import OpenRouterModel
    from pydantic_ai.providers.openrouter import OpenRouterProvider

    provider = OpenRouterProvider(api_key=key, http_client=client)
    return OpenRouterModel(choice.name, provider=provider, profile=_whole())


def _ollama(choice: ModelChoice, base_url: str, key: str, client: httpx2.AsyncClient) -> Model[Any]:
    from pydantic_ai.models.ollama import OllamaModel
    from pydantic_ai.providers.ollama import OllamaProvider

    provider = OllamaProvider(base_url=base_url, api_key=key, http_client=client)
    return OllamaModel(choice.name, provider=provider, profile=_whole())


def _whole() -> ModelProfile:
    """What makes an answer that ends without a reason an error: its connection ended too early."""
    from pydantic_ai.profiles.openai import OpenAIModelProfile

    return OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)


def _anthropic(choice: ModelChoice, base_url: str, key: str, client: httpx2.AsyncClient) -> Model[Any]:
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    return AnthropicModel(choice.name, provider=AnthropicProvider(api_key=key, base_url=base_url, http_client=client))


def _google(choice: ModelChoice, base_url: str, key: str, client: httpx2.AsyncClient) -> Model[Any]:
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    return GoogleModel(choice.name, provider=GoogleProvider(api_key=key, base_url=base_url, http_client=client))


_MAKERS: Mapping[str, Callable[[ModelChoice, str, str, httpx2.AsyncClient], Model[Any]]] = {
    "openai": _openai,
    "openai-responses": _openai_responses,
    "openrouter": _openrouter,
    "ollama": _ollama,
    "anthropic": _anthropic,
    "google": _google,
}
