"""Changes of several files are made together or not at all."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.errors import ToolRefused
from engine.host.files import ContentChanged, Tree
from engine.host.paths import PathUnsafe
from engine.tools.edits import (
    Edit,
    EditsFailed,
    FileEdit,
    FileRemoval,
    apply_edits,
    edited_paths,
    find_target,
    follow_link,
)

STEPS_OF_ALL = 24


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "root"
    path.mkdir()
    (path / "one").write_bytes(b"1")
    (path / "one").chmod(0o755)
    (path / "gone").write_bytes(b"2")
    (path / "gone").chmod(0o600)
    (path / "two").write_bytes(b"3")
    return path


def prepare(tree: Tree) -> list[Edit]:
    gone = tree.signature("gone")
    assert gone is not None
    return [
        FileEdit("one", tree.signature("one"), b"ONE", 0o755),
        FileRemoval("gone", gone),
        FileEdit("new/sub/file", None, b"NEW", 0o640),
        FileEdit("two", tree.signature("two"), b"TWO", 0o644),
    ]


def snapshot(root: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(root)): (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in root.rglob("*")
    }


class FailAt:
    """A fault hook that fails one step of all, and, when told so, every step after it."""

    def __init__(self, number: int, *, for_ever: bool = False) -> None:
        self.left = number
        self.for_ever = for_ever

    def __call__(self, _operation: str, _path: str) -> None:
        self.left -= 1
        if self.left == -1 or (self.left < -1 and self.for_ever):
            raise OSError(errno.ENOSPC, "No space left on device")


def test_every_change_is_made(root: Path) -> None:
    with Tree.open(str(root)) as tree:
        edits = prepare(tree)
        apply_edits(tree, edits)

    assert {path: content for path, (_, content) in snapshot(root).items()} == {
        "one": b"ONE",
        "new": b"",
        "new/sub": b"",
        "new/sub/file": b"NEW",
        "two": b"TWO",
    }
    assert edited_paths([*edits, edits[0]]) == ["one", "gone", "new/sub/file", "two"]


def test_the_steps_are_all_of_them(root: Path) -> None:
    fault = FailAt(STEPS_OF_ALL)

    with Tree.open(str(root), fault) as tree:
        apply_edits(tree, prepare(tree))

    assert fault.left == 0


@pytest.mark.parametrize("number", range(STEPS_OF_ALL))
def test_a_failure_at_any_step_puts_every_file_back(root: Path, number: int) -> None:
    before = snapshot(root)

    with Tree.open(str(root), FailAt(number)) as tree:
        edits = prepare(tree)
        with pytest.raises(OSError, match="No space left"):
            apply_edits(tree, edits)

    assert snapshot(root) == before


@pytest.mark.parametrize("number", range(STEPS_OF_ALL))
def test_what_cannot_be_put_back_is_named_and_nothing_else_changed(root: Path, number: int) -> None:
    before = snapshot(root)

    with Tree.open(str(root), FailAt(number, for_ever=True)) as tree:
        edits = prepare(tree)
        with pytest.raises((OSError, EditsFailed)) as caught:
            apply_edits(tree, edits)

    left = set(caught.value.left) if isinstance(caught.value, EditsFailed) else set()
    changed = {path for path, entry in before.items() if snapshot(root).get(path) != entry}
    assert changed <= left
    assert all(path in str(caught.value) for path in left)


@pytest.mark.parametrize("path", ["one", "gone", "two"])
def test_a_file_that_changed_since_keeps_all_as_they_are(root: Path, path: str) -> None:
    with Tree.open(str(root)) as tree:
        edits = prepare(tree)
        (root / path).write_bytes(b"theirs")
        before = snapshot(root)
        with pytest.raises(ContentChanged, match=path):
            apply_edits(tree, edits)

    assert snapshot(root) == before


def test_a_file_that_appeared_since_is_kept_and_the_others_put_back(root: Path) -> None:
    with Tree.open(str(root)) as tree:
        edits = prepare(tree)
        (root / "new/sub").mkdir(parents=True)
        (root / "new/sub/file").write_bytes(b"theirs")
        before = snapshot(root)
        with pytest.raises(ContentChanged, match="new/sub/file"):
            apply_edits(tree, edits)

    assert snapshot(root) == before


def test_a_change_by_somebody_else_in_between_is_not_overwritten_by_putting_back(root: Path) -> None:
    def interfere(operation: str, path: str) -> None:
        if (operation, path) == ("install", "two"):
            (root / "one").write_bytes(b"theirs, after ours")
            raise OSError(errno.EIO, "Input/output error")

    with Tree.open(str(root), interfere) as tree:
        edits = prepare(tree)
        with pytest.raises(EditsFailed, match=r"two could not be changed .*these files stay changed: one\.") as caught:
            apply_edits(tree, edits)

    assert caught.value.left == ("one",)
    assert (root / "one").read_bytes() == b"theirs, after ours"
    assert (root / "gone").read_bytes() == b"2"
    assert not (root / "new").exists()


def test_a_single_change_does_not_read_what_it_replaces(root: Path) -> None:
    os.truncate(root / "one", 1 << 40)  # a sparse file that no memory would hold

    with Tree.open(str(root)) as tree:
        apply_edits(tree, [FileEdit("one", tree.signature("one"), b"small", 0o644)])

    assert (root / "one").read_bytes() == b"small"


# Where a write goes


@pytest.fixture
def linked(root: Path) -> Path:
    (root / "d").mkdir()
    (root / "d/file").write_bytes(b"")
    links = {
        "link": "d/file",
        "chain": "link",
        "d/up": "../one",
        "absolute": str(root / "one"),
        "dangling": "d/missing",
        "directory": "d",
        "outside": "../outside",
        "absolute-outside": "/etc/passwd",
        "circle": "circle2",
        "circle2": "circle",
        "to-git": ".git/config",
        "to-root": ".",
    }
    for name, target in links.items():
        (root / name).symlink_to(target)
    os.mkfifo(root / "fifo")
    return root


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("one", "one"),
        ("missing", "missing"),
        ("missing/below", "missing/below"),
        ("link", "d/file"),
        ("chain", "d/file"),
        ("d/up", "one"),
        ("absolute", "one"),
        ("dangling", "d/missing"),
    ],
)
def test_a_write_goes_where_links_inside_lead(linked: Path, path: str, target: str) -> None:
    with Tree.open(str(linked)) as tree:
        assert find_target(tree, path) == (target, tree.signature(target))
        assert follow_link(tree, path) == target


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("", "name a file in it"),
        ("d", "d: is a directory"),
        ("directory", "directory: is a directory"),
        ("to-root", "is a directory"),
        ("outside", "is a symbolic link to ../outside, which is outside the workspace"),
        ("absolute-outside", "symbolic link to /etc/passwd, which is outside"),
        ("to-git", "belongs to git"),
        ("circle", "leads round in a circle"),
        ("fifo", "neither a file nor a directory"),
        ("one/below", "one is not a directory"),
        ("link/below/deeper", "link is not a directory"),
    ],
)
def test_where_no_file_can_be_written_is_refused(linked: Path, path: str, reason: str) -> None:
    with Tree.open(str(linked)) as tree, pytest.raises(ToolRefused, match=reason):
        find_target(tree, path)


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", ".git/config", "a//b", "x\0y"])
def test_a_malformed_path_is_unsafe(linked: Path, path: str) -> None:
    with Tree.open(str(linked)) as tree:
        for find in (find_target, follow_link):
            use: Callable[[Tree, str], object] = find
            with pytest.raises(PathUnsafe):
                use(tree, path)
