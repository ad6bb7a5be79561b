"""The time as the database writes it: UTC text of one fixed width, so that text order is time order."""

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]
"""Gives the time now, with a time zone."""


def utc_now() -> datetime:
    """The machine's time, in UTC."""
    return datetime.now(UTC)


def to_text(moment: datetime) -> str:
    """``2026-03-16T04:36:00.000000Z``."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def from_text(text: str) -> datetime:
    """The moment that `to_text` wrote."""
    return datetime.fromisoformat(text)
