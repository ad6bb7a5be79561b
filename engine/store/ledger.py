"""The ledger of a workspace: a log of what the agent wrote and what restores put back, and what that adds up to.

One JSON object a line, appended and synced, never rewritten in place; a torn last line is one that was never written.
Each record has a number, so that a checkpoint can say how much of the ledger existed when it was taken.
"""

import json
import os
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, NamedTuple

from engine.model import ChangeStats, Entry, EntryKind

_LONGEST_END_BYTES = 4096


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """What was last put at a path by Takeback; ``state`` is ``None`` for a deletion.

    ``chat`` and ``turn`` name the writer. ``restored_from`` is the sequence of the checkpoint a restore took it from
    when the agent was not the author of that content; ``None`` for the agent's own content. ``live`` are the numbers
    of the tools' records whose change is still in that content, oldest first: what was taken back is not among them.
    """

    state: Entry | None
    chat: str
    turn: str
    restored_from: int | None = None
    live: tuple[int, ...] = ()

    @property
    def by_agent(self) -> bool:
        """Whether the content is the agent's own."""
        return self.restored_from is None


@dataclass(frozen=True, slots=True)
class WriteRecord:
    """What one tool call changed in which place, and from what; ``stats`` adds up the turn so far.

    ``uncaptured`` says of those paths where something stood before that no capture holds why that is; ``unreached``
    where it put what was captured until then out of the reach of captures, all below a path too, and why it is.
    """

    number: int
    chat: str
    session: str
    turn: str
    checkpoint: str | None
    after: str | None
    changes: dict[str, Entry | None]
    stats: ChangeStats | None = None
    before: dict[str, Entry | None] = field(default_factory=dict)
    uncaptured: dict[str, str] = field(default_factory=dict)
    unreached: dict[str, str] = field(default_factory=dict)
    place: int = 0


@dataclass(frozen=True, slots=True)
class RestoreRecord:
    """What one restore put back, by its token, for which chat, in which place, and instead of what."""

    number: int
    token: str
    target: str
    safety: str | None
    entries: dict[str, LedgerEntry]
    report: dict[str, Any]
    chat: str = ""
    before: dict[str, Entry | None] = field(default_factory=dict)
    place: int = 0


Record = WriteRecord | RestoreRecord


class _Touch(NamedTuple):
    """A record that touched a path, and the touch before it."""

    record: Record
    earlier: "_Touch | None"


@dataclass(frozen=True, slots=True)
class Lost:
    """A line that is no record: the number of the last record before it, and what is wrong with it."""

    after: int
    why: str


