"""Summaries of the older part of long conversations: records beside the turns, which they neither change nor count.

A summary holds while its last turn is on the active chain. When the head moves before that turn, the older turns count
again as they are; when it comes back, so does the summary.
"""

from dataclasses import dataclass
from datetime import datetime

from gateway.state.clock import Clock, from_text, to_text
from gateway.state.database import Database, Row


@dataclass(frozen=True, slots=True)
class Compaction:
    """What stands for a session's turns up to ``turn_id``, and who made it."""

    id: int
    session_id: str
    turn_id: int
    summary: str
    made_by: str
    created_at: datetime


class Compactions:
    """Keeps summaries."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def add(self, session_id: str, turn_id: int, summary: str, *, made_by: str) -> Compaction:
        """Store a summary of a session's turns up to this one, which is on the active chain."""
        now = self._clock()
        async with self._database.transaction() as tx:
            compaction_id = await tx.insert(
                "INSERT INTO compactions (session_id, turn_id, summary, made_by, created_at) VALUES (?, ?, ?, ?, ?)",
                *(session_id, turn_id, summary, made_by, to_text(now)),
            )
        return Compaction(compaction_id, session_id, turn_id, summary, made_by, now)

    async def applicable(self, turn_id: int) -> Compaction | None:
        """The summary that reaches furthest among those of the turns before this one; the newest of several."""
        row = await self._database.fetch_one(_APPLICABLE, turn_id)
        return None if row is None else _compaction(row)

    async def at(self, head: int) -> Compaction | None:
        """The summary that a turn begun after this one would be shown."""
        row = await self._database.fetch_one(_AT, head)
        return None if row is None else _compaction(row)


_FROM = """
    WITH RECURSIVE chain (id, depth) AS (
        {start}
        UNION ALL
        SELECT t.parent_id, chain.depth + 1 FROM chain JOIN turns t ON t.id = chain.id WHERE t.parent_id IS NOT NULL
    )
    SELECT c.* FROM compactions c JOIN chain ON chain.id = c.turn_id ORDER BY chain.depth, c.id DESC LIMIT 1
"""
_APPLICABLE = _FROM.format(start="SELECT parent_id, 1 FROM turns WHERE id = ? AND parent_id IS NOT NULL")
_AT = _FROM.format(start="SELECT id, 1 FROM turns WHERE id = ?")


def _compaction(row: Row) -> Compaction:
    return Compaction(
        id=row["id"],
        session_id=row["session_id"],
        turn_id=row["turn_id"],
        summary=row["summary"],
        made_by=row["made_by"],
        created_at=from_text(row["created_at"]),
    )
