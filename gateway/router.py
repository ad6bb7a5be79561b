"""Tells commands from messages to the agent.

A command is ``/name`` or, for platforms without slash commands in threads, ``!name``, in any case of letters. Which bot
one is for is the adapters' business; a name that is left behind it is not looked at. The direct agent's own words
(``/write``, ``/read``, ``/patch``, ``/run``) are turns.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.agents.direct import COMMAND_WORDS, KIND
from gateway.commands.arguments import nearest
from gateway.commands.base import BadUsage, Command, Invocation
from gateway.commands.table import COMMANDS

# A second slash makes it a path: "/etc/hosts looks odd" is for the agent.
_COMMAND = re.compile(r"(?P<mark>[/!])(?P<name>[A-Za-z][\w-]*)(?:@\w+)?(?=\s|\Z)")


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
    """The text looks like a command but is none, or its arguments are wrong; ``sentence`` says so."""

    sentence: str


@dataclass(frozen=True, slots=True)
class Ignored:
    """The text is nothing at all."""


Routed = ToCommand | ToAgent | Mistyped | Ignored


def route(text: str, *, agent_kind: str, commands: Sequence[Command] = COMMANDS) -> Routed:
    """Decide what a message is."""
    if not text.strip():
        return Ignored()
    match = _COMMAND.match(text.lstrip())
    if match is None:
        return ToAgent(text)
    word = match["name"].lower()
    for command in commands:
        if command.name == word:
            return _parsed(command, text.lstrip()[match.end() :])
    if match["mark"] == "!" or (word in COMMAND_WORDS and agent_kind == KIND):
        return ToAgent(text)
    return Mistyped(_unknown(word, agent_kind, commands))


def _parsed(command: Command, rest: str) -> ToCommand | Mistyped:
    try:
        return ToCommand(command, command.parse(rest))
    except BadUsage as error:
        return Mistyped(str(error))


def _unknown(word: str, agent_kind: str, commands: Sequence[Command]) -> str:
    if word in COMMAND_WORDS:
        return f"/{word} is for the direct agent; this workspace's agent is {agent_kind}. Ask it in your own words."
    known = [command.name for command in commands]
    if agent_kind == KIND:
        known += COMMAND_WORDS
    meant = nearest(word, known)
    hint = f"Did you mean /{meant}? " if meant else ""
    return f"There is no command /{word}. {hint}/help lists them."
