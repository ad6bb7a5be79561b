"""``.last_prune``: when the store was last pruned and what that gave, so that the next tick knows whether it is due."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from engine.host import durable
from engine.store.layout import Layout


@dataclass(frozen=True, slots=True)
class LastPrune:
    """The last prune that ran to its end, whether or not all of it went well."""

    at: datetime
    dropped: int = 0
    freed_bytes: int = 0
    errors: int = 0


def read_marker(layout: Layout) -> LastPrune | None:
    """Return the last prune, ``None`` if there was none or its marker is torn or cannot be read."""
    try:
        value: Any = durable.read_json(layout.last_prune)
        if value is None:
            return None
        at = datetime.fromisoformat(value["at"])
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
        return LastPrune(at, int(value["dropped"]), int(value["freed_bytes"]), int(value["errors"]))
    except (ValueError, KeyError, TypeError, OverflowError, OSError):
        return None


def write_marker(layout: Layout, last: LastPrune) -> None:
    """Note a prune."""
    value = {
        "at": last.at.isoformat(timespec="seconds"),
        "dropped": last.dropped,
        "freed_bytes": last.freed_bytes,
        "errors": last.errors,
    }
    durable.write_json(layout.last_prune, value)


def due(layout: Layout, min_interval_hours: float, now: datetime | None = None) -> bool:
    """Whether the last prune is ``min_interval_hours`` or longer ago.

    A marker from the future, which a clock set back leaves, counts as none: else nothing would be pruned for as long.
    """
    last = read_marker(layout)
    if last is None:
        return True
    age = (now or datetime.now(UTC)) - last.at
    return age < timedelta(0) or age >= timedelta(hours=min_interval_hours)
