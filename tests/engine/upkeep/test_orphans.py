"""Workspaces whose directory is not found: kept by every sweep, deleted only when it is proved and was shown."""

import json
import os
from pathlib import Path

from engine.upkeep.facts import read_workspaces
from engine.upkeep.orphans import read_orphans
from engine.upkeep.prune import prune
from engine.upkeep.retention import PrunePolicy, Rule, Target
from tests.engine.upkeep.kit import Kit


def make_orphan(kit: Kit, name: str, neighbour: str = "neighbour") -> str:
    workspace = kit.workspace(name)
    kit.workspace(neighbour)
    kit.turns(workspace, 2)
    Path(workspace.root, "noise.bin").unlink()
    os.rmdir(workspace.root)
    return workspace.hash


def hashes(kit: Kit) -> set[str]:
    return {facts.hash for facts in read_workspaces(kit.store.layout, kit.store.git)}


def test_sweep_never_deletes_an_orphan(kit: Kit):
    gone = make_orphan(kit, "gone")
    path = Path(kit.store.layout.project(gone))
    path.write_text(json.dumps({**json.loads(path.read_text()), "last_touch": "2020-01-01T00:00:00+00:00"}))

    report = prune(kit.store, PrunePolicy(max_snapshots=1, max_size_bytes=0))

    assert report.decisions == ()
    assert "unmounted disk" in report.kept[0].reason


def test_shown_orphan_is_deleted(kit: Kit):
    gone = make_orphan(kit, "gone")
    preview = read_orphans(kit.store)

    report = prune(kit.store, PrunePolicy(orphans=preview))

    assert [orphan.hash for orphan in preview.gone] == [gone]
    assert (report.decisions[-1].rule, report.decisions[-1].target) == (Rule.ORPHAN, Target.WORKSPACE)
    assert gone not in hashes(kit)


def test_what_becomes_an_orphan_after_the_preview_is_not_deleted(kit: Kit):
    first = make_orphan(kit, "first")
    preview = read_orphans(kit.store)
    second = make_orphan(kit, "second")

    prune(kit.store, PrunePolicy(orphans=preview))

    assert hashes(kit) & {first, second} == {second}


def test_orphan_that_was_used_after_the_preview_is_not_deleted(kit: Kit):
    gone = make_orphan(kit, "gone")
    preview = read_orphans(kit.store)
    again = kit.workspace("gone")
    kit.turns(again, 1)
    Path(again.root, "noise.bin").unlink()
    os.rmdir(again.root)

    report = prune(kit.store, PrunePolicy(orphans=preview))

    assert gone in hashes(kit)
    assert [item.reason for item in report.kept] == ["it was used since it was shown"]


def test_unmounted_disk_keeps_its_history(kit: Kit):
    """A disk is mounted at ``code``; unmounting leaves the empty mount point, another directory of the same name."""
    app = kit.workspace("app")
    kit.turns(app, 2)
    code = Path(app.root).parent
    code.rename(code.with_name("the disk, elsewhere"))
    absent = read_orphans(kit.store)
    code.mkdir()
    empty = read_orphans(kit.store)
    (code / "lost+found").mkdir()
    other = read_orphans(kit.store)

    for preview in (absent, empty, other):
        report = prune(kit.store, PrunePolicy(orphans=preview, max_size_bytes=0))

        assert preview.gone == ()
        assert "its disk may not be mounted" in preview.kept[0][1]
        assert report.decisions == ()
    assert len(kit.ids(app)) == 2


def test_disk_unmounted_between_preview_and_deletion_keeps_its_history(kit: Kit):
    gone = make_orphan(kit, "gone")
    preview = read_orphans(kit.store)
    code = kit.home / "code"
    code.rename(kit.home / "elsewhere")

    report = prune(kit.store, PrunePolicy(orphans=preview))

    assert len(preview.gone) == 1
    assert "its disk may not be mounted" in report.kept[0].reason
    assert gone in hashes(kit)


def test_only_directory_of_its_parent_is_not_taken_for_deleted(kit: Kit):
    alone = kit.workspace("only")
    kit.turns(alone, 1)
    Path(alone.root, "noise.bin").unlink()
    os.rmdir(alone.root)

    preview = read_orphans(kit.store)

    assert preview.gone == ()
    assert "empty" in preview.kept[0][1]
