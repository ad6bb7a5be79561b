"""Turns: one message and everything done for it, as a chain that a session's head walks along.

A turn's parent is the head it began at. Taking back only moves the head; every turn stays. The *active chain* is the
head and its ancestors.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from sqlite3 import IntegrityError

from adapters.contract import Outbound, Place
from engine.model import TurnRef
from gateway.state.approvals import close
from gateway.state.clock import Clock, from_text, to_text
from gateway.state.database import Database, Row
from gateway.state.errors import TurnRunning, UnknownSession, UnknownTurn
from gateway.state.inbox import finish
from gateway.state.instances import Instance
from gateway.state.messages import Role, append
from gateway.state.outbox import put
from gateway.state.sessions import Session


class TurnState(StrEnum):
    """How far a turn got. ``STOPPED`` is a person's doing, ``INTERRUPTED`` the end of the process."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Turn:
    """One message and everything done for it. ``checkpoint_id`` holds the state before its first change, if taken."""

    id: int
    session_id: str
    parent_id: int | None
    text: str
    state: TurnState
    checkpoint_id: str | None
    root: str
    started_at: datetime
    ended_at: datetime | None


def turn_ref(session: Session, turn_id: int) -> TurnRef:
    """How the engine is told of a turn; its ``turn`` is ``str(Turn.id)``, its ``session`` is ``Session.id``."""
    chat = session.known_as or session.place.chat
    return TurnRef(chat=f"{session.place.adapter}:{chat}", session=session.id, turn=str(turn_id))


