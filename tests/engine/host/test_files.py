"""What each operation on a tree does to a file system that nobody else changes meanwhile."""

import gc
import os
import socket
import stat
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.host.files import ANY, ContentChanged, Signature, Tree
from engine.host.paths import PathUnsafe

NAMES = [
    "new\nline",
    "tab\t",
    "trailing ",
    " leading",
    "-dash",
    ":colon",
    "[1]",
    "back\\slash",
    '"quoted"',
    "日本語",
]
if sys.platform != "darwin":  # APFS takes nothing but UTF-8
    NAMES.append(os.fsdecode(b"\xff\xfe\x80"))


@pytest.fixture(autouse=True)
def no_descriptor_is_leaked() -> Iterator[None]:
    gc.collect()  # what an earlier test of this process left to the collector is not ours
    before = sorted(os.listdir("/dev/fd"))
    yield
    assert sorted(os.listdir("/dev/fd")) == before


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "root"
    path.mkdir()
    return path


@pytest.fixture
def tree(root: Path, no_descriptor_is_leaked: None) -> Iterator[Tree]:
    with Tree.open(str(root)) as opened:
        yield opened


@pytest.fixture
def ordinary_user(tree: Tree) -> Iterator[None]:
    """Root may read anything; step down for the time of a test. The tree stays reachable by its descriptor."""
    if os.geteuid() != 0:
        yield
        return
    os.chown(tree.root, 65534, 65534)
    os.setegid(65534)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def put(tree: Tree, path: str, content: bytes = b"content", mode: int = 0o644) -> Signature:
    tree.ensure_parents(path)
    return tree.write_file(path, [content], mode)


def test_the_root_must_be_a_directory(root: Path) -> None:
    (root / "file").write_bytes(b"")

    with pytest.raises(NotADirectoryError):
        Tree.open(str(root / "file"))
    with pytest.raises(FileNotFoundError):
        Tree.open(str(root / "missing"))


def test_the_root_is_known_by_its_real_path(root: Path) -> None:
    (root.parent / "alias").symlink_to(root)

    with Tree.open(str(root.parent / "alias")) as tree:
        assert tree.root == os.path.realpath(root)


def test_a_closed_tree_touches_nothing(root: Path) -> None:
    tree = Tree.open(str(root))
    tree.close()
    tree.close()

    with pytest.raises(OSError, match="Bad file descriptor"):
        tree.write_file("a", [b""], 0o644)
    assert list(root.iterdir()) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_any_bytes_round_trips(tree: Tree, name: str) -> None:
    path = f"{name}/{name}"

    put(tree, path, b"x")

    assert tree.list("") == [name]
    assert tree.list(name) == [name]
    with tree.open_file(path) as file:
        assert file.read() == b"x"
    tree.remove_file(path)
    assert tree.remove_directory(name)


def test_two_hundred_levels_longer_than_any_path_may_be(tree: Tree) -> None:
    parts = [f"level-{depth:03}-{'x' * 40}" for depth in range(200)]
    path = "/".join([*parts, "file"])
    assert len(path) > os.pathconf("/", "PC_PATH_MAX")

    made = tree.ensure_parents(path)
    signature = tree.write_file(path, [b"deep"], 0o640, expected=None)

    assert made == ["/".join(parts[: depth + 1]) for depth in range(200)]
    assert tree.signature(path) == signature
    with tree.open_file(path) as file:
        assert file.read() == b"deep"
    tree.change_mode(path, 0o600)
    tree.remove_file(path)
    for directory in reversed(made):
        assert tree.remove_directory(directory)
    assert tree.list("") == []


# Reading


def test_a_signature_says_what_lstat_says(tree: Tree, root: Path) -> None:
    put(tree, "file", b"12345", 0o751)
    (root / "link").symlink_to("nowhere")

    assert tree.signature("file") == Signature.of(os.lstat(root / "file"))
    assert tree.signature("link") == Signature.of(os.lstat(root / "link"))
    assert tree.signature("") == Signature.of(os.lstat(root))
    found = tree.signature("file")
    assert found is not None
    assert (found.is_file, found.mode, found.size) == (True, 0o751, 5)


@pytest.mark.parametrize("path", ["missing", "missing/below", "file/below", "link/below", "x" * 300, "d/" + "x" * 300])
def test_nothing_stands_where_no_path_leads(tree: Tree, root: Path, path: str) -> None:
    put(tree, "file")
    put(tree, "d/below")
    (root / "link").symlink_to("d")

    assert tree.signature(path) is None


def test_a_malformed_path_is_an_error_not_an_absent_file(tree: Tree) -> None:
    for path in ["../x", "/x", "a/", ".git/x"]:
        with pytest.raises(PathUnsafe):
            tree.signature(path)


