"""Restores as the conversation sees them: what was planned, which head it replaces, and whether it was undone.

A row is written *before* the engine changes a file, and settled together with the session's head in one transaction
afterwards. A row still planned at the next start tells that the process died in between; the engine's journal then
tells what became of the files.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from adapters.contract import Place
from gateway.state.clock import Clock, from_text, to_text
from gateway.state.database import Database, Row, Transaction
from gateway.state.errors import ConversationWentOn, UnknownRestore, UnknownSession
from gateway.state.instances import Instance
from gateway.state.messages import add_note, carry_notes


class RestoreKind(StrEnum):
    """What was asked for; ``FILES`` is a restore of named paths, which leaves the conversation alone."""

    ROLLBACK = "rollback"
    UNDO = "undo"
    REDO = "redo"
    FILES = "files"


class RestoreState(StrEnum):
    """``DONE`` stands, ``UNDONE`` was taken back by a redo, ``REFUSED`` changed nothing."""

    PLANNED = "planned"
    DONE = "done"
    UNDONE = "undone"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Restore:
    """One restore.

    ``checkpoint_id`` is ``None`` when only the conversation moved. ``undoes`` is the id of the restore that a redo
    takes back, ``retries`` that of the turn whose message is run again afterwards. ``stale`` says that a turn was begun
    in the session since, so it can no longer be undone. ``head_moved`` says whether the session's head is, or was, set
    to ``new_head``.
    """

    id: int
    token: str
    session_id: str
    place: Place
    root: str
    checkpoint_id: str | None
    safety_id: str | None
    old_head: int | None
    new_head: int | None
    kind: RestoreKind
    state: RestoreState
    undoes: int | None
    retries: int | None
    stale: bool
    head_moved: bool
    inbox_id: int | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Asked:
    """What a restore is to do, see `Restores.plan`."""

    token: str
    kind: RestoreKind
    new_head: int | None
    checkpoint_id: str | None = None
    undoes: int | None = None
    retries: int | None = None
    inbox_id: int | None = None


class Restores:
    """Plans, settles and finds restores."""

    def __init__(self, database: Database, instance: Instance, clock: Clock) -> None:
        self._database = database
        self._instance = instance
        self._clock = clock

    async def plan(
        self,
        session_id: str,
        *,
        token: str,
        kind: RestoreKind,
        checkpoint_id: str | None,
        new_head: int | None,
        undoes: int | None = None,
        retries: int | None = None,
        inbox_id: int | None = None,
    ) -> Restore:
        """Write down a restore before it is applied. ``token`` is the engine plan's; ``old_head`` is the present head.

        For ``FILES`` pass the present head as ``new_head``. ``undoes`` is the ``id`` of the restore that a redo takes
        back, ``retries`` that of the turn whose message is run again afterwards, also after a crash.

        Raises:
            UnknownSession: there is none by that id.
        """
        asked = Asked(token, kind, new_head, checkpoint_id, undoes, retries, inbox_id)
        async with self._database.transaction() as tx:
            return await self._write_down(tx, session_id, asked)

    async def move(self, session_id: str, asked: Asked, *, old_head: int | None, note: str | None) -> Restore:
        """Move the head alone, from where it was seen: written down, done and told to the agent in one transaction.

        Raises:
            UnknownSession: there is none by that id.
            ConversationWentOn: the head is another by now, or a turn runs; nothing was changed.
        """
        async with self._database.transaction() as tx:
            restore = await self._write_down(tx, session_id, asked)
            running = await tx.fetch_one("SELECT 1 FROM turns WHERE session_id = ? AND state = 'running'", session_id)
            if restore.old_head != old_head or running is not None:
                raise ConversationWentOn(session_id)
            return await self._settle(tx, restore, safety_id=None, note=note, in_part=False)

    async def _write_down(self, tx: Transaction, session_id: str, asked: Asked) -> Restore:
        await tx.insert(
            "INSERT INTO restores (token, session_id, chat_id, inbox_id, workspace_root, checkpoint_id, old_head,"
            " new_head, kind, state, undoes, retries, turn_mark, owner, created_at)"
            " SELECT ?, s.id, s.chat_id, ?, s.root, ?, s.head_turn_id, ?, ?, 'planned', ?, ?,"
            " (SELECT coalesce(max(t.id), 0) FROM turns t WHERE t.session_id = s.id), ?, ?"
            " FROM sessions s WHERE s.id = ?",
            *(asked.token, asked.inbox_id, asked.checkpoint_id, asked.new_head),
            *(asked.kind.value, asked.undoes, asked.retries),
            *(self._instance.id, to_text(self._clock()), session_id),
        )
        restore = await _find(tx, asked.token)
        if restore is None:
            raise UnknownSession(session_id)
        return restore

    async def complete(
        self, token: str, *, safety_id: str | None, note: str | None = None, in_part: bool = False
    ) -> Restore:
        """Settle a planned restore whose files are back: done, head moved, and the agent told, all in one transaction.

        ``note`` is read by the agent before its next turn. What a redo undoes becomes undone. The head only moves from
        where it stood when the restore was planned (see ``head_moved``). ``in_part`` says that not every file is back:
        the head then stays, and what a redo undoes still stands, so that both can be asked for again. A settled restore
        is returned as it is.

        Raises:
            UnknownRestore: none by that token.
        """
        async with self._database.transaction() as tx:
            restore = await _find(tx, token)
            if restore is None:
                raise UnknownRestore(token)
            if restore.state is not RestoreState.PLANNED:
                return restore
            return await self._settle(tx, restore, safety_id=safety_id, note=note, in_part=in_part)

    async def _settle(
        self, tx: Transaction, restore: Restore, *, safety_id: str | None, note: str | None, in_part: bool
    ) -> Restore:
        now = self._clock()
        moved = 0
        if not in_part:
            moved = await tx.execute(
                "UPDATE sessions SET head_turn_id = ? WHERE id = ? AND head_turn_id IS ?",
                *(restore.new_head, restore.session_id, restore.old_head),
            )
        await tx.execute(
            "UPDATE restores SET state = 'done', safety_id = ?, head_moved = ?, settled_at = ? WHERE id = ?",
            *(safety_id, moved, to_text(now), restore.id),
        )
        if restore.undoes is not None and not in_part:
            await tx.execute(
                "UPDATE restores SET state = 'undone', undone_by = ? WHERE id = ?", restore.id, restore.undoes
            )
        if moved:
            await carry_notes(tx, restore.session_id)
        if note is not None:
            await add_note(tx, restore.session_id, note, now=now, restore_id=restore.id)
        return await _get(tx, restore.token)

    async def refuse(self, token: str) -> Restore:
        """Settle a planned restore that changed nothing; the head stays. A settled restore is returned as it is.

        Raises:
            UnknownRestore: none by that token.
        """
        async with self._database.transaction() as tx:
            await tx.execute(
                "UPDATE restores SET state = 'refused', settled_at = ? WHERE token = ? AND state = 'planned'",
                *(to_text(self._clock()), token),
            )
            return await _get(tx, token)

    async def find(self, token: str) -> Restore | None:
        """A restore by its token."""
        rows = await self._database.fetch_all(f"{_SELECT} WHERE r.token = ?", token)
        return _restore(rows[0]) if rows else None

    async def retry_of(self, inbox_id: int) -> int | None:
        """The turn that a message had taken back in order to run it again, ``None`` where it had not got so far."""
        row = await self._database.fetch_one(
            "SELECT retries FROM restores WHERE inbox_id = ? AND state = 'done' AND head_moved AND retries IS NOT NULL",
            inbox_id,
        )
        return None if row is None else int(row["retries"])

    async def latest_undoable(self, session_id: str) -> Restore | None:
        """What ``/redo`` takes back next: the session's newest restore that stands and is not itself a redo.

        Check ``stale`` before using it.
        """
        rows = await self._database.fetch_all(
            f"{_SELECT} WHERE r.session_id = ? AND r.state = 'done' AND r.kind <> 'redo' ORDER BY r.id DESC LIMIT 1",
            session_id,
        )
        return _restore(rows[0]) if rows else None

    async def planned(self) -> list[Restore]:
        """Restores that a dead process left planned, oldest first; each has to be completed or refused."""
        living = await self._instance.living()
        rows = await self._database.fetch_all(f"{_SELECT} WHERE r.state = 'planned' ORDER BY r.id")
        return [_restore(row) for row in rows if row["owner"] not in living]


_SELECT = """
    SELECT r.*, c.adapter, c.chat,
        EXISTS (SELECT 1 FROM turns t WHERE t.session_id = r.session_id AND t.id > r.turn_mark) AS stale
    FROM restores r JOIN chats c ON c.id = r.chat_id
"""


async def _find(tx: Transaction, token: str) -> Restore | None:
    row = await tx.fetch_one(f"{_SELECT} WHERE r.token = ?", token)
    return _restore(row) if row is not None else None


async def _get(tx: Transaction, token: str) -> Restore:
    restore = await _find(tx, token)
    if restore is None:
        raise UnknownRestore(token)
    return restore


def _restore(row: Row) -> Restore:
    return Restore(
        id=row["id"],
        token=row["token"],
        session_id=row["session_id"],
        place=Place(row["adapter"], row["chat"]),
        root=row["workspace_root"],
        checkpoint_id=row["checkpoint_id"],
        safety_id=row["safety_id"],
        old_head=row["old_head"],
        new_head=row["new_head"],
        kind=RestoreKind(row["kind"]),
        state=RestoreState(row["state"]),
        undoes=row["undoes"],
        retries=row["retries"],
        stale=bool(row["stale"]),
        head_moved=bool(row["head_moved"]),
        inbox_id=row["inbox_id"],
        created_at=from_text(row["created_at"]),
    )
