"""Sends one request to a model and waits for the whole answer, with patience for what may pass by itself.

Nothing of an answer is acted upon before it is complete, so that a request may be sent again whatever it broke off
at. Waiting for another try is said in the chat's progress, and never goes beyond the turn's time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import anyio
from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelConnectionError,
    ModelRateLimitError,
    ModelServerError,
    ModelTimeoutError,
    ModelUnavailableError,
)
from pydantic_ai.messages import InstructionPart, ModelMessage, ModelResponse, PartDeltaEvent, PartStartEvent, TextPart
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    wait_exponential_jitter,
)

from gateway.agents.model.limits import Budget
from gateway.agents.model.tools import TOOLS, schema

PASSES = (ModelRateLimitError, ModelUnavailableError, ModelServerError, ModelConnectionError)
"""What may pass by itself."""

NOT_AGAIN = (ModelTimeoutError,)
"""What of this has taken so long already that a person is asked rather."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How often a request is sent at most, and how long the first wait is where the server names none."""

    attempts: int = 4
    first_wait_s: float = 1.0
    longest_wait_s: float = 30.0


TOOL_DEFINITIONS = [
    ToolDefinition(
        name=name,
        description=" ".join((arguments.__doc__ or "").split()),
        parameters_json_schema=schema(arguments),
        strict=False,
    )
    for name, arguments in TOOLS.items()
]


class Asker:
    """Asks one model on behalf of one turn."""

    def __init__(
        self,
        model: Model[Any],
        budget: Budget,
        *,
        progress: Callable[[str], None],
        stream: Callable[[str], None],
        patience: Patience,
    ) -> None:
        self._model = model
        self._budget = budget
        self._progress = progress
        self._stream = stream
        self._patience = patience

    async def ask(
        self, messages: Sequence[ModelMessage], instructions: str, *, with_tools: bool = True
    ) -> ModelResponse:
        """Send a request and return the whole answer, counted against the turn's limits.

        Raises:
            LimitReached: the turn may not go on, or its time ran out while it waited.
            AgentRunError: the library's error for a request that failed for good.
        """
        self._budget.begin_step()
        parameters = ModelRequestParameters(
            function_tools=TOOL_DEFINITIONS if with_tools else [],
            instruction_parts=[InstructionPart(instructions)],
        )
        response: ModelResponse | None = None
        with anyio.move_on_after(self._budget.left_s()):
            response = await self._attempts()(self._once, messages, parameters, streamed=with_tools)
        if response is None:
            raise self._budget.out_of_time()
        self._budget.took(response.usage.input_tokens, response.usage.output_tokens, _cost(response))
        return response

    async def _once(
        self, messages: Sequence[ModelMessage], parameters: ModelRequestParameters, *, streamed: bool
    ) -> ModelResponse:
        self._budget.requests += 1
        text = ""
        # The tries are counted here, not beneath, where nobody would hear of them.
        settings = ModelSettings(max_retries=0, cache=True)
        async with model_request_stream(
            self._model, list(messages), model_settings=settings, model_request_parameters=parameters
        ) as answer:
            async for event in answer:
                if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
                    text += event.part.content
                elif isinstance(event, PartDeltaEvent) and event.delta.part_delta_kind == "text":
                    text += event.delta.content_delta
                else:
                    continue
                if streamed and text.strip():
                    self._stream(text)
        response = answer.get()
        if response.finish_reason is None:
            # A connection that ends early looks like the end of the answer, but for the reason that every API gives.
            raise ModelConnectionError(self._model.model_name, "the answer ended in the middle", phase="read")
        return response

    def _attempts(self) -> AsyncRetrying:
        patience = self._patience
        backoff = wait_exponential_jitter(
            patience.first_wait_s, patience.longest_wait_s, jitter=patience.first_wait_s / 2
        )

        def wait(state: RetryCallState) -> float:
            error = state.outcome.exception() if state.outcome is not None else None
            named = getattr(error, "retry_after", None)
            return float(named) if named is not None else backoff(state)

        def enough(state: RetryCallState) -> bool:
            return state.attempt_number >= patience.attempts or state.upcoming_sleep >= self._budget.left_s()

        return AsyncRetrying(
            retry=retry_if_exception(_may_pass),
            wait=wait,
            stop=enough,
            before_sleep=self._say_wait,
            sleep=anyio.sleep,
            reraise=True,
        )

    def _say_wait(self, state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome is not None else None
        why = "asks to wait" if isinstance(error, ModelRateLimitError) else "does not answer"
        self._progress(f"⏳ The model's server {why}; trying again in {state.upcoming_sleep:.0f} s. /stop gives up.")


def _may_pass(error: BaseException) -> bool:
    # One of no kind is an answer that nobody could read: a proxy's page, a stream that ended in the middle.
    unreadable = type(error) is ModelAPIError
    return unreadable or (isinstance(error, PASSES) and not isinstance(error, NOT_AGAIN))


def _cost(response: ModelResponse) -> float | None:
    """The price of an answer in dollars, where it is known."""
    if not response.model_name:
        return None
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError):
        return None


def know_prices() -> None:
    """Have the table of prices read, which blocks the first time."""
    _cost(ModelResponse([], model_name="none", provider_name="openai"))
