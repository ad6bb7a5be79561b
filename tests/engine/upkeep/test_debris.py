"""What killed processes leave behind, and what is none of it."""

import os
import secrets
from dataclasses import replace
from pathlib import Path

import pytest

from engine.model import Limits
from engine.store.opened import STALE_NAMES_LOCK_S
from engine.upkeep.debris import STALE_S, remove_tree, set_aside, sweep
from engine.upkeep.prune import prune
from engine.upkeep.retention import PrunePolicy
from engine.upkeep.verify import verify
from tests.engine.upkeep.kit import Kit, make_old

DEBRIS = [
    "store/HEAD.lock",
    "store/config.lock",
    "store/packed-refs.lock",
    "store/packed-refs.new",
    "store/gc.pid",
    "store/gc.pid.lock",
    "store/fast_import_crash_4711",
    "store/.tmp-0123456789ab",
    "store/refs/takeback/0123456789abcdef/base.lock",
    "store/refs/takeback/0123456789abcdef/checkpoints/00000001.lock",
    "store/objects/tmp_objdir-incoming-x/pack",
    "store/objects/incoming-x/ab",
    "store/objects/ab/tmp_obj_XYZ123",
    "store/objects/pack/tmp_pack_XYZ123",
    "store/objects/pack/tmp_idx_XYZ123",
    "store/objects/pack/tmp_rev_XYZ123",
    "store/objects/pack/.tmp-4711-pack-0123",
    "store/projects/.tmp-0123456789ab",
    "store/indexes/.tmp-0123456789ab",
    "store/journal/.tmp-0123456789ab",
    ".tmp-0123456789ab",
    ".deleting-0123456789ab/store/HEAD",
    ".rehearsal-0123456789ab/a.txt",
]


def top(name: str) -> str:
    """What is removed: a directory half deleted or half written goes as a whole."""
    for part in ("tmp_objdir-incoming-x", "incoming-x", ".deleting-0123456789ab", ".rehearsal-0123456789ab"):
        head, found, _tail = name.partition(f"{part}/")
        if found:
            return f"{head}{part}"
    return name


@pytest.mark.parametrize("name", DEBRIS)
def test_debris_goes_when_it_is_old_and_not_before(kit: Kit, name: str):
    kit.turns(kit.workspace("app"), 2)
    path = Path(kit.store.layout.base, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"half")
    shown = Path(kit.store.layout.base, top(name))

    stale_s = STALE_NAMES_LOCK_S if name.endswith((".lock", ".new")) else STALE_S
    make_old(shown, (stale_s - 30) / 3600)
    assert sweep(kit.store.layout) == []
    assert shown.exists()
    make_old(shown, (stale_s + 30) / 3600)

    assert sweep(kit.store.layout) == [top(name)]
    assert not shown.exists()


def test_lock_over_all_names_that_a_killed_git_left_keeps_nobody_from_dropping_for_long(kit: Kit):
    app = replace(kit.workspace("app"), limits=Limits(max_snapshots=2))
    kit.turns(app, 2)
    kit.store.git.run(["pack-refs", "--all"])
    lock = Path(kit.store.layout.store, "packed-refs.lock")
    lock.touch()
    kit.turns(app, 1)
    while_it_is_young = len(kit.ids(app))
    make_old(lock, (STALE_NAMES_LOCK_S + 30) / 3600)

    kit.turns(app, 1)

    assert while_it_is_young == 3
    assert len(kit.ids(app)) == 2
    assert not lock.exists()


def test_nothing_else_is_ever_swept(kit: Kit):
    app = kit.workspace("app")
    kit.note_turn(app, kit.turns(app, 3)[0], "noise.bin")
    prune(kit.store, PrunePolicy())
    kit.turns(app, 2)
    kit.archive("legacy-20260101-000000")
    everything = [path for path in Path(kit.store.layout.base).rglob("*") if not path.is_symlink()]
    for path in everything:
        make_old(path, 10_000)

    assert sweep(kit.store.layout) == []
    assert [path for path in everything if not path.exists()] == []
    assert verify(kit.store).findings == ()


def test_pack_that_a_killed_fast_import_marked_can_be_reclaimed_again(kit: Kit):
    app = kit.workspace("app")
    for number in range(150):  # enough for a pack of its own
        kit.write(app, f"{number}.bin", os.urandom(1000))
    kit.checkpoint(app)
    packs = Path(kit.store.layout.store, "objects", "pack")
    mark = next(packs.glob("*.pack")).with_suffix(".keep")
    mark.write_bytes(b"fast-import")
    mine = packs / f"pack-{secrets.token_hex(20)}.keep"
    mine.write_bytes(b"kept by hand\n")
    make_old(mark)
    make_old(mine)
    kit.turns(app, 1)

    report = prune(kit.store, PrunePolicy())

    assert report.swept == (os.path.relpath(mark, kit.store.layout.base),)
    assert len(list(packs.glob("*.pack"))) == 1
    assert mine.exists()


def test_workspace_lock_that_nobody_may_take_away_stays(kit: Kit):
    app = kit.workspace("app")
    kit.turns(app, 1)
    make_old(kit.store.layout.lock(app.hash), 10_000)

    assert sweep(kit.store.layout) == []


def test_half_deleted_archive_is_out_of_sight_at_once(kit: Kit):
    kit.turns(kit.workspace("app"), 1)
    archive = kit.archive("legacy-20260101-000000")

    aside = set_aside(str(archive))

    assert not archive.exists()
    make_old(aside)
    assert sweep(kit.store.layout) == [os.path.basename(aside)]


def test_tree_with_modes_that_forbid_it_is_removed_and_links_are_not_followed(tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("mine")
    outside.chmod(0o500)
    tree = tmp_path / "tree"
    (tree / "closed" / "deep").mkdir(parents=True)
    (tree / "closed" / "deep" / "file").write_text("x")
    (tree / "link").symlink_to(outside)
    (tree / "closed" / "deep").chmod(0o000)
    (tree / "closed").chmod(0o500)

    remove_tree(str(tree))

    assert not tree.exists()
    assert (outside / "file").read_text() == "mine"
    assert outside.stat().st_mode & 0o777 == 0o500
