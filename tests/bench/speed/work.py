"""What is measured: the pieces of work, by the names that the table shows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median


class Work(StrEnum):
    """A piece of work, as whole turns: from the message to the word that it is done."""

    FIRST = "first checkpoint"
    TURN = "turn that changes one file"
    NOTHING = "command that changes nothing"
    CHURN = "command that changes 10 % of the files"
    LIST = "/rollback (20 listed)"
    DIFF = "/rollback diff N, one file differs"
    RESTORE = "/rollback N, one file differs"


@dataclass
class Taken:
    """How long each piece of work took on one tree, in seconds, run after run, and what it left or started.

    ``processes`` counts the git processes of one run of it; ``store_bytes`` is the store after the first checkpoint.
    """

    seconds: dict[Work, list[float]] = field(default_factory=dict)
    processes: dict[Work, int] = field(default_factory=dict)
    store_bytes: int = 0

    def add(self, work: Work, seconds: float) -> None:
        """Note one run."""
        self.seconds.setdefault(work, []).append(seconds)

    def median_s(self, work: Work) -> float | None:
        """Return the usual time, ``None`` where the work was not run."""
        runs = self.seconds.get(work)
        return median(runs) if runs else None


def ratios(ours: Taken, other: Taken) -> Mapping[Work, float]:
    """Return our time by another's, where both did the work."""
    pairs = ((work, ours.median_s(work), other.median_s(work)) for work in Work)
    return {work: mine / theirs for work, mine, theirs in pairs if mine is not None and theirs}
