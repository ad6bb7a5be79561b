"""The agent as the gateway knows it: which model answers, and that the libraries are there when a turn needs them."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from anyio import to_thread
from pydantic import SecretStr

from gateway.agents.base import Answer, Compactor, TurnContext
from gateway.agents.choosing import ModelUnusable
from gateway.agents.model.limits import Budget, Limits
from gateway.config.agent import Agent as AgentSettings
from gateway.config.agent import ModelChoice
from gateway.config.providers import key_of, missing_key, problem_of
from gateway.render import say

if TYPE_CHECKING:
    from gateway.agents.model.asking import Patience

KIND = "model"
"""The agent's name in the configuration."""

SUMMING_MINUTES = 2.0
"""How long a summary that a person asked for may take."""


@dataclass(frozen=True, slots=True)
class ModelAgent:
    """Answers with one of the configured models: the one called ``label``, or the default.

    ``keys`` are those in the providers' usual variables. ``secrets`` never get into what it says.
    """

    settings: AgentSettings
    keys: Mapping[str, SecretStr] = field(default_factory=dict)
    label: str | None = None
    secrets: Sequence[str] = ()
    patience: "Patience | None" = None

    kind = KIND
    own_word = False

    def using(self, settings: AgentSettings, label: str | None) -> "ModelAgent":
        """The same agent for a workspace's settings and a session's choice."""
        return replace(self, settings=settings, label=label)

    async def answer(self, context: TurnContext) -> Answer:
        """Answer one turn; cancelled when the turn is stopped."""
        try:
            choice, key = await self._usable()
            return await self._answered(context, choice, key)
        except ModelUnusable as error:
            return Answer((say(f"✖ {error}"),), failed=True)

    async def _answered(self, context: TurnContext, choice: ModelChoice, key: str | None) -> Answer:
        settings = self.settings
        budget = Budget(Limits(settings.max_steps, settings.max_tokens, settings.max_minutes, settings.max_cost_usd))
        await _loaded()
        from gateway.agents.model.asking import Asker, Patience
        from gateway.agents.model.prompt import own_prompt
        from gateway.agents.model.reaching import reached
        from gateway.agents.model.work import Order, Work

        async with reached(choice, key) as model:
            asker = Asker(
                model,
                budget,
                progress=context.progress,
                stream=context.stream,
                patience=self.patience or Patience(),
            )
            secrets = [*self.secrets, *([key] if key else ())]
            order = Order(choice, own_prompt(), secrets, keys_hidden=not settings.secret_files)
            return await Work(context, order, asker, budget).answer()

    @asynccontextmanager
    async def summing_up(self) -> AsyncIterator[Compactor]:
        """Have what makes summaries with the model, outside a turn.

        Raises:
            ModelUnusable: it cannot be asked.
        """
        choice, key = await self._usable()
        await _loaded()
        from gateway.agents.model.asking import Asker, Patience
        from gateway.agents.model.compaction import ModelSummary
        from gateway.agents.model.reaching import reached

        async with reached(choice, key) as model:
            quiet = Asker(
                model,
                Budget(Limits(minutes=SUMMING_MINUTES)),
                progress=lambda _text: None,
                stream=lambda _text: None,
                patience=self.patience or Patience(),
            )
            yield ModelSummary(quiet, choice.label)

    async def _usable(self) -> tuple[ModelChoice, str | None]:
        choice = self.settings.choice(self.label)
        # In a thread, for it looks for packages on the disk.
        problem = await to_thread.run_sync(problem_of, choice) or missing_key(choice, self.keys)
        if problem is not None:
            raise ModelUnusable(f"{problem}.")
        key = key_of(choice, self.keys)
        return choice, key.get_secret_value() if key is not None else None


async def _loaded() -> None:
    """Have the libraries read, in a thread: that takes seconds, and nobody else waits for it."""
    await to_thread.run_sync(_load, abandon_on_cancel=True)


def _load() -> None:
    from gateway.agents.model.asking import know_prices
    from gateway.agents.model.prompt import own_prompt
    from gateway.agents.model.work import Work

    del Work
    own_prompt()
    know_prices()
