"""Chats that their platform has given another id: what was begun under the old one goes on under the new one.

A chat keeps its row and with it sessions, questions and lists, and the name by which checkpoints know it. What still
comes from the old place, such as a press of a button that stands there, is read as if it came from the new one.
"""

from adapters.contract import Place
from gateway.state.clock import Clock, to_text
from gateway.state.database import Database, Transaction

_Names = dict[tuple[str, str], str]


class Moves:
    """Notes where chats have moved to, and follows them."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        # Every chat that has moved, by its old name; read once, as no other process serves the same platform.
        self._known: _Names | None = None

    async def knows(self, place: Place) -> bool:
        """Whether a chat has ever written."""
        row = await self._database.fetch_one(
            "SELECT 1 FROM chats WHERE adapter = ? AND chat = ?", place.adapter, place.chat
        )
        return row is not None

    async def note(self, before: Place, now: Place) -> None:
        """Let a chat go on at its new place; without effect when it is told again.

        Where something was done at the new place already, that conversation stays, and only what still comes from the
        old place is followed.
        """
        known = await self._all()
        if (before.adapter, before.chat) in known or before == now:
            return
        moved_at = to_text(self._clock())
        async with self._database.transaction() as tx:
            await tx.execute(
                "INSERT INTO moves (adapter, before, now, moved_at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
                *(before.adapter, before.chat, now.chat, moved_at),
            )
            await _rename(tx, before, now, moved_at)
            await tx.execute(
                "UPDATE buttons SET chat = ? WHERE adapter = ? AND chat = ?", now.chat, before.adapter, before.chat
            )
            await tx.execute(
                "UPDATE inbox SET chat = ? WHERE adapter = ? AND chat = ? AND state <> 'done'",
                *(now.chat, before.adapter, before.chat),
            )
        known[before.adapter, before.chat] = now.chat

    async def follow(self, place: Place) -> Place:
        """Where a chat is now."""
        known = await self._all()
        followed: set[str] = set()
        while (now := known.get((place.adapter, place.chat))) is not None and place.chat not in followed:
            followed.add(place.chat)
            place = Place(place.adapter, now)
        return place

    async def former(self, place: Place) -> tuple[str, ...]:
        """What a chat was called before, the latest first."""
        known = await self._all()
        names = [place.chat]
        for name in names:
            names += [
                before
                for (adapter, before), now in known.items()
                if (adapter, now) == (place.adapter, name) and before not in names
            ]
        return tuple(names[1:])

    async def _all(self) -> _Names:
        if self._known is None:
            rows = await self._database.fetch_all("SELECT adapter, before, now FROM moves")
            self._known = {(row["adapter"], row["before"]): row["now"] for row in rows}
        return self._known


async def _rename(tx: Transaction, before: Place, now: Place, now_text: str) -> None:
    """Give a chat its new name. A chat of that name in which nothing was done yet gives way to it."""
    old = await _chat_id(tx, before)
    if old is None:
        return
    new = await _chat_id(tx, now)
    if new is not None:
        if await tx.fetch_one(_SOMETHING_DONE, new, new) is not None:
            return
        await tx.execute(
            "UPDATE sessions SET chat_id = ?, ended_at = coalesce(ended_at, ?) WHERE chat_id = ?", old, now_text, new
        )
        await tx.execute("DELETE FROM shown_lists WHERE chat_id = ?", new)
        await tx.execute("DELETE FROM chats WHERE id = ?", new)
    await tx.execute("UPDATE chats SET chat = ?, known_as = coalesce(known_as, chat) WHERE id = ?", now.chat, old)


async def _chat_id(tx: Transaction, place: Place) -> int | None:
    row = await tx.fetch_one("SELECT id FROM chats WHERE adapter = ? AND chat = ?", place.adapter, place.chat)
    return None if row is None else int(row["id"])


_SOMETHING_DONE = """
    SELECT 1 FROM turns t JOIN sessions s ON s.id = t.session_id WHERE s.chat_id = ?
    UNION ALL SELECT 1 FROM restores WHERE chat_id = ? LIMIT 1
"""
