"""What one capture writes on top of the one before: the same as if it were the first, whatever became of the index."""

import os
import shutil
import subprocess
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from engine.checkpoints.capture import Captured, FilesMoved, capture, decode_message, encode_message, look, write_scan
from engine.checkpoints.feed import Feed
from engine.checkpoints.manifest import MODES_PATH
from engine.checkpoints.reading import blob_oid
from engine.errors import CaptureFailed, GitFailed, LargeCheckpointWarning, StoreDamaged
from engine.host.files import TEMP_PREFIX
from engine.model import Entry, EntryKind, GapReason, Limits, Workspace
from engine.store.objects import missing_objects
from engine.store.refs import base_ref, find_ref, update_refs
from engine.store.rows import Row, Rows
from tests.engine.upkeep.kit import Kit, make_old, no_fault


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Kit:
    """One store for all that is captured here, in workspaces of their own."""
    return Kit.in_directory(tmp_path_factory.mktemp("shared"))


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Kit:
    """Another store, which sees each workspace once."""
    return Kit.in_directory(tmp_path_factory.mktemp("fresh"))


@pytest.fixture
def kit(shared: Kit) -> Iterator[Kit]:
    store = shared.store
    yield shared
    shared.store, shared.fault = store, no_fault


@pytest.fixture
def workspace(kit: Kit, tmp_path: Path) -> Workspace:
    return furnished(kit, tmp_path.name)


def furnished(kit: Kit, name: str) -> Workspace:
    """A workspace with one of each kind."""
    workspace = kit.workspace(name)
    root = Path(workspace.root)
    for path, content in {"a": "one\n", "b": "two\n", "same": "one\n", "d/x": "x\n", "d/e/y": "y\n"}.items():
        kit.write(workspace, path, content.encode())
    (root / "script").write_text("#!/bin/sh\n")
    (root / "script").chmod(0o755)
    (root / "link").symlink_to("a")
    (root / "empty").mkdir(mode=0o700)
    return workspace


def root_of(workspace: Workspace) -> Path:
    return Path(workspace.root)


def taken(kit: Kit, workspace: Workspace) -> Captured:
    with kit.store.use(workspace, "a test"):
        return capture(kit.store, workspace, frozenset())


def is_as_from_scratch(captured: Captured, kit: Kit, fresh: Kit, workspace: Workspace) -> bool:
    """Whether a store that never saw the workspace makes the same of it, and all that was captured is in this one."""
    contents = {
        row.entry.oid for row in captured.rows.values() if row.entry.kind in (EntryKind.FILE, EntryKind.SYMLINK)
    }
    missing = missing_objects(kit.store.git, [oid for oid in contents if oid is not None])
    return captured.tree == taken(fresh, workspace).tree and not missing


def listing(kit: Kit, commit: str) -> dict[str, tuple[str, str]]:
    """What git lists of a commit: path → (mode, content)."""
    out = kit.store.git.run(["ls-tree", "-r", "-z", "--full-tree", commit]).decode()
    lines = [line.split("\t", 1) for line in out.split("\0") if line]
    return {path: (head.split()[0], head.split()[2]) for head, path in lines if path != MODES_PATH}


def base(kit: Kit, workspace: Workspace) -> str | None:
    found = find_ref(kit.store.git, base_ref(workspace.hash))
    return None if found is None else found.commit


# --- what is written


def test_capture_holds_each_kind_and_is_the_base(kit: Kit, workspace: Workspace) -> None:
    captured = taken(kit, workspace)

    assert listing(kit, captured.commit) == {
        "a": ("100644", blob_oid(b"one\n")),
        "b": ("100644", blob_oid(b"two\n")),
        "same": ("100644", blob_oid(b"one\n")),
        "d/x": ("100644", blob_oid(b"x\n")),
        "d/e/y": ("100644", blob_oid(b"y\n")),
        "script": ("100755", blob_oid(b"#!/bin/sh\n")),
        "link": ("120000", blob_oid(b"a")),
    }
    assert captured.tree == kit.store.git.run(["rev-parse", f"{captured.commit}^{{tree}}"]).decode().strip()
    assert captured.commit == base(kit, workspace)
    assert captured.changed == captured.rows.keys()
    assert (len(captured.before), captured.notes) == (0, ())


