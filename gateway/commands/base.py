"""What a chat command is: one table entry for router, chat hub, ``/help``, completion and platform menus.

A command's text is parsed once into an `Invocation`, which knows how it is ordered among the chat's messages
and runs against a `CommandContext`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from adapters.contract import Inbound, Place
from engine.model import Workspace
from gateway.config.settings import Settings
from gateway.offload import Offload
from gateway.render import Reply
from gateway.state.access import Role
from gateway.state.compactions import Compaction
from gateway.state.memory import Memory
from gateway.state.sent import SentFile
from gateway.state.sessions import Session
from gateway.state.turns import Turn
from gateway.turns.writers import Writers


class Order(StrEnum):
    """How a command stands to the turn that runs in its chat."""

    IMMEDIATE = "immediate"
    """Answered at once, beside the turn."""

    BESIDE = "beside"
    """In order; waits a moment for the running turn, then runs beside it."""

    ALONE = "alone"
    """In order; waits a moment for the running turn, then is refused as busy."""


class BadUsage(Exception):
    """A command's arguments cannot be understood; the message says what to type instead."""


class Declined(Exception):
    """A command that cannot be done now; nothing was changed, and the message says what to do."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command says; ``turn_text`` is a message the hub then runs as a turn of its own (``/retry``).

    ``turn_files`` came with it.
    """

    replies: tuple[Reply, ...]
    turn_text: str | None = None
    turn_files: tuple[SentFile, ...] = ()


class ChatControl(Protocol):
    """What commands may do to the chat they were sent in."""

    def running(self) -> Turn | None:
        """Return the turn that runs in this chat now."""
        ...

    def waiting(self) -> int:
        """Count the messages that wait for their turn."""
        ...

    def wake(self, approval_id: int) -> None:
        """Let the turn go on whose question was answered, once the answer is stored."""
        ...

    async def stop(self) -> bool:
        """Stop the running turn and wait until it can write nothing more; false when none runs."""
        ...

    async def open_workspace(self) -> Workspace:
        """Open the session's workspace.

        Raises:
            Declined: its directory cannot be used now.
        """
        ...

    async def begin_session(self, workspace: str | None = None) -> Session:
        """Begin the chat's next session, in another configured workspace when one is named.

        Raises:
            Declined: the workspace cannot be used; the session stays.
        """
        ...

    async def compact(self) -> Compaction | None:
        """Sum up what the session's agent would be shown now; ``None`` where there is nothing new.

        Raises:
            Declined: its model cannot be used.
        """
        ...


@dataclass(frozen=True, slots=True)
class CommandContext:
    """Everything a command works with.

    ``workspace`` is ``None`` where the session's directory cannot be used now; ``workspace_problem`` then
    says why. ``guarded`` is whether checkpoints are on for the session; ``container`` names the workspace's
    backend when that is a container. ``role`` is what the sender is admitted as.
    """

    inbound: Inbound
    inbox_id: int | None
    session: Session
    guarded: bool
    container: str | None
    settings: Settings
    memory: Memory
    engine: Offload
    writers: Writers
    control: ChatControl
    role: Role = Role.USER

    @property
    def place(self) -> Place:
        """Where the command was sent."""
        return self.inbound.place


class Invocation(Protocol):
    """A parsed command."""

    @property
    def order(self) -> Order:
        """How it is ordered, which may depend on its arguments."""
        ...

    async def run(self, context: CommandContext) -> Outcome:
        """Do it.

        Raises:
            Declined: it cannot be done now; nothing was changed.
            EngineError: the engine refused or failed; `gateway.commands.failures` has a sentence for each.
        """
        ...


@dataclass(frozen=True, slots=True)
class Usage:
    """One form of a command and what it does."""

    form: str
    does: str


@dataclass(frozen=True, slots=True)
class Command:
    """An entry of the command table; ``parse`` takes the text after the name and raises `BadUsage`.

    One that is ``admin_only`` is declined to everybody else.
    """

    name: str
    summary: str
    usages: tuple[Usage, ...]
    parse: Callable[[str], Invocation]
    admin_only: bool = False
