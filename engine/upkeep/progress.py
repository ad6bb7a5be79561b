"""How long work says how far it is, and how it is asked to stop."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """How far one stretch of work is.

    ``total`` is ``None`` where the end is not known. ``size_bytes`` is what a prune has freed or a verify has read.
    """

    what: str
    done: int
    total: int | None = None
    size_bytes: int = 0


Progress = Callable[[Step], None]
"""Called in the working thread, at most a few times a second; what it raises ends the work."""

Cancelled = Callable[[], bool]
"""Asked between two steps; the step under way is always finished."""


def unheard(step: Step) -> None:
    """Tell nobody."""


def never() -> bool:
    """Go on."""
    return False