@dataclass(slots=True)
class Ledger:
    """All records, and the sum of those made ``here`` (see `Store.place`); ``lost`` is the newest unreadable line."""

    records: list[Record] = field(default_factory=list)
    entries: dict[str, LedgerEntry] = field(default_factory=dict)
    agent_wrote: bool = False
    lost: Lost | None = None
    here: int = 0
    _touches: dict[str, _Touch] = field(default_factory=dict, compare=False, repr=False)

    def copy(self) -> "Ledger":
        """Return a ledger of the same records, to which others can be added."""
        records, entries, touches = self.records.copy(), self.entries.copy(), self._touches.copy()
        return Ledger(records, entries, self.agent_wrote, self.lost, self.here, touches)

    @property
    def number(self) -> int:
        """The number of the last record."""
        return self.records[-1].number if self.records else 0

    @property
    def empty(self) -> bool:
        """Whether the agent never wrote anything, so that nothing tells its files from a person's."""
        return not self.agent_wrote and self.lost is None

    def add(self, record: Record) -> None:
        """Take a record into the sum."""
        self.records.append(record)
        self.agent_wrote = self.agent_wrote or isinstance(record, WriteRecord)
        if record.place != self.here:
            return
        made = entries_of(record, self.entries)
        self.entries.update(made)
        for path in made:
            self._touches[path] = _Touch(record, self._touches.get(path))

    def records_on(self, path: str) -> list[Record]:
        """Return the records that touched a path, oldest first."""
        found = []
        touch = self._touches.get(path)
        while touch is not None:
            found.append(touch.record)
            touch = touch.earlier
        found.reverse()
        return found

    def _after(self, number: int) -> list[Record]:
        since = self.records[bisect_right(self.records, number, key=lambda record: record.number) :]
        return [record for record in since if record.place == self.here]

    def present(self) -> list[str]:
        """Return the paths where the last thing put was content: they are known, whatever rules hide them by now."""
        return [path for path, entry in self.entries.items() if entry.state is not None]

    def written_after(self, number: int) -> frozenset[str]:
        """Return the paths that tools changed after a record."""
        writes = (record for record in self._after(number) if isinstance(record, WriteRecord))
        return frozenset(path for write in writes for path in write.changes)

    def uncaptured_after(self, number: int) -> dict[str, str]:
        """Return the paths where tools, after a record, changed what no capture holds, with the newest reason."""
        writes = (record for record in self._after(number) if isinstance(record, WriteRecord))
        return {path: why for write in writes for path, why in write.uncaptured.items()}

    def unreached_after(self, number: int) -> frozenset[str]:
        """Return where tools, after a record, put what was captured out of the reach of captures."""
        writes = (record for record in self._after(number) if isinstance(record, WriteRecord))
        return frozenset(path for write in writes for path in write.unreached)

    def put_after(self, number: int) -> dict[str, Entry | None]:
        """Return what tools and restores put where after a record."""
        put: dict[str, Entry | None] = {}
        for record in self._after(number):
            put.update((path, entry.state) for path, entry in entries_of(record, {}).items())
        return put

    def as_of(self, number: int, paths: Iterable[str]) -> dict[str, LedgerEntry]:
        """Return what the records up to ``number`` add up to at these paths."""
        entries: dict[str, LedgerEntry] = {}
        for path in paths:
            for record in self.records_on(path):
                if record.number <= number:
                    entries[path] = entry_of(record, path, entries.get(path))
        return entries

    def writes_of(self, turns: Iterable[str]) -> list[WriteRecord]:
        """Return what these turns wrote, in order."""
        wanted = set(turns)
        return [record for record in self.records if isinstance(record, WriteRecord) and record.turn in wanted]

    def knows_checkpoint(self, checkpoint: str) -> bool:
        """Whether a tool has changed something after this checkpoint, in its turn."""
        return any(isinstance(record, WriteRecord) and record.checkpoint == checkpoint for record in self.records)

    def knows_session(self, session: str) -> bool:
        """Whether a tool of this session has changed something."""
        return any(isinstance(record, WriteRecord) and record.session == session for record in self.records)

    def restore_by(self, token: str) -> RestoreRecord | None:
        """Return the record of a restore."""
        return next((r for r in self.records if isinstance(r, RestoreRecord) and r.token == token), None)

    def stats_of(self) -> dict[str, ChangeStats]:
        """Return, per checkpoint id, what its turn changed."""
        known: dict[str, ChangeStats] = {}
        for record in self.records:
            if isinstance(record, WriteRecord) and record.checkpoint and record.stats:
                known[record.checkpoint] = record.stats
        return known


def entries_of(record: Record, before: Mapping[str, LedgerEntry]) -> dict[str, LedgerEntry]:
    """Return the entries that a record makes of those before it."""
    if isinstance(record, RestoreRecord):
        return record.entries
    return {path: entry_of(record, path, before.get(path)) for path in record.changes}


def entry_of(record: Record, path: str, before: LedgerEntry | None) -> LedgerEntry:
    """Return the entry that a record makes, at a path that it touches, of the one before it."""
    if isinstance(record, RestoreRecord):
        return record.entries[path]
    live = (*before.live, record.number) if before else (record.number,)
    return LedgerEntry(record.changes[path], record.chat, record.turn, live=live)


@dataclass(frozen=True, slots=True)
class Reading:
    """A ledger that was read, up to which byte of which file, and the end of the last line, which ends there."""

    ledger: Ledger = field(default_factory=Ledger)
    inode: int = 0
    end: int = 0
    last: bytes = b""


def load_ledger(path: str) -> Ledger:
    """Read a ledger; a missing one is empty, a torn last line is left out.

    Raises:
        ValueError: a line before the last one is not a record.
    """
    ledger = read_on(path, Reading()).ledger
    if ledger.lost is not None:
        raise ValueError(ledger.lost.why)
    return ledger


def read_on(path: str, before: Reading) -> Reading:
    """Read what was appended to a ledger since, or all of it where it is not the one that was read before.

    The ledger read before stays as it is; the one returned goes on from it. A line that is no record is passed over,
    and noted: what it said is lost, and the rest is not to be lost with it.
    """
    try:
        with open(path, "rb") as stream:
            return _read_stream(stream, before)
    except FileNotFoundError:
        return Reading(Ledger(here=before.ledger.here))


