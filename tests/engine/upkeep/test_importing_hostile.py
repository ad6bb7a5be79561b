"""Foreign stores that are damaged or mean harm: nothing of them runs, what cannot be trusted is left out by name."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.errors import ImportRefused
from engine.upkeep.importing import ImportReport, import_store
from engine.upkeep.verify import verify
from tests.engine.upkeep.foreign_kit import Foreign
from tests.engine.upkeep.kit import Kit

STEM = "a1b2c3d4e5f60718"


@pytest.fixture
def foreign(tmp_path: Path, kit: Kit) -> Foreign:
    """A store with one good checkpoint."""
    foreign = Foreign.made(tmp_path / "other")
    foreign.name(f"refs/x/{STEM}/good", foreign.commit(foreign.tree({"a.txt": b"good\n"}), "good", 1))
    foreign.project(STEM, kit.workspace("app").root)
    return foreign


def imported(kit: Kit, foreign: Foreign) -> ImportReport:
    return import_store(kit.store, str(foreign.path))


def dot_git(foreign: Foreign, name: bytes = b".git") -> str:
    return foreign.raw_tree((b"40000", name, foreign.tree({"config": b"[core]\n"})))


def unknown_mode(foreign: Foreign) -> str:
    return foreign.raw_tree((b"104755", b"a", foreign.blob(b"x")))


def twice(foreign: Foreign) -> str:
    oid = foreign.blob(b"x")
    return foreign.raw_tree((b"100644", b"a", oid), (b"100644", b"a", oid))


def out_of_order(foreign: Foreign) -> str:
    oid = foreign.blob(b"x")
    return foreign.raw_tree((b"100644", b"b", oid), (b"100644", b"a", oid))


def too_deep(foreign: Foreign) -> str:
    tree = foreign.tree({"a": b"x"})
    for _level in range(205):
        tree = foreign.raw_tree((b"40000", b"d", tree))
    return tree


def bomb(foreign: Foreign) -> str:
    tree = foreign.tree({"a": b"x"})
    for _level in range(7):
        tree = foreign.raw_tree(*((b"40000", b"%d" % number, tree) for number in range(10)))
    return tree


def lost_blob(foreign: Foreign) -> str:
    tree = foreign.tree({"a": b"lost\n"})
    oid = foreign.blob(b"lost\n")
    (foreign.path / "objects" / oid[:2] / oid[2:]).unlink()
    return tree


def spoiled_blob(foreign: Foreign) -> str:
    tree = foreign.tree({"a": b"spoiled\n"})
    path = foreign.path / "objects" / (oid := foreign.blob(b"spoiled\n"))[:2] / oid[2:]
    other = (foreign.path / "objects" / (oid := foreign.blob(b"other\n"))[:2] / oid[2:]).read_bytes()
    path.chmod(0o600)
    path.write_bytes(other)
    return tree


def bad_modes(foreign: Foreign) -> str:
    return foreign.tree({".takeback/modes": b'{"usual": {}, "modes": {"../x": 420}, "empty": []}', "a": b"x"})


BAD_TREES: list[tuple[Callable[[Foreign], str], str]] = [
    (dot_git, "'.git'"),
    (lambda foreign: dot_git(foreign, b".GIT"), "'.GIT'"),
    (lambda foreign: dot_git(foreign, b"..") , "'..'"),
    (lambda foreign: dot_git(foreign, b".") , "'.'"),
    (lambda foreign: dot_git(foreign, b"a/b") , "'a/b'"),
    (lambda foreign: foreign.raw_tree((b"40000", b"sub", dot_git(foreign))), "sub: "),
    (unknown_mode, "has the mode '104755'"),
    (twice, "twice"),
    (out_of_order, "order"),
    (too_deep, "deep"),
    (bomb, "more than 1000000 files"),
    (lost_blob, "a: it is missing"),
    (spoiled_blob, "a: "),
    (bad_modes, "permission bits cannot be read"),
]  # fmt: skip


def test_checkpoints_that_no_capture_makes_are_left_out_and_named(kit: Kit, foreign: Foreign):
    reasons = {}
    for number, (make, why) in enumerate(BAD_TREES):
        bad = foreign.commit(make(foreign), f"bad {number}", 2)
        foreign.name(f"refs/x/{STEM}/bad-{number}", bad)
        reasons[f"checkpoint {bad[:8]}"] = why

    report = imported(kit, foreign)

    [workspace] = report.workspaces
    found = {item.what: item.why for item in workspace.left_out}
    assert (workspace.imported, workspace.error, report.complete) == (1, None, False)
    assert found.keys() == reasons.keys()
    assert {what: why for what, why in found.items() if reasons[what] not in why} == {}
    assert len(kit.ids(kit.workspace("app"))) == 1
    assert verify(kit.store).findings == ()


def test_nothing_that_the_store_names_is_run(kit: Kit, foreign: Foreign, tmp_path: Path):
    ran = tmp_path / "ran"
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\ntouch {ran}\n")
    script.chmod(0o755)
    config = "[core]\nfsmonitor = {0}\nsshCommand = {0}\npager = {0}\nalternateRefsCommand = {0}\nhooksPath = {1}\n"
    config += (
        '[extensions]\npartialClone = o\n[remote "o"]\nurl = ext::{0}\npromisor = true\n[gc]\nrecentObjectsHook = {0}\n'
    )
    (foreign.path / "config").write_text(config.format(script, foreign.path / "hooks"))
    for name in ("reference-transaction", "post-index-change", "pre-auto-gc"):
        hook = foreign.path / "hooks" / name
        hook.write_bytes(script.read_bytes())
        hook.chmod(0o755)
    before = foreign.content()

    report = imported(kit, foreign)

    assert (report.imported, report.complete) == (1, True)
    assert not ran.exists()
    assert foreign.content() == before


def lend_objects(foreign: Foreign) -> None:
    (foreign.path / "objects/info").mkdir(exist_ok=True)
    (foreign.path / "objects/info/alternates").write_text("/somewhere\n")


def link_objects(foreign: Foreign) -> None:
    (foreign.path / "objects/ee").symlink_to("/etc")


def pipe_object(foreign: Foreign) -> None:
    os.mkfifo(foreign.path / "objects/pack/pack-1.pack")


def use_reftable(foreign: Foreign) -> None:
    (foreign.path / "reftable").mkdir()


def drop_projects(foreign: Foreign) -> None:
    (foreign.path / "projects").rename(foreign.path / "other")


def drop_objects(foreign: Foreign) -> None:
    (foreign.path / "objects").rename(foreign.path / "other")


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lend_objects, "borrows objects"),
        (link_objects, "objects/ee is neither"),
        (pipe_object, "neither a file nor a directory"),
        (use_reftable, "reftable"),
        (drop_projects, "no projects/"),
        (drop_objects, "there is no store"),
    ],
)
def test_store_that_cannot_be_read_safely_is_refused_with_nothing_made(
    kit: Kit, foreign: Foreign, spoil: Callable[[Foreign], None], why: str
):
    spoil(foreign)

    with pytest.raises(ImportRefused, match=why):
        imported(kit, foreign)

    assert not os.path.exists(kit.store.layout.base)


def test_store_itself_is_refused(kit: Kit):
    kit.turns(kit.workspace("app"), 1)

    with pytest.raises(ImportRefused, match="this very store"):
        import_store(kit.store, kit.store.layout.base)


def test_names_and_projects_that_say_nothing_are_left_out_and_named(kit: Kit, foreign: Foreign):
    good = foreign.git("rev-parse", f"refs/x/{STEM}/good")
    foreign.name("refs/heads/main", good)
    foreign.name(f"refs/x/{STEM}/link", "ref: refs/heads/main")
    foreign.name(f"refs/x/{STEM}/long", "1" * 64)
    (kit.home / "outside").write_text(f"{foreign.commit(foreign.tree({}), 'outside', 1)}\n")
    (foreign.path / f"refs/x/{STEM}/outside").symlink_to(kit.home / "outside")
    foreign.project("root", "/")
    foreign.project("relative", "code/app")
    (foreign.path / "projects/torn.json").write_text('{"workdir": ')
    os.mkfifo(foreign.path / "projects/pipe.json")
    (foreign.path / "projects/list.json").write_text("[]")

    report = imported(kit, foreign)

    assert report.imported == 1
    assert {item.what for item in report.left_out} == {
        "refs/heads/main",
        *(f"refs/x/{STEM}/{name}" for name in ("link", "long", "outside")),
        *(f"projects/{name}.json" for name in ("root", "relative", "torn", "pipe", "list")),
    }


def test_history_goes_on_where_an_older_commit_is_missing(kit: Kit, foreign: Foreign):
    oldest = foreign.commit(foreign.tree({"a.txt": b"old\n"}), "old", 0)
    foreign.name(f"refs/x/{STEM}/good", foreign.commit(foreign.tree({"a.txt": b"new\n"}), "new", 3, oldest))
    (foreign.path / "objects" / oldest[:2] / oldest[2:]).unlink()

    report = imported(kit, foreign)

    [workspace] = report.workspaces
    assert workspace.imported == 1
    assert [(item.what, item.why) for item in workspace.left_out] == [(f"checkpoint {oldest[:8]}", "it is missing")]


def test_failure_in_one_workspace_leaves_it_as_it_was_and_the_others_go_on(kit: Kit, foreign: Foreign):
    other = "b" * 16
    foreign.name(f"refs/x/{other}", foreign.commit(foreign.tree({"b.txt": b"b\n"}), "other", 1))
    foreign.project(other, kit.workspace("other").root)
    seen = 0

    def fail_once(arguments: tuple[str, ...]) -> None:
        nonlocal seen
        if arguments[0] == "index-pack":
            seen += 1
            if seen == 1:
                raise OSError(28, "No space left on device", "pack")

    kit.fault = fail_once

    report = imported(kit, foreign)

    failed, done = report.workspaces
    assert failed.error is not None
    assert (failed.imported, done.imported, report.complete) == (0, 1, False)
    assert kit.refs(kit.workspace("app")) == []
    assert kit.ids(kit.workspace("other")) != []
    assert verify(kit.store).healthy
