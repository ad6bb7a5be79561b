"""Who was admitted by pairing, and the codes that people who ask to be admitted have been given.

Whom the configuration admits is not kept here. A code is kept as a salted digest, for `CODE_LIFETIME`, and admits the
person it was given to, once. Other processes (``gateway pair``) write here too, so nothing is kept in memory.
"""

import hashlib
import hmac
import secrets
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from adapters.contract import Outbound, Part, Place
from gateway.state.clock import Clock, from_text, to_text
from gateway.state.database import Database, Row, Transaction
from gateway.state.outbox import put

CODE_ALPHABET = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"
"""Nothing that looks like something else: no 0 and O, no 1 and I."""

CODE_CHARACTERS = 8
CODE_LIFETIME = timedelta(minutes=10)

CODES_OF_ONE = 3
"""Open codes of one person: who asks again has the newer ones, and an operator may be typing the one before."""

CODES_OF_ALL = 100
"""Open codes on one platform: strangers must not fill the database."""


class Role(StrEnum):
    """What an admitted person may do: admins admit others."""

    ADMIN = "admin"
    USER = "user"


@dataclass(frozen=True, slots=True)
class Admission:
    """Somebody who was admitted by pairing; ``chat`` is where they asked."""

    adapter: str
    user: str
    role: Role
    chat: str
    admitted_by: str
    admitted_at: datetime


class Admissions:
    """People admitted by pairing, and those who ask to be."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def role(self, adapter: str, user: str) -> Role | None:
        """What a person was admitted as, ``None`` when they were not."""
        row = await self._database.fetch_one(
            "SELECT role FROM admissions WHERE adapter = ? AND user = ?", adapter, user
        )
        return None if row is None else Role(row["role"])

    async def all(self) -> list[Admission]:
        """Everybody, by platform and time."""
        rows = await self._database.fetch_all("SELECT * FROM admissions ORDER BY adapter, admitted_at, user")
        return [_admission(row) for row in rows]

    async def issue(self, place: Place, user: str) -> str | None:
        """Give a person a new code, which is kept nowhere else; ``None`` while too many others have one."""
        code = "".join(secrets.choice(CODE_ALPHABET) for _ in range(CODE_CHARACTERS))
        salt = secrets.token_bytes(16)
        now = self._clock()
        async with self._database.transaction() as tx:
            await tx.execute("DELETE FROM pairing_codes WHERE NOT (expires_at > ? AND expires_at <= ?)", *_open_at(now))
            await tx.execute(
                "DELETE FROM pairing_codes WHERE adapter = ? AND user = ? AND id NOT IN"
                " (SELECT id FROM pairing_codes WHERE adapter = ? AND user = ? ORDER BY id DESC LIMIT ?)",
                *(place.adapter, user, place.adapter, user, CODES_OF_ONE - 1),
            )
            row = await tx.fetch_one("SELECT count(*) AS n FROM pairing_codes WHERE adapter = ?", place.adapter)
            if row is not None and row["n"] >= CODES_OF_ALL:
                return None
            await tx.execute(
                "INSERT INTO pairing_codes (adapter, chat, user, salt, digest, expires_at) VALUES (?, ?, ?, ?, ?, ?)",
                *(place.adapter, place.chat, user, salt, _digest(salt, code), to_text(now + CODE_LIFETIME)),
            )
        return code

    async def redeem(
        self,
        code: str,
        role: Role,
        *,
        by: str,
        answer: Callable[[Admission], Outbound] | None = None,
        inbox_id: int | None = None,
        owner: str = "",
    ) -> Admission | None:
        """Admit the person whom a code was given to; ``None`` when no such code is open.

        Somebody who is admitted already gets the role. They are told by whoever serves their platform, see `tell`. An
        ``answer`` to the message ``inbox_id`` is stored together with it, so that no crash comes in between.
        """
        now = self._clock()
        async with self._database.transaction() as tx:
            rows = await tx.fetch_all(
                "SELECT * FROM pairing_codes WHERE expires_at > ? AND expires_at <= ? ORDER BY id", *_open_at(now)
            )
            found = _matching(rows, normal(code))
            if found is None:
                return None
            await tx.execute(
                "DELETE FROM pairing_codes WHERE adapter = ? AND user = ?", found["adapter"], found["user"]
            )
            admission = Admission(found["adapter"], found["user"], role, found["chat"], by, now)
            await tx.execute(
                "INSERT OR REPLACE INTO admissions (adapter, user, role, chat, admitted_by, admitted_at)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                *(admission.adapter, admission.user, role.value, admission.chat, by, to_text(now)),
            )
            if answer is not None:
                await put(tx, answer(admission), inbox_id=inbox_id, owner=owner, now=now)
        return admission

    async def remove(self, adapter: str, user: str) -> bool:
        """Admit a person no longer; false when they were not admitted by pairing."""
        async with self._database.transaction() as tx:
            removed = await tx.execute("DELETE FROM admissions WHERE adapter = ? AND user = ?", adapter, user)
        return removed > 0

    async def tell(self, adapters: Collection[str], words: Callable[[Role], str], *, owner: str) -> list[Place]:
        """Store a message for everybody who was admitted on ``adapters`` and not told yet; returns where to.

        ``owner`` is the process that sends them.
        """
        if not await self._untold(adapters):
            return []
        async with self._database.transaction() as tx:
            return [await self._tell(tx, row, words, owner) for row in await self._untold(adapters, tx)]

    async def _untold(self, adapters: Collection[str], tx: Transaction | None = None) -> list[Row]:
        rows = await (tx or self._database).fetch_all("SELECT * FROM admissions WHERE told_at IS NULL")
        return [row for row in rows if row["adapter"] in adapters]

    async def _tell(self, tx: Transaction, row: Row, words: Callable[[Role], str], owner: str) -> Place:
        place = Place(row["adapter"], row["chat"])
        now = self._clock()
        message = Outbound(place, (Part(words(Role(row["role"]))),))
        await put(tx, message, inbox_id=None, owner=owner, now=now)
        await tx.execute(
            "UPDATE admissions SET told_at = ? WHERE adapter = ? AND user = ?",
            *(to_text(now), row["adapter"], row["user"]),
        )
        return place


def normal(code: str) -> str:
    """A code as it was made, however somebody typed it."""
    return "".join(code.split()).replace("-", "").upper()


def _open_at(now: datetime) -> tuple[str, str]:
    """Between which times an open code expires: one that is good for longer was given before the clock was set back."""
    return to_text(now), to_text(now + CODE_LIFETIME)


def _matching(rows: Collection[Row], code: str) -> Row | None:
    """Find the code; how long that takes says nothing about it, as every digest is compared, whole."""
    matching = [row for row in rows if hmac.compare_digest(row["digest"], _digest(row["salt"], code))]
    return matching[0] if matching else None


def _digest(salt: bytes, code: str) -> bytes:
    return hashlib.sha256(salt + code.encode("utf-8", "surrogatepass")).digest()


def _admission(row: Row) -> Admission:
    return Admission(
        adapter=row["adapter"],
        user=row["user"],
        role=Role(row["role"]),
        chat=row["chat"],
        admitted_by=row["admitted_by"],
        admitted_at=from_text(row["admitted_at"]),
    )
