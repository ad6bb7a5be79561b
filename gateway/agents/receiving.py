"""Puts files that came with a message into the workspace, then hands the turn to its agent.

They go through the turn's own tools: guarded, recorded, and taken back with the turn.
"""

from collections.abc import Sequence
from dataclasses import replace

from adapters.contract import Attachment, Part, Style
from engine.model import ToolResult
from gateway.agents.base import Agent, Answer, TurnContext
from gateway.render import Reply, name, one_line
from gateway.turns.receipts import receipt

FOLDER = "inbox"
"""Where they go. Each is named by its turn, so that none takes the place of another."""

TITLE_CHARACTERS = 100


class Receiving:
    """An agent that begins by saving ``files``; with ``alone`` nothing else was said, and that is all it does."""

    def __init__(self, agent: Agent, files: Sequence[Attachment], *, alone: bool) -> None:
        self._agent = agent
        self._files = files
        self._alone = alone

    @property
    def kind(self) -> str:
        """The kind of the agent that answers."""
        return self._agent.kind

    @property
    def own_word(self) -> bool:
        """Whether the answering agent's calls are a person's own word."""
        return self._agent.own_word

    async def answer(self, context: TurnContext) -> Answer:
        """Save the files, say so, and let the agent answer; it is told where they are unless the words are its own."""
        paths = [f"{FOLDER}/{context.turn_id}-{file.name}" for file in self._files]
        results = [
            await context.tools.write_file(path, file.content) for path, file in zip(paths, self._files, strict=True)
        ]
        saved = [path for path, result in zip(paths, results, strict=True) if result.ok]
        failed = not all(result.ok for result in results)
        if self._alone:
            return Answer((_said(context.turn_id, saved, results),), failed=failed)
        await context.say(_said(context.turn_id, saved, results))
        if self._agent.own_word or not saved:
            return await self._agent.answer(context)
        told = f"{context.text}\n\n(Files that came with this message are saved as: {', '.join(saved)})"
        return await self._agent.answer(replace(context, text=told))


def title(files: Sequence[Attachment]) -> str:
    """What stands for the words of a message that has only files."""
    return one_line(f"📎 {', '.join(file.name for file in files)}", TITLE_CHARACTERS)


def _said(turn_id: int, saved: Sequence[str], results: Sequence[ToolResult]) -> Reply:
    parts = [part for path in saved for part in (Part("📎 Saved as "), Part(name(path), Style.CODE), Part("\n"))]
    parts += [Part(f"✖ {one_line(result.text, 300)}\n") for result in results if not result.ok]
    end, buttons = receipt(turn_id, results)
    return Reply((*parts, *end), buttons=buttons)