@pytest.mark.parametrize("first", [True, False], ids=["first", "later"])
def test_base_is_a_commit_of_now_that_says_what_it_is(kit: Kit, workspace: Workspace, *, first: bool) -> None:
    captured = taken(kit, workspace)
    if not first:
        kit.write(workspace, "a", b"later\n")
        captured = taken(kit, workspace)

    stamp, message = kit.store.git.run(["show", "-s", "--format=%ct %B", captured.commit]).split(b" ", 1)

    assert abs(int(stamp) - time.time()) < 100
    assert message.strip() == encode_message("capture", {}).strip()
    assert kit.store.git.run(["rev-list", "--count", captured.commit]) == b"1\n"


def test_difference_to_the_capture_before_is_what_changed_and_to_another_one_what_is_told_apart() -> None:
    one, two, three = (Rows.of({name: Row(Entry(EntryKind.FILE, 0o644, oid))}) for name, oid in ("aa", "ab", "ba"))
    captured = Captured("", "", one, two, frozenset({"noted"}), (), frozenset())

    assert captured.differing(one) == {"noted"}
    assert set(captured.differing(three)) == {"a", "b"}
    assert set(captured.differing(Rows.of({"a": two["a"]}))) == set()


def test_what_was_not_captured_is_said(kit: Kit, workspace: Workspace) -> None:
    os.mkfifo(root_of(workspace) / "fifo")
    kit.write(workspace, "node_modules/m.js", b"m")

    captured = taken(kit, workspace)

    assert [(gap.path, gap.reason) for gap in captured.gaps] == [("fifo", GapReason.SPECIAL)]
    assert captured.excluded == {"node_modules"}
    assert not {"fifo", "node_modules/m.js"} & captured.rows.keys()


def written(kit: Kit) -> dict[Path, int]:
    """When each object and each name was last written; a name that is given anew is a new file."""
    store = Path(kit.store.layout.store)
    files = [path for part in ("objects", "refs") for path in (store / part).rglob("*") if path.is_file()]
    return {path: path.stat().st_ctime_ns for path in files}


def test_nothing_changed_is_nothing_written(kit: Kit, workspace: Workspace) -> None:
    first = taken(kit, workspace)
    before = written(kit)

    second = taken(kit, workspace)

    assert (second.commit, second.tree, second.notes) == (first.commit, first.tree, ())
    assert (base(kit, workspace), written(kit)) == (first.commit, before)


@pytest.mark.parametrize(
    ("change", "objects"),
    [("content", 3), ("content of another", 2), ("new file in a directory", 5), ("executable", 2), ("file moved", 3)],
)
def test_no_more_is_written_than_a_change_needs(tmp_path: Path, change: str, objects: int) -> None:
    kit = Kit.in_directory(tmp_path)  # what other tests left in a store would count
    workspace = furnished(kit, "ws")
    taken(kit, workspace)
    before = kit.objects()
    CHANGES[change](root_of(workspace))

    taken(kit, workspace)

    assert kit.objects() - before == objects


def nested(root: Path) -> None:
    (root / "nested").mkdir()
    for arguments in (
        ["init", "-q"],
        ["-c", "user.name=P", "-c", "user.email=p@x", "commit", "-q", "--allow-empty", "-m", "1"],
    ):
        subprocess.run(["git", *arguments], cwd=root / "nested", check=True)


def swap(root: Path, name: str, make: Callable[[Path], object]) -> None:
    place = root / name
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink()
    make(place)


def directory(place: Path) -> None:
    place.mkdir()
    (place / "inside").write_text("one\n")


