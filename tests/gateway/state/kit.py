"""Two places, a message, and a clock that a test moves."""

from datetime import UTC, datetime, timedelta

from adapters.contract import Inbound, Place

HERE = Place("console", "here")
THERE = Place("console", "there")


class MovedClock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 16, 4, 36, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def advance(self, span: timedelta) -> None:
        self.now += span


def message(text: str, event_id: str, place: Place = HERE) -> Inbound:
    return Inbound(place, "u1", event_id, text)
