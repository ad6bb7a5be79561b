"""What answers a turn: the keys of each kind of agent, the models it may use, and how far one turn may go."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, SecretStr, model_validator

from gateway.config.values import Address, Amount, Count, KeyWrong, Section

LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""What a configured model may be called; a colon would make it a provider's model."""

PROVIDER_MARK = ":"
"""Stands between a provider and the name it has for a model."""

DEFAULT_LABEL = "default"
"""What the model under ``agent.model`` is called where it is none of ``agent.models``."""

OF_THE_MODEL = frozenset({"model", "base_url", "api_key"})
"""Keys that only make sense together: a key of one provider must not be sent to another."""


def _label(value: str) -> str:
    if not LABEL.fullmatch(value) or value == DEFAULT_LABEL:
        raise ValueError(
            f"is no name for a model: up to 64 letters, digits, '.', '_' or '-', a letter or digit first, "
            f"and not {DEFAULT_LABEL}"
        )
    return value


Label = Annotated[str, AfterValidator(_label)]
BaseUrl = Annotated[
    Address | None,
    Field(
        description="For model: another server that speaks the same API.",
        examples=["http://127.0.0.1:11434/v1"],
    ),
]


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A configured model: what it is called here, ``provider:name``, and how its server is reached."""

    label: str
    model: str
    base_url: str | None = None
    api_key: SecretStr | None = None

    @property
    def provider(self) -> str:
        """Whose API it is."""
        return self.model.partition(PROVIDER_MARK)[0]

    @property
    def name(self) -> str:
        """What the provider calls it."""
        return self.model.partition(PROVIDER_MARK)[2]

    @property
    def shown(self) -> str:
        """How people read of it: its own name, and which model that is."""
        where = f" at {self.base_url}" if self.base_url else ""
        return f"{self.label} ({self.model}{where})"


class NamedModel(Section):
    """A model under a name of its own."""

    model: str = Field(description="The provider and the name, as provider:name.", examples=["openai:gpt-5-mini"])
    base_url: BaseUrl = None
    api_key: SecretStr | None = Field(
        default=None, description="Its key; better in TAKEBACK_AGENT__MODELS__NAME__API_KEY_FILE."
    )

    @model_validator(mode="after")
    def _model_is_of_a_provider(self) -> Self:
        if PROVIDER_MARK not in self.model:
            raise KeyWrong("needs the key model as provider:name, for example openai:gpt-5-mini", "model")
        return self


class Agent(Section):
    """What answers a turn."""

    kind: Literal["direct", "model", "acp"] = Field(
        default="direct",
        description="direct (no model) or model (an LLM with tools). acp (an external agent) is not part of this "
        "version.",
    )
    model: str | None = Field(
        default=None,
        description="For model: the provider and the name, as provider:name, or one of models below. Providers: "
        "openai (and what speaks its API), openai-responses, openrouter, ollama, anthropic, google.",
        examples=["openai:gpt-5"],
    )
    base_url: BaseUrl = None
    api_key: SecretStr | None = Field(
        default=None,
        description="For model: the key; better in TAKEBACK_AGENT__API_KEY_FILE. Not set: the provider's usual "
        "variable, such as OPENAI_API_KEY, which is sent to that provider alone and never to a base_url.",
        examples=["sk-…"],
    )
    models: dict[Label, NamedModel] = Field(
        default_factory=dict,
        description="For model: more of them, each under a name that /model NAME switches to.",
        examples=[{"local": {"model": "openai:qwen3", "base_url": "http://127.0.0.1:8000/v1", "api_key": "…"}}],
    )
    max_steps: Count = Field(default=50, description="For model: how often one turn may ask the model.")
    max_tokens: Count = Field(
        default=2_000_000, description="For model: how many tokens one turn may take, read and written together."
    )
    max_minutes: Amount = Field(
        default=30,
        description="For model: after so long a turn asks the model nothing more and begins no tool. One that runs "
        "by then ends by itself.",
    )
    max_cost_usd: Amount = Field(
        default=5, description="For model: what one turn may cost, where the price of the model is known."
    )
    history_characters: Annotated[Count, Field(ge=2_000)] = Field(
        default=200_000,
        description="What an agent remembers of a conversation. Of a longer one it gets a summary of the older turns; "
        "nothing is deleted.",
    )

    secret_files: bool = Field(
        default=False,
        description="For model: lets its tool read files that look like secrets (.env, *.pem, id_rsa, credentials) and "
        "leaves what looks like a key in the results that it is told.",
    )

    @model_validator(mode="after")
    def _model_is_named(self) -> Self:
        if self.kind == "model" and not self.model:
            raise KeyWrong("needs the key model when its kind is model", "kind")
        return self

    def over(self, common: "Agent") -> "Agent":
        """This section's own keys over the common ones; what belongs to one model is taken from one section."""
        own = self.model_fields_set
        update = {name: getattr(self, name) for name in own - {"models"}}
        if own & OF_THE_MODEL:
            update |= {name: getattr(self, name) for name in OF_THE_MODEL}
        return common.model_copy(update={**update, "models": {**common.models, **self.models}})

    def choices(self) -> Mapping[str, ModelChoice]:
        """Every model that can be chosen, by its label; the one that answers unless another is chosen comes first."""
        named = {
            label: ModelChoice(label, entry.model, entry.base_url, entry.api_key)
            for label, entry in self.models.items()
        }
        if self.model is None:
            return named
        if self.model in named:
            return {self.model: named[self.model], **named}
        default = ModelChoice(DEFAULT_LABEL, self.model, self.base_url, self.api_key)
        return {DEFAULT_LABEL: default, **named}

    def choice(self, label: str | None) -> ModelChoice:
        """The model of a label; the default one where there is none by it (any more).

        Raises:
            LookupError: none is configured at all.
        """
        choices = self.choices()
        if label is not None and label in choices:
            return choices[label]
        first = next(iter(choices.values()), None)
        if first is None:
            raise LookupError("no model is configured")
        return first

    def problem(self) -> str | None:
        """Say what is wrong with the model it names, ``None`` when nothing is."""
        if self.kind != "model" or self.model is None or PROVIDER_MARK in self.model:
            return None
        if self.model in self.models:
            surplus = [name for name in ("base_url", "api_key") if getattr(self, name) is not None]
            return f"has no use for {surplus[0]} when its model is one of models; set it there" if surplus else None
        # Not quoted: somebody may have put a key there.
        known = ", ".join(sorted(self.models)) or "none are configured"
        return (
            f"has a model that is none of agent.models ({known}); "
            "a provider's own is written provider:name, for example openai:gpt-5"
        )

    def secrets(self) -> list[str]:
        """Every key in it."""
        keys = [self.api_key, *(entry.api_key for entry in self.models.values())]
        return [key.get_secret_value() for key in keys if key is not None]
