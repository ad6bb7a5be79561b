"""How far one turn may go: requests, tokens, time and cost; the first limit that is reached is named."""

from dataclasses import dataclass, field

import anyio

from gateway.agents.base import Usage


class LimitReached(Exception):
    """A turn may not go on; the message says which limit, and which key of the configuration moves it."""

    def __init__(self, what: str, key: str) -> None:
        self.what = what
        self.key = key
        super().__init__(f"Stopped at the limit of {what} for one turn (agent.{key}).")


@dataclass(frozen=True, slots=True)
class Limits:
    """What one turn may take."""

    steps: int = 50
    tokens: int = 2_000_000
    minutes: float = 30.0
    cost_usd: float = 5.0


@dataclass(slots=True)
class Budget:
    """What a turn has taken so far; the clock runs from its making, inside an event loop."""

    limits: Limits
    steps: int = 0
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    _began: float = field(default_factory=anyio.current_time)

    def begin_step(self) -> None:
        """Let the turn go on by one answer of the model.

        Raises:
            LimitReached: it may not.
        """
        limits = self.limits
        if self.steps >= limits.steps:
            raise LimitReached(f"{limits.steps} steps", "max_steps")
        if self.input_tokens + self.output_tokens >= limits.tokens:
            raise LimitReached(f"{limits.tokens} tokens", "max_tokens")
        if self.cost_usd is not None and self.cost_usd >= limits.cost_usd:
            raise LimitReached(f"${limits.cost_usd:g}", "max_cost_usd")
        if self.left_s() <= 0:
            raise self.out_of_time()
        self.steps += 1

    def left_s(self) -> float:
        """How many seconds the turn has left."""
        return self._began + self.limits.minutes * 60 - anyio.current_time()

    def out_of_time(self) -> LimitReached:
        """The error for a turn whose time is over."""
        return LimitReached(f"{self.limits.minutes:g} minutes", "max_minutes")

    def took(self, input_tokens: int, output_tokens: int, cost_usd: float | None) -> None:
        """Count one answered request; ``cost_usd`` is ``None`` where its price is not known."""
        self.input_tokens += input_tokens
        self.output_tokens += output_tokens
        if cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + cost_usd

    def usage(self) -> Usage:
        """What the turn took, for its receipt."""
        return Usage(self.requests, self.input_tokens, self.output_tokens, self.cost_usd)