def _read_stream(stream: BinaryIO, before: Reading) -> Reading:
    inode = os.fstat(stream.fileno()).st_ino
    stream.seek(before.end - len(before.last))
    goes_on = before.end > 0 and before.inode == inode and stream.read(len(before.last)) == before.last
    anew = Ledger(here=before.ledger.here)
    ledger, end, last = (before.ledger.copy(), before.end, before.last) if goes_on else (anew, 0, b"")
    stream.seek(end)
    for line in stream:
        if line.endswith(b"\n"):
            try:
                ledger.add(_decode(json.loads(line)))
            except (ValueError, LookupError, TypeError, AttributeError) as error:
                ledger.lost = Lost(ledger.number, str(error))
            end, last = end + len(line), line[-_LONGEST_END_BYTES:]
    return Reading(ledger, inode, end, last)


def append_record(path: str, record: Record) -> None:
    """Append one record durably.

    Raises:
        OSError: the ledger is as it was, but for a torn last line that reading leaves out.
    """
    line = json.dumps(_encode(record), separators=(",", ":")).encode("ascii") + b"\n"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    try:
        _cut_torn_line(descriptor)
        view = memoryview(line)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _cut_torn_line(descriptor: int) -> None:
    """Drop what a crash or a full disk left after the last newline."""
    size = os.fstat(descriptor).st_size
    end = size
    while end > 0:
        start = max(0, end - 65536)
        block = os.pread(descriptor, end - start, start)
        newline = block.rfind(b"\n")
        if newline >= 0:
            end = start + newline + 1
            break
        end = start
    if end != size:
        os.ftruncate(descriptor, end)


def encode_entry(entry: Entry | None) -> list[Any] | None:
    """Return an entry as JSON holds it."""
    return None if entry is None else [entry.kind.value, entry.mode, entry.oid]


def decode_entry(value: Sequence[Any] | None) -> Entry | None:
    """Return an entry from what `encode_entry` made."""
    return None if value is None else Entry(EntryKind(value[0]), value[1], value[2])


def encode_known(entry: LedgerEntry) -> list[Any]:
    """Return a ledger's entry as JSON holds it."""
    return [encode_entry(entry.state), entry.chat, entry.turn, entry.restored_from, list(entry.live)]


def decode_known(value: Sequence[Any]) -> LedgerEntry:
    """Return a ledger's entry from what `encode_known` made; an older one ends before ``live``."""
    state, chat, turn, restored_from, *live = value
    return LedgerEntry(decode_entry(state), chat, turn, restored_from, tuple(live[0]) if live else ())


def _encode_all(entries: Mapping[str, Entry | None]) -> dict[str, list[Any] | None]:
    return {path: encode_entry(entry) for path, entry in entries.items()}


def _decode_all(value: Mapping[str, Sequence[Any] | None]) -> dict[str, Entry | None]:
    return {path: decode_entry(entry) for path, entry in value.items()}


def _encode(record: Record) -> dict[str, Any]:
    if isinstance(record, WriteRecord):
        return {
            "n": record.number,
            "type": "write",
            "chat": record.chat,
            "session": record.session,
            "turn": record.turn,
            "checkpoint": record.checkpoint,
            "after": record.after,
            "changes": _encode_all(record.changes),
            "stats": None
            if record.stats is None
            else [record.stats.files, record.stats.insertions, record.stats.deletions],
            "before": _encode_all(record.before),
            "uncaptured": record.uncaptured,
            "unreached": record.unreached,
            "place": record.place,
        }
    return {
        "n": record.number,
        "type": "restore",
        "token": record.token,
        "target": record.target,
        "safety": record.safety,
        "entries": {path: encode_known(entry) for path, entry in record.entries.items()},
        "report": record.report,
        "chat": record.chat,
        "before": _encode_all(record.before),
        "place": record.place,
    }


def _decode(value: dict[str, Any]) -> Record:
    if value["type"] == "write":
        stats = value["stats"]
        return WriteRecord(
            value["n"],
            value["chat"],
            value["session"],
            value["turn"],
            value["checkpoint"],
            value["after"],
            _decode_all(value["changes"]),
            None if stats is None else ChangeStats(*stats),
            _decode_all(value.get("before", {})),
            value.get("uncaptured", {}),
            value.get("unreached", {}),
            value.get("place", 0),
        )
    return RestoreRecord(
        value["n"],
        value["token"],
        value["target"],
        value["safety"],
        {path: decode_known(entry) for path, entry in value["entries"].items()},
        value["report"],
        value.get("chat", ""),
        _decode_all(value.get("before", {})),
        value.get("place", 0),
    )
