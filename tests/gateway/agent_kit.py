"""Agents of tests: real ones behind the seam that every agent stands behind, which do what a test says."""

from collections.abc import Awaitable, Callable

from gateway.agents.base import Answer, TurnContext
from gateway.render import say

KIND = "model"
"""The kind in the configuration that they stand for."""

AGENT = {"kind": KIND, "model": "test:scripted"}
"""What names such an agent in the configuration."""


class Scripted:
    """An agent that does what a function says, and answers with what that returns."""

    kind = KIND
    own_word = False

    def __init__(self, act: Callable[[TurnContext], Awaitable[str]]) -> None:
        self.act = act

    async def answer(self, context: TurnContext) -> Answer:
        return Answer((say(await self.act(context)),))


async def runs_what_it_is_told(context: TurnContext) -> str:
    """Run the message as a command and answer with its result."""
    return (await context.tools.terminal(context.text)).text
