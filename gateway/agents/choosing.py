"""What an agent can do that answers with one of several models: take another one, and sum up a conversation."""

from contextlib import AbstractAsyncContextManager
from typing import Protocol, runtime_checkable

from gateway.agents.base import Agent, Compactor
from gateway.config import Agent as AgentSettings


class ModelUnusable(Exception):
    """The model that is chosen cannot be asked as it is configured or installed; the message says what to do."""


@runtime_checkable
class Choosing(Protocol):
    """An agent with several models."""

    def using(self, settings: AgentSettings, label: str | None) -> "ChoosingAgent":
        """The same agent for a workspace's settings and a session's choice."""
        ...

    def summing_up(self) -> AbstractAsyncContextManager[Compactor]:
        """Have what makes summaries with the model, outside a turn.

        Raises:
            ModelUnusable: it cannot be asked.
        """
        ...


class ChoosingAgent(Agent, Choosing, Protocol):
    """Both."""
