"""What was said and done in a session: messages of people and agents, tool calls with their results, and notes.

A *note* tells the agent what happened to its work between turns ("these files went back, these hand-edits stayed"). It
hangs on the head at which it was written, goes along while that moves with no turn begun, and is read between that turn
and the next one begun after it, so it disappears with the branch it speaks of.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from gateway.state.clock import Clock, from_text, to_text
from gateway.state.database import Database, Row, Transaction
from gateway.state.sent import SentFile, files_of_session


class Role(StrEnum):
    """Who speaks. A ``SUMMARY`` stands for older turns; it is made for an agent and is not among a turn's messages."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    NOTE = "note"
    SUMMARY = "summary"


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a session.

    ``files`` came with a person's message. ``tool_name`` to ``ok`` belong to tool calls: ``content`` is then the
    result's text, and ``ok`` is ``None`` while there is none (the call was cut off).
    """

    id: int
    turn_id: int | None
    role: Role
    content: str
    created_at: datetime
    tool_name: str | None = None
    call_id: str | None = None
    arguments: Mapping[str, object] | None = None
    ok: bool | None = None
    files: tuple[SentFile, ...] = ()


class Messages:
    """Writes and reads the messages of sessions."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def add(self, turn_id: int, role: Role, content: str) -> int:
        """Append a message to a turn; returns its id."""
        async with self._database.transaction() as tx:
            return await append(tx, turn_id, role, content, now=self._clock())

    async def begin_call(
        self, turn_id: int, tool_name: str, arguments: Mapping[str, object], *, call_id: str | None = None
    ) -> int:
        """Append a tool call before it runs, so that a crash shows what was under way; returns its id."""
        async with self._database.transaction(durable=False) as tx:
            message_id = await append(tx, turn_id, Role.TOOL, "", now=self._clock())
            await tx.execute(
                "UPDATE messages SET tool_name = ?, call_id = ?, arguments = ? WHERE id = ?",
                *(tool_name, call_id, json.dumps(arguments), message_id),
            )
            return message_id

    async def finish_call(self, message_id: int, content: str, *, ok: bool, checkpoint_id: str | None = None) -> None:
        """Store a tool call's result, and the checkpoint that covers its turn; durable with the turn's end."""
        async with self._database.transaction(durable=False) as tx:
            await tx.execute("UPDATE messages SET content = ?, ok = ? WHERE id = ?", content, int(ok), message_id)
            if checkpoint_id is not None:
                await tx.execute(
                    "UPDATE turns SET checkpoint_id = ? WHERE checkpoint_id IS NULL"
                    " AND id = (SELECT turn_id FROM messages WHERE id = ?)",
                    *(checkpoint_id, message_id),
                )

    async def add_note(self, session_id: str, content: str) -> int:
        """Tell the agent something at the session's present head; returns the note's id."""
        async with self._database.transaction() as tx:
            return await add_note(tx, session_id, content, now=self._clock())

    async def of_turn(self, turn_id: int) -> list[Message]:
        """A turn's own messages in order, notes not included."""
        rows = await self._database.fetch_all(
            "SELECT * FROM messages WHERE turn_id = ? AND role <> 'note' ORDER BY position, id", turn_id
        )
        return [_message(row) for row in rows]

    async def notes_before(self, turn_id: int) -> list[str]:
        """Return the notes that a turn is the first to follow: what was taken back since the agent last answered."""
        rows = await self._database.fetch_all(
            "SELECT m.content FROM turns t JOIN messages m ON m.session_id = t.session_id AND m.role = 'note'"
            " AND m.turn_id IS t.parent_id AND m.turn_mark < t.id LEFT JOIN restores r ON r.id = m.restore_id"
            " WHERE t.id = ? AND (r.id IS NULL OR r.state <> 'undone') ORDER BY m.id",
            turn_id,
        )
        return [str(row["content"]) for row in rows]

    async def history(
        self, session_id: str, *, before: int | None = None, after: int | None = None, turns: int | None = None
    ) -> list[Message]:
        """What was said and done, oldest first: the active chain's messages and the notes that still hold.

        ``before`` names a turn on the active chain (usually the one that is running) that is left out, with all after
        it; ``after`` one that is left out with all before it, but not the notes that follow it. At most the newest
        ``turns`` turns are given; turns that were taken back never are.
        """
        most = _NO_LIMIT if turns is None else turns
        rows = await self._database.fetch_all(
            _HISTORY, *(before, before, before, before, session_id, most, after, session_id, after, session_id)
        )
        files = await files_of_session(self._database, session_id)
        return [_with_files(_message(row), files) for row in rows]


