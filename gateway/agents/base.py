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

    async def terminal(self, command: str, *, whole_output: bool = False) -> ToolResult:
        """Run a command; its output goes to the chat's progress while it runs.

        A result holds the head and the tail of long output; with ``whole_output`` all of it is kept for a while.
        """
        ...

    async def whole_output(self, result: ToolResult) -> bytes | None:
        """Read all that a command wrote, to be sent as a file; ``None`` where that was not asked for."""
        ...


@dataclass(frozen=True, slots=True)
class Answer:
    """What an agent says at the end of a turn; ``failed`` marks the turn as failed."""

    replies: tuple[Reply, ...]
    failed: bool = False


class Compactor(Protocol):
    """What makes a summary of the older part of a conversation that has become too long."""

    @property
    def name(self) -> str:
        """How a summary says who made it."""
        ...

    async def compact(self, older: Sequence[Message], *, characters: int) -> str:
        """Sum up what the agent will not be shown any more, oldest first, in at most so many characters.

        The first message is an earlier summary, of ``Role.SUMMARY``, where there is one. What is raised costs nothing
        but this summary: a plain one takes its place.
        """
        ...


class ReadHistory(Protocol):
    """Reads the conversation up to a turn, notes included, oldest first; what was taken back is not in it.

    Of one that is longer than the configuration allows, a first message of ``Role.SUMMARY`` stands for the older turns;
    ``compactor`` makes it, a plain one unless given.
    """

    def __call__(self, compactor: Compactor | None = None) -> Awaitable[Sequence[Message]]:
        """Read it."""
        ...


async def _no_history(compactor: Compactor | None = None) -> Sequence[Message]:
    del compactor
    return ()


async def _unheard(reply: Reply) -> None:
    del reply


def _unseen(text: str) -> None:
    del text


@dataclass(frozen=True, slots=True)
class TurnContext:
    """One turn to answer.

    ``guarded`` says whether checkpoints are on. ``notes`` are what the agent has to be told of restores since its last
    answer. ``history`` reads the conversation up to this turn. ``say`` sends a reply in the middle of the turn;
    ``progress`` shows what is going on.
    """

    turn_id: int
    text: str
    tools: Tools
    guarded: bool
    notes: Sequence[str] = ()
    history: ReadHistory = _no_history
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
