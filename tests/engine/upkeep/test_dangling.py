"""Names that lead to nothing: a prune sets them aside, says so, and brings them back when their commits are back."""

import os
import shutil
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from engine.checkpoints.history import damage_notes, list_held
from engine.model import Checkpoint, Workspace
from engine.store.quarantine import read_quarantine
from engine.store.refs import base_ref, checkpoint_ref
from engine.upkeep.dangling import GRACE
from engine.upkeep.prune import Outcome, prune
from engine.upkeep.retention import PrunePolicy
from engine.upkeep.status import read_status
from engine.upkeep.verify import Severity, verify
from tests.engine.upkeep.kit import NOW, Kit

LATER = NOW + GRACE + timedelta(minutes=1)
SAID = "1 name leads to nothing and is set aside: gateway checkpoints verify."
POLICY = PrunePolicy(retention_days=None)


def object_path(kit: Kit, oid: str) -> Path:
    return Path(kit.store.layout.store, "objects", oid[:2], oid[2:])


def base_of(kit: Kit, workspace: Workspace) -> str:
    return kit.store.git.run(["rev-parse", base_ref(workspace.hash)]).decode().strip()


@pytest.fixture
def app(kit: Kit) -> Workspace:
    return kit.workspace("app")


@pytest.fixture
def lost(kit: Kit, app: Workspace) -> Checkpoint:
    """The newest of three checkpoints, whose commit is gone; it waits beside the store."""
    checkpoint = kit.turns(app, 3)[-1]
    shutil.move(object_path(kit, checkpoint.id), kit.home / "backup")
    return checkpoint


def bring_back(kit: Kit, checkpoint: Checkpoint) -> None:
    path = object_path(kit, checkpoint.id)
    path.parent.mkdir(exist_ok=True)
    shutil.move(kit.home / "backup", path)


def test_prune_goes_on_beside_a_lost_commit_and_lists_its_name(kit: Kit, app: Workspace, lost: Checkpoint):
    first = prune(kit.store, PrunePolicy(retention_days=None, max_snapshots=1), now=NOW)
    gcs = kit.gcs()
    second = prune(kit.store, POLICY, now=LATER)

    assert (first.outcome, second.outcome) == (Outcome.DONE, Outcome.DONE)
    assert first.notes == (f"{SAID} No space is reclaimed before 2026-03-17 12:00 UTC.",)
    assert second.notes == (SAID,)
    assert (gcs, kit.gcs()) == (0, 1)
    assert len(first.decisions) == 1
    [entry] = read_quarantine(kit.store.layout)
    assert (entry.name, entry.commit) == (checkpoint_ref(app.hash, lost.sequence), lost.id)
    assert os.stat(kit.store.layout.quarantine).st_mode & 0o777 == 0o600


def test_it_is_said_until_it_is_back(kit: Kit, app: Workspace, lost: Checkpoint):
    before = kit.ids(app)
    prune(kit.store, POLICY, now=NOW)

    assert kit.ids(app) == before
    assert damage_notes(kit.store, app) == (
        "1 checkpoint is damaged and left out of the list; nothing was deleted: gateway checkpoints verify",
    )
    assert read_status(kit.store).quarantined == (checkpoint_ref(app.hash, lost.sequence),)
    [finding] = verify(kit.store).findings
    assert (finding.severity, finding.checkpoint) == (Severity.WARNING, lost.id)
    assert "gateway prune" in finding.next_step


def test_it_is_listed_again_in_its_place_when_its_commit_is_back(kit: Kit, app: Workspace, lost: Checkpoint):
    kept = kit.ids(app)
    prune(kit.store, POLICY, now=NOW)
    [newer] = kit.turns(app, 1)
    bring_back(kit, lost)

    report = prune(kit.store, POLICY, now=NOW)

    assert report.notes == ()
    assert kit.ids(app) == [*kept, lost.id, newer.id]
    assert read_quarantine(kit.store.layout) == ()
    assert not os.path.exists(kit.store.layout.quarantine)
    assert verify(kit.store).findings == ()


def test_objects_that_only_a_lost_commit_names_outlive_the_first_day(kit: Kit, app: Workspace):
    lost = kit.turns(app, 3)[1]
    content = kit.content(lost.id, "noise.bin")
    shutil.move(object_path(kit, lost.id), kit.home / "backup")
    prune(kit.store, POLICY, now=NOW)
    prune(kit.store, PrunePolicy(retention_days=None, max_size_bytes=1), now=NOW + GRACE / 2)
    bring_back(kit, lost)

    prune(kit.store, POLICY, now=LATER)

    assert kit.content(lost.id, "noise.bin") == content
    assert verify(kit.store).healthy


def test_workspace_that_lost_all_its_commits_waits_for_them(kit: Kit, app: Workspace):
    other = kit.workspace("other")
    kit.turns(other, 2)
    lost = kit.turns(app, 1)[0]
    for name in kit.refs(app):
        commit = Path(kit.store.layout.store, "refs/takeback", app.hash, name).read_text().strip()
        object_path(kit, commit).rename(kit.home / commit)

    prune(kit.store, POLICY, now=NOW)
    report = prune(kit.store, POLICY, now=LATER)
    found = verify(kit.store).findings
    for entry in read_quarantine(kit.store.layout):
        path = object_path(kit, entry.commit or "")
        path.parent.mkdir(exist_ok=True)
        (kit.home / (entry.commit or "")).rename(path)
    prune(kit.store, POLICY, now=LATER)

    assert report.errors == ()
    assert kit.gcs() >= 1
    assert {finding.severity for finding in found} == {Severity.WARNING}
    assert kit.ids(app) == [lost.id]


