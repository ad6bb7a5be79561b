"""What is said at the end of a turn."""

from datetime import UTC, datetime

import pytest

from engine.model import Change, ChangeStats, Checkpoint, CheckpointKind, Entry, EntryKind, ToolResult
from gateway.agents.base import Usage
from gateway.turns.receipts import receipt, without_receipt

OLD, NEW = Entry(EntryKind.FILE, 0o644, "a" * 40), Entry(EntryKind.FILE, 0o644, "b" * 40)
FOLDER = Entry(EntryKind.DIRECTORY, 0o755, None)
MOMENT = datetime(2026, 3, 16, 4, 36, tzinfo=UTC)
COVER = Checkpoint("4270a8c".ljust(40, "0"), 1, CheckpointKind.TURN, "before patch", MOMENT)


def result(*changes: Change, stats: ChangeStats | None = None, notes: tuple[str, ...] = ()) -> ToolResult:
    return ToolResult(ok=True, text="", notes=notes, checkpoint=COVER, changes=changes, stats=stats)


def said(*results: ToolResult) -> str:
    return "".join(part.text for part in receipt(57, results)[0])


def test_changed_files_are_named_with_totals_and_checkpoint() -> None:
    changes = [Change("app.py", OLD, NEW), Change("new.py", None, NEW), Change("old.py", OLD, None)]

    assert said(result(*changes, stats=ChangeStats(3, 5, 2))) == (
        "✎ 3 files, +5/-2: app.py, new.py (new), old.py (deleted) · checkpoint 4270a8c\n"
    )


def test_buttons_name_the_turn() -> None:
    _, buttons = receipt(57, [result(Change("app.py", OLD, NEW))])

    assert [(button.label, button.command) for button in buttons] == [("Diff", "/diff #57"), ("Undo", "/undo #57")]


def test_turn_that_changed_nothing_has_no_receipt() -> None:
    assert receipt(57, [result()]) == ((), ())


def test_each_note_is_said_once() -> None:
    assert said(result(notes=("gap a", "gap b")), result(notes=("gap a",))) == "⚠ gap a\n⚠ gap b\n"


def test_what_several_tools_did_is_one_change_a_file_and_the_last_totals() -> None:
    first = result(Change("a", None, OLD), Change("b", OLD, NEW), stats=ChangeStats(2, 2, 1))
    second = result(Change("a", OLD, NEW), Change("b", NEW, OLD), stats=ChangeStats(1, 3, 0))

    assert said(first, second).startswith("✎ 1 file, +3/-0: a (new) · ")


def test_directories_are_named_only_where_no_file_changed() -> None:
    folder = Change("json", FOLDER, None)

    assert said(result(folder, Change("json/a.py", OLD, None))).startswith("✎ 1 file: json/a.py (deleted) · ")
    assert said(result(folder)).startswith("✎ 1 file: json (deleted) · ")


def test_changes_without_a_checkpoint_have_no_buttons() -> None:
    parts, buttons = receipt(57, [ToolResult(ok=True, text="", changes=(Change("a", None, NEW),))])

    assert ("".join(part.text for part in parts), buttons) == ("✎ 1 file: a (new)\n", ())


@pytest.mark.parametrize(
    ("usage", "line"),
    [
        (Usage(1, 12_345, 678, 0.01234), "Σ 1 request · 12,345 tokens in, 678 out · $0.0123\n"),
        (Usage(3, 1, 2, 12.3456), "Σ 3 requests · 1 tokens in, 2 out · $12.35\n"),
        (Usage(2, 0, 0), "Σ 2 requests · 0 tokens in, 0 out\n"),
    ],
)
def test_what_a_turn_took_is_said_last(usage: Usage, line: str) -> None:
    assert "".join(part.text for part in receipt(57, [], usage)[0]) == line
    changed = result(Change("app.py", OLD, NEW), notes=("gap a",))
    assert "".join(part.text for part in receipt(57, [changed], usage)[0]) == (
        f"⚠ gap a\n✎ 1 file: app.py · checkpoint 4270a8c\n{line}"
    )


def test_what_was_said_can_be_told_from_its_receipt() -> None:
    receipt_lines = "⚠ gap a\n✎ 1 file: app.py · checkpoint 4270a8c\nΣ 1 request · 1 tokens in, 2 out\n"

    assert without_receipt(f"Done.\nΣ is a sum.\nAll of it.\n\n{receipt_lines}") == "Done.\nΣ is a sum.\nAll of it."
    assert without_receipt("Done.") == "Done."
    assert without_receipt(receipt_lines) == ""
