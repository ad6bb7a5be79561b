"""The end of a turn: what has to be said, which files it changed, how to look at it or take it back."""

from collections.abc import Sequence

from adapters.contract import Button, Part, Style
from engine.model import Change, ChangeStats, PathNote, ToolResult
from gateway.agents.base import Usage
from gateway.render import LISTED_ID, counted, files_first, names, readable, stats

CHANGED = "✎"
"""Begins the line that says which files a turn changed."""


SPENT = "Σ"
"""Begins the line that says what a turn took of a model."""

_BEGINNINGS = (CHANGED, SPENT, "⚠ ")


def receipt(
    turn_id: int, results: Sequence[ToolResult], usage: Usage | None = None
) -> tuple[tuple[Part, ...], tuple[Button, ...]]:
    """Sum up the tools of a turn: each note once, files changed, the checkpoint, what it took, what can be done."""
    notes = dict.fromkeys(note for result in results for note in result.notes)
    said = tuple(Part(f"⚠ {readable(note)}\n") for note in notes)
    spent = () if usage is None else (Part(f"{SPENT} {_spent(usage)}\n"),)
    changes = _sum_of_changes(results)
    if not changes:
        return (*said, *spent), ()
    parts = (Part(f"{CHANGED} {_totals(results, len(changes))}: {names([_described(change) for change in changes])}"),)
    checkpoint = next((result.checkpoint for result in results if result.checkpoint), None)
    if checkpoint is None:
        return (*said, *parts, Part("\n"), *spent), ()
    kept = (Part(" · checkpoint "), Part(checkpoint.id[:LISTED_ID], Style.CODE), Part("\n"))
    buttons = (Button("Diff", f"/diff #{turn_id}"), Button("Undo", f"/undo #{turn_id}"))
    return (*said, *parts, *kept, *spent), buttons


def without_receipt(text: str) -> str:
    """What was said in a reply before its receipt."""
    lines = text.rstrip("\n").split("\n")
    while lines and lines[-1].startswith(_BEGINNINGS):
        lines.pop()
    return "\n".join(lines).rstrip("\n")


def _spent(usage: Usage) -> str:
    said = f"{counted(usage.requests, 'request')} · {usage.input_tokens:,} tokens in, {usage.output_tokens:,} out"
    if usage.cost_dollars is None:
        return said
    digits = 2 if usage.cost_dollars >= 1 else 4
    return f"{said} · ${usage.cost_dollars:.{digits}f}"


def _sum_of_changes(results: Sequence[ToolResult]) -> tuple[Change, ...]:
    """Join what several tools did to one path; what ends as it began is no change."""
    joined: dict[str, Change] = {}
    for change in (change for result in results for change in result.changes):
        first = joined.get(change.path, change)
        joined[change.path] = Change(change.path, first.before, change.after)
    changed = {change.path: change for change in joined.values() if change.before != change.after}
    return tuple(changed[note.path] for note in files_first(_described(change) for change in changed.values()))


def _totals(results: Sequence[ToolResult], files: int) -> str:
    known = [result.stats for result in results if result.stats is not None]
    if not known:
        return counted(files, "file")
    # The last one adds up the turn.
    return stats(ChangeStats(files, known[-1].insertions, known[-1].deletions))


def _described(change: Change) -> PathNote:
    if change.before is None:
        return PathNote(change.path, "new")
    return PathNote(change.path, "deleted" if change.after is None else "")