CHANGES: dict[str, Callable[[Path], object]] = {
    "content": lambda root: (root / "a").write_text("three\n"),
    "content of another": lambda root: (root / "a").write_text("two\n"),
    "new file": lambda root: (root / "new").write_text("new\n"),
    "new file of old content": lambda root: (root / "new").write_text("one\n"),
    "two new files of one content": lambda root: [(root / name).write_text("new\n") for name in ("n1", "n2")],
    "new file in a directory": lambda root: (root / "d/e/new").write_text("new\n"),
    "file gone": lambda root: (root / "a").unlink(),
    "last file of a directory gone": lambda root: (root / "d/e/y").unlink(),
    "file moved": lambda root: (root / "a").rename(root / "d/moved"),
    "files swapped": lambda root: [(root / "a").write_text("two\n"), (root / "b").write_text("one\n")],
    "bits": lambda root: (root / "a").chmod(0o600),
    "executable": lambda root: (root / "a").chmod(0o755),
    "no longer executable": lambda root: (root / "script").chmod(0o644),
    "bits of a directory": lambda root: (root / "d").chmod(0o711),
    "link elsewhere": lambda root: swap(root, "link", lambda place: place.symlink_to("b")),
    "link to file of its text": lambda root: swap(root, "link", lambda place: place.write_text("a")),
    "file to link of its text": lambda root: swap(root, "a", lambda place: place.symlink_to("one\n")),
    "link to directory": lambda root: swap(root, "link", directory),
    "link gone": lambda root: (root / "link").unlink(),
    "file to directory": lambda root: swap(root, "a", directory),
    "directory to file": lambda root: swap(root, "d", lambda place: place.write_text("one\n")),
    "directory to link": lambda root: swap(root, "d", lambda place: place.symlink_to("a")),
    "directory gone": lambda root: shutil.rmtree(root / "d"),
    "empty directory": lambda root: (root / "hollow").mkdir(),
    "empty directory gone": lambda root: (root / "empty").rmdir(),
    "empty directory filled": lambda root: (root / "empty/f").write_text("one\n"),
    "nested repository": nested,
    "all gone": lambda root: [swap(root, name, Path.mkdir) or (root / name).rmdir() for name in os.listdir(root)],
}


@pytest.mark.parametrize("change", CHANGES)
def test_change_is_captured_as_if_all_was_new(kit: Kit, fresh: Kit, workspace: Workspace, change: str) -> None:
    first = taken(kit, workspace)
    CHANGES[change](root_of(workspace))

    second = taken(kit, workspace)

    assert second.tree != first.tree
    assert is_as_from_scratch(second, kit, fresh, workspace)
    assert second.before is first.rows
    assert second.changed == {
        path for path in {*first.rows, *second.rows} if first.rows.get(path) != second.rows.get(path)
    }
    assert base(kit, workspace) == second.commit


def test_nested_repository_that_moved_on_or_became_a_file_is_captured_so(
    kit: Kit, fresh: Kit, workspace: Workspace
) -> None:
    nested(root_of(workspace))
    first = taken(kit, workspace)
    assert listing(kit, first.commit)["nested"][0] == "160000"
    kit.write(workspace, "nested/x", b"x\n")
    again = ["-c", "user.name=P", "-c", "user.email=p@x", "commit", "-q", "--allow-empty", "-m", "2"]
    subprocess.run(["git", *again], cwd=root_of(workspace) / "nested", check=True)

    moved = taken(kit, workspace)
    shutil.rmtree(root_of(workspace) / "nested")
    kit.write(workspace, "nested", b"one\n")
    became = taken(kit, workspace)

    assert listing(kit, moved.commit)["nested"] != listing(kit, first.commit)["nested"]
    assert listing(kit, became.commit)["nested"] == ("100644", blob_oid(b"one\n"))
    assert is_as_from_scratch(became, kit, fresh, workspace)


# --- what will not keep still


