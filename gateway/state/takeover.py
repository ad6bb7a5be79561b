"""What a dead process left behind, taken over at the next start: nothing runs twice, nothing is forgotten.

Its running turns alone are settled earlier where another process lives and is asked for something.

A message that was stored and never begun is handled as if it had just come. A turn that was running is stored as
interrupted, its questions to people as closed. A message that had been begun and left no trace (no turn, no restore, no
session, no answer to a question) is handled again, at most `MAX_ATTEMPTS` times in all, and so is one that had taken
back a turn to run it again and had not come to that. Rows of live processes are never touched.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from adapters.contract import Outbound, Part, Place
from gateway.state.approvals import close
from gateway.state.clock import Clock, to_text
from gateway.state.database import Database, Row, Transaction
from gateway.state.inbox import finish
from gateway.state.instances import Instance
from gateway.state.outbox import put

MAX_ATTEMPTS = 2
"""A message whose handling has ended the process this often is given up, so that it cannot keep the gateway down."""

INTERRUPTED = (
    "⏸ Takeback was ended during this turn, and has started again. The turn is not run again by itself: "
    "/retry runs it anew, /undo takes it back."
)
ENDED = (
    "⏸ The Takeback process that ran this turn has ended. The turn is not run again by itself: "
    "/retry runs it anew, /undo takes it back."
)
CARRIED_OUT = (
    "Takeback was ended right after this had been carried out, and has started again. /status shows where things stand."
)
GIVEN_UP = (
    "Takeback was ended twice while it handled this message, and does not try again. /status shows where things stand."
)


@dataclass(frozen=True, slots=True)
class TakenOver:
    """What a start found: turns now interrupted, messages to be handled, replies to be sent, messages given up."""

    turns: int
    messages: int
    replies: int
    given_up: int


class Takeover:
    """Takes over the rows of dead processes."""

    def __init__(self, database: Database, instance: Instance, clock: Clock) -> None:
        self._database = database
        self._instance = instance
        self._clock = clock

    async def run(self, adapters: Collection[str]) -> TakenOver:
        """Settle what dead processes were doing, then own their open messages and replies of ``adapters``.

        To be called before anything is received, and after the restores of `Restores.planned` have been settled. In one
        transaction: of two processes that start at once, one takes over.
        """
        living = await self._instance.living()
        async with self._database.transaction() as tx:
            turns = len(await self._interrupt_turns(tx, living, INTERRUPTED))
            given_up = await self._settle_begun(tx, living)
            messages = await self._own(tx, _OPEN_MESSAGES, _OWN_MESSAGE, living, adapters)
            replies = await self._own(tx, _OPEN_REPLIES, _OWN_REPLY, living, adapters)
        return TakenOver(turns, messages, replies, given_up)

    async def left_by_dead(self) -> bool:
        """Whether a dead process left a turn running or a restore planned."""
        rows = await self._database.fetch_all(_UNDER_WAY, self._instance.id)
        return bool(rows) and not {row["owner"] for row in rows} <= await self._instance.living()

    async def interrupt(self, serves: Callable[[str], bool]) -> list[Place]:
        """Store the turns of dead processes as interrupted while this one goes on; return the chats that were told.

        ``serves`` says whether replies to a platform are sent here; those of others wait for a start that takes over.
        """
        living = await self._instance.living()
        async with self._database.transaction() as tx:
            return await self._interrupt_turns(tx, living, ENDED, serves)

    async def _interrupt_turns(
        self, tx: Transaction, living: Collection[str], words: str, serves: Callable[[str], bool] | None = None
    ) -> list[Place]:
        rows = await _dead(
            tx,
            "SELECT t.id, t.owner, t.inbox_id, c.adapter, c.chat, i.event_id FROM turns t"
            " JOIN sessions s ON s.id = t.session_id JOIN chats c ON c.id = s.chat_id"
            " LEFT JOIN inbox i ON i.id = t.inbox_id WHERE t.state = 'running' ORDER BY t.id",
            living,
        )
        for row in rows:
            await tx.execute(
                "UPDATE turns SET state = 'interrupted', ended_at = ? WHERE id = ?",
                *(to_text(self._clock()), row["id"]),
            )
            await close(tx, row["id"], self._clock())
            owner = self._instance.id if serves is not None and serves(row["adapter"]) else None
            await self._tell(tx, row, row["inbox_id"], words, owner=owner)
        return [Place(row["adapter"], row["chat"]) for row in rows]

    async def _settle_begun(self, tx: Transaction, living: Collection[str]) -> int:
        rows = await _dead(
            tx,
            "SELECT i.*, EXISTS (SELECT 1 FROM turns t WHERE t.inbox_id = i.id)"
            " OR EXISTS (SELECT 1 FROM restores r WHERE r.inbox_id = i.id AND r.state <> 'refused')"
            " OR EXISTS (SELECT 1 FROM sessions s WHERE s.inbox_id = i.id)"
            " OR EXISTS (SELECT 1 FROM approvals a WHERE a.answer_inbox_id = i.id) AS traced,"
            " EXISTS (SELECT 1 FROM outbox o WHERE o.inbox_id = i.id) AS answered,"
            " EXISTS (SELECT 1 FROM restores r WHERE r.inbox_id = i.id AND r.state = 'done' AND r.head_moved"
            " AND r.retries IS NOT NULL) AND NOT EXISTS (SELECT 1 FROM turns t WHERE t.inbox_id = i.id) AS goes_on"
            " FROM inbox i WHERE i.state = 'running' ORDER BY i.id",
            living,
        )
        given_up = 0
        for row in rows:
            if (row["traced"] or row["answered"]) and not row["goes_on"]:
                await self._tell(tx, row, row["id"], None if row["answered"] else CARRIED_OUT)
            elif row["attempts"] >= MAX_ATTEMPTS:
                await self._tell(tx, row, row["id"], GIVEN_UP)
                given_up += 1
            else:
                await tx.execute("UPDATE inbox SET state = 'new' WHERE id = ?", row["id"])
        return given_up

    async def _tell(
        self, tx: Transaction, row: Row, inbox_id: int | None, words: str | None, *, owner: str | None = None
    ) -> None:
        """Answer a message and mark it as dealt with.

        Without an ``owner`` the answer is still the dead one's, as is all that it left.
        """
        now = self._clock()
        if words is not None:
            message = Outbound(Place(row["adapter"], row["chat"]), (Part(words),), reply_to=row["event_id"])
            await put(tx, message, inbox_id=inbox_id, owner=owner or row["owner"], now=now)
        if inbox_id is not None:
            await finish(tx, inbox_id, now)

    async def _own(
        self, tx: Transaction, query: str, update: str, living: Collection[str], adapters: Collection[str]
    ) -> int:
        rows = await _dead(tx, query, living)
        mine = [row["id"] for row in rows if row["adapter"] in adapters]
        for row_id in mine:
            await tx.execute(update, self._instance.id, row_id)
        return len(mine)


_UNDER_WAY = """
    SELECT owner FROM turns WHERE state = 'running' AND owner <> ?1
    UNION SELECT owner FROM restores WHERE state = 'planned' AND owner <> ?1
"""
_OPEN_MESSAGES = "SELECT id, owner, adapter FROM inbox WHERE state = 'new'"
_OWN_MESSAGE = "UPDATE inbox SET owner = ? WHERE id = ?"
_OPEN_REPLIES = "SELECT id, owner, adapter FROM outbox WHERE state = 'pending'"
_OWN_REPLY = "UPDATE outbox SET owner = ? WHERE id = ?"


async def _dead(tx: Transaction, query: str, living: Collection[str]) -> list[Row]:
    """Keep the rows whose owner is dead."""
    return [row for row in await tx.fetch_all(query) if row["owner"] not in living]
