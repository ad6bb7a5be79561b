"""Replies, stored before they are sent: each reaches its platform at least once, in order within its chat."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from adapters.contract import Attachment, Button, Outbound, Part, Place, Style
from gateway.state.buttons import bind
from gateway.state.clock import Clock, from_text, to_text
from gateway.state.database import Database, Row, Transaction
from gateway.state.instances import Instance

KEPT = timedelta(days=3)
"""How long the fact that a reply was sent, or could not be, is kept."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A stored reply. ``attempts`` counts the failed ones; it is not tried again before ``next_attempt_at``."""

    id: int
    message: Outbound
    attempts: int
    next_attempt_at: datetime
    created_at: datetime


class Outbox:
    """Keeps replies until they are sent or given up."""

    def __init__(self, database: Database, instance: Instance, clock: Clock) -> None:
        self._database = database
        self._instance = instance
        self._clock = clock

    async def put(self, message: Outbound, *, inbox_id: int | None = None) -> int:
        """Store a reply; durable once this returns. ``inbox_id`` names the message it answers."""
        async with self._database.transaction() as tx:
            return await put(tx, message, inbox_id=inbox_id, owner=self._instance.id, now=self._clock())

    async def next(self, place: Place) -> Reply | None:
        """Return the oldest reply of a chat that is neither sent nor given up."""
        row = await self._database.fetch_one(
            "SELECT * FROM outbox WHERE state = 'pending' AND owner = ? AND adapter = ? AND chat = ?"
            " ORDER BY id LIMIT 1",
            *(self._instance.id, place.adapter, place.chat),
        )
        if row is None:
            return None
        # Only the chat's one sender settles a reply, so it is still the same between the two reads.
        files = await self._database.fetch_all(
            "SELECT name, content FROM outbox_files WHERE outbox_id = ? ORDER BY position", row["id"]
        )
        return _reply(row, files)

    async def newest(self, place: Place) -> int:
        """Return the id of a chat's newest reply that is still to be sent, 0 when there is none."""
        row = await self._database.fetch_one(
            "SELECT coalesce(max(id), 0) AS id FROM outbox"
            " WHERE state = 'pending' AND owner = ? AND adapter = ? AND chat = ?",
            *(self._instance.id, place.adapter, place.chat),
        )
        return 0 if row is None else int(row["id"])

    async def places(self) -> list[Place]:
        """The chats that have replies waiting in this process."""
        rows = await self._database.fetch_all(
            "SELECT adapter, chat FROM outbox WHERE state = 'pending' AND owner = ? GROUP BY adapter, chat"
            " ORDER BY min(id)",
            self._instance.id,
        )
        return [Place(row["adapter"], row["chat"]) for row in rows]

    async def sent(self, reply_id: int) -> None:
        """Note that a reply has arrived; its content is dropped here."""
        await self._settle(reply_id, "sent", None)

    async def failed(self, reply_id: int, error: str) -> None:
        """Give a reply up for good, keeping why; its content stays for a look."""
        await self._settle(reply_id, "failed", error)

    async def waiting(self) -> int:
        """Count this process's replies that are neither sent nor given up."""
        row = await self._database.fetch_one(
            "SELECT count(*) AS waiting FROM outbox WHERE state = 'pending' AND owner = ?", self._instance.id
        )
        return 0 if row is None else int(row["waiting"])

    async def postpone(self, reply_id: int, *, until: datetime, error: str) -> None:
        """Note a failed attempt and when the next may be made."""
        async with self._database.transaction() as tx:
            await tx.execute(
                "UPDATE outbox SET attempts = attempts + 1, next_attempt_at = ?, error = ? WHERE id = ?",
                *(to_text(until), error, reply_id),
            )

    async def expire(self) -> int:
        """Forget replies that were settled long ago; returns how many."""
        limit = to_text(self._clock() - KEPT)
        async with self._database.transaction() as tx:
            return await tx.execute("DELETE FROM outbox WHERE state <> 'pending' AND done_at < ?", limit)

    async def _settle(self, reply_id: int, state: str, error: str | None) -> None:
        # Lost in a power cut, it is sent once more, which is allowed.
        async with self._database.transaction(durable=False) as tx:
            await tx.execute(
                "UPDATE outbox SET state = ?, attempts = attempts + 1, error = ?, done_at = ? WHERE id = ?",
                *(state, error, to_text(self._clock()), reply_id),
            )
            if error is None:
                await tx.execute("UPDATE outbox SET payload = '' WHERE id = ?", reply_id)
                await tx.execute("DELETE FROM outbox_files WHERE outbox_id = ?", reply_id)


async def put(tx: Transaction, message: Outbound, *, inbox_id: int | None, owner: str, now: datetime) -> int:
    """Store a reply inside a transaction of the caller; its buttons can be pressed from then on."""
    reply_id = await tx.insert(
        "INSERT INTO outbox (adapter, chat, inbox_id, reply_to, payload, state, next_attempt_at, owner, created_at)"
        " VALUES (?, ?, ?, ?, '', 'pending', ?, ?, ?)",
        *(message.place.adapter, message.place.chat, inbox_id, message.reply_to),
        *(to_text(now), owner, to_text(now)),
    )
    bound = await bind(tx, message, inbox_id=inbox_id, outbox_id=reply_id, now=now)
    await tx.execute("UPDATE outbox SET payload = ? WHERE id = ?", _dump(bound), reply_id)
    for position, file in enumerate(message.files):
        await tx.execute(
            "INSERT INTO outbox_files (outbox_id, position, name, content) VALUES (?, ?, ?, ?)",
            *(reply_id, position, file.name, file.content),
        )
    return reply_id


def _dump(message: Outbound) -> str:
    return json.dumps(
        {
            "parts": [[part.style.value, part.text] for part in message.parts],
            "buttons": [[button.label, button.command, button.token, button.confirm] for button in message.buttons],
        }
    )


def _reply(row: Row, files: Sequence[Row]) -> Reply:
    payload = json.loads(row["payload"])
    message = Outbound(
        place=Place(row["adapter"], row["chat"]),
        parts=tuple(Part(text, Style(style)) for style, text in payload["parts"]),
        files=tuple(Attachment(file["name"], file["content"]) for file in files),
        buttons=tuple(Button(*fields) for fields in payload["buttons"]),
        reply_to=row["reply_to"],
    )
    return Reply(
        id=row["id"],
        message=message,
        attempts=row["attempts"],
        next_attempt_at=from_text(row["next_attempt_at"]),
        created_at=from_text(row["created_at"]),
    )
