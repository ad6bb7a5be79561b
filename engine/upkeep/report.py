"""What a prune did, or would do, as a value to print."""

from dataclasses import dataclass
from enum import StrEnum

from engine.upkeep.figures import sized
from engine.upkeep.holdings import OverCap
from engine.upkeep.retention import Decision, Kept


class Outcome(StrEnum):
    """How a prune ended."""

    DONE = "done"
    PARTLY = "partly failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class PruneReport:
    """What a prune dropped, kept and freed; of a dry run, what it would drop and about how much that would free.

    Sizes are those of the store and its archives in bytes. ``errors`` are sentences, one per step that failed.
    ``over_cap`` is set where the rules cannot bring the store under its cap; ``notes`` then say so, too.
    """

    dry_run: bool = False
    decisions: tuple[Decision, ...] = ()
    kept: tuple[Kept, ...] = ()
    errors: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    swept: tuple[str, ...] = ()
    before_bytes: int = 0
    after_bytes: int = 0
    cancelled: bool = False
    over_cap: OverCap | None = None

    @property
    def freed_bytes(self) -> int:
        """How much smaller the store is."""
        return max(self.before_bytes - self.after_bytes, 0)

    @property
    def outcome(self) -> Outcome:
        """Whether all went well."""
        if self.errors:
            return Outcome.PARTLY
        return Outcome.CANCELLED if self.cancelled else Outcome.DONE


def debris_note(waiting_bytes: int, cap_bytes: int) -> str:
    """Return what to say of a store that is over its cap only by what killed processes left there lately."""
    return (
        f"the store is over its cap of {sized(cap_bytes)} by what processes left that were killed "
        f"({sized(waiting_bytes)}); a prune removes that once it is an hour old, and drops nothing for it"
    )
