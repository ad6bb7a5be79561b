"""Messages from people, stored before they are acknowledged, each handled once.

A message goes ``new`` → ``running`` → ``done``. What a dead process left ``running`` is not simply run again: see
`gateway.operation.recovery`. Done messages keep only what recognises a repeated delivery, and that for `REMEMBERED`.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from adapters.contract import Attachment, Inbound, Outbound, Place
from gateway.state.access import Role
from gateway.state.buttons import spend
from gateway.state.clock import Clock, from_text, to_text
from gateway.state.database import Database, Row, Transaction
from gateway.state.instances import Instance
from gateway.state.outbox import put

REMEMBERED = timedelta(days=3)
"""How long a repeated delivery is recognised. Telegram repeats for up to 24 hours, Slack for about one."""


@dataclass(frozen=True, slots=True)
class Received:
    """A stored message. ``attempts`` counts how often its handling has begun.

    ``role`` is what the person was admitted as when it began.
    """

    id: int
    inbound: Inbound
    attempts: int
    received_at: datetime
    role: Role = Role.USER


class Inbox:
    """Takes messages in and gives them out in order."""

    def __init__(self, database: Database, instance: Instance, clock: Clock) -> None:
        self._database = database
        self._instance = instance
        self._clock = clock

    async def accept(
        self, inbound: Inbound, *, remarks: Sequence[Outbound] = (), spends: str | None = None
    ) -> int | None:
        """Store a message; durable once this returns. Its id, or ``None`` when that event is known already.

        In the same transaction ``remarks`` on it are stored to be sent, and the button ``spends`` is used up.

        Raises:
            ButtonSpent: it has been used up by another press; nothing was stored.
        """
        now = self._clock()
        async with self._database.transaction() as tx:
            rows = await tx.fetch_all(
                "INSERT INTO inbox"
                " (adapter, chat, event_id, user, text, edited, circles, pressed, state, owner, received_at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'new', ?, ?)"
                " ON CONFLICT (adapter, event_id) DO NOTHING RETURNING id",
                *(inbound.place.adapter, inbound.place.chat, inbound.event_id, inbound.user, inbound.text),
                *(int(inbound.edited), json.dumps(inbound.circles), inbound.pressed, self._instance.id, to_text(now)),
            )
            if not rows:
                return None
            if spends is not None:
                await spend(tx, spends, inbound.event_id)
            inbox_id = int(rows[0]["id"])
            # Not linked to the message: what is linked answers it, and one that is answered is not handled again.
            for remark in remarks:
                await put(tx, remark, inbox_id=None, owner=self._instance.id, now=now)
            for position, file in enumerate(inbound.files):
                await tx.execute(
                    "INSERT INTO inbox_files (inbox_id, position, name, content) VALUES (?, ?, ?, ?)",
                    *(inbox_id, position, file.name, file.content),
                )
            return inbox_id

    async def begin(self, inbox_id: int) -> Received | None:
        """Mark a message as being handled and give it out whole; ``None`` when it is not waiting (any more)."""
        # Whatever the handling leaves behind is stored durably after this, and this with it.
        async with self._database.transaction(durable=False) as tx:
            rows = await tx.fetch_all(
                "UPDATE inbox SET state = 'running', attempts = attempts + 1"
                " WHERE id = ? AND state = 'new' RETURNING *",
                inbox_id,
            )
            return await _received(tx, rows[0]) if rows else None

    async def done(self, inbox_id: int, replies: Sequence[Outbound] = ()) -> None:
        """Store what answers a message and mark it as dealt with, in one transaction.

        Its words and files are dropped here (turns keep what was said).
        """
        now = self._clock()
        async with self._database.transaction() as tx:
            for reply in replies:
                await put(tx, reply, inbox_id=inbox_id, owner=self._instance.id, now=now)
            await finish(tx, inbox_id, now)

    async def event_of(self, inbox_id: int) -> str | None:
        """Return the platform's id of a message, ``None`` when it has been forgotten."""
        row = await self._database.fetch_one("SELECT event_id FROM inbox WHERE id = ?", inbox_id)
        return None if row is None else str(row["event_id"])

    async def waiting(self) -> list[Received]:
        """This process's messages that nobody has begun, in the order they came; files are left out."""
        rows = await self._database.fetch_all(
            "SELECT * FROM inbox WHERE state = 'new' AND owner = ? ORDER BY id", self._instance.id
        )
        return [_value(row, ()) for row in rows]

    async def expire(self) -> int:
        """Forget done messages that no platform repeats any more; returns how many."""
        limit = to_text(self._clock() - REMEMBERED)
        async with self._database.transaction() as tx:
            return await tx.execute("DELETE FROM inbox WHERE state = 'done' AND done_at < ?", limit)


async def finish(tx: Transaction, inbox_id: int, now: datetime) -> None:
    """Mark a message as dealt with inside a transaction of the caller."""
    await tx.execute(
        "UPDATE inbox SET state = 'done', text = '', done_at = ? WHERE id = ? AND state <> 'done'",
        *(to_text(now), inbox_id),
    )
    await tx.execute("DELETE FROM inbox_files WHERE inbox_id = ?", inbox_id)


async def _received(tx: Transaction, row: Row) -> Received:
    files = await tx.fetch_all("SELECT name, content FROM inbox_files WHERE inbox_id = ? ORDER BY position", row["id"])
    return _value(row, (Attachment(file["name"], file["content"]) for file in files))


def _value(row: Row, files: Iterable[Attachment]) -> Received:
    inbound = Inbound(
        place=Place(row["adapter"], row["chat"]),
        user=row["user"],
        event_id=row["event_id"],
        text=row["text"],
        edited=bool(row["edited"]),
        circles=tuple(json.loads(row["circles"])),
        pressed=row["pressed"],
        files=tuple(files),
    )
    return Received(row["id"], inbound, row["attempts"], from_text(row["received_at"]))
