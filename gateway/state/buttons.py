"""Which command a button stands for, who may press it, and whether it has had its use.

Every button gets a token of its own in the transaction that stores its message, so that one pressed after a restart
means the same. A token is bound to the chat and to the person whose message was answered.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from adapters.contract import Button, Outbound, Place
from gateway.state.clock import Clock, from_text, to_text
from gateway.state.database import Database, Row, Transaction, Value
from gateway.state.errors import ButtonSpent

KEPT = timedelta(days=30)
"""How long a button can be pressed unless the configuration says otherwise."""

TOKEN_BYTES = 16
"""As hexadecimal digits, all that the contract allows."""

ROWS_AT_ONCE = 50
"""Together fewer values than any version of SQLite refuses (999)."""

_COLUMNS = "token, adapter, chat, command, person, answers, outbox_id, once, batch, made_at"


@dataclass(frozen=True, slots=True)
class Bound:
    """What a token stands for.

    ``person`` may press it, ``None`` everybody admitted in ``place``. ``answers`` is the inbox id of the message that
    it answers. One that acts ``once`` is used up by ``spent_by``, the event of the press.
    """

    token: str
    place: Place
    command: str
    person: str | None
    answers: int | None
    once: bool
    spent_by: str | None
    made_at: datetime


class Buttons:
    """The tokens of all buttons. ``kept`` is how long one can be pressed."""

    def __init__(self, database: Database, clock: Clock, kept: timedelta = KEPT) -> None:
        self._database = database
        self._clock = clock
        self._kept = kept

    async def mint(
        self,
        place: Place,
        buttons: Sequence[Button],
        *,
        inbox_id: int | None = None,
        once: bool = False,
        group: str | None = None,
    ) -> tuple[Button, ...]:
        """Make tokens before there is a message; put it in the outbox with these buttons.

        With ``inbox_id`` only whoever sent that message may press them (and admins). With ``once`` a press uses the
        button up, and with it all others of its ``group``.
        """
        made = tuple(replace(button, token=_token()) for button in buttons)
        async with self._database.transaction() as tx:
            person = await _person(tx, inbox_id)
            now = to_text(self._clock())
            await _insert(
                tx,
                [
                    (button.token, *_where(place), button.command, person, inbox_id, None, int(once), group, now)
                    for button in made
                ],
            )
        return made

    async def find(self, token: str) -> Bound | None:
        """What a token stands for, also when it cannot be pressed any more; ``None`` when nobody knows it."""
        row = await self._database.fetch_one("SELECT * FROM buttons WHERE token = ?", token)
        return None if row is None else _bound(row)

    def expired(self, bound: Bound) -> bool:
        """Whether a button is too old to be pressed."""
        return self._clock() - bound.made_at > self._kept

    async def withdraw(self, group: str) -> int:
        """Use up a group without a press, because it was answered in words or in time; returns how many were open."""
        async with self._database.transaction() as tx:
            return await tx.execute("UPDATE buttons SET spent_by = '' WHERE batch = ? AND spent_by IS NULL", group)

    async def expire(self) -> int:
        """Forget buttons that have been too old for as long again; returns how many."""
        limit = to_text(self._clock() - 2 * self._kept)
        async with self._database.transaction() as tx:
            await tx.execute("DELETE FROM lists_answered WHERE shown_at < ?", limit)
            return await tx.execute("DELETE FROM buttons WHERE made_at < ?", limit)


async def bind(tx: Transaction, message: Outbound, *, inbox_id: int | None, outbox_id: int, now: datetime) -> Outbound:
    """Bind the buttons of a message that is being stored, and give it back with their tokens.

    Those that `Buttons.mint` made are bound already and only learn where they are.
    """
    if not message.buttons:
        return message
    tokened = tuple(replace(button, token=button.token or _token()) for button in message.buttons)
    for button in message.buttons:
        if button.token:
            await tx.execute("UPDATE buttons SET outbox_id = ? WHERE token = ?", outbox_id, button.token)
    person = await _person(tx, inbox_id)
    await _insert(
        tx,
        [
            (new.token, *_where(message.place), new.command, person, inbox_id, outbox_id, 0, None, to_text(now))
            for button, new in zip(message.buttons, tokened, strict=True)
            if not button.token
        ],
    )
    return replace(message, buttons=tokened)


async def spend(tx: Transaction, token: str, event_id: str) -> None:
    """Use a button up that acts once, and its group.

    Raises:
        ButtonSpent: it has been used up; the caller's transaction must not be committed.
    """
    used = await tx.fetch_all(
        "UPDATE buttons SET spent_by = ? WHERE token = ? AND spent_by IS NULL RETURNING batch", event_id, token
    )
    if not used:
        raise ButtonSpent(token)
    if used[0]["batch"] is not None:
        await tx.execute(
            "UPDATE buttons SET spent_by = ? WHERE batch = ? AND spent_by IS NULL", event_id, used[0]["batch"]
        )


def _where(place: Place) -> tuple[str, str]:
    return place.adapter, place.chat


async def _person(tx: Transaction, inbox_id: int | None) -> str | None:
    row = None if inbox_id is None else await tx.fetch_one("SELECT user FROM inbox WHERE id = ?", inbox_id)
    return None if row is None else str(row["user"])


async def _insert(tx: Transaction, rows: Sequence[tuple[Value, ...]]) -> None:
    """Insert many rows in few statements: a long list has dozens of buttons, and SQLite takes so many values."""
    for start in range(0, len(rows), ROWS_AT_ONCE):
        some = rows[start : start + ROWS_AT_ONCE]
        marks = ", ".join(f"({', '.join('?' * len(row))})" for row in some)
        values = [value for row in some for value in row]
        await tx.execute(f"INSERT INTO buttons ({_COLUMNS}) VALUES {marks}", *values)  # noqa: S608 - question marks


def _token() -> str:
    return secrets.token_hex(TOKEN_BYTES)


def _bound(row: Row) -> Bound:
    return Bound(
        token=row["token"],
        place=Place(row["adapter"], row["chat"]),
        command=row["command"],
        person=row["person"],
        answers=row["answers"],
        once=bool(row["once"]),
        spent_by=row["spent_by"],
        made_at=from_text(row["made_at"]),
    )
