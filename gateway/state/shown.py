"""The checkpoint lists shown: a number, or a button, means what the person saw, whatever has happened since."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from adapters.contract import Place
from gateway.state.clock import Clock, from_text, to_text
from gateway.state.database import Database, Row
from gateway.state.sessions import ensure_chat


@dataclass(frozen=True, slots=True)
class ShownList:
    """Full checkpoint ids in the order shown (number 1 first), and the workspace root they belong to."""

    root: str
    ids: tuple[str, ...]
    shown_at: datetime


class ShownLists:
    """The last list of each chat, and those that buttons stand below (forgotten with them)."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def remember(self, place: Place, *, root: str, ids: Sequence[str], inbox_id: int | None = None) -> None:
        """Replace the chat's list with the one that is being shown.

        ``inbox_id`` names the message that is answered with it: buttons below older lists go by those.
        """
        values = (root, json.dumps(list(ids)), to_text(self._clock()))
        async with self._database.transaction() as tx:
            chat = await ensure_chat(tx, place, self._clock)
            await tx.execute(
                "INSERT OR REPLACE INTO shown_lists (chat_id, root, ids, shown_at) VALUES (?, ?, ?, ?)",
                *(chat.id, *values),
            )
            if inbox_id is not None:
                await tx.execute(
                    "INSERT OR REPLACE INTO lists_answered (inbox_id, root, ids, shown_at) VALUES (?, ?, ?, ?)",
                    *(inbox_id, *values),
                )

    async def find(self, place: Place) -> ShownList | None:
        """The list last shown in a chat, ``None`` when none was."""
        row = await self._database.fetch_one(
            "SELECT l.* FROM shown_lists l JOIN chats c ON c.id = l.chat_id WHERE c.adapter = ? AND c.chat = ?",
            *(place.adapter, place.chat),
        )
        return None if row is None else _shown(row)

    async def beside(self, token: str) -> ShownList | None:
        """The list that a button stands below, ``None`` when it stands below something else."""
        row = await self._database.fetch_one(
            "SELECT l.* FROM lists_answered l JOIN buttons b ON b.answers = l.inbox_id WHERE b.token = ?", token
        )
        return None if row is None else _shown(row)


def _shown(row: Row) -> ShownList:
    return ShownList(row["root"], tuple(json.loads(row["ids"])), from_text(row["shown_at"]))
