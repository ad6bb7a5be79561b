"""What is worth measuring in a running gateway, as values; who counts them is somebody else's business.

Whoever measures calls a `Note` with one of these. None carries content, a person or a chat: they may be shown to
whoever watches the machine.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """A turn's end is stored; ``state`` is how it ended."""

    state: str
    seconds: float


@dataclass(frozen=True, slots=True)
class ToolGuarded:
    """How long a tool waited for what guards it: the captures before and after, and the checkpoint."""

    seconds: float


@dataclass(frozen=True, slots=True)
class ReplySent:
    """A reply has reached its platform."""

    adapter: str


@dataclass(frozen=True, slots=True)
class ReplyDelayed:
    """A reply did not reach its platform and is tried again."""

    adapter: str


@dataclass(frozen=True, slots=True)
class ReplyLost:
    """A reply was given up."""

    adapter: str


@dataclass(frozen=True, slots=True)
class Refused:
    """A message was refused because of who sent it."""

    adapter: str


@dataclass(frozen=True, slots=True)
class AdapterFailed:
    """An adapter ended although its platform has more to give; ``again`` is whether it is started again."""

    adapter: str
    again: bool


@dataclass(frozen=True, slots=True)
class LoopLag:
    """How late the event loop came to something that was due."""

    seconds: float


@dataclass(frozen=True, slots=True)
class StoreMeasured:
    """How large the checkpoint store is."""

    store_bytes: int
    workspaces: int
    checkpoints: int


@dataclass(frozen=True, slots=True)
class Pruned:
    """What a prune did; ``outcome`` is how it ended."""

    outcome: str
    dropped: int
    freed_bytes: int
    errors: int


@dataclass(frozen=True, slots=True)
class RowsExpired:
    """How many rows of one kind a pass of housekeeping forgot or ended."""

    kind: str
    rows: int


@dataclass(frozen=True, slots=True)
class Ticked:
    """A pass of housekeeping; ``failures`` counts the parts of it that went wrong."""

    seconds: float
    failures: int


Measure = (
    TurnEnded
    | ToolGuarded
    | ReplySent
    | ReplyDelayed
    | ReplyLost
    | Refused
    | AdapterFailed
    | LoopLag
    | StoreMeasured
    | Pruned
    | RowsExpired
    | Ticked
)


@dataclass(frozen=True, slots=True)
class Levels:
    """What stands where at one moment; ``connected`` is by adapter whether messages are taken in."""

    turns_running: int
    messages_waiting: int
    replies_waiting: int
    connected: Mapping[str, bool]


Note = Callable[[Measure], None]
"""Takes a measure; quick, from any thread, and never raises."""


def unnoted(_measure: Measure) -> None:
    """Count nothing."""
