"""What a chat command is: one table entry that the router, the chat hub, ``/help``, completion and menus share.

A command's text is parsed once into an `Invocation`, which knows how it is ordered among the chat's messages and runs
against a `CommandContext`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from gateway.render import Reply


class Order(StrEnum):
    """How a command stands to the turn that runs in its chat."""

    IMMEDIATE = "immediate"
    """Answered at once, beside the turn."""

    BESIDE = "beside"
    """In order; waits a moment for the running turn, then runs beside it."""

    ALONE = "alone"
    """In order; waits a moment for the running turn, then is refused as busy."""


class BadUsage(Exception):  # noqa: N818 - reads as a state
    """A command's arguments cannot be understood; the message says what to type instead."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command says; ``turn_text`` is a message the hub then runs as a turn of its own (``/retry``)."""

    replies: tuple[Reply, ...]
    turn_text: str | None = None


class Invocation(Protocol):
    """A parsed command."""

    @property
    def order(self) -> Order:
        """How it is ordered, which may depend on its arguments."""
        ...

    async def run(self, context: "CommandContext") -> Outcome:
        """Do it. Errors of the engine pass through; `gateway.commands.failures` has a sentence for each."""
        ...


@dataclass(frozen=True, slots=True)
class Usage:
    """One form of a command and what it does."""

    form: str
    does: str


@dataclass(frozen=True, slots=True)
class Command:
    """An entry of the command table; ``parse`` takes the text after the name and raises `BadUsage`."""

    name: str
    summary: str
    usages: tuple[Usage, ...]
    parse: Callable[[str], Invocation]
