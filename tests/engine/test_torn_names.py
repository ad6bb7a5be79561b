"""Names that a power loss left torn: said, never in the way, and made anew where that can be done."""

from pathlib import Path

import pytest

from engine.errors import StoreDamaged
from engine.model import session_hash
from engine.store.refs import base_ref, checkpoint_ref, session_ref
from tests.engine.lab import CHAT, Lab

NOTE = "1 checkpoint is damaged and left out of the list; nothing was deleted: gateway checkpoints verify"
SESSION = f"session of {CHAT}"


def path_of(lab: Lab, name: str) -> Path:
    return lab.store / name


def tear(lab: Lab, name: str, content: str = "") -> None:
    path_of(lab, name).write_text(content)


@pytest.mark.parametrize("content", ["", "0123456789"])
def test_only_checkpoint_whose_name_is_torn_is_said_and_blocks_no_other(lab: Lab, content: str) -> None:
    taken = lab.write("a", "one\n").checkpoint
    assert taken is not None
    tear(lab, checkpoint_ref(lab.workspace.hash, 1), content)
    lab.engine = lab.open_engine()

    assert lab.checkpoints() == []
    assert lab.engine.damage(lab.workspace) == (NOTE,)
    with pytest.raises(StoreDamaged, match="not among those that can be read, and 1 cannot be"):
        lab.engine.plan_restore(lab.workspace, taken.id)
    result = lab.write("a", "two\n")
    lab.rollback()

    assert result.notes == (NOTE,)
    assert lab.read("a") == "one\n"
    assert path_of(lab, checkpoint_ref(lab.workspace.hash, 1)).read_text() == content


def test_torn_base_is_made_anew(lab: Lab) -> None:
    lab.edit("a", "zero\n")
    lab.write("a", "one\n")
    tear(lab, base_ref(lab.workspace.hash))

    result = lab.write("a", "two\n")
    lab.rollback()

    assert result.notes == ()
    assert lab.read("a") == "one\n"
    assert len(path_of(lab, base_ref(lab.workspace.hash)).read_text()) == 41


def test_torn_name_of_the_state_after_a_turn_does_not_keep_the_turn_from_being_noted(lab: Lab) -> None:
    lab.write("a", "one\n")
    after = checkpoint_ref(lab.workspace.hash, 1).replace("checkpoints", "after")
    tear(lab, after)

    result = lab.write("a", "two\n", new_turn=False)

    assert result.notes == ()
    assert len(path_of(lab, after).read_text()) == 41


@pytest.mark.parametrize("how", ["torn", "gone", "without its commit"])
def test_session_whose_lost_beginning_is_recorded_anew_says_so(lab: Lab, how: str) -> None:
    lab.next_turn()
    lab.engine.begin_session(lab.workspace, SESSION)
    lab.write("a", "one\n", new_turn=False)
    name = session_ref(lab.workspace.hash, session_hash(SESSION))
    if how == "torn":
        tear(lab, name)
    elif how == "gone":
        path_of(lab, name).unlink()
    else:
        tear(lab, name, "1" * 40 + "\n")
    if how != "gone":
        with pytest.raises(StoreDamaged, match="how this session began cannot be read"):
            lab.engine.session_diff(lab.workspace, SESSION)

    lab.engine.begin_session(lab.workspace, SESSION)
    lab.write("a", "two\n")
    diff = lab.engine.session_diff(lab.workspace, SESSION)

    assert diff is not None
    assert "the beginning of this session was recorded anew; the first record was lost" in diff.title
    assert "-one\n+two\n" in diff.patch
