"""What was done to a path, in order: by which chat, from what to what, and whose changes were in it before and after.

Read off the ledger. What stands between two acts without being either's is a person's doing.
"""

from collections.abc import Collection
from dataclasses import dataclass

from engine.model import Entry
from engine.store.ledger import Ledger, LedgerEntry, Record, RestoreRecord, entry_of


@dataclass(frozen=True, slots=True)
class Act:
    """One change of one path, by a tool or by a restore (``turn`` is ``None`` then).

    ``known`` is false where the ledger is too old to say what stood there before. ``live_before`` and ``live_after``
    are the records whose change was in the content, as in `LedgerEntry`.
    """

    number: int
    chat: str
    turn: str | None
    before: Entry | None
    after: Entry | None
    known: bool
    live_before: tuple[int, ...]
    live_after: tuple[int, ...]

    @property
    def by_tool(self) -> bool:
        """Whether a tool did it."""
        return self.turn is not None


def acts_on(ledger: Ledger, paths: Collection[str]) -> dict[str, list[Act]]:
    """Return the acts on each of these paths, oldest first; a path without any is left out."""
    found = {}
    for path in paths:
        acts: list[Act] = []
        earlier: LedgerEntry | None = None
        for record in ledger.records_on(path):
            made = entry_of(record, path, earlier)
            acts.append(_act(record, path, earlier, made))
            earlier = made
        if acts:
            found[path] = acts
    return found


def _act(record: Record, path: str, earlier: LedgerEntry | None, made: LedgerEntry) -> Act:
    return Act(
        record.number,
        record.chat,
        None if isinstance(record, RestoreRecord) else record.turn,
        record.before.get(path),
        made.state,
        path in record.before,
        earlier.live if earlier else (),
        made.live,
    )
