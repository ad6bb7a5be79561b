"""Where the space of a store goes."""

import os
from pathlib import Path

from engine.upkeep.accounting import account
from engine.upkeep.facts import tree_bytes
from engine.upkeep.prune import prune
from engine.upkeep.retention import PrunePolicy
from tests.engine.upkeep.kit import NOW, Kit


def test_what_a_workspace_alone_holds_is_what_dropping_it_frees(kit: Kit):
    shared = os.urandom(70_000)
    for name, size_bytes in (("large", 90_000), ("small", 20_000)):
        workspace = kit.workspace(name)
        kit.write(workspace, "shared.bin", shared)
        kit.turns(workspace, 2, size_bytes)
    prune(kit.store, PrunePolicy(retention_days=None))

    found = account(kit.store)
    large, small = found.workspaces
    kit.age(kit.workspace("large"), 30)
    objects = f"{kit.store.layout.store}/objects"
    before = tree_bytes(objects)
    prune(kit.store, PrunePolicy(), now=NOW)

    assert (large.workdir, small.workdir) == (kit.workspace("large").root, kit.workspace("small").root)
    assert 180_000 < large.unique_bytes < 190_000
    assert 40_000 < small.unique_bytes < 45_000
    assert 70_000 < found.shared_bytes < 71_000
    assert abs(before - tree_bytes(objects) - large.unique_bytes) < 1_000


def test_largest_files_are_named_with_the_checkpoints_that_hold_them(kit: Kit):
    app = kit.workspace("app")
    kit.write(app, "data/big.bin", os.urandom(50_000))
    first, second = kit.turns(app, 2, 100)
    kit.write(app, "data/big.bin", os.urandom(40_000))
    third = kit.turns(app, 1, 100)[0]
    kit.write(app, "odd\nname ü", os.urandom(30_000))
    kit.turns(app, 1, 100)

    largest = account(kit.store).largest

    assert [(item.path, item.size_bytes) for item in largest[:2]] == [
        ("data/big.bin", 50_000),
        ("data/big.bin", 40_000),
    ]
    assert largest[0].checkpoints == (second.id, first.id)
    assert third.id in largest[1].checkpoints
    assert largest[2].size_bytes == 30_000
    assert all(item.stored_bytes > 0 for item in largest)
    assert not [item for item in largest if item.path.startswith(".takeback")]


def test_store_that_lost_an_object_says_that_nothing_is_known(kit: Kit):
    checkpoint = kit.turns(kit.workspace("app"), 1)[0]
    oid = kit.store.git.run(["rev-parse", f"{checkpoint.id}:"]).decode().strip()
    Path(kit.store.layout.store, "objects", oid[:2], oid[2:]).unlink()

    found = account(kit.store)

    assert found.problem is not None
    assert found.workspaces == ()


def test_store_that_is_not_there_holds_nothing(kit: Kit):
    assert account(kit.store).workspaces == ()
    assert not Path(kit.store.layout.base).exists()
