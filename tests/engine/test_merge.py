"""What several chats, several turns and a person's hand leave in one file, and what of it a restore takes back."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from engine.api import PrunePolicy
from engine.checkpoints.reading import blob_oid
from engine.model import Action, Entry, EntryKind, Limits
from engine.store.layout import Layout
from tests.engine.desk import FILE, A, B, Desk, text
from tests.engine.lab import Lab, actions, paths, snapshot
from tests.engine.test_interrupted import killed


@pytest.mark.parametrize(
    "order",
    [
        ("a1", "hand", "a2", "b1"),
        ("a1", "b1", "hand", "a2"),
        ("b1", "a1", "a2", "hand"),
        ("hand", "a2", "b1", "a1"),
    ],
    ids="-".join,
)
def test_undo_takes_back_its_own_lines_whatever_the_order(desk: Desk, order: tuple[str, ...]) -> None:
    for line, name in enumerate(order):
        if name == "hand":
            desk.edit("hand", 10 * line)
        else:
            desk.change(name, 10 * line, A if name[0] == "a" else B)
    newest_of_a = next(name for name in reversed(order) if name[0] == "a")

    report = desk.undo(newest_of_a)

    stands_by_hand = order[-1] == "hand"
    assert desk.names == (set(order) if stands_by_hand else set(order) - {newest_of_a})
    assert paths(report.kept) == ([FILE] if stands_by_hand else [])
    assert desk.intact


@pytest.mark.parametrize("order", [("a1", "b1", "a2", "b2"), ("b1", "a1", "b2", "a2")], ids="-".join)
def test_rollback_takes_back_all_lines_of_its_chat_and_none_of_another(desk: Desk, order: tuple[str, ...]) -> None:
    for line, name in enumerate(order):
        desk.change(name, 10 * line, A if name[0] == "a" else B)
    first = next(name for name in order if name[0] == "a")

    report = desk.rollback(first, A)
    assert desk.names == {"b1", "b2"}
    assert desk.intact

    back = desk.redo(report, A)
    assert desk.names == set(order)
    desk.redo(back, A)
    assert desk.names == {"b1", "b2"}
    desk.rollback(next(name for name in order if name[0] == "b"), B)
    assert desk.names == set()
    assert desk.lab.read(FILE) == "".join(text())


@pytest.mark.parametrize("order", [("a1", "b1", "a2"), ("b1", "a2", "a1"), ("a2", "a1", "b1")], ids="-".join)
def test_undoing_every_turn_in_any_order_ends_where_it_began(desk: Desk, order: tuple[str, ...]) -> None:
    for line, name in enumerate(["a1", "b1", "a2"]):
        desk.change(name, 10 * line, A if name[0] == "a" else B)
    left = {"a1", "b1", "a2"}

    for name in order:
        desk.undo(name)
        left -= {name}
        assert desk.names == left

    assert desk.lab.read(FILE) == "".join(text())


def test_sessions_of_one_chat_are_one_chat(desk: Desk) -> None:
    desk.change("a1", 0, A)
    desk.change("b1", 10, B)
    desk.lab.next_turn()
    call = desk.lab.call(A)
    later = replace(call, turn=replace(call.turn, session="a later session"))
    desk.note("a2", A, desk.lab.engine.write_file(later, FILE, desk.with_line("a2", 20).encode()))

    desk.rollback("a1", A)

    assert desk.names == {"b1"}


def test_hand_edit_under_a_later_write_comes_back_with_undo_and_rollback(desk: Desk) -> None:
    lab = desk.lab
    desk.change("a1", 0, A)
    lab.edit("other.txt", "by hand\n")
    first = lab.write("other.txt", "agent over it\n", chat=A, new_turn=False)
    desk.note("other", A, first)

    report = desk.undo("other")

    assert (desk.names, lab.read("other.txt")) == (set(), "by hand\n")
    assert [(note.path, note.why) for note in report.merged] == [("other.txt", "keeps what was edited by hand")]


def test_lines_edited_by_hand_between_two_turns_outlive_going_back_over_both(desk: Desk) -> None:
    desk.change("a1", 0, A)
    desk.edit("hand", 10)
    desk.change("a2", 20, A)

    report = desk.rollback("a1", A)
    assert desk.names == {"hand"}
    desk.redo(report, A)
    assert desk.names == {"a1", "hand", "a2"}
    desk.rollback("a1", A, everything=True)
    assert desk.names == set()


def test_line_edited_by_hand_on_top_of_the_agents_is_kept_whole(desk: Desk) -> None:
    desk.change("a1", 0, A)
    desk.edit("hand", 0)
    desk.change("a2", 20, A)

    report = desk.rollback("a1", A)

    assert desk.names == {"hand", "a2"}
    assert [(note.path, note.why) for note in report.kept] == [
        (FILE, "edited by hand in between; the same lines were changed on both sides")
    ]


def test_redo_after_the_other_chat_took_back_its_own_brings_back_only_its_lines(desk: Desk) -> None:
    desk.change("a1", 0, A)
    desk.change("b1", 10, B)
    undone = desk.undo("a1")
    desk.undo("b1")
    assert desk.names == set()

    desk.redo(undone, A)
    assert desk.names == {"a1"}
    desk.undo("a1")
    assert desk.lab.read(FILE) == "".join(text())


def test_own_changes_that_were_taken_back_are_not_taken_back_again(desk: Desk) -> None:
    desk.change("a1", 0, A)
    desk.change("a2", 1, A)
    desk.undo("a2")
    desk.change("b1", 2, B)
    # Next to a2's line: reversing a2 once more would be a conflict.

    report = desk.rollback("a1", A)

    assert (desk.names, paths(report.merged)) == ({"b1"}, [FILE])
    desk.undo("b1")
    assert desk.lab.read(FILE) == "".join(text())


def test_checkpoint_that_holds_more_of_its_chat_than_stands_brings_nothing_back_under_the_others(desk: Desk) -> None:
    desk.change("a1", 0, A)
    desk.change("a2", 10, A)
    desk.undo("a2")
    desk.undo("a1")
    desk.change("b1", 20, B)

    report = desk.rollback("a2", A)

    assert desk.names == {"b1"}
    assert [note.why for note in report.other_chats] == [f"written by {B}; it was taken back and changed since"]


def test_own_rollback_over_everything_leaves_nothing_to_take_back_later(desk: Desk) -> None:
    desk.change("a1", 0, A)
    desk.change("b1", 10, B)
    desk.rollback("a1", A, everything=True)
    desk.change("b2", 20, B)

    report = desk.rollback("a1", A)

    assert desk.names == {"b2"}
    assert [note.why for note in report.other_chats] == [f"written by {B}"]


def test_changes_of_several_chats_are_all_named(desk: Desk) -> None:
    desk.change("a1", 0, A)
    desk.change("b1", 10, B)
    desk.change("c1", 20, "console:c")

    [item] = desk.plan_undo("a1").items

    assert (item.action, item.why) == (Action.MERGE, f"keeps what {B} and console:c wrote")


def test_line_ends_and_the_missing_last_one_are_kept_as_they_are(desk: Desk) -> None:
    lab = desk.lab
    lab.edit(FILE, b"1\r\n2\n3\r4\n5\r\n6")
    desk.note("a", A, lab.write(FILE, b"a\r\n2\n3\r4\n5\r\n6", chat=A))
    desk.note("b", B, lab.write(FILE, b"a\r\n2\n3\r4\n5\r\nb", chat=B))

    desk.undo("a")
    assert (lab.root / FILE).read_bytes() == b"1\r\n2\n3\r4\n5\r\nb"
    report = desk.undo("b")

    assert (lab.root / FILE).read_bytes() == b"1\r\n2\n3\r4\n5\r\n6"
    assert [note.why for note in report.merged] == [f"keeps what {A} took back"]


def test_directory_that_another_chat_uses_too_is_not_said_to_go(desk: Desk) -> None:
    lab = desk.lab
    desk.note("a", A, lab.write("pkg/a", "a\n", chat=A))
    lab.write("pkg/b", "b\n", chat=B)

    plan = desk.plan_undo("a")
    desk.lab.engine.apply_restore(plan)

    assert actions(plan) == {"pkg/a": Action.DELETE}
    assert (lab.exists("pkg/a"), lab.read("pkg/b")) == (False, "b\n")


# --- what cannot be merged


def link(lab: Lab) -> None:
    lab.run(f"ln -sf b {FILE}", chat=B)


REFUSED = {
    "same lines": ("", lambda desk: desk.change("b1", 0, B), "the same lines were changed on both sides"),
    "next line": ("", lambda desk: desk.change("b1", 1, B), "the same lines were changed on both sides"),
    "deleted": (
        "",
        lambda desk: desk.lab.run(f"rm {FILE}", chat=B),
        "it was made or deleted on one side and changed on the other",
    ),
    "link": ("", lambda desk: link(desk.lab), "it is no longer the same kind of thing"),
    "binary": (
        "",
        lambda desk: desk.lab.write(FILE, desk.lab.read(FILE) + "\0", chat=B),
        "it is binary, so it cannot be merged",
    ),
    "permissions": (
        f"chmod 600 {FILE}",
        lambda desk: desk.lab.run(f"chmod 640 {FILE}", chat=B),
        "its permissions were changed on both sides",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_merged_is_kept_with_the_reason(desk: Desk, case: str) -> None:
    lab = desk.lab
    extra, change, why = REFUSED[case]
    desk.change("a1", 0, A)
    if extra:
        lab.run(extra, chat=A, new_turn=False)
    change(desk)
    before = snapshot(lab.root)

    report = desk.undo("a1")

    assert snapshot(lab.root) == before
    assert [(note.path, note.why) for note in report.other_chats] == [(FILE, f"written by {B}; {why}")]
    assert (report.merged, report.safety) == ((), None)


def test_permissions_and_content_of_different_chats_are_taken_back_apart(desk: Desk) -> None:
    desk.lab.next_turn()
    desk.note("mode", A, desk.lab.run(f"chmod 755 {FILE}", chat=A))
    desk.change("b1", 10, B)

    desk.undo("mode")

    assert (desk.lab.root / FILE).stat().st_mode & 0o777 == 0o644
    assert desk.names == {"b1"}


def test_merge_that_would_be_too_large_to_capture_is_refused(desk: Desk) -> None:
    lab = desk.lab
    lab.write(FILE, "".join([*text(), "a" * 700 + "\n"]))
    lab.limits = Limits(max_file_size_bytes=len(lab.read(FILE)) + 200)
    checkpoint = lab.write(FILE, "".join(text()), chat=A).checkpoint
    assert checkpoint is not None
    lab.write(FILE, "".join(["b" * 600 + "\n", *text()[1:]]), chat=B)

    report = lab.undo_turn(lab.turn - 1, checkpoint, chat=A)

    assert "it is larger than" in report.other_chats[0].why
    assert lab.read(FILE).startswith("bbb")


def test_lost_content_in_between_is_said(desk: Desk) -> None:
    desk.change("a1", 0, A)
    after = blob_oid(desk.lab.read(FILE).encode())
    desk.change("b1", 10, B)
    (desk.lab.store / "objects" / after[:2] / after[2:]).unlink()

    [item] = desk.plan_undo("a1").items

    assert (item.action, item.why) == (
        Action.KEEP_OTHER_CHAT,
        f"written by {B}; the store no longer holds what stood there in between",
    )


def test_no_attribute_nor_driver_has_a_say(desk: Desk) -> None:
    marker = desk.lab.home / "marker"
    desk.change("a1", 0, A)
    desk.lab.edit(".gitattributes", "* merge=evil -text eol=crlf\n")
    for config in (desk.lab.home / ".gitconfig", desk.lab.store / "config"):
        with open(config, "a") as stream:
            stream.write(f'[merge "evil"]\n\tdriver = touch {marker}\n')
    (desk.lab.store / "info" / "attributes").write_text("* merge=evil\n")
    desk.change("b1", 10, B)

    desk.undo("a1")

    assert desk.names == {"b1"}
    assert desk.intact
    assert not marker.exists()


# --- plan, crash and store


def test_plan_holds_the_result_and_apply_makes_just_that(desk: Desk) -> None:
    desk.change("a1", 0, A)
    desk.change("b1", 10, B)
    plan = desk.plan_undo("a1")
    assert actions(plan) == {FILE: Action.MERGE}
    expected = desk.with_line("line 0", 0)

    report = desk.lab.engine.apply_restore(plan)

    assert desk.lab.read(FILE) == expected
    assert plan.items[0].target == Entry(EntryKind.FILE, 0o644, blob_oid(expected.encode()))
    assert report.replanned == ()
    assert not [name for name in os.listdir(desk.lab.store.parent) if name.startswith(".rehearsal")]
    assert not list((desk.lab.store / "refs").rglob("merged"))


def test_what_changed_since_the_plan_was_shown_is_merged_anew(desk: Desk) -> None:
    desk.change("a1", 0, A)
    desk.change("b1", 10, B)
    plan = desk.plan_undo("a1")
    desk.change("b2", 20, B)

    report = desk.lab.engine.apply_restore(plan)

    assert desk.names == {"b1", "b2"}
    assert report.replanned == (FILE,)


@pytest.mark.parametrize("point", ["write", "install", "sync-directory"])
def test_killed_merge_is_finished_also_after_a_prune(desk: Desk, point: str) -> None:
    lab = desk.lab
    desk.change("a1", 0, A)
    desk.change("b1", 10, B)
    plan = desk.plan_undo("a1")
    killed(lab, lambda: lab.engine.apply_restore(plan), lambda operation, _path: operation == point)
    (lab.store / ".gc-pending").write_text("something was dropped\n")
    assert lab.engine.upkeep.prune(PrunePolicy()).errors == ()

    [report] = lab.engine.resume_restores(lab.workspace)

    assert (paths(report.merged), report.failed) == ([FILE], ())
    assert desk.names == {"b1"}
    desk.redo(report, A)
    assert desk.names == {"a1", "b1"}
    desk.undo("b1")
    assert desk.names == {"a1"}


def test_ledger_of_before_is_still_read(desk: Desk) -> None:
    """It names neither what stood before a write nor whose changes a content holds: nothing is merged on a guess."""
    lab = desk.lab
    desk.change("a1", 0, A)
    desk.undo("a1")
    desk.change("a2", 0, A)
    desk.change("b1", 10, B)
    ledger = Path(Layout(os.path.realpath(lab.store.parent)).ledger(lab.workspace.hash))
    records = [json.loads(line) for line in ledger.read_text().splitlines()]
    for record in records:
        record.pop("before")
        record.pop("chat") if record["type"] == "restore" else None
        record["entries"] = {path: entry[:4] for path, entry in record.get("entries", {}).items()}
    ledger.write_text("".join(f"{json.dumps(record)}\n" for record in records))

    report = desk.undo("a2")

    assert desk.names == {"a2", "b1"}
    assert [note.why for note in report.other_chats] == [
        f"written by {B}; the ledger is too old to tell whose lines are whose"
    ]
