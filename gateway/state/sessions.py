"""Chats and their sessions: which conversation a place is in, in which workspace, and where its head stands."""

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from adapters.contract import Place
from gateway.state.clock import Clock, from_text, to_text
from gateway.state.database import Database, Row, Transaction
from gateway.state.errors import UnknownSession


@dataclass(frozen=True, slots=True)
class Chat:
    """A place that has written at least once. ``workspace`` is the name chosen with ``/workspace``, if one was."""

    id: int
    place: Place
    workspace: str | None
    session_id: str | None


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation in one chat, bound to one workspace (its name in the configuration, its real root).

    ``head`` is the id of the turn the conversation stands at, ``None`` before the first. ``checkpoints`` is the
    session's own switch, ``model`` what its own choice is called; ``None`` follows the configuration. ``known_as`` is
    what the chat was called when it began, where its platform has given it another id since: checkpoints name it so.
    """

    id: str
    place: Place
    workspace: str
    root: str
    head: int | None
    checkpoints: bool | None
    started_at: datetime
    ended_at: datetime | None
    model: str | None = None
    known_as: str | None = None


class Sessions:
    """Reads and moves chats and sessions."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def find_chat(self, place: Place) -> Chat | None:
        """The chat at a place, ``None`` when it never wrote."""
        row = await self._database.fetch_one(
            "SELECT * FROM chats WHERE adapter = ? AND chat = ?", place.adapter, place.chat
        )
        return _chat(row) if row is not None else None

    async def ensure_chat(self, place: Place) -> Chat:
        """The chat at a place, made when it is new."""
        async with self._database.transaction() as tx:
            return await ensure_chat(tx, place, self._clock)

    async def choose_workspace(self, place: Place, workspace: str) -> Chat:
        """Remember which workspace the chat's next session is bound to; the current session stays as it is."""
        async with self._database.transaction() as tx:
            chat = await ensure_chat(tx, place, self._clock)
            await tx.execute("UPDATE chats SET workspace = ? WHERE id = ?", workspace, chat.id)
            return Chat(chat.id, chat.place, workspace, chat.session_id)

    async def current(self, place: Place) -> Session | None:
        """The session a chat is in, ``None`` before its first and after one that ended by itself."""
        row = await self._database.fetch_one(
            f"{_SELECT} WHERE c.adapter = ? AND c.chat = ? AND c.session_id = s.id AND s.ended_at IS NULL",
            *(place.adapter, place.chat),
        )
        return _session(row) if row is not None else None

    async def get(self, session_id: str) -> Session:
        """A session by its id.

        Raises:
            UnknownSession: there is none.
        """
        row = await self._database.fetch_one(f"{_SELECT} WHERE s.id = ?", session_id)
        if row is None:
            raise UnknownSession(session_id)
        return _session(row)

    async def start(
        self,
        place: Place,
        *,
        workspace: str,
        root: str,
        checkpoints: bool | None = None,
        model: str | None = None,
        inbox_id: int | None = None,
    ) -> Session:
        """Begin a session in a chat and make it the current one; the one before it ends, and keeps everything.

        ``inbox_id`` names the message that asked for it, so that a restart does not begin another one.
        """
        session_id = "s-" + secrets.token_hex(5)
        now = to_text(self._clock())
        async with self._database.transaction() as tx:
            chat = await ensure_chat(tx, place, self._clock)
            await tx.execute("UPDATE sessions SET ended_at = ? WHERE id = ? AND ended_at IS NULL", now, chat.session_id)
            await tx.execute(
                "INSERT INTO sessions (id, chat_id, workspace, root, checkpoints, model, inbox_id, started_at)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                *(session_id, chat.id, workspace, root, None if checkpoints is None else int(checkpoints)),
                *(model, inbox_id, now),
            )
            await tx.execute("UPDATE chats SET session_id = ? WHERE id = ?", session_id, chat.id)
        return await self.get(session_id)

    async def set_checkpoints(self, session_id: str, *, on: bool | None) -> Session:
        """Set the session's own switch; ``None`` follows the configuration again.

        Raises:
            UnknownSession: there is none by that id.
        """
        async with self._database.transaction() as tx:
            await tx.execute(
                "UPDATE sessions SET checkpoints = ? WHERE id = ?",
                None if on is None else int(on),
                session_id,
            )
        return await self.get(session_id)

    async def set_model(self, session_id: str, model: str | None) -> Session:
        """Choose the session's model by what it is called; ``None`` follows the configuration again.

        Raises:
            UnknownSession: there is none by that id.
        """
        async with self._database.transaction() as tx:
            await tx.execute("UPDATE sessions SET model = ? WHERE id = ?", model, session_id)
        return await self.get(session_id)

    async def last_model(self, place: Place, workspace: str) -> str | None:
        """What the chat's last session in a workspace chose, ``None`` where that followed the configuration."""
        row = await self._database.fetch_one(_LAST.format("model"), place.adapter, place.chat, workspace)
        return None if row is None else row["model"]

    async def last_switch(self, place: Place, workspace: str) -> bool | None:
        """The switch of the chat's last session in a workspace, ``None`` where that followed the configuration."""
        row = await self._database.fetch_one(_LAST.format("checkpoints"), place.adapter, place.chat, workspace)
        return None if row is None or row["checkpoints"] is None else bool(row["checkpoints"])

    async def end_idle(self, idle: timedelta) -> int:
        """End the sessions in which nothing happened for so long; returns how many.

        Everything of them is kept. The next message of their chats begins new ones.
        """
        now = self._clock()
        limit = to_text(now - idle)
        async with self._database.transaction() as tx:
            return await tx.execute(_END_IDLE, to_text(now), limit, limit, limit)

    async def ended(self) -> list[str]:
        """The ids of all sessions that are over; none of them is ever begun again."""
        rows = await self._database.fetch_all("SELECT id FROM sessions WHERE ended_at IS NOT NULL")
        return [str(row["id"]) for row in rows]

    async def recent(self, *, limit: int = 100) -> list[Session]:
        """Sessions of every chat, newest first."""
        rows = await self._database.fetch_all(f"{_SELECT} ORDER BY s.started_at DESC, s.rowid DESC LIMIT ?", limit)
        return [_session(row) for row in rows]

    async def of_person(self, adapter: str, user: str, *, limit: int) -> list[Session]:
        """Sessions of a platform in which somebody began a turn, newest first; as far back as the inbox remembers."""
        rows = await self._database.fetch_all(f"{_SELECT} {_OF_PERSON}", adapter, user, limit)
        return [_session(row) for row in rows]


