"""The list of checkpoints, character by character."""

from datetime import UTC, datetime

from engine.model import ChangeStats, Checkpoint, CheckpointKind, Gap, GapReason
from gateway.listing import checkpoint_list, entry, gaps_said

NESTED = GapReason.NESTED_REPOSITORY


def checkpoint(
    start: str, minute: int, reason: str, stats: ChangeStats | None = None, gaps: tuple[Gap, ...] = ()
) -> Checkpoint:
    moment = datetime(2026, 3, 16, 4, minute, 59, tzinfo=UTC)
    return Checkpoint(start.ljust(40, "0"), minute, CheckpointKind.TURN, reason, moment, stats=stats, gaps=gaps)


LIST = [
    checkpoint("4270a8c", 36, "before patch: app.py", ChangeStats(1, 1, 0)),
    checkpoint("eaf4c1f", 35, "before write_file: app.py", None, (Gap("tool", NESTED),)),
    checkpoint("b3f9d2e", 34, "before terminal: sed -i s/old/new/ config.py", ChangeStats(1, 1, 1)),
]


def test_list_reads_as_designed() -> None:
    assert checkpoint_list("/path/to/project", LIST).plain_text == (
        """\
📸 Checkpoints for /path/to/project:

  1. 4270a8c  2026-03-16 04:36  before patch: app.py  (1 file, +1/-0)
  2. eaf4c1f  2026-03-16 04:35  before write_file: app.py [nested git repos not captured: tool]
  3. b3f9d2e  2026-03-16 04:34  before terminal: sed -i s/old/new/ config.py  (1 file, +1/-1)

  /rollback <N>             restore to checkpoint N (keeps your hand-edits)
  /rollback <N> --all       full restore, overwriting your hand-edits too
  /rollback diff <N>        preview changes since checkpoint N
  /rollback <N> <file>      restore a single file from checkpoint N
"""
    )


def test_numbers_of_two_digits_stay_in_line() -> None:
    assert entry(10, LIST[0]).startswith(" 10. 4270a8c  2026")


def test_first_three_nested_repositories_are_named() -> None:
    gaps = [Gap(f"r{number}", NESTED) for number in range(5)]

    assert gaps_said(gaps) == ("nested git repos not captured: r0, r1, r2 (+2)",)


def test_other_gaps_are_named_with_their_reason() -> None:
    gaps = [
        Gap("data.csv", GapReason.TOO_LARGE),
        Gap("tool", NESTED),
        Gap(".env", GapReason.SECRET),
        Gap("old.bin", GapReason.TOO_LARGE, older=True),
        Gap("x", GapReason.UNREADABLE),
    ]

    assert gaps_said(gaps) == (
        "nested git repos not captured: tool",
        (
            "not captured: data.csv (too large), .env (looks like a secret), "
            "old.bin (too large, an older version is kept) (+1)"
        ),
    )


def test_gaps_follow_the_stats() -> None:
    both = checkpoint("eaf4c1f", 35, "before patch", ChangeStats(2, 3, 1), (Gap("tool", NESTED),))

    assert entry(2, both).endswith("before patch  (2 files, +3/-1) [nested git repos not captured: tool]")


def test_reason_stays_on_one_line_and_short() -> None:
    line = entry(1, checkpoint("4270a8c", 36, "before terminal: cat <<EOF\n" + "x" * 500 + "\x1b[31m"))

    assert "\n" not in line
    assert "\x1b" not in line
    assert len(line) < 160


def test_every_entry_has_buttons_that_name_ids_and_a_restore_is_asked_about() -> None:
    reply = checkpoint_list("/p", LIST * 7)

    assert [(button.label, button.command) for button in reply.buttons[:2]] == [
        ("Diff 1", "/rollback diff 4270a8c0"),
        ("Restore 1", "/rollback 4270a8c0"),
    ]
    assert len(reply.buttons) == 42
    assert [button.confirm for button in reply.buttons[:2]] == [
        None,
        "Restore checkpoint 4270a8c: before patch: app.py? Your hand-edits are kept, and /redo undoes it.",
    ]


def test_explanation_replaces_usage_and_buttons() -> None:
    reply = checkpoint_list("/p", LIST, explanation="a container")

    assert reply.plain_text.endswith("(1 file, +1/-1)\n\na container\n")
    assert reply.buttons == ()
