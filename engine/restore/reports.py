"""The report of a restore: every path named, as a value and as the ledger keeps it."""

from datetime import UTC, datetime
from typing import Any

from engine.checkpoints.history import Held
from engine.model import Action, Checkpoint, CheckpointKind, PathNote, RestoreReport
from engine.restore.apply import Outcome
from engine.store.journal import RestoreJournal


def make_report(
    target: Checkpoint, safety: Held | None, journal: RestoreJournal, outcome: Outcome, *, resumed: bool
) -> RestoreReport:
    """Put together what a restore did, from its journal and what became of each path."""
    done = [(item, PathNote(item.path, item.why)) for item in outcome.done]

    def noted(action: Action) -> tuple[PathNote, ...]:
        return tuple(PathNote(item.path, item.why) for item in journal.items if item.action == action)

    return RestoreReport(
        target,
        safety.checkpoint if safety else None,
        journal.token,
        tuple(note for item, note in done if item.action == Action.RESTORE),
        tuple(note for item, note in done if item.action == Action.DELETE),
        noted(Action.KEEP_HAND_EDIT),
        noted(Action.KEEP_OTHER_CHAT),
        noted(Action.NOT_CAPTURED),
        tuple(outcome.failed),
        journal.replanned,
        journal.everything,
        journal.ledger_empty,
        resumed,
        tuple(note for item, note in done if item.action == Action.MERGE),
        noted(Action.KEEP_COPY),
    )


_NOTE_FIELDS = ("restored", "deleted", "merged", "kept", "other_chats", "copies", "not_captured", "failed")


def encode_report(report: RestoreReport) -> dict[str, Any]:
    """Return a report as JSON holds it, without the checkpoints, which have ids."""
    value: dict[str, Any] = {name: [[note.path, note.why] for note in getattr(report, name)] for name in _NOTE_FIELDS}
    value["token"] = report.token
    value["replanned"] = list(report.replanned)
    value["everything"], value["ledger_empty"] = report.everything, report.ledger_empty
    return value


def decode_report(value: dict[str, Any], target: Checkpoint, safety: Held | None) -> RestoreReport:
    """Return the report a ledger record holds."""
    notes = {name: tuple(PathNote(path, why) for path, why in value.get(name, ())) for name in _NOTE_FIELDS}
    return RestoreReport(
        target,
        safety.checkpoint if safety else None,
        value["token"],
        **notes,
        replanned=tuple(value["replanned"]),
        everything=value["everything"],
        ledger_empty=value["ledger_empty"],
        resumed=True,
    )


def dropped(checkpoint_id: str) -> Checkpoint:
    """Return what is known of the checkpoint of a restore once it was dropped."""
    return Checkpoint(checkpoint_id, 0, CheckpointKind.MANUAL, "dropped since", datetime.fromtimestamp(0, UTC))
