"""Questions to people before a tool runs, and what came of each: who answered what, and when.

The first answer counts, and it is stored before anything acts on it. A question whose turn has ended is closed in the
transaction that stores the turn's end, so none waits for a turn that is not there.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from adapters.contract import Place
from gateway.state.clock import Clock, from_text, to_text
from gateway.state.database import Database, Row, Transaction
from gateway.state.errors import UnknownTurn
from gateway.state.sessions import ensure_chat


class ApprovalState(StrEnum):
    """What came of a question. ``EXPIRED`` got no answer in time, ``CLOSED`` lost its turn before it got one."""

    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Approval:
    """One question: may this tool do that? ``subject`` is a command as it would run, or what else would be changed.

    ``answered_by`` is the platform's id of the person whose answer counted, ``None`` where nobody's did;
    ``answer_inbox_id`` is the message it came by.
    """

    id: int
    turn_id: int
    place: Place
    tool: str
    subject: str
    reason: str
    state: ApprovalState
    answered_by: str | None
    answer_inbox_id: int | None
    asked_at: datetime
    answered_at: datetime | None


class Approvals:
    """Keeps questions and their answers."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def ask(self, turn_id: int, place: Place, *, tool: str, subject: str, reason: str) -> Approval:
        """Store a question that a running turn waits for.

        Raises:
            UnknownTurn: the turn does not run (any more), so nobody would wait for the answer.
        """
        async with self._database.transaction() as tx:
            chat = await ensure_chat(tx, place, self._clock)
            rows = await tx.fetch_all(
                "INSERT INTO approvals (turn_id, chat_id, tool, subject, reason, state, asked_at, inbox_mark)"
                " SELECT id, ?, ?, ?, ?, 'pending', ?, (SELECT coalesce(max(id), 0) FROM inbox)"
                " FROM turns WHERE id = ? AND state = 'running' RETURNING id",
                *(chat.id, tool, subject, reason, to_text(self._clock()), turn_id),
            )
            if not rows:
                raise UnknownTurn(turn_id)
            return await _get(tx, int(rows[0]["id"]))

    async def settle(
        self, approval_id: int, state: ApprovalState, *, by: str | None = None, inbox_id: int | None = None
    ) -> Approval:
        """Answer a question that still waits, and give it back as it is then; one that is settled stays as it is.

        ``inbox_id`` is the message that answers, so that a restart does not handle it again.
        """
        async with self._database.transaction() as tx:
            await tx.execute(
                "UPDATE approvals SET state = ?, answered_by = ?, answer_inbox_id = ?, answered_at = ?"
                " WHERE id = ? AND state = 'pending'",
                *(state.value, by, inbox_id, to_text(self._clock()), approval_id),
            )
            return await _get(tx, approval_id)

    async def deny_all(self, place: Place, *, by: str, inbox_id: int | None = None) -> int:
        """Answer all questions of a chat that still wait with no; returns how many there were."""
        async with self._database.transaction() as tx:
            return await tx.execute(
                "UPDATE approvals SET state = 'denied', answered_by = ?, answer_inbox_id = ?, answered_at = ?"
                " WHERE state = 'pending' AND chat_id = (SELECT id FROM chats WHERE adapter = ? AND chat = ?)",
                *(by, inbox_id, to_text(self._clock()), place.adapter, place.chat),
            )

    async def find(self, approval_id: int) -> Approval | None:
        """A question by its number."""
        rows = await self._database.fetch_all(f"{_SELECT} WHERE a.id = ?", approval_id)
        return _approval(rows[0]) if rows else None

    async def pending(self, place: Place, *, seen_by: int | None = None) -> list[Approval]:
        """The questions of a chat that wait, newest first.

        ``seen_by`` names a received message: what was asked after it had come cannot be what it answers.
        """
        rows = await self._database.fetch_all(
            f"{_SELECT} LEFT JOIN inbox i ON i.id = ? WHERE a.state = 'pending' AND c.adapter = ? AND c.chat = ?"
            " AND (i.id IS NULL OR a.inbox_mark < i.id) ORDER BY a.id DESC",
            *(seen_by, place.adapter, place.chat),
        )
        return [_approval(row) for row in rows]


def group_of(approval_id: int) -> str:
    """Name the group of a question's buttons, which one answer uses up."""
    return f"approval-{approval_id}"


async def close(tx: Transaction, turn_id: int, now: datetime) -> None:
    """Close the questions of a turn that ends, and their buttons, inside the transaction that stores its end."""
    await tx.execute(
        "UPDATE approvals SET state = 'closed', answered_at = ? WHERE turn_id = ? AND state = 'pending'",
        *(to_text(now), turn_id),
    )
    for row in await tx.fetch_all("SELECT id FROM approvals WHERE turn_id = ?", turn_id):
        await tx.execute(
            "UPDATE buttons SET spent_by = '' WHERE batch = ? AND spent_by IS NULL", group_of(int(row["id"]))
        )


_SELECT = """
    SELECT a.*, c.adapter, c.chat FROM approvals a JOIN chats c ON c.id = a.chat_id
"""


async def _get(tx: Transaction, approval_id: int) -> Approval:
    row = await tx.fetch_one(f"{_SELECT} WHERE a.id = ?", approval_id)
    if row is None:
        raise AssertionError("a question was written and is not there")
    return _approval(row)


def _approval(row: Row) -> Approval:
    return Approval(
        id=row["id"],
        turn_id=row["turn_id"],
        place=Place(row["adapter"], row["chat"]),
        tool=row["tool"],
        subject=row["subject"],
        reason=row["reason"],
        state=ApprovalState(row["state"]),
        answered_by=row["answered_by"],
        answer_inbox_id=row["answer_inbox_id"],
        asked_at=from_text(row["asked_at"]),
        answered_at=None if row["answered_at"] is None else from_text(row["answered_at"]),
    )