MOVES: dict[str, tuple[str, Callable[[Path], object]]] = {
    "changed": ("a", lambda root: (root / "a").write_text("moved\n")),
    "grown": ("a", lambda root: (root / "a").write_text((root / "a").read_text() + "more\n")),
    "cut": ("a", lambda root: (root / "a").write_text("")),
    "gone": ("a", lambda root: (root / "a").unlink()),
    "a link of its text": ("a", lambda root: swap(root, "a", lambda place: place.symlink_to(place.name))),
    "a directory": ("a", lambda root: swap(root, "a", directory)),
    "a pipe": ("a", lambda root: swap(root, "a", os.mkfifo)),
    "link elsewhere": ("link", lambda root: swap(root, "link", lambda place: place.symlink_to("moved"))),
    "link gone": ("link", lambda root: (root / "link").unlink()),
    "link a file": ("link", lambda root: swap(root, "link", lambda place: place.write_text("a"))),
}


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("first", [True, False], ids=["first", "later"])
def test_file_that_moved_since_it_was_read_is_named_and_the_base_stays(
    kit: Kit, workspace: Workspace, move: str, *, first: bool
) -> None:
    if not first:
        taken(kit, workspace)
        kit.write(workspace, "a", b"later\n")
        CHANGES["link elsewhere"](root_of(workspace))
    before = base(kit, workspace)
    path, change = MOVES[move]

    with kit.store.use(workspace, "a test"):
        scan = look(kit.store, workspace, frozenset())
        change(root_of(workspace))
        with pytest.raises(FilesMoved) as caught:
            write_scan(kit.store, workspace, kit.store.index(workspace), scan)

    assert caught.value.paths == (path,)
    assert base(kit, workspace) == before


class Restless:
    """Changes something each time that a workspace has just been looked at."""

    def __init__(self, change: Callable[[int], object]) -> None:
        self.count = 0
        self._change = change

    def __call__(self, *_arguments: object) -> None:
        self.count += 1
        self._change(self.count)


def restless(workspace: Workspace, count: int) -> bytes:
    """A content that no other workspace holds."""
    return f"restless {count} {workspace.root}\n".encode()


@pytest.mark.parametrize("others", [0, 100], ids=["few", "many"])
def test_file_that_never_keeps_still_costs_no_checkpoint_and_is_held_as_it_was_read(
    kit: Kit, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, others: int
) -> None:
    for path in ("a", *(f"many/{number}" for number in range(others))):
        kit.write(workspace, path, f"{path} {workspace.root}".encode())  # what the store does not hold yet
    change = Restless(lambda count: kit.write(workspace, "a", restless(workspace, count)))
    monkeypatch.setattr("engine.checkpoints.capture.remove_old_leftovers", change)

    captured = taken(kit, workspace)

    assert change.count > 1
    assert captured.rows["a"].entry.oid == blob_oid(restless(workspace, 1))
    assert kit.content(captured.commit, "a") == restless(workspace, 1)


