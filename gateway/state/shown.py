"""The checkpoint list last shown in a chat: a number means what the person saw, whatever has happened since."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from adapters.contract import Place
from gateway.state.clock import Clock, from_text, to_text
from gateway.state.database import Database
from gateway.state.sessions import ensure_chat


@dataclass(frozen=True, slots=True)
class ShownList:
    """Full checkpoint ids in the order shown (number 1 first), and the workspace root they belong to."""

    root: str
    ids: tuple[str, ...]
    shown_at: datetime


class ShownLists:
    """One list per chat."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def remember(self, place: Place, *, root: str, ids: Sequence[str]) -> None:
        """Replace the chat's list with the one that is being shown."""
        async with self._database.transaction() as tx:
            chat = await ensure_chat(tx, place, self._clock)
            await tx.execute(
                "INSERT OR REPLACE INTO shown_lists (chat_id, root, ids, shown_at) VALUES (?, ?, ?, ?)",
                *(chat.id, root, json.dumps(list(ids)), to_text(self._clock())),
            )

    async def find(self, place: Place) -> ShownList | None:
        """The list last shown in a chat, ``None`` when none was."""
        row = await self._database.fetch_one(
            "SELECT l.* FROM shown_lists l JOIN chats c ON c.id = l.chat_id WHERE c.adapter = ? AND c.chat = ?",
            *(place.adapter, place.chat),
        )
        if row is None:
            return None
        return ShownList(row["root"], tuple(json.loads(row["ids"])), from_text(row["shown_at"]))
