"""What is said of a restore, to people and to the agent, every path accounted for."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from adapters.contract import Attachment, Part, Style
from engine.model import Action, GapReason, PathNote, RestorePlan, RestoreReport
from gateway.render import NAMES_SHOWN, SHORT_ID, Reply, counted, file_list, files_first, name, names, one_line

TOLD_TO_AGENT = 50
"""Names in the note to the agent before the rest is counted."""

HINTED_PATHS = 5
"""Names that a suggested command may hold."""

_NESTED = GapReason.NESTED_REPOSITORY.value
_NOW_NESTED = f"now {_NESTED}"


@dataclass(frozen=True, slots=True)
class Moved:
    """What the conversation did: the turns it lost, those that came back, or why it did not follow the files."""

    undone: int = 0
    returned: int = 0
    problem: str = ""


def report_of(plan: RestorePlan) -> RestoreReport:
    """Return the report of a plan that changes no file, without applying it."""
    return RestoreReport(
        target=plan.target,
        safety=None,
        token=plan.token,
        kept=_notes(plan, Action.KEEP_HAND_EDIT),
        other_chats=_notes(plan, Action.KEEP_OTHER_CHAT),
        not_captured=tuple(PathNote(i.path, i.why) for i in plan.items if i.action is Action.NOT_CAPTURED),
        copies=_notes(plan, Action.KEEP_COPY),
        everything=plan.everything,
        ledger_empty=plan.ledger_empty,
    )


def planned_parts(plan: RestorePlan, command: str) -> tuple[Part, ...]:
    """Say what a restore would do; ``command`` is what would do it."""
    lines = [
        f"  {label}: {names(_notes(plan, action))}"
        for label, action in _LABELS
        if any(item.action is action for item in plan.items)
    ]
    if plan.ledger_empty and not plan.everything:
        lines.append("  nothing of the agent's is known here, so hand-edits would be restored too")
    if not lines:
        return (Part("\nNo file differs: restoring it would change none.\n"),)
    text = "\n".join(lines)
    return (Part("\n"), Part(command, Style.CODE), Part(f" would do this:\n{text}\n"))


_LABELS = (
    ("restore", Action.RESTORE),
    ("remove", Action.DELETE),
    ("merge", Action.MERGE),
    ("keep your hand-edit", Action.KEEP_HAND_EDIT),
    ("keep another chat's change", Action.KEEP_OTHER_CHAT),
    ("keep, because it is the only copy", Action.KEEP_COPY),
    ("not captured", Action.NOT_CAPTURED),
)


def headline(report: RestoreReport) -> tuple[Part, ...]:
    """Return ``✅ Restored to checkpoint a1b2c3d4: before write_file``, or what came instead of it."""
    opening = "✅ Restored to checkpoint " if report.complete else "⚠ Restored only in part to checkpoint "
    target = report.target
    return (Part(opening), Part(target.id[:SHORT_ID], Style.CODE), Part(f": {one_line(target.reason, 200)}\n"))


def files_said(report: RestoreReport, again: str) -> str:
    """Return the lines that account for files; ``again`` is the command that would restore all."""
    lines = []
    if report.ledger_empty and not report.everything:
        lines.append("  Nothing of the agent's is known here, so this was a full restore.")
    lines += [f"  {label}: {names(notes)}" for label, notes in _done(report) if notes]
    if not (report.restored or report.deleted or report.merged or report.failed):
        left = report.kept or report.other_chats or report.copies or report.not_captured
        lines.append("  No file was changed." if left else "  No file had to be changed.")
    if report.kept:
        lines += [
            f"↷ Kept your hand-edits: {names(_bare(report.kept))}",
            f"  Use {again} to restore those too.",
        ]
    if report.other_chats:
        here = again.replace(" --all", "", 1)
        lines += [
            f"↷ Kept other chats' changes: {names(report.other_chats)}",
            f"  To take those back too: /undo in that chat, then {here} here; or {again}, which restores everything.",
        ]
    if report.copies:
        lines.append(f"↷ Kept, because it is the only copy: {names(report.copies)}")
    if report.replanned:
        changed = names([PathNote(path) for path in report.replanned])
        lines.append(f"  Changed meanwhile, so looked at again: {changed}")
    if report.not_captured:
        lines.append(f"⚠ Not captured, left as it is: {names(files_first(report.not_captured))}")
        lines += _nested_said(report, again)
    if report.failed:
        lines.append(f"✗ Could not be restored, still as before: {names(report.failed)}")
    return "".join(f"{line}\n" for line in lines)


def _nested_said(report: RestoreReport, again: str) -> list[str]:
    """Say how to get what a checkpoint holds of directories that have become nested repositories since."""
    held = [note.path for note in report.not_captured if note.why == _NOW_NESTED]
    roots = (note.path for note in report.not_captured if note.why in {_NOW_NESTED, _NESTED})
    found = [root for root in roots if any(path.startswith(f"{root}/") for path in held)]
    command = again.partition(" --all")[0]
    return [
        f"  What the checkpoint holds in {name(root)} was not restored: take {name(f'{root}/.git')} away, "
        f"then {command} --all -- {shlex.quote(root)}"
        for root in found[:HINTED_PATHS]
        if name(root) == root
    ]


def conversation_said(moved: Moved, *, files: bool) -> str:
    """Return what is said of the conversation; ``files`` is whether files went back with it."""
    if moved.problem:
        return f"⚠ Only files went back; the conversation was left as it is: {moved.problem}.\n"
    said = ""
    if moved.undone:
        what = "files and turns" if files else "turns"
        said += f"↩ Undid {counted(moved.undone, 'turn')}. /redo brings {what} back.\n"
    if moved.returned:
        said += f"↪ Brought back {counted(moved.returned, 'turn')}.\n"
    return said


def whole_report(report: RestoreReport) -> tuple[Attachment, ...]:
    """Return the file with every name, where a sentence only counts some of them."""
    groups = [*_done(report), *_left(report)]
    if all(len(notes) <= NAMES_SHOWN for _, notes in groups):
        return ()
    lines = [
        f"{label}: {name(note.path)}{f' ({note.why})' if note.why else ''}" for label, notes in groups for note in notes
    ]
    short = report.target.id[:SHORT_ID]
    return (file_list(f"Restore to checkpoint {short}", lines, f"restore-{short}.txt"),)


def restored_reply(
    report: RestoreReport, again: str, moved: Moved, *, opening: tuple[Part, ...] = (), ending: str = ""
) -> Reply:
    """Say what a restore did, in the order people need it; ``opening`` replaces the first line."""
    files = bool(report.restored or report.deleted or report.merged)
    said = files_said(report, again) + conversation_said(moved, files=files) + ending
    return Reply((*(opening or headline(report)), Part(said)), whole_report(report))


def everything_command(command: str, report: RestoreReport, selection: Sequence[str] = ()) -> str:
    """Return the command that restores the kept hand-edits, and what other chats changed, too.

    A checkpoint with nested repositories cannot be restored as a whole, so there the files are named.
    """
    nested = bool(report.target.nested_repositories)
    paths = list(selection)
    if not paths and nested:
        # A name that is shown escaped cannot be typed so.
        kept = (*report.kept, *report.other_chats)
        paths = [note.path for note in kept[:HINTED_PATHS] if name(note.path) == note.path]
    if not paths:
        return f"{command} --all"
    return f"{command} --all -- {' '.join(shlex.quote(path) for path in paths)}"


def note_for_agent(report: RestoreReport | None, moved: Moved, what: str) -> str:
    """Return the paragraph that tells the agent what the person took back, so that it neither redoes nor denies it."""
    told = [f"The user {what}."]
    if moved.undone:
        told.append(f"{counted(moved.undone, 'turn')} before this point {_was(moved.undone)} taken back.")
    if moved.returned:
        told.append(f"{counted(moved.returned, 'turn')} taken back earlier {_was(moved.returned)} brought back.")
    if report is None:
        told.append("No file was changed by that.")
    else:
        told += [
            f"{label}: {names(notes, TOLD_TO_AGENT)}." for label, notes in (*_done(report), *_left(report)) if notes
        ]
    return " ".join(told)


def note_after_redo(report: RestoreReport | None) -> str | None:
    """Return what the agent is told once a restore was undone, ``None`` where all is as it knows it.

    What it was told of that restore is withdrawn at the same time, so neither the turns nor the files that are back are
    spoken of, only what differs.
    """
    left = () if report is None else (("Merged with other edits", files_first(report.merged)), *_left(report))
    told = [f"{label}: {names(notes, TOLD_TO_AGENT)}." for label, notes in left if notes]
    if not told:
        return None
    return " ".join(["The user took something back and brought it back again, all but this.", *told])


def _bare(notes: Sequence[PathNote]) -> tuple[PathNote, ...]:
    """Leave out why: that a hand-edit was edited by hand goes without saying."""
    return files_first(PathNote(note.path) for note in notes)


def _was(count: int) -> str:
    return "was" if count == 1 else "were"


def _done(report: RestoreReport) -> tuple[tuple[str, Sequence[PathNote]], ...]:
    return (
        ("Restored", files_first(report.restored)),
        ("Removed", files_first(report.deleted)),
        ("Merged", files_first(report.merged)),
    )


def _left(report: RestoreReport) -> tuple[tuple[str, Sequence[PathNote]], ...]:
    return (
        ("Kept as edited by the user", _bare(report.kept)),
        ("Kept as changed by other chats", report.other_chats),
        ("Kept as the only copy", report.copies),
        ("Not captured", files_first(report.not_captured)),
        ("Could not be restored", report.failed),
    )


def _notes(plan: RestorePlan, action: Action) -> tuple[PathNote, ...]:
    # The reason for a hand-edit goes without saying; the others' reasons are what people want to know.
    silent = action in (Action.RESTORE, Action.DELETE, Action.KEEP_HAND_EDIT)
    return files_first(PathNote(item.path, "" if silent else item.why) for item in plan.items if item.action is action)
