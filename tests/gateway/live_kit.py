"""An agent that works for a while, as people see it on a platform: it writes a file, then an answer piece by piece."""

from dataclasses import dataclass, field

import anyio

from gateway.agents.base import Answer, TurnContext, Usage
from gateway.render import say

ANSWER = "I have written it down."
PIECES = ("I have written", ANSWER)
RECEIPT = "Σ 2 requests · 1,200 tokens in, 34 out · $0.0123"


@dataclass
class Writer:
    """Does so, and goes on when a test lets it: after each piece that it has shown."""

    kind: str = "direct"
    own_word: bool = False
    seen: list[bytes | None] = field(default_factory=list)
    _let_on: list[anyio.Event] = field(default_factory=lambda: [anyio.Event() for _ in PIECES])

    def go_on(self, piece: int) -> None:
        self._let_on[piece].set()

    async def answer(self, context: TurnContext) -> Answer:
        self.seen += [await context.read_sent(file) for file in context.files]
        await context.tools.write_file("notes.md", b"one\n")
        for piece, let_on in zip(PIECES, self._let_on, strict=True):
            context.stream(piece)
            await let_on.wait()
        return Answer((say(ANSWER),), usage=Usage(2, 1200, 34, 0.0123))
