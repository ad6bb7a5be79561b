"""What a prune did, or would do, as a value to print."""

from dataclasses import dataclass
from enum import StrEnum

from engine.checkpoints.scan import megabytes
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


def over_cap_note(cap_bytes: int, excess_bytes: int) -> str:
    """Return the sentence for a store that no rule can bring under its cap."""
    return (
        f"the store stays {megabytes(excess_bytes)} over its cap of {megabytes(cap_bytes)}: every workspace "
        "keeps one checkpoint, and open sessions keep their beginning. Raise checkpoints.max_total_size_mb, or clear "
        "what is not needed: gateway checkpoints clear"
    )
