"""The numbered list of checkpoints, as people see it."""

from collections.abc import Sequence
from datetime import datetime

from adapters.contract import Button, Part, Style
from engine.model import Checkpoint, Gap, GapReason, PathNote
from gateway.render import LISTED_ID, SHORT_ID, Reply, name, names, one_line, stats

REASON_CHARACTERS = 120
"""Characters of a reason in the list; commands can be long."""

GAPS_SHOWN = 3
"""Names of gaps in one entry before the rest is counted."""

ASKED_CHARACTERS = 60
"""Characters of a reason in the question before a restore; platforms allow few."""

FOOTER = """\
  /rollback <N>             restore to checkpoint N (keeps your hand-edits)
  /rollback <N> --all       full restore, overwriting your hand-edits too
  /rollback diff <N>        preview changes since checkpoint N
  /rollback <N> <file>      restore a single file from checkpoint N
"""
"""What can be done with an entry."""


def checkpoint_list(root: str, checkpoints: Sequence[Checkpoint], *, explanation: str = "") -> Reply:
    """Show checkpoints, newest first; ``explanation`` replaces the usage where none can be restored."""
    header = Part(f"📸 Checkpoints for {name(root)}:\n\n")
    entries = "".join(f"{entry(number, checkpoint)}\n" for number, checkpoint in enumerate(checkpoints, 1))
    listed = Part(entries, Style.BLOCK)
    if explanation:
        return Reply((header, listed, Part(f"\n{explanation}\n")))
    return Reply((header, listed, Part("\n"), Part(FOOTER, Style.BLOCK)), buttons=_buttons(checkpoints))


def entry(number: int, checkpoint: Checkpoint) -> str:
    """Return one line of the list."""
    line = (
        f"{number:>3}. {checkpoint.id[:LISTED_ID]}  {local_minute(checkpoint.taken_at)}"
        f"  {one_line(checkpoint.reason, REASON_CHARACTERS)}"
    )
    if checkpoint.stats is not None:
        line += f"  ({stats(checkpoint.stats)})"
    if checkpoint.imported_from is not None:
        line += f" [imported from {name(checkpoint.imported_from)}]"
    return line + "".join(f" [{said}]" for said in gaps_said(checkpoint.gaps))


def gaps_said(gaps: Sequence[Gap]) -> tuple[str, ...]:
    """Say what a checkpoint did not capture: nested repositories, then all else with its reason."""
    nested = [gap for gap in gaps if gap.reason is GapReason.NESTED_REPOSITORY]
    others = [gap for gap in gaps if gap.reason is not GapReason.NESTED_REPOSITORY]
    said = []
    if nested:
        listed = names([PathNote(gap.path) for gap in nested], GAPS_SHOWN)
        said.append(f"nested git repos not captured: {listed}")
    if others:
        listed = names([PathNote(gap.path, _reason(gap)) for gap in others], GAPS_SHOWN)
        said.append(f"not captured: {listed}")
    return tuple(said)


def local_minute(moment: datetime) -> str:
    """Return a time to the minute, as the machine's clock on the wall shows it."""
    return moment.astimezone().strftime("%Y-%m-%d %H:%M")


def _reason(gap: Gap) -> str:
    return f"{gap.reason.value}, an older version is kept" if gap.older else gap.reason.value


def _buttons(checkpoints: Sequence[Checkpoint]) -> tuple[Button, ...]:
    return tuple(
        button
        for number, checkpoint in enumerate(checkpoints, 1)
        for button in (
            Button(f"Diff {number}", f"/rollback diff {checkpoint.id[:SHORT_ID]}"),
            Button(f"Restore {number}", f"/rollback {checkpoint.id[:SHORT_ID]}", confirm=_question(checkpoint)),
        )
    )


def _question(checkpoint: Checkpoint) -> str:
    reason = one_line(checkpoint.reason, ASKED_CHARACTERS)
    return f"Restore checkpoint {checkpoint.id[:LISTED_ID]}: {reason}? Your hand-edits are kept, and /redo undoes it."
