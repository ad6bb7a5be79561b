"""What is under way in a workspace, written down before it begins so that the next start can finish it.

A restore's journal holds its whole plan. A tool's note says which turn was running and from which state,
and what it was to write, where that is known.
"""

import hashlib
import json
import os
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from engine.host import durable
from engine.model import Entry, Gap, TurnRef, Workspace
from engine.store.gaps import decode_gap, encode_gap
from engine.store.layout import Layout
from engine.store.ledger import LedgerEntry, decode_entry, decode_known, encode_entry, encode_known


@dataclass(frozen=True, slots=True)
class JournalItem:
    """One path of the plan; ``known`` is what the ledger will say of it where the checkpoint does not tell."""

    path: str
    action: str
    now: Entry | None
    target: Entry | None
    why: str
    known: LedgerEntry | None = None


@dataclass(frozen=True, slots=True)
class RestoreJournal:
    """A restore under way: what it restores, what undoes it, each path, and the chat that asked."""

    token: str
    target: str
    safety: str
    everything: bool
    ledger_empty: bool
    replanned: tuple[str, ...]
    items: tuple[JournalItem, ...]
    chat: str = ""


@dataclass(frozen=True, slots=True)
class RunningNote:
    """A tool under way: the state before it and what a checkpoint of that state would be called.

    ``pid`` and ``instance`` name the process. ``commit`` is the state before it, which nothing else names once another
    chat's capture has become the base. ``writes`` is what a file tool is about to put where; a command's is empty.
    ``gaps`` and ``excluded`` are what the state before leaves out.
    """

    turn: TurnRef
    reason: str
    pid: int
    instance: str
    commit: str | None = None
    writes: Mapping[str, Entry | None] = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()
    excluded: frozenset[str] = frozenset()


def write_restore(layout: Layout, workspace: Workspace, journal: RestoreJournal) -> None:
    """Write a restore's journal durably."""
    value = {
        "token": journal.token,
        "target": journal.target,
        "safety": journal.safety,
        "everything": journal.everything,
        "ledger_empty": journal.ledger_empty,
        "replanned": journal.replanned,
        "items": [_encode_item(item) for item in journal.items],
        "chat": journal.chat,
    }
    durable.write_json(layout.journal(workspace.hash), value)


def read_restore(layout: Layout, workspace: Workspace) -> RestoreJournal | None:
    """Return the journal of an interrupted restore.

    Raises:
        ValueError: it is damaged, which an atomic write leaves only to hardware or hands.
    """
    value: Any = durable.read_json(layout.journal(workspace.hash))
    if value is None:
        return None
    try:
        items = tuple(_decode_item(item) for item in value["items"])
        return RestoreJournal(
            value["token"],
            value["target"],
            value["safety"],
            value["everything"],
            value["ledger_empty"],
            tuple(value["replanned"]),
            items,
            value.get("chat", ""),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a journal: {error}") from error


def _encode_item(item: JournalItem) -> list[Any]:
    known = [] if item.known is None else [encode_known(item.known)]
    return [item.path, item.action, encode_entry(item.now), encode_entry(item.target), item.why, *known]


def _decode_item(value: Sequence[Any]) -> JournalItem:
    path, action, now, target, why, *known = value
    entry = decode_known(known[0]) if known else None
    return JournalItem(path, action, decode_entry(now), decode_entry(target), why, entry)


def clear_restore(layout: Layout, workspace: Workspace) -> None:
    """Remove a restore's journal."""
    durable.remove(layout.journal(workspace.hash))


def set_restore_aside(layout: Layout, workspace: Workspace) -> str:
    """Put away a journal that can never be finished, so that it is reported once; return where it is kept."""
    path = layout.journal(workspace.hash)
    aside = f"{path}.{int(time.time())}.given-up"
    os.rename(path, aside)
    durable.sync_directory(os.path.dirname(path))
    return aside


def write_running(layout: Layout, workspace: Workspace, note: RunningNote) -> str:
    """Note that a tool begins, and return where; each chat of each process has a note of its own."""
    turn = [note.turn.chat, note.turn.session, note.turn.turn]
    value = {
        "turn": turn,
        "reason": note.reason,
        "pid": note.pid,
        "instance": note.instance,
        "commit": note.commit,
        "writes": {path: encode_entry(entry) for path, entry in note.writes.items()},
        "gaps": [encode_gap(gap) for gap in note.gaps],
        "excluded": sorted(note.excluded),
    }
    runner = json.dumps([note.instance, note.turn.chat]).encode("ascii")
    path = layout.running(workspace.hash, hashlib.sha256(runner).hexdigest()[:16])
    durable.write_json(path, value)
    return path


def read_running(layout: Layout, workspace: Workspace) -> dict[str, RunningNote]:
    """Return the notes of tools that have not ended, by where they are, oldest first; a damaged one is left out."""
    found = [(path, _read_note(path)) for path in running_paths(layout, workspace)]
    return {path: note for path, note in found if note is not None}


def running_paths(layout: Layout, workspace: Workspace) -> list[str]:
    """Return where the notes of a workspace are, oldest first."""
    directory = os.path.dirname(layout.running(workspace.hash))
    form = re.compile(rf"{re.escape(workspace.hash)}\.running(\.[0-9a-f]+)?\.json")
    try:
        names = [name for name in os.listdir(directory) if form.fullmatch(name)]
    except FileNotFoundError:
        return []
    return sorted((os.path.join(directory, name) for name in names), key=lambda path: (_written_at(path), path))


def _written_at(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except FileNotFoundError:
        return 0  # its tool has just ended


def _read_note(path: str) -> RunningNote | None:
    try:
        value: Any = durable.read_json(path)
        if value is None:
            return None
        writes = {path: decode_entry(entry) for path, entry in value["writes"].items()}
        process = (value["pid"], value["instance"])
        gaps = tuple(decode_gap(gap) for gap in value.get("gaps", ()))
        excluded = frozenset(value.get("excluded", ()))
        return RunningNote(TurnRef(*value["turn"]), value["reason"], *process, value["commit"], writes, gaps, excluded)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        return None


def clear_running(path: str) -> None:
    """Note that a tool has ended.

    Not synced: a note that a power loss brings back tells of a state that its turn's checkpoint holds already.
    """
    with suppress(FileNotFoundError):
        os.unlink(path)


INSTANCE = secrets.token_hex(8)
"""Names this process; in a container a new one may have the number of the old."""


def is_alive(note: RunningNote) -> bool:
    """Whether the process that began a tool still lives."""
    if note.instance == INSTANCE:
        return True
    if note.pid == os.getpid():
        return False
    try:
        os.kill(note.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
