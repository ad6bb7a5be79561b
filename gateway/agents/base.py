"""What every agent takes and gives: a turn to answer, tools to answer it with, and an answer."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from engine.model import ToolResult
from gateway.render import Reply
from gateway.state.messages import Message


class Tools(Protocol):
    """The tools of one turn, bound to its workspace and guarded by its checkpoint.

    Each call is recorded with the turn. A mistake comes back as a result that is not ok; a refusal of the
    engine is raised as `engine.errors.EngineError`.
    """

    async def read_file(self, path: str) -> ToolResult:
        """Read a file."""
        ...

    async def write_file(self, path: str, content: bytes) -> ToolResult:
        """Write a file exactly."""
        ...

    async def patch(self, text: str) -> ToolResult:
        """Apply a unified diff or a search/replace edit, all or nothing."""
        ...

    async def terminal(self, command: str) -> ToolResult:
        """Run a command; its output goes to the chat's progress while it runs."""
        ...


@dataclass(frozen=True, slots=True)
class Answer:
    """What an agent says at the end of a turn; ``failed`` marks the turn as failed."""

    replies: tuple[Reply, ...]
    failed: bool = False


async def _no_history() -> Sequence[Message]:
    return ()


async def _unheard(reply: Reply) -> None:
    del reply


def _unseen(text: str) -> None:
    del text


@dataclass(frozen=True, slots=True)
class TurnContext:
    """One turn to answer.

    ``guarded`` says whether checkpoints are on. ``notes`` are what the agent has to be told of restores
    since its last answer. ``history`` reads the conversation up to this turn, notes included, oldest first: what
    was taken back is not in it. ``say`` sends a reply in the middle of the turn; ``progress`` shows what is going on.
    """

    turn_id: int
    text: str
    tools: Tools
    guarded: bool
    notes: Sequence[str] = ()
    history: Callable[[], Awaitable[Sequence[Message]]] = _no_history
    say: Callable[[Reply], Awaitable[None]] = _unheard
    progress: Callable[[str], None] = _unseen


class Agent(Protocol):
    """What answers turns. It keeps no state between them."""

    @property
    def kind(self) -> str:
        """Its name in the configuration."""
        ...

    @property
    def own_word(self) -> bool:
        """Whether its tool calls are what a person typed, so that nobody is asked about them."""
        ...

    async def answer(self, context: TurnContext) -> Answer:
        """Answer one turn; cancelled when the turn is stopped."""
        ...