@pytest.mark.parametrize("kind", ["fifo", "socket", "directory", "link", "device-link"])
def test_nothing_but_a_regular_file_is_opened(
    tree: Tree, root: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = root / "thing"
    match kind:
        case "fifo":
            os.mkfifo(path)
        case "socket":
            monkeypatch.chdir(root)  # the name of a socket must be short
            with socket.socket(socket.AF_UNIX) as bound:
                bound.bind("thing")
        case "directory":
            path.mkdir()
        case "link":
            (root / "target").write_bytes(b"secret")
            path.symlink_to("target")
        case _:
            path.symlink_to("/dev/zero")

    with pytest.raises(PathUnsafe, match="not a regular file"):
        tree.open_file("thing")


def test_reading_never_passes_a_symlinked_parent(tree: Tree, root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/file").write_bytes(b"secret")
    (root / "link").symlink_to(tmp_path / "outside")

    for read in (tree.open_file, tree.read_link, tree.list, tree.entries):
        with pytest.raises(PathUnsafe, match=r"link is a symbolic link"):
            read("link/file")
    with pytest.raises(PathUnsafe, match=r"link is a symbolic link"):
        tree.list("link")


def test_a_link_target_of_any_bytes_round_trips(tree: Tree) -> None:
    for target in [b"a", b"../../up", b"/abs", b"\xff\n", b"x" * 4000]:
        signature = tree.write_link("link", target)

        assert tree.read_link("link") == target
        assert tree.signature("link") == signature
        assert signature.is_link


def test_entries_are_the_names_with_their_signatures(tree: Tree, root: Path) -> None:
    put(tree, "d/b")
    put(tree, "d/a")
    (root / "d/link").symlink_to("a")
    tree.make_directory("d/sub", 0o755)

    assert tree.list("d") == ["a", "b", "link", "sub"]
    assert tree.entries("d") == [(name, tree.signature(f"d/{name}")) for name in ["a", "b", "link", "sub"]]
    assert tree.entries("") == [("d", tree.signature("d"))]


# Writing


@pytest.mark.parametrize("mode", [0o644, 0o600, 0o755, 0o000, 0o444, 0o4755, 0o2711, 0o1777, 0o7777])
def test_a_written_file_has_exactly_these_permission_bits(tree: Tree, root: Path, mode: int) -> None:
    umask = os.umask(0o077)
    try:
        written = tree.write_file("file", [b"content"], mode)
        tree.make_directory("directory", mode)
    finally:
        os.umask(umask)

    assert written.mode == mode
    assert stat.S_IMODE((root / "file").lstat().st_mode) == mode
    assert stat.S_IMODE((root / "directory").lstat().st_mode) == mode


def test_chunks_arrive_in_order_and_the_signature_is_current(tree: Tree, root: Path) -> None:
    chunks = [b"", b"one ", b"", b"two", bytes(3_000_000)]

    signature = tree.write_file("file", iter(chunks), 0o644, expected=None)

    assert (root / "file").read_bytes() == b"".join(chunks)
    assert signature == tree.signature("file")


def test_other_names_of_a_file_keep_their_content_and_mode(tree: Tree, root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"old")
    outside.chmod(0o644)
    os.link(outside, root / "file")
    os.link(outside, root / "mode")

    tree.write_file("file", [b"new"], 0o600)
    changed = tree.change_mode("mode", 0o755)

    assert outside.read_bytes() == b"old"
    assert stat.S_IMODE(outside.stat().st_mode) == 0o644
    assert (root / "file").read_bytes() == b"new"
    assert (root / "mode").read_bytes() == b"old"
    assert changed == tree.signature("mode")
    assert changed.mode == 0o755


def test_a_symlink_is_replaced_never_followed(tree: Tree, root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"old")
    (root / "link").symlink_to(outside)

    tree.write_file("link", [b"new"], 0o644)

    assert outside.read_bytes() == b"old"
    assert not (root / "link").is_symlink()


def test_the_attributes_and_access_list_of_a_replaced_file_are_kept(tree: Tree, root: Path) -> None:
    nobody, unnamed = 65534, 2**32 - 1
    entries = [(1, 6, unnamed), (2, 4, nobody), (4, 4, unnamed), (16, 4, unnamed), (32, 0, unnamed)]
    access = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    (root / "file").write_bytes(b"old")
    os.setxattr(root / "file", "user.tag", b"mine")
    os.setxattr(root / "file", "system.posix_acl_access", access)

    tree.write_file("file", [b"new"], 0o640)

    assert os.getxattr(root / "file", "user.tag") == b"mine"
    assert os.getxattr(root / "file", "system.posix_acl_access") == access
    assert stat.S_IMODE((root / "file").stat().st_mode) == 0o640


def test_the_owner_of_a_replaced_file_is_kept(tree: Tree, root: Path) -> None:
    put(tree, "file", mode=0o4755)
    owner = (65534, 65534) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
    os.chown(root / "file", *owner)

    written = tree.write_file("file", [b"new"], 0o4755)

    status = (root / "file").stat()
    assert (status.st_uid, status.st_gid) == owner
    assert written.mode == 0o4755


def test_a_file_that_may_not_be_given_away_is_written_all_the_same(tree: Tree, root: Path, ordinary_user: None) -> None:
    put(tree, "file")

    tree.write_file("file", [b"new"], 0o644)

    with tree.open_file("file") as file:
        assert file.read() == b"new"


def test_nothing_expected_means_that_nothing_is_replaced(tree: Tree, root: Path) -> None:
    put(tree, "file", b"theirs")
    (root / "dangling").symlink_to("nowhere")
    tree.make_directory("directory", 0o755)

    for path in ["file", "dangling", "directory"]:
        before = tree.signature(path)
        for write in (
            lambda p: tree.write_file(p, [b"x"], 0o644, expected=None),
            lambda p: tree.write_link(p, b"x", expected=None),
        ):
            with pytest.raises(ContentChanged, match="was changed meanwhile") as caught:
                write(path)
            assert caught.value.found == before
        assert tree.signature(path) == before
    assert tree.list("") == ["dangling", "directory", "file"]


@pytest.mark.parametrize("change", ["rewritten", "same size", "mode", "other file", "gone", "directory"])
def test_a_file_that_changed_since_is_left_as_it_is(tree: Tree, root: Path, change: str) -> None:
    path = root / "file"
    expected = put(tree, "file", b"before")
    match change:
        case "rewritten":
            path.write_bytes(b"theirs, longer")
        case "same size":
            path.write_bytes(b"theirs")
            os.utime(path, ns=(expected.mtime_ns, expected.mtime_ns + 1))
        case "mode":
            path.chmod(0o600)
        case "other file":
            (root / "tmp").write_bytes(b"before")
            (root / "tmp").rename(path)
        case "gone":
            path.unlink()
        case _:
            path.unlink()
            path.mkdir()
    before = tree.entries("")

    changes = [
        lambda: tree.write_file("file", [b"x"], 0o644, expected=expected),
        lambda: tree.write_link("file", b"x", expected=expected),
        lambda: tree.remove_file("file", expected=expected),
        lambda: tree.change_mode("file", 0o777, expected=expected),
    ]
    for attempt in changes:
        with pytest.raises(ContentChanged, match=r"^file: (was changed|is gone) meanwhile; it was left as it is$"):
            attempt()

    assert tree.entries("") == before


def test_what_happens_inside_a_directory_does_not_change_the_directory(tree: Tree) -> None:
    tree.make_directory("d", 0o755)
    expected = tree.signature("d")
    put(tree, "d/file")

    assert tree.signature("d") != expected
    assert tree.change_mode("d", 0o700, expected=expected).mode == 0o700


def test_an_expected_file_is_replaced(tree: Tree) -> None:
    first = put(tree, "file", b"one")
    second = tree.write_file("file", [b"two"], 0o644, expected=first)
    third = tree.write_link("file", b"target", expected=second)

    tree.remove_file("file", expected=third)

    assert tree.list("") == []


def test_a_file_is_not_put_over_a_directory(tree: Tree) -> None:
    put(tree, "d/file")

    with pytest.raises(IsADirectoryError):
        tree.write_file("d", [b"x"], 0o644)
    with pytest.raises(IsADirectoryError):
        tree.write_link("d", b"x")
    with pytest.raises(IsADirectoryError):
        tree.remove_file("d")

    assert tree.list("") == ["d"]
    assert tree.list("d") == ["file"]


def test_a_missing_parent_is_said(tree: Tree) -> None:
    with pytest.raises(FileNotFoundError):
        tree.write_file("no/file", [b"x"], 0o644)


def test_without_hard_links_a_new_file_is_renamed_into_place(
    tree: Tree, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")  # what vfat says

    monkeypatch.setattr(os, "link", refuse)

    tree.write_file("file", [b"new"], 0o644, expected=None)
    tree.write_link("link", b"new", expected=None)

    assert (root / "file").read_bytes() == b"new"
    assert tree.list("") == ["file", "link"]


# Removing


def test_files_and_links_are_removed_not_what_links_point_to(tree: Tree, root: Path) -> None:
    put(tree, "file")
    (root / "link").symlink_to("file")

    tree.remove_file("link")

    assert tree.list("") == ["file"]
    with pytest.raises(FileNotFoundError):
        tree.remove_file("link")


def test_a_fifo_is_removed_only_when_it_is_expected(tree: Tree, root: Path) -> None:
    os.mkfifo(root / "fifo")

    with pytest.raises(PathUnsafe, match="neither a file nor a symbolic link"):
        tree.remove_file("fifo", expected=ANY)
    tree.remove_file("fifo", expected=tree.signature("fifo"))

    assert tree.list("") == []


def test_only_an_empty_directory_is_removed(tree: Tree, root: Path) -> None:
    put(tree, "d/file")
    (root / "link").symlink_to("d")
    put(tree, "plain")

    assert not tree.remove_directory("d")
    tree.remove_file("d/file")
    assert tree.remove_directory("d")
    for path in ["link", "plain"]:
        with pytest.raises(NotADirectoryError):
            tree.remove_directory(path)
    with pytest.raises(FileNotFoundError):
        tree.remove_directory("d")


# Directories


def test_parents_are_made_once_and_named_from_the_top(tree: Tree, root: Path) -> None:
    umask = os.umask(0o027)
    try:
        assert tree.ensure_parents("a/b/c/file") == ["a", "a/b", "a/b/c"]
        assert tree.ensure_parents("a/b/x/file") == ["a/b/x"]
        assert tree.ensure_parents("a/b/x/other") == []
        assert tree.ensure_parents("file") == []
    finally:
        os.umask(umask)

    assert stat.S_IMODE((root / "a/b").stat().st_mode) == 0o750


@pytest.mark.parametrize("blocker", ["file", "link"])
def test_parents_are_all_made_or_none(tree: Tree, root: Path, blocker: str) -> None:
    put(tree, "file")
    (root / "link").symlink_to("/tmp")

    with pytest.raises(PathUnsafe):
        tree.ensure_parents(f"{blocker}/x/y")
    with pytest.raises(OSError, match="File name too long"):
        tree.ensure_parents(f"new/deeper/{'x' * 300}/y")

    assert tree.list("") == ["file", "link"]


def test_a_directory_is_made_only_where_nothing_stands(tree: Tree) -> None:
    put(tree, "file")
    before = tree.entries("")

    with pytest.raises(FileExistsError):
        tree.make_directory("file", 0o755)
    with pytest.raises(FileNotFoundError):
        tree.make_directory("no/directory", 0o755)

    assert tree.entries("") == before


# Modes


def test_the_mode_of_a_file_and_a_directory_changes_without_touching_content(tree: Tree, root: Path) -> None:
    before = put(tree, "file")
    tree.make_directory("d", 0o755)

    changed = tree.change_mode("file", 0o4511, expected=before)
    tree.change_mode("d", 0o1700)

    assert changed == tree.signature("file")
    assert (changed.mode, changed.ino, changed.mtime_ns) == (0o4511, before.ino, before.mtime_ns)
    assert stat.S_IMODE((root / "d").stat().st_mode) == 0o1700


def test_the_mode_of_a_link_target_never_changes(tree: Tree, root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"")
    outside.chmod(0o644)
    (root / "link").symlink_to(outside)
    os.mkfifo(root / "fifo", 0o644)

    for path in ["link", "fifo"]:
        with pytest.raises(PathUnsafe, match="neither a file nor a directory"):
            tree.change_mode(path, 0o777)
    with pytest.raises(FileNotFoundError):
        tree.change_mode("missing", 0o777)

    assert stat.S_IMODE(outside.stat().st_mode) == 0o644


def test_the_mode_of_an_unreadable_file_can_be_changed_by_its_owner(tree: Tree, ordinary_user: None) -> None:
    put(tree, "file", mode=0o000)
    tree.make_directory("d", 0o000)

    assert tree.change_mode("file", 0o600).mode == 0o600
    assert tree.change_mode("d", 0o700).mode == 0o700


def test_a_directory_that_may_only_be_searched_is_passed_and_written(tree: Tree, ordinary_user: None) -> None:
    put(tree, "d/e/file")
    tree.change_mode("d", 0o311)

    put(tree, "d/new", b"x")

    with tree.open_file("d/e/file") as file:
        assert file.read() == b"content"
    with pytest.raises(PermissionError):
        tree.list("d")


def test_a_directory_without_write_permission_stays_as_it_is(tree: Tree, ordinary_user: None) -> None:
    put(tree, "d/file", b"old")
    tree.change_mode("d", 0o555)
    before = tree.entries("d")

    attempts = [
        lambda: tree.write_file("d/file", [b"new"], 0o644),
        lambda: tree.write_link("d/file", b"new"),
        lambda: tree.remove_file("d/file"),
        lambda: tree.make_directory("d/sub", 0o755),
        lambda: tree.ensure_parents("d/sub/file"),
    ]
    for attempt in attempts:
        with pytest.raises(PermissionError):
            attempt()

    assert tree.entries("d") == before
