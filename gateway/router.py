"""Tells commands from messages to the agent."""

from dataclasses import dataclass

from gateway.commands.base import Command, Invocation


@dataclass(frozen=True, slots=True)
class ToCommand:
    """The text is a command with arguments it understands."""

    command: Command
    invocation: Invocation


@dataclass(frozen=True, slots=True)
class ToAgent:
    """The text is a message to the agent: a turn."""

    text: str


@dataclass(frozen=True, slots=True)
class Mistyped:
    """The text looks like a command but is none, or its arguments are not understood; ``sentence`` says so."""

    sentence: str


Routed = ToCommand | ToAgent | Mistyped
# route(text: str, *, agent_kind: str) -> Routed | None   (None: nothing to do, e.g. a command for another bot)
