"""Pairing from outside the running gateway: each call opens the database, and the gateway finds what it changed."""

from gateway.state.access import Admission, Admissions, Role
from gateway.state.clock import utc_now
from gateway.state.database import open_database

OPERATOR = "operator"
"""Who admitted, where somebody at the machine did."""


async def redeem(path: str, code: str, role: Role) -> Admission | None:
    """Admit the person whom a code was given to; ``None`` when no such code is open.

    Raises:
        StateError: the database cannot be used.
    """
    async with open_database(path) as database:
        return await Admissions(database, utc_now).redeem(code, role, by=OPERATOR)


async def read_admissions(path: str) -> list[Admission]:
    """Everybody who was admitted by a code.

    Raises:
        StateError: the database cannot be used.
    """
    async with open_database(path) as database:
        return await Admissions(database, utc_now).all()


async def remove(path: str, adapter: str, user: str) -> bool:
    """Admit a person no longer; false when they were not admitted by a code.

    Raises:
        StateError: the database cannot be used.
    """
    async with open_database(path) as database:
        return await Admissions(database, utc_now).remove(adapter, user)