_SELECT = """
    SELECT s.*, c.adapter, c.chat, c.known_as FROM sessions s JOIN chats c ON c.id = s.chat_id
"""


_LAST = (
    "SELECT s.{} FROM sessions s JOIN chats c ON c.id = s.chat_id"
    " WHERE c.adapter = ? AND c.chat = ? AND s.workspace = ? ORDER BY s.rowid DESC LIMIT 1"
)

_OF_PERSON = """
    WHERE c.adapter = ? AND EXISTS (
        SELECT 1 FROM turns t JOIN inbox i ON i.id = t.inbox_id WHERE t.session_id = s.id AND i.user = ?)
    ORDER BY s.started_at DESC, s.rowid DESC LIMIT ?
"""


_END_IDLE = """
    UPDATE sessions SET ended_at = ? WHERE ended_at IS NULL AND started_at < ?
    AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.session_id = sessions.id
        AND (t.state = 'running' OR coalesce(t.ended_at, t.started_at) >= ?))
    AND NOT EXISTS (SELECT 1 FROM restores r WHERE r.session_id = sessions.id
        AND (r.state = 'planned' OR r.created_at >= ?))
"""


async def ensure_chat(tx: Transaction, place: Place, clock: Clock) -> Chat:
    """The chat at a place, made when it is new, inside a transaction of the caller."""
    await tx.execute(
        "INSERT INTO chats (adapter, chat, created_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        *(place.adapter, place.chat, to_text(clock())),
    )
    row = await tx.fetch_one("SELECT * FROM chats WHERE adapter = ? AND chat = ?", place.adapter, place.chat)
    if row is None:
        raise AssertionError("a chat was written and is not there")
    return _chat(row)


def _chat(row: Row) -> Chat:
    return Chat(row["id"], Place(row["adapter"], row["chat"]), row["workspace"], row["session_id"])


def _session(row: Row) -> Session:
    return Session(
        id=row["id"],
        place=Place(row["adapter"], row["chat"]),
        workspace=row["workspace"],
        root=row["root"],
        head=row["head_turn_id"],
        checkpoints=None if row["checkpoints"] is None else bool(row["checkpoints"]),
        started_at=from_text(row["started_at"]),
        ended_at=None if row["ended_at"] is None else from_text(row["ended_at"]),
        model=row["model"],
        known_as=row["known_as"],
    )