@pytest.mark.parametrize("content", ["garbage\n", ""])
def test_torn_name_is_set_aside_with_what_was_left_of_it(kit: Kit, app: Workspace, content: str):
    kit.turns(app, 3)
    name = checkpoint_ref(app.hash, 2)
    Path(kit.store.layout.store, name).write_text(content)

    prune(kit.store, POLICY, now=NOW)
    report = prune(kit.store, POLICY, now=LATER)

    assert (report.errors, kit.gcs()) == ((), 1)
    [entry] = read_quarantine(kit.store.layout)
    assert (entry.name, entry.commit, entry.content) == (name, None, content)
    assert [item.checkpoint.sequence for item in list_held(kit.store, app)] == [3, 1]


@pytest.mark.parametrize("half", [".pack", ".idx"])
def test_nothing_is_set_aside_while_half_a_pack_is_there(kit: Kit, app: Workspace, half: str):
    kit.turns(app, 3)
    prune(kit.store, POLICY, now=NOW)
    [path] = Path(kit.store.layout.store, "objects/pack").glob(f"*{half}")
    path.rename(kit.home / path.name)
    before = kit.refs(app)

    report = prune(kit.store, POLICY, now=NOW)
    (kit.home / path.name).rename(path)

    assert report.outcome is Outcome.PARTLY
    assert "lacks its other half" in report.errors[0]
    assert not os.path.exists(kit.store.layout.quarantine)
    assert kit.refs(app) == before
    assert verify(kit.store).healthy


def test_nothing_is_set_aside_while_objects_cannot_be_read(kit: Kit, app: Workspace, lost: Checkpoint):
    # A link in a circle cannot be opened by anybody, the superuser included.
    circle = object_path(kit, lost.id)
    circle.symlink_to(circle)

    report = prune(kit.store, POLICY, now=NOW)

    assert report.outcome is Outcome.PARTLY
    assert f"{circle} cannot be read" in report.errors[0]
    assert not os.path.exists(kit.store.layout.quarantine)


def test_list_that_was_written_before_a_crash_is_carried_out_by_the_next_prune(
    kit: Kit, app: Workspace, lost: Checkpoint
):
    class Killed(BaseException):
        """The process ends here."""

    def die(arguments: tuple[str, ...]) -> None:
        if arguments[0] == "update-ref":
            raise Killed

    kit.fault = die
    with pytest.raises(Killed):
        prune(kit.store, POLICY, now=NOW)
    kit.fault = lambda _arguments: None

    report = prune(kit.store, POLICY, now=NOW)

    assert report.errors == ()
    assert checkpoint_ref(app.hash, lost.sequence).rpartition("/")[2] not in str(kit.refs(app))
    assert len(read_quarantine(kit.store.layout)) == 1


def test_damaged_list_stops_a_prune_and_is_said(kit: Kit, app: Workspace):
    kit.turns(app, 2)
    Path(kit.store.layout.quarantine).write_text('[{"name": 1')

    report = prune(kit.store, POLICY, now=NOW)

    assert report.outcome is Outcome.PARTLY
    assert kit.gcs() == 0
    assert [finding.severity for finding in verify(kit.store).findings] == [Severity.ERROR]


def test_base_that_is_lost_and_taken_anew_stays_the_new_one(kit: Kit, app: Workspace):
    kit.turns(app, 2)
    old = base_of(kit, app)
    content = object_path(kit, old).read_bytes()
    object_path(kit, old).unlink()
    prune(kit.store, POLICY, now=NOW)
    [newest] = kit.turns(app, 1)
    new = base_of(kit, app)
    object_path(kit, old).parent.mkdir(exist_ok=True)
    object_path(kit, old).write_bytes(content)

    prune(kit.store, POLICY, now=NOW)

    assert base_of(kit, app) == new != old
    assert kit.ids(app)[-1] == newest.id
    assert read_quarantine(kit.store.layout) == ()


@pytest.mark.parametrize("when", [NOW, LATER])
def test_dry_run_beside_lost_and_torn_names_says_what_the_prune_then_does(
    kit: Kit, app: Workspace, lost: Checkpoint, when: datetime
):
    torn = Path(kit.store.layout.store, checkpoint_ref(app.hash, lost.sequence + 1))
    torn.write_text("")
    if when is LATER:
        prune(kit.store, POLICY, now=NOW)
    policy = PrunePolicy(retention_days=None, max_snapshots=1)

    planned = prune(kit.store, replace(policy, dry_run=True), now=when)
    stood = torn.exists()
    done = prune(kit.store, policy, now=when)

    assert stood is (when is NOW)
    assert len(done.decisions) == 1
    assert (planned.decisions, planned.notes, planned.errors) == (done.decisions, done.notes, done.errors)
    assert (planned.freed_bytes > 0) is (done.freed_bytes > 0) is (when is LATER)
