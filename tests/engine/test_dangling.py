"""Names in the store that lead to nothing: left as they are, left out, and said."""

import os
from pathlib import Path

import pytest

from engine.model import Checkpoint
from engine.store.refs import base_ref, checkpoint_ref
from tests.engine.lab import Lab


def object_path(lab: Lab, oid: str) -> Path:
    return lab.store / "objects" / oid[:2] / oid[2:]


def lose(lab: Lab, checkpoint: Checkpoint, how: str) -> None:
    """Take away, or spoil, the commit of a checkpoint."""
    path = object_path(lab, checkpoint.id)
    if how == "spoiled":
        path.chmod(0o600)
        path.write_bytes(b"spoiled")
    else:
        path.unlink()


def ref_of(lab: Lab, checkpoint: Checkpoint) -> str:
    return (lab.store / checkpoint_ref(lab.workspace.hash, checkpoint.sequence)).read_text().strip()


@pytest.fixture
def three(lab: Lab) -> list[Checkpoint]:
    """Three checkpoints, newest first."""
    for number in range(3):
        lab.edit("a.txt", f"{number}\n")
        lab.write("b.txt", f"{number}\n")
    return lab.checkpoints()


@pytest.mark.parametrize(("which", "how"), [(0, "gone"), (1, "spoiled"), (2, "gone")])
def test_others_are_listed_and_restored_and_its_number_is_not_given_away(
    lab: Lab, three: list[Checkpoint], which: int, how: str
) -> None:
    lost = three[which]
    lose(lab, lost, how)

    left = lab.checkpoints()
    said = lab.write("c.txt", "sea\n").notes
    again = lab.write("c.txt", "see\n").notes

    assert [c.id for c in left] == [c.id for c in three if c is not lost]
    note = "1 checkpoint is damaged and left out of the list; nothing was deleted: gateway checkpoints verify"
    assert (said, again) == ((note,), ())
    assert lab.engine.damage(lab.workspace) == (note,)
    assert ref_of(lab, lost) == lost.id
    assert lab.checkpoints()[0].sequence == three[0].sequence + 2
    for checkpoint in left:
        plan = lab.engine.plan_restore(lab.workspace, checkpoint.id, everything=True)
        lab.engine.apply_restore(plan)
        assert lab.read("a.txt") == f"{checkpoint.sequence - 1}\n"


def test_it_is_listed_again_when_its_commit_is_back(lab: Lab, three: list[Checkpoint]) -> None:
    path = object_path(lab, three[1].id)
    content = path.read_bytes()
    path.unlink()
    assert len(lab.checkpoints()) == 2

    path.write_bytes(content)

    assert lab.checkpoints() == three
    assert lab.engine.damage(lab.workspace) == ()


def test_lost_base_is_captured_anew(lab: Lab, three: list[Checkpoint]) -> None:
    base = (lab.store / base_ref(lab.workspace.hash)).read_text().strip()
    object_path(lab, base).unlink()

    lab.write("b.txt", "new\n")
    lab.rollback()

    assert lab.read("b.txt") == "2\n"
    assert len(lab.checkpoints()) == len(three) + 2


def test_verify_names_it_and_how_to_let_it_go(lab: Lab, three: list[Checkpoint]) -> None:
    lose(lab, three[1], "gone")

    report = lab.engine.upkeep.verify()

    name = checkpoint_ref(lab.workspace.hash, three[1].sequence)
    [finding] = [finding for finding in report.findings if finding.checkpoint == three[1].id]
    assert "it is missing" in finding.what
    assert finding.next_step.endswith(f"git --git-dir {os.path.realpath(lab.store)} update-ref -d {name}")
