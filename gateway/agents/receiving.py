"""Says where files are that came with a message, to people who run their tools themselves."""

from collections.abc import Sequence

from adapters.contract import Attachment, Part, Style
from gateway.agents.base import Agent, Answer, TurnContext
from gateway.render import Reply, name, one_line
from gateway.state.sent import SentFile

TITLE_CHARACTERS = 100


class Receiving:
    """An agent that first names the files that came; with ``alone`` nothing else was said, and that is its answer."""

    def __init__(self, agent: Agent, *, alone: bool) -> None:
        self._agent = agent
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
        """Say where the files are, and let the agent answer what was said with them."""
        said = _said(context.files)
        if self._alone:
            return Answer((said,) if context.files else (), failed=not context.files)
        if context.files:
            await context.say(said)
        return await self._agent.answer(context)


def title(files: Sequence[Attachment | SentFile]) -> str:
    """What stands for the words of a message that has only files."""
    return one_line(f"📎 {', '.join(file.name for file in files)}", TITLE_CHARACTERS)


def _said(files: Sequence[SentFile]) -> Reply:
    return Reply(
        tuple(part for file in files for part in (Part("📎 Saved as "), Part(name(file.path), Style.CODE), Part("\n")))
    )
