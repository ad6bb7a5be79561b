"""What a look at a workspace found."""

from dataclasses import dataclass

from engine.model import Gap
from engine.store.rows import Rows


@dataclass(frozen=True, slots=True)
class Scan:
    """What a look found.

    ``rows`` is the whole workspace; ``changed`` the paths whose row is new, different or gone compared with the rows
    before; ``gaps`` and ``excluded`` what is there and not in the rows: what cannot be captured, and what is no source,
    a directory for all below it. ``linked`` are those of the files looked at that have several names.
    """

    rows: Rows
    changed: frozenset[str] = frozenset()
    gaps: tuple[Gap, ...] = ()
    excluded: frozenset[str] = frozenset()
    linked: frozenset[str] = frozenset()
