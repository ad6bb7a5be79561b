"""A ledger of which a line cannot be read loses what that line said, and nothing else."""

from pathlib import Path

import pytest

from engine.errors import StoreDamaged
from tests.engine.lab import Lab, paths


def spoil(lab: Lab) -> None:
    """Write a whole line that is no record."""
    (ledger,) = (lab.store / "ledgers").iterdir()
    with open(ledger, "ab") as stream:
        stream.write(b'{"type": "wri\n')


def test_checkpoints_are_taken_and_listed_and_the_damage_is_said_once(lab: Lab) -> None:
    lab.edit("a", "mine\n")
    lab.write("b", "1\n")
    spoil(lab)

    notes = [lab.run("rm a").notes, lab.run("rm b").notes]

    assert [[note for note in said if "a line of the ledger cannot be read" in note] != [] for said in notes] == [
        True,
        False,
    ]
    assert [item.reason for item in lab.checkpoints()] == [
        "before terminal: rm b",
        "before terminal: rm a",
        "before write_file: b",
    ]


def test_what_came_after_the_damage_is_taken_back_as_ever(lab: Lab) -> None:
    lab.edit("a", "mine\n")
    lab.write("b", "1\n")
    spoil(lab)
    lab.write("c", "2\n")
    lab.run("rm a")
    lab.edit("b", "by hand\n")

    report = lab.rollback(1)

    assert paths(report.restored) == ["a"]
    assert (lab.read("a"), lab.read("b")) == ("mine\n", "by hand\n")


def test_what_came_before_it_comes_back_only_as_a_whole(lab: Lab) -> None:
    lab.edit("a", "mine\n")
    lab.write("a", "1\n")
    spoil(lab)
    lab.write("c", "2\n")

    with pytest.raises(StoreDamaged, match="has lost what was written after checkpoint"):
        lab.plan(2)
    lab.rollback(2, everything=True)

    assert lab.read("a") == "mine\n"
    assert not lab.exists("c")


def test_a_ledger_of_which_nothing_can_be_read_is_not_taken_for_one_without_records(lab: Lab) -> None:
    lab.edit("a", "mine\n")
    lab.engine.checkpoint(lab.workspace, "by hand")
    lab.edit("a", "edited\n")
    (lab.store / "ledgers").mkdir(exist_ok=True)
    (lab.store / "ledgers" / f"{lab.workspace.hash}.jsonl").write_bytes(b"nothing\n")

    with pytest.raises(StoreDamaged, match="has lost what was written"):
        lab.plan(1)


def test_content_that_is_lost_does_not_cost_the_record_of_what_a_tool_did(lab: Lab) -> None:
    lab.edit("lost", "not to be had again\n")
    lab.write("a", "1\n")
    lab.write("a", "2\n")
    oid = lab.git("hash-object", "--no-filters", "lost").strip()
    (lab.store / "objects" / oid[:2] / oid[2:]).unlink()

    result = lab.run("rm lost; echo 3 > a")
    report = lab.rollback(1, "a")

    assert [note for note in result.notes if "could not be noted" in note] == []
    assert paths(report.restored) == ["a"]
    assert lab.read("a") == "2\n"


def test_state_before_a_command_that_could_not_be_noted_becomes_a_checkpoint_with_the_next_tool(
    lab: Lab, tmp_path: Path
) -> None:
    lab.edit("a", "mine\n")
    ledger = lab.store / "ledgers" / f"{lab.workspace.hash}.jsonl"
    (tmp_path / "script").write_text(f"rm a; echo 1 > b; mkdir {ledger}")

    failed = lab.run(f"sh {tmp_path}/script")
    ledger.rmdir()
    next_one = lab.write("c", "2\n")
    lab.rollback(2, everything=True)

    assert "could not be noted" in failed.notes[-1]
    assert next_one.notes[0].startswith("what a tool changed was not noted; the state before terminal: sh ")
    assert lab.read("a") == "mine\n"
    assert not lab.exists("b")
