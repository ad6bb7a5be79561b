"""Answers one turn: asks the model, runs the tools it calls, and goes on until it has said its last word.

Every end is an answer: done, stopped at a limit, or failed with the reason. Only being stopped from outside is none.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from pydantic_ai.exceptions import AgentRunError, ModelContextWindowExceededError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ToolCallPart,
    ToolReturnPart,
)

from gateway.agents.base import Answer, TurnContext
from gateway.agents.model.asking import Asker
from gateway.agents.model.compaction import ModelSummary
from gateway.agents.model.conversion import asked, history_messages, tool_return, with_files, with_images
from gateway.agents.model.failures import cut_by_filter, refusal, sentence
from gateway.agents.model.limits import Budget, LimitReached
from gateway.agents.model.prompt import system_prompt
from gateway.agents.model.tools import run_call, shortened
from gateway.blotting import MARK, blotted
from gateway.config.agent import ModelChoice
from gateway.logs import hidden
from gateway.render import say
from gateway.state.sent import SentFile
from gateway.turns.endings import CUT_OFF, FAILED, STOPPED

MISTAKES = 3
"""After so many answers in a row that call no tool rightly, the model is taken to be unable to."""

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
LARGEST_IMAGE_BYTES = 5 * 1024 * 1024
"""What every provider takes."""

SHORTER_HISTORY_CHARACTERS = 20_000
"""How much of the conversation is left when the model finds it too long."""

SHORTER_RESULT_CHARACTERS = 2_000
"""How much of each result of the turn itself is left then."""

GO_ON = 'Say "continue" to go on from here; /undo takes the turn back.'


@dataclass(frozen=True, slots=True)
class Order:
    """What one turn is to be answered with: the model, the prompt, and what must never be shown.

    With ``keys_hidden`` nothing that looks like a key is in what the model is told of results either.
    """

    choice: ModelChoice
    own_prompt: str
    secrets: Collection[str]
    keys_hidden: bool = True

    def blot(self, text: str) -> str:
        """A text as the model is told it."""
        return blotted(text, self.secrets) if self.keys_hidden else hidden(text, self.secrets, MARK)


class Work:
    """One turn under way."""

    def __init__(self, context: TurnContext, order: Order, asker: Asker, budget: Budget) -> None:
        self._context = context
        self._order = order
        self._asker = asker
        self._budget = budget
        self._summary = ModelSummary(asker, order.choice.label)
        self._new: list[ModelMessage] = []
        self._said = ""
        self._mistakes = 0

    async def answer(self) -> Answer:
        """Do it."""
        try:
            last = await self._run()
        except LimitReached as reached:
            return self._ended(f"{self._before()}{STOPPED} {reached} {GO_ON}", failed=True)
        except AgentRunError as error:
            return self._ended(
                f"{self._before()}{FAILED} {sentence(error, self._order.choice, self._order.secrets)}", failed=True
            )
        return self._last_word(last)

    async def _run(self) -> ModelResponse:
        prompt = self._order.blot(await system_prompt(self._order.own_prompt, self._context.tools))
        before = await self._before_this_turn()
        shortened_once = False
        while True:
            try:
                response = await self._asker.ask([*before, *self._new], prompt)
            except ModelContextWindowExceededError:
                if shortened_once:
                    raise
                shortened_once = True
                before = await self._shorter()
                continue
            self._new.append(response)
            self._said = (response.text or "").strip() or self._said
            calls = response.tool_calls
            if not calls or self._mistakes >= MISTAKES:
                return response
            self._new.append(ModelRequest(await self._results(calls)))

    async def _results(self, calls: Sequence[ToolCallPart]) -> list[ToolReturnPart]:
        """Run calls in the order in which the model wrote them."""
        results = []
        mistaken = True
        for call in calls:
            if self._budget.left_s() <= 0:
                raise self._budget.out_of_time()
            result = await run_call(self._context.tools, call.tool_name, call.args, self._order.blot)
            mistaken = mistaken and result.mistaken
            results.append(tool_return(call.tool_name, call.tool_call_id, result.text, ok=result.ok))
        self._mistakes = self._mistakes + 1 if mistaken else 0
        return results

    async def _before_this_turn(self, *, at_most: int | None = None) -> list[ModelMessage]:
        """The conversation up to what is asked now, and that."""
        context = self._context
        history = history_messages(await context.history(self._summary, at_most=at_most), self._order.blot)
        return asked(history, with_images(with_files(context.text, context.files), await self._images()))

    async def _images(self) -> list[tuple[SentFile, bytes]]:
        images = []
        for file in self._context.files:
            if file.media_type in IMAGE_TYPES and file.size_bytes <= LARGEST_IMAGE_BYTES:
                content = await self._context.read_sent(file)
                if content is not None:
                    images.append((file, content))
        return images

    async def _shorter(self) -> list[ModelMessage]:
        """The same in fewer words, for a model that finds it too long."""
        self._context.progress("✂ The conversation is too long for the model; summing it up.")
        self._new = [_shorter(message) for message in self._new]
        return await self._before_this_turn(at_most=SHORTER_HISTORY_CHARACTERS)

    def _last_word(self, last: ModelResponse) -> Answer:
        choice = self._order.choice
        if last.finish_reason == "content_filter":
            word = f"{CUT_OFF} {cut_by_filter(choice)}" if last.text else f"{FAILED} {refusal(choice)}"
            return self._ended(f"{self._before()}{word}", failed=True)
        if last.tool_calls:
            word = f"{FAILED} The model {choice.shown} does not manage to call the tools. /model shows others."
            return self._ended(f"{self._before()}{word}", failed=True)
        if not self._said:
            word = f"{FAILED} The model {choice.shown} answered nothing. /retry tries again; /model shows others."
            return self._ended(word, failed=True)
        if last.finish_reason == "length":
            word = f"{CUT_OFF} Cut off: the model may write no more in one answer. {GO_ON}"
            return self._ended(f"{self._before()}{word}")
        return self._ended(self._said)

    def _before(self) -> str:
        """What the model said so far, above the word on how it ended."""
        return f"{self._said}\n\n" if self._said else ""

    def _ended(self, words: str, *, failed: bool = False) -> Answer:
        return Answer((say(words),), failed=failed, usage=self._budget.usage())


def _shorter(message: ModelMessage) -> ModelMessage:
    if isinstance(message, ModelResponse):
        return message
    return ModelRequest([_shorter_part(part) for part in message.parts])


def _shorter_part(part: ModelRequestPart) -> ModelRequestPart:
    if not isinstance(part, ToolReturnPart):
        return part
    text = shortened(str(part.content), SHORTER_RESULT_CHARACTERS)
    return ToolReturnPart(part.tool_name, text, tool_call_id=part.tool_call_id, outcome=part.outcome)
