"""A summary without a model: how a conversation began, and a line for each turn with its receipt."""

from collections.abc import Sequence
from itertools import groupby

from gateway.render import one_line
from gateway.state.messages import Message, Role
from gateway.turns.receipts import CHANGED

ASKED_CHARACTERS = 200
ANSWERED_CHARACTERS = 160
CALLED_CHARACTERS = 80
NOTED_CHARACTERS = 300
CALLS_LISTED = 8
"""How much of a turn is kept."""

LEFT_OUT = "(older turns are left out here)"

_OUTCOMES = {True: "done", False: "failed", None: "cut off"}


class PlainSummary:
    """Says of each turn what was asked, which tools ran, and what they changed or what was answered."""

    name = "plain"

    async def compact(self, older: Sequence[Message], *, characters: int) -> str:
        """Keep how it all began, and the newest of the lines that fit."""
        if older and older[0].role is Role.SUMMARY:
            opening, *lines = older[0].content.split("\n")
            lines = [line for line in lines if line != LEFT_OUT]
            older = older[1:]
        else:
            first = next((message.content for message in older if message.role is Role.USER), "")
            opening, lines = f"The conversation began with: {one_line(first, characters // 2)}", []
        return _fitted(opening, [*lines, *_lines(older)], characters)


def _lines(messages: Sequence[Message]) -> list[str]:
    lines = []
    for (is_note, turn_id), group in groupby(
        messages, key=lambda message: (message.role is Role.NOTE, message.turn_id)
    ):
        if is_note:
            lines += [f"Note: {one_line(message.content, NOTED_CHARACTERS)}" for message in group]
        else:
            lines.append(_turn_line(turn_id, list(group)))
    return lines


def _turn_line(turn_id: int | None, messages: Sequence[Message]) -> str:
    asked = " ".join(_asked(message) for message in messages if message.role is Role.USER)
    calls = [_call(message) for message in messages if message.role is Role.TOOL]
    said = "\n".join(message.content for message in messages if message.role is Role.ASSISTANT)
    parts = [f"Turn {turn_id}: {asked}", *calls[:CALLS_LISTED]]
    if len(calls) > CALLS_LISTED:
        parts.append(f"(+{len(calls) - CALLS_LISTED} calls)")
    receipts = [one_line(line, ASKED_CHARACTERS) for line in said.splitlines() if line.startswith(CHANGED)]
    return " | ".join([*parts, *(receipts or ([one_line(said, ANSWERED_CHARACTERS)] if said else []))])


def _asked(message: Message) -> str:
    said = one_line(message.content, ASKED_CHARACTERS)
    sent = ", ".join(file.path for file in message.files)
    return f"{said} (sent along: {one_line(sent, ASKED_CHARACTERS)})" if sent else said


def _call(message: Message) -> str:
    named = next(iter((message.arguments or {}).values()), "")
    return f"{message.tool_name} {one_line(str(named), CALLED_CHARACTERS)}: {_OUTCOMES[message.ok]}"


def _fitted(opening: str, lines: Sequence[str], characters: int) -> str:
    room = characters - len(opening) - len(LEFT_OUT) - 1
    newest: list[str] = []
    for line in reversed(lines):
        room -= len(line) + 1
        if room < 0:
            newest.append(LEFT_OUT)
            break
        newest.append(line)
    return "\n".join([opening, *reversed(newest)])
