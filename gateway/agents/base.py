"""What every agent takes and gives: a turn to answer, tools to answer it with, and an answer."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from engine.model import ToolResult
from gateway.render import Reply
from gateway.state.messages import Message
from gateway.state.sent import SentFile


class Tools(Protocol):
    """The tools of one turn, bound to its workspace and guarded by its checkpoint.

    Each call is recorded with the turn. A mistake comes back as a result that is not ok; a refusal of the
    engine is raised as `engine.errors.EngineError`.
    """

    async def read_file(self, path: str, *, first: int | None = None, last: int | None = None) -> ToolResult:
        """Read a file, or of a text only the lines from ``first`` to ``last``, both counted from 1 and included."""
        ...

    async def list_files(self, path: str = ".", pattern: str = "") -> ToolResult:
        """List the source files below a directory, in order; with a pattern only those whose name or path fits it."""
        ...

    async def search(
        self, pattern: str, path: str = ".", *, files: str = "", ignore_case: bool = False, literal: bool = False
    ) -> ToolResult:
        """Find the lines of source files that a regular expression fits, or that hold a ``literal`` text.

        ``files`` is a pattern for their names or paths. Each line of the result is ``path:number:text``.
        """
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

    async def look(self, path: str) -> ToolResult:
        """Read a file for the agent itself: neither shown nor recorded with the turn."""
        ...

    async def whole_output(self, result: ToolResult) -> bytes | None:
        """Read all that a command wrote, to be sent as a file; ``None`` where that was not asked for."""
        ...


@dataclass(frozen=True, slots=True)
class Usage:
    """What a turn took of a model: requests made, tokens in and out, and the cost where it is known."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_dollars: float | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What an agent says at the end of a turn; ``failed`` marks the turn as failed.

    With ``usage`` the turn's receipt, which the last reply ends with, is made by whoever runs the turn: files changed,
    the checkpoint, what it took, and what can be done.
    """

    replies: tuple[Reply, ...]
    failed: bool = False
    usage: Usage | None = None


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
    ``compactor`` makes it, a plain one unless given. ``at_most`` allows fewer characters.
    """

    def __call__(
        self, compactor: Compactor | None = None, *, at_most: int | None = None
    ) -> Awaitable[Sequence[Message]]:
        """Read it."""
        ...


async def _no_history(compactor: Compactor | None = None, *, at_most: int | None = None) -> Sequence[Message]:
    del compactor, at_most
    return ()


async def _unheard(reply: Reply) -> None:
    del reply


def _unseen(text: str) -> None:
    del text


async def _not_kept(file: SentFile) -> bytes | None:
    del file
    return None


@dataclass(frozen=True, slots=True)
class TurnContext:
    """One turn to answer.

    ``guarded`` says whether checkpoints are on. ``notes`` are what the agent has to be told of restores since its last
    answer. ``history`` reads the conversation up to this turn. ``say`` sends a reply in the middle of the turn;
    ``progress`` shows what is going on; ``stream`` shows the answer's text so far, all of it each time.
    ``files`` came with the message; ``read_sent`` reads one of these, or of an earlier message, as long as it is kept.
    """

    turn_id: int
    text: str
    tools: Tools
    guarded: bool
    notes: Sequence[str] = ()
    history: ReadHistory = _no_history
    say: Callable[[Reply], Awaitable[None]] = _unheard
    progress: Callable[[str], None] = _unseen
    stream: Callable[[str], None] = _unseen
    files: Sequence[SentFile] = ()
    read_sent: Callable[[SentFile], Awaitable[bytes | None]] = _not_kept


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