_NO_LIMIT = 2**62

_HISTORY = """
    WITH RECURSIVE
    chain (id, next_id, depth) AS (
        SELECT CASE WHEN ? IS NULL THEN s.head_turn_id ELSE (SELECT parent_id FROM turns WHERE id = ?) END,
               CASE WHEN ? IS NULL THEN NULL ELSE ? END, 1
        FROM sessions s WHERE s.id = ?
        UNION ALL
        SELECT t.parent_id, chain.id, chain.depth + 1 FROM chain JOIN turns t ON t.id = chain.id
        WHERE chain.depth + (t.parent_id IS NOT NULL) <= ? AND chain.id IS NOT ?
    )
    SELECT m.*, chain.depth, 0 AS after FROM chain JOIN messages m ON m.turn_id = chain.id
    WHERE m.session_id = ? AND m.role <> 'note' AND m.turn_id IS NOT ?
    UNION ALL
    SELECT m.*, chain.depth, 1 AS after FROM chain JOIN messages m ON m.role = 'note' AND m.turn_id IS chain.id
    LEFT JOIN restores r ON r.id = m.restore_id
    WHERE m.session_id = ? AND (chain.next_id IS NULL OR chain.next_id > m.turn_mark)
        AND (r.id IS NULL OR r.state <> 'undone')
    ORDER BY depth DESC, after, position, id
"""


async def append(tx: Transaction, turn_id: int, role: Role, content: str, *, now: datetime) -> int:
    """Append a message to a turn inside a transaction of the caller; returns its id."""
    return await tx.insert(
        "INSERT INTO messages (session_id, turn_id, position, role, content, created_at)"
        " SELECT session_id, id, (SELECT count(*) FROM messages WHERE turn_id = turns.id AND role <> 'note'), ?, ?, ?"
        " FROM turns WHERE id = ?",
        *(role.value, content, to_text(now), turn_id),
    )


async def add_note(
    tx: Transaction, session_id: str, content: str, *, now: datetime, restore_id: int | None = None
) -> int:
    """Write a note at the session's present head inside a transaction of the caller.

    ``turn_mark`` is the newest turn of the session by then: the note precedes only turns begun later.
    """
    return await tx.insert(
        "INSERT INTO messages (session_id, turn_id, restore_id, turn_mark, position, role, content, created_at)"
        " SELECT id, head_turn_id, ?, (SELECT coalesce(max(t.id), 0) FROM turns t WHERE t.session_id = sessions.id),"
        " 0, 'note', ?, ? FROM sessions WHERE id = ?",
        *(restore_id, content, to_text(now), session_id),
    )


async def carry_notes(tx: Transaction, session_id: str) -> None:
    """Let the notes that no turn has followed yet hang on the session's new head, inside a transaction of the caller.

    What was taken back step by step is told as a whole to the next turn, wherever that begins.
    """
    await tx.execute(
        "UPDATE messages SET turn_id = (SELECT head_turn_id FROM sessions s WHERE s.id = messages.session_id)"
        " WHERE session_id = ? AND role = 'note'"
        " AND turn_mark = (SELECT coalesce(max(t.id), 0) FROM turns t WHERE t.session_id = messages.session_id)",
        session_id,
    )


def _with_files(message: Message, files: Mapping[int, tuple[SentFile, ...]]) -> Message:
    """Say what came with a person's message."""
    sent = files.get(message.turn_id or 0, ())
    return replace(message, files=sent) if sent and message.role is Role.USER else message


def _message(row: Row) -> Message:
    return Message(
        id=row["id"],
        turn_id=row["turn_id"],
        role=Role(row["role"]),
        content=row["content"],
        created_at=from_text(row["created_at"]),
        tool_name=row["tool_name"],
        call_id=row["call_id"],
        arguments=None if row["arguments"] is None else json.loads(row["arguments"]),
        ok=None if row["ok"] is None else bool(row["ok"]),
    )