def test_files_that_never_keep_still_may_hold_what_the_store_has(
    kit: Kit, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that writes a file anew empties it first; the store has nothing for good reasons."""
    contents = [b"", b"other\n"]
    for number, content in enumerate(contents):
        kit.write(workspace, f"known {number}", content)
    taken(kit, workspace)
    for number in range(20):
        kit.write(workspace, f"many/{number}", b"")
    change = Restless(lambda count: [kit.write(workspace, f"many/{n}", contents[count % 2]) for n in range(20)])
    monkeypatch.setattr("engine.checkpoints.capture.remove_old_leftovers", change)

    captured = taken(kit, workspace)

    assert captured.rows["many/7"].entry.oid in {blob_oid(content) for content in contents}
    assert kit.content(captured.commit, "many/7") in contents


def test_links_that_never_keep_still_are_an_error_that_says_so(
    kit: Kit, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def turn(count: int) -> None:
        link = root_of(workspace) / "link"
        link.unlink()
        link.symlink_to(f"elsewhere {count} {workspace.root}")

    turn(0)
    monkeypatch.setattr("engine.checkpoints.capture.remove_old_leftovers", Restless(turn))

    with pytest.raises(CaptureFailed, match="kept changing while they were read; try again") as caught:
        taken(kit, workspace)

    assert workspace.root in str(caught.value)
    assert base(kit, workspace) is None


def test_capture_that_looks_at_everything_sees_what_the_feed_did_not_tell(kit: Kit, workspace: Workspace) -> None:
    feed = Feed()
    told = feed.of(workspace)
    with kit.store.use(workspace, "a test"):
        first = capture(kit.store, workspace, frozenset(), feed=told)
        kit.write(workspace, "a", b"unheard\n")
        told.take(first.commit)  # lost on the way,
        told._recent.clear()  # and forgotten

        second = capture(kit.store, workspace, frozenset(), feed=told, anew=True)

    feed.close()
    assert second.rows["a"].entry.oid == blob_oid(b"unheard\n")


def test_temporary_files_of_a_writer_killed_long_ago_are_swept(kit: Kit, workspace: Workspace) -> None:
    old, young = f"{TEMP_PREFIX}{'0' * 16}", f"{TEMP_PREFIX}{'1' * 16}"
    for name in (old, young):
        kit.write(workspace, f"d/{name}", b"half")
    make_old(root_of(workspace) / "d" / old)

    captured = taken(kit, workspace)

    assert sorted(os.listdir(root_of(workspace) / "d")) == [young, "e", "x"]
    assert f"d/{young}" not in captured.rows


# --- what it is built on


@pytest.mark.parametrize(
    "changes",
    [
        ("content", "file moved", "no longer executable", "empty directory gone", "link elsewhere"),
        ("directory to file", "file to directory", "link to directory"),
        ("directory gone", "file to link of its text", "link to file of its text"),
        ("nested repository",),
    ],
    ids=" and ".join,
)
def test_index_of_an_older_base_is_set_right_by_what_the_base_holds(
    kit: Kit, fresh: Kit, workspace: Workspace, changes: Sequence[str]
) -> None:
    older = taken(kit, workspace)
    for change in changes:
        CHANGES[change](root_of(workspace))
    newer = taken(kit, workspace)
    kit.store = kit.open_again()  # as after a crash: the index was not written after the second capture
    with kit.store.use(workspace, "a test"):
        assert kit.store.index(workspace).base == older.commit

    again = taken(kit, workspace)
    kit.write(workspace, "b", b"further\n")
    further = taken(kit, workspace)

    assert (again.tree, MODES_PATH in again.changed) == (newer.tree, False)
    assert is_as_from_scratch(further, kit, fresh, workspace)


def test_what_only_the_base_knows_goes_where_it_is_gone_from_the_workspace(
    kit: Kit, fresh: Kit, workspace: Workspace
) -> None:
    taken(kit, workspace)
    for name in ("new", "d/new", "bin"):
        kit.write(workspace, name, name.encode())
    (root_of(workspace) / "bin").chmod(0o755)
    (root_of(workspace) / "new link").symlink_to("a")
    taken(kit, workspace)
    for name in ("new", "d/new", "bin", "new link"):
        (root_of(workspace) / name).unlink()
    kit.store = kit.open_again()

    assert is_as_from_scratch(taken(kit, workspace), kit, fresh, workspace)


def test_older_content_of_what_grew_too_large_is_kept_also_where_the_index_lags_behind(
    kit: Kit, workspace: Workspace
) -> None:
    workspace = replace(workspace, limits=Limits(max_file_size_bytes=1000))
    taken(kit, workspace)
    kit.write(workspace, "a", b"later\n")
    taken(kit, workspace)
    kit.store = kit.open_again()
    kit.write(workspace, "b", b"x" * 1001)

    captured = taken(kit, workspace)

    assert [(gap.path, gap.reason, gap.older) for gap in captured.gaps] == [("b", GapReason.TOO_LARGE, True)]
    assert listing(kit, captured.commit)["b"] == ("100644", blob_oid(b"two\n"))


def test_base_with_a_broken_directory_that_the_index_lags_behind_is_captured_anew(
    kit: Kit, fresh: Kit, workspace: Workspace, tmp_path: Path
) -> None:
    taken(kit, workspace)
    kit.write(workspace, "d/e/mark", tmp_path.name.encode())
    second = taken(kit, workspace)
    spoil(kit, [kit.store.git.run(["rev-parse", f"{second.commit}:d/e"]).decode().strip()])
    kit.store = kit.open_again()

    third = taken(kit, workspace)

    assert is_as_from_scratch(third, kit, fresh, workspace)
    assert kit.content(third.commit, "d/e/mark") == tmp_path.name.encode()


def test_deleted_index_costs_nothing_but_a_look(kit: Kit, fresh: Kit, workspace: Workspace) -> None:
    first = taken(kit, workspace)
    Path(kit.store.layout.index(workspace.hash)).unlink()
    kit.store = kit.open_again()

    second = taken(kit, workspace)
    (root_of(workspace) / "a").unlink()
    third = taken(kit, workspace)

    assert second.tree == first.tree
    assert is_as_from_scratch(third, kit, fresh, workspace)


def test_lost_name_of_the_base_means_a_whole_capture(kit: Kit, workspace: Workspace) -> None:
    first = taken(kit, workspace)
    update_refs(kit.store.git, delete=[base_ref(workspace.hash)])
    kit.store = kit.open_again()

    second = taken(kit, workspace)

    assert second.tree == first.tree
    assert second.changed == second.rows.keys()
    assert base(kit, workspace) == second.commit


def test_base_whose_objects_are_lost_is_captured_anew(tmp_path: Path) -> None:
    kit = Kit.in_directory(tmp_path)
    workspace = kit.workspace("ws")
    kit.write(workspace, "d/x", b"x\n")
    first = taken(kit, workspace)
    index = kit.store.layout.index(workspace.hash)
    kit.store.git.run(["gc", "--quiet", "--prune=now"])
    for pack in Path(kit.store.layout.store, "objects", "pack").iterdir():
        pack.unlink()
    Path(index).unlink()
    kit.store = kit.open_again()

    with pytest.raises(GitFailed):
        listing(kit, first.commit)
    second = taken(kit, workspace)

    assert second.tree == first.tree
    assert listing(kit, second.commit).keys() == {"d/x"}
    assert kit.content(second.commit, "d/x") == b"x\n"


# --- what the store has, but broken


def spoil(kit: Kit, oids: Iterable[str]) -> None:
    for oid in oids:
        path = Path(kit.store.layout.store, "objects", oid[:2], oid[2:])
        path.chmod(0o600)
        path.write_bytes(b"garbage")


def fill(kit: Kit, workspace: Workspace, mark: str) -> dict[str, bytes]:
    """Put into a workspace what no other one holds, and return what git is to hold of it."""
    kit.write(workspace, "d/precious", mark.encode())
    (root_of(workspace) / "precious link").symlink_to(mark)
    kit.write(workspace, mark, b"")
    (root_of(workspace) / mark).chmod(0o640)
    return {"d/precious": mark.encode(), "precious link": mark.encode()}


@pytest.mark.parametrize("first", [True, False], ids=["first", "later"])
def test_whatever_a_capture_stands_on_is_written_anew_where_it_is_broken(
    kit: Kit, tmp_path: Path, *, first: bool
) -> None:
    mark = tmp_path.name
    earlier = kit.workspace(f"{mark}.earlier")
    fill(kit, earlier, mark)
    broken = taken(kit, earlier)
    trees = kit.store.git.run(["ls-tree", "-r", "-d", "--object-only", broken.commit]).decode().split()
    modes = kit.content(broken.commit, MODES_PATH)
    spoil(kit, {blob_oid(mark.encode()), blob_oid(modes), broken.tree, *trees})
    kit.store = kit.open_again()
    workspace = kit.workspace(mark)
    if not first:
        kit.write(workspace, "d/precious", b"something else\n")
        taken(kit, workspace)

    wanted = fill(kit, workspace, mark)
    captured = taken(kit, workspace)

    assert captured.tree == broken.tree
    assert {path: kit.content(captured.commit, path) for path in wanted} == wanted
    assert kit.content(captured.commit, MODES_PATH) == modes


@pytest.mark.parametrize("others", [0, 100], ids=["few", "many"])
def test_file_that_moves_before_its_broken_object_is_mended_is_read_again(
    kit: Kit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: int
) -> None:
    mark = tmp_path.name
    earlier = kit.workspace(f"{mark}.earlier")
    kit.write(earlier, "a", mark.encode())
    taken(kit, earlier)
    spoil(kit, [blob_oid(mark.encode())])
    workspace = kit.workspace(mark)
    kit.write(workspace, "a", mark.encode())
    for number in range(others):
        kit.write(workspace, f"many/{number}", f"{number} {mark}".encode())
    change = Restless(lambda count: kit.write(workspace, "a", restless(workspace, count)))
    monkeypatch.setattr("engine.checkpoints.capture.remove_old_leftovers", change)

    captured = taken(kit, workspace)

    assert kit.content(captured.commit, "a") == restless(workspace, 1)


@pytest.mark.parametrize("others", [1, 100], ids=["few", "many"])
def test_capture_that_failed_doubts_what_it_builds_on(kit: Kit, workspace: Workspace, others: int) -> None:
    kit.write(workspace, "a", workspace.root.encode())
    captured = taken(kit, workspace)
    assert kit.store.remembered(workspace).proved
    for number in range(others):
        kit.write(workspace, f"many/{number}", f"{number} {workspace.root}".encode())

    with kit.store.use(workspace, "a test"):
        scan = look(kit.store, workspace, frozenset())
        spoil(kit, [captured.tree])
        with pytest.raises(StoreDamaged):
            write_scan(kit.store, workspace, kit.store.index(workspace), scan)

    assert not kit.store.remembered(workspace).proved


# --- what is said


@pytest.mark.parametrize(("limit", "said"), [(300, True), (399, True), (400, False), (401, False)])
def test_checkpoint_that_adds_more_than_the_threshold_says_how_much_and_the_largest(
    kit: Kit, *, limit: int, said: bool
) -> None:
    workspace = replace(kit.workspace(f"large{limit}"), limits=Limits(large_checkpoint_bytes=limit))
    kit.write(workspace, "small", b"s" * 150)
    kit.write(workspace, "lar\nge", b"l" * 250)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        captured = taken(kit, workspace)

    assert [warning.category for warning in caught] == ([LargeCheckpointWarning] if said else [])
    assert all("the largest file is lar\\nge" in note for note in captured.notes)
    assert tuple(str(warning.message) for warning in caught) == captured.notes
    assert len(captured.notes) == (1 if said else 0)


@pytest.mark.parametrize(
    ("message", "decoded"),
    [
        ('subject\n\n{"a": 1}\n', ("subject", {"a": 1})),
        ("subject\n\n[1]", ("subject", {})),
        ("subject\n\nnot ours", ("subject", {})),
        ("subject", ("subject", {})),
        ('subject\n\n{"a": "x\\n\\ny"}', ("subject", {"a": "x\n\ny"})),
    ],
)
def test_message_of_a_commit_is_a_subject_and_facts_if_it_is_ours(message: str, decoded: tuple[str, object]) -> None:
    assert decode_message(message) == decoded


def test_facts_of_a_commit_come_back_whatever_is_in_them() -> None:
    facts = {"path": "na\udcffme", "number": 5, "text": "é\n\n"}

    message = encode_message("before é: na\udcffme", facts).decode()

    assert decode_message(message) == ("before é: na\\udcffme", facts)
