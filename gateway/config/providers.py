"""The model providers that this version knows: what each needs to be installed, and where its key is looked for."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec

from pydantic import SecretStr

from gateway.config.agent import ModelChoice

LIBRARY = "pydantic_ai"
"""What every provider is reached through."""


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider: the ``extra`` that installs its ``package``, and the usual ``variables`` of its key.

    ``base_url`` is where it is reached unless the configuration says otherwise; nothing else in the environment may
    send a key elsewhere.
    """

    extra: str
    package: str
    variables: tuple[str, ...]
    base_url: str
    needs_key: bool = True


_OPENAI = Provider("openai", "openai", ("OPENAI_API_KEY",), "https://api.openai.com/v1")

PROVIDERS: Mapping[str, Provider] = {
    "openai": _OPENAI,
    "openai-responses": _OPENAI,
    "openrouter": replace(_OPENAI, variables=("OPENROUTER_API_KEY",), base_url="https://openrouter.ai/api/v1"),
    "ollama": replace(_OPENAI, variables=("OLLAMA_API_KEY",), base_url="http://127.0.0.1:11434/v1", needs_key=False),
    "anthropic": Provider("anthropic", "anthropic", ("ANTHROPIC_API_KEY",), "https://api.anthropic.com"),
    "google": Provider(
        "google", "google.genai", ("GOOGLE_API_KEY", "GEMINI_API_KEY"), "https://generativelanguage.googleapis.com"
    ),
}
"""By the word before the colon. What speaks OpenAI's API is reached as openai, with its base_url."""


def keys_in(environment: Mapping[str, str]) -> dict[str, SecretStr]:
    """The keys that the providers' usual variables hold."""
    variables = {variable for provider in PROVIDERS.values() for variable in provider.variables}
    return {name: SecretStr(environment[name]) for name in sorted(variables) if environment.get(name)}


def key_of(choice: ModelChoice, keys: Mapping[str, SecretStr]) -> SecretStr | None:
    """The key to send for a model: its own, or the provider's usual one where it goes to the provider itself."""
    if choice.api_key is not None or choice.base_url is not None:
        return choice.api_key
    provider = PROVIDERS[choice.provider]
    return next((keys[variable] for variable in provider.variables if variable in keys), None)


def problem_of(choice: ModelChoice) -> str | None:
    """Say why a model cannot be used by this installation, ``None`` when it can; nothing is imported."""
    provider = PROVIDERS.get(choice.provider)
    if provider is None:
        return f"{choice.provider} is no provider that this version knows; it has: {', '.join(PROVIDERS)}"
    if not choice.name:
        return f"{choice.provider} needs the name of a model behind its colon"
    if not (installed(LIBRARY) and installed(provider.package)):
        return f"{choice.provider} needs a library that is not installed; install it: {remedy(provider)}"
    return None


def remedy(provider: Provider) -> str:
    """The command that installs what a provider needs."""
    extra = provider.extra
    return (
        f"TAKEBACK_EXTRAS={extra} sh deploy/run version (for an image: docker build --build-arg "
        f"TAKEBACK_EXTRAS={extra} …; outside a checkout: pip install 'takeback[{extra}]')"
    )


def missing_key(choice: ModelChoice, keys: Mapping[str, SecretStr]) -> str | None:
    """Say how to give a model its key where it has none and needs one, ``None`` otherwise."""
    provider = PROVIDERS[choice.provider]
    if choice.base_url is not None or not provider.needs_key or key_of(choice, keys) is not None:
        return None
    return f"{choice.label} has no key; set {provider.variables[0]}, or agent.api_key (TAKEBACK_AGENT__API_KEY_FILE)"


def installed(module: str) -> bool:
    """Whether a module can be imported; it is not."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