class Turns:
    """Begins, ends and walks turns."""

    def __init__(self, database: Database, instance: Instance, clock: Clock) -> None:
        self._database = database
        self._instance = instance
        self._clock = clock

    async def begin(self, session_id: str, text: str, *, inbox_id: int | None = None) -> Turn:
        """Store a running turn at the session's head, make it the head, and keep ``text`` as its user message.

        ``inbox_id`` names the message it answers, so that a restart does not run it again.

        Raises:
            UnknownSession: there is none by that id.
            TurnRunning: the session runs a turn already, here or in another process.
        """
        now = to_text(self._clock())
        async with self._database.transaction() as tx:
            session = await tx.fetch_one("SELECT head_turn_id, root FROM sessions WHERE id = ?", session_id)
            if session is None:
                raise UnknownSession(session_id)
            try:
                turn_id = await tx.insert(
                    "INSERT INTO turns"
                    " (session_id, parent_id, inbox_id, text, state, workspace_root, owner, started_at)"
                    " VALUES (?, ?, ?, ?, 'running', ?, ?, ?)",
                    *(
                        session_id,
                        session["head_turn_id"],
                        inbox_id,
                        text,
                        session["root"],
                        self._instance.id,
                        now,
                    ),
                )
            except IntegrityError as error:
                if "turns.session_id" not in str(error):
                    raise
                raise TurnRunning(session_id) from error
            await tx.execute("UPDATE sessions SET head_turn_id = ? WHERE id = ?", turn_id, session_id)
            await tx.execute(
                "INSERT INTO messages (session_id, turn_id, position, role, content, created_at)"
                " VALUES (?, ?, 0, 'user', ?, ?)",
                *(session_id, turn_id, text, now),
            )
        return await self.get(turn_id)

    async def finish(
        self,
        turn_id: int,
        state: TurnState,
        *,
        replies: Sequence[Outbound] = (),
        inbox_id: int | None = None,
    ) -> Turn:
        """Store how a running turn ended, what is said of it, and that its message is dealt with, in one transaction.

        The replies become the agent's message of the turn and go to the outbox. A turn that has ended already keeps its
        first end, and nothing more is said.
        """
        now = self._clock()
        async with self._database.transaction() as tx:
            ended = await tx.execute(
                "UPDATE turns SET state = ?, ended_at = ? WHERE id = ? AND state = 'running'",
                *(state.value, to_text(now), turn_id),
            )
            if ended and replies:
                words = "\n".join(reply.plain_text for reply in replies)
                await append(tx, turn_id, Role.ASSISTANT, words, now=now)
            if ended:
                await close(tx, turn_id, now)
            for reply in replies if ended else ():
                await put(tx, reply, inbox_id=inbox_id, owner=self._instance.id, now=now)
            if inbox_id is not None:
                await finish(tx, inbox_id, now)
        return await self.get(turn_id)

    async def say(self, turn_id: int, reply: Outbound, *, inbox_id: int | None = None) -> None:
        """Store a reply given in the middle of a turn, as the agent's words and to be sent, in one transaction."""
        now = self._clock()
        async with self._database.transaction() as tx:
            await append(tx, turn_id, Role.ASSISTANT, reply.plain_text, now=now)
            await put(tx, reply, inbox_id=inbox_id, owner=self._instance.id, now=now)

    async def link_checkpoint(self, turn_id: int, checkpoint_id: str) -> None:
        """Remember the checkpoint that covers a turn; the first one stays."""
        async with self._database.transaction() as tx:
            await tx.execute(
                "UPDATE turns SET checkpoint_id = ? WHERE id = ? AND checkpoint_id IS NULL",
                checkpoint_id,
                turn_id,
            )

    async def covered(self, root: str) -> bool:
        """Whether a checkpoint was ever taken for a turn in the workspace at ``root``."""
        row = await self._database.fetch_one(
            "SELECT 1 FROM turns WHERE workspace_root = ? AND checkpoint_id IS NOT NULL LIMIT 1", root
        )
        return row is not None

    async def find(self, turn_id: int) -> Turn | None:
        """A turn by its id."""
        row = await self._database.fetch_one("SELECT * FROM turns WHERE id = ?", turn_id)
        return _turn(row) if row is not None else None

    async def get(self, turn_id: int) -> Turn:
        """A turn by its id.

        Raises:
            UnknownTurn: there is none.
        """
        turn = await self.find(turn_id)
        if turn is None:
            raise UnknownTurn(turn_id)
        return turn

    async def head(self, session_id: str) -> Turn | None:
        """The turn a session stands at, ``None`` before its first (or after all were taken back)."""
        row = await self._database.fetch_one(
            "SELECT t.* FROM sessions s JOIN turns t ON t.id = s.head_turn_id WHERE s.id = ?", session_id
        )
        return _turn(row) if row is not None else None

    async def running(self, session_id: str) -> Turn | None:
        """The turn a session runs now, in whatever process."""
        row = await self._database.fetch_one(
            "SELECT * FROM turns WHERE session_id = ? AND state = 'running'", session_id
        )
        return _turn(row) if row is not None else None

    async def running_elsewhere(self, session_id: str) -> list[tuple[Place, Turn]]:
        """The turns that other sessions run now, in whatever living process, and in which chats; oldest first."""
        living = await self._instance.living()
        rows = await self._database.fetch_all(
            "SELECT t.*, c.adapter, c.chat FROM turns t JOIN sessions s ON s.id = t.session_id"
            " JOIN chats c ON c.id = s.chat_id WHERE t.state = 'running' AND t.session_id <> ? ORDER BY t.id",
            session_id,
        )
        return [(Place(row["adapter"], row["chat"]), _turn(row)) for row in rows if row["owner"] in living]

    async def active(self, session_id: str, *, limit: int | None = None) -> list[Turn]:
        """The active chain, head first; at most ``limit`` turns of it."""
        rows = await self._database.fetch_all(
            _ACTIVE,
            *(session_id, -1 if limit is None else limit, -1 if limit is None else limit),
        )
        return [_turn(row) for row in rows]

    async def left_behind(self, session_id: str, *, old_head: int | None, new_head: int | None) -> list[Turn]:
        """The turns that stop being active when the head moves from ``old_head`` to ``new_head``, newest first.

        Swapped, it gives the turns that come back.
        """
        rows = await self._database.fetch_all(
            """
            WITH RECURSIVE
            old (id) AS (SELECT id FROM turns WHERE id = ?
                UNION ALL SELECT t.parent_id FROM old JOIN turns t ON t.id = old.id WHERE t.parent_id IS NOT NULL),
            new (id) AS (SELECT id FROM turns WHERE id = ?
                UNION ALL SELECT t.parent_id FROM new JOIN turns t ON t.id = new.id WHERE t.parent_id IS NOT NULL)
            SELECT * FROM turns WHERE session_id = ? AND id IN (SELECT id FROM old EXCEPT SELECT id FROM new)
            ORDER BY id DESC
            """,
            *(old_head, new_head, session_id),
        )
        return [_turn(row) for row in rows]


_ACTIVE = """
    WITH RECURSIVE chain (id, depth) AS (
        SELECT head_turn_id, 1 FROM sessions WHERE id = ? AND head_turn_id IS NOT NULL
        UNION ALL
        SELECT t.parent_id, chain.depth + 1 FROM chain JOIN turns t ON t.id = chain.id
        WHERE t.parent_id IS NOT NULL AND (? < 0 OR chain.depth < ?)
    )
    SELECT t.* FROM chain JOIN turns t ON t.id = chain.id ORDER BY chain.depth
"""


def _turn(row: Row) -> Turn:
    return Turn(
        id=row["id"],
        session_id=row["session_id"],
        parent_id=row["parent_id"],
        text=row["text"],
        state=TurnState(row["state"]),
        checkpoint_id=row["checkpoint_id"],
        root=row["workspace_root"],
        started_at=from_text(row["started_at"]),
        ended_at=None if row["ended_at"] is None else from_text(row["ended_at"]),
    )
