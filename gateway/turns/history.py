"""What an agent is shown of a conversation: the last summary that holds, and everything said and done after it.

A conversation that has grown too long is summed up when an agent reads it, never otherwise. Turns, their numbers and
their messages stay as they are: taking back counts turns, whether an agent still sees them or not.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from gateway.agents.base import Compactor
from gateway.state.compactions import Compaction
from gateway.state.memory import Memory
from gateway.state.messages import Message, Role
from gateway.state.sessions import Session
from gateway.state.turns import Turn
from gateway.turns.summary import PlainSummary

KEPT_SHARE = 2
"""Of the characters allowed, one part in so many is for the newest turns as they are."""

SUMMARY_SHARE = 4
"""Of the characters allowed, one part in so many is for the summary; the rest is room to grow."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Cut:
    """A conversation in two: what is summed up, whose last turn is ``turn_id``, and what is kept."""

    turn_id: int
    older: tuple[Message, ...]
    kept: tuple[Message, ...]


def size(message: Message) -> int:
    """Count a message's characters, the arguments of a tool call included."""
    return len(message.content) + sum(len(str(value)) for value in (message.arguments or {}).values())


def shown(compaction: Compaction | None, after: Sequence[Message]) -> list[Message]:
    """Build what an agent is shown: a summary, if one holds, and the messages after its last turn."""
    if compaction is None:
        return list(after)
    return [
        Message(
            id=0,
            turn_id=compaction.turn_id,
            role=Role.SUMMARY,
            content=compaction.summary,
            created_at=compaction.created_at,
        ),
        *after,
    ]


def cut(messages: Sequence[Message], characters: int) -> Cut | None:
    """Find where a conversation is to be cut, so that what is kept has at most so many characters.

    Whole turns are kept, the newest ones, each with the notes that follow it; none where the last is too long by
    itself. Returns ``None`` where there is no turn to be summed up.
    """
    ends = {
        message.turn_id: index
        for index, message in enumerate(messages)
        if message.turn_id is not None and message.role not in {Role.NOTE, Role.SUMMARY}
    }
    left = [*accumulate(map(size, reversed(messages)), initial=0)][::-1]
    for turn_id, end in ends.items():
        if left[end + 1] <= characters or end == max(ends.values()):
            return Cut(turn_id, tuple(messages[: end + 1]), tuple(messages[end + 1 :]))
    return None


class Histories:
    """Reads conversations for agents, and sums up those that have grown too long."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    async def read(
        self, turn: Turn, characters: int, compactor: Compactor | None = None, *, at_most: int | None = None
    ) -> list[Message]:
        """Read what an agent is shown before a turn, in so many characters at most, or fewer."""
        characters = characters if at_most is None else min(characters, at_most)
        compaction = await self._memory.compactions.applicable(turn.id)
        last = None if compaction is None else compaction.turn_id
        messages = shown(compaction, await self._memory.messages.history(turn.session_id, before=turn.id, after=last))
        if sum(map(size, messages)) <= characters:
            return messages
        found = cut(messages, characters // KEPT_SHARE)
        if found is None:
            return messages
        summary, made_by = await _summed_up(found.older, characters // SUMMARY_SHARE, compactor)
        stored = await self._memory.compactions.add(turn.session_id, found.turn_id, summary, made_by=made_by)
        _log.info("a conversation was summed up", extra={"session": turn.session_id, "turn": found.turn_id})
        return shown(stored, found.kept)

    async def compact(self, session: Session, characters: int, compactor: Compactor | None = None) -> Compaction | None:
        """Sum up all that an agent would be shown of a session now; ``None`` where there is nothing new to sum up."""
        if session.head is None:
            return None
        before = await self._memory.compactions.at(session.head)
        last = None if before is None else before.turn_id
        messages = await self._memory.messages.history(session.id, after=last)
        if not any(message.role is not Role.NOTE for message in messages):
            return None
        # Notes that follow the last turn speak to the next one and stay as they are.
        older = found.older if (found := cut(shown(before, messages), 0)) is not None else ()
        summary, made_by = await _summed_up(older, characters // SUMMARY_SHARE, compactor)
        return await self._memory.compactions.add(session.id, session.head, summary, made_by=made_by)


async def _summed_up(older: Sequence[Message], characters: int, compactor: Compactor | None) -> tuple[str, str]:
    """Make a summary and say who made it: a plain one where the agent's own fails."""
    if compactor is not None:
        try:
            return (await compactor.compact(older, characters=characters))[:characters], compactor.name
        except Exception as error:  # noqa: BLE001 - whatever it raises, a plain summary is better than no answer
            _log.warning("%s did not sum up a conversation: %s", compactor.name, type(error).__name__)
    plain = PlainSummary()
    return await plain.compact(older, characters=characters), plain.name
