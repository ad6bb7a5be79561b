"""The tools read_file and write_file."""

import os
import stat
from pathlib import Path

import pytest

from engine.errors import ToolRefused
from engine.host.files import Tree
from engine.host.paths import PathUnsafe
from engine.model import Lines
from engine.tools.edits import FileEdit, apply_edits
from engine.tools.files import LIST_LIMIT, READ_LIMIT_BYTES, ReadResult, prepare_write, read_file


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "root"
    path.mkdir()
    return path


def read(root: Path, path: str, limit_bytes: int = READ_LIMIT_BYTES) -> ReadResult:
    with Tree.open(str(root)) as tree:
        return read_file(tree, path, limit_bytes=limit_bytes)


def write(root: Path, path: str, content: bytes, umask: int = 0o022) -> FileEdit:
    with Tree.open(str(root)) as tree:
        edit = prepare_write(tree, path, content, umask=umask)
        apply_edits(tree, [edit])
    return edit


# Reading


@pytest.mark.parametrize("content", ["", "a\n", "no end", "tab\there\r\n", "日本語 🙂\n", "\ufeffbom"])
def test_text_is_read_as_it_is(root: Path, content: str) -> None:
    (root / "file").write_bytes(content.encode())

    assert read(root, "file") == ReadResult(content, len(content.encode()))


def test_bytes_that_are_no_text_are_shown_escaped(root: Path) -> None:
    (root / "latin").write_bytes(b"caf\xe9 \xff\xfe\n\xf0\x9f")

    assert read(root, "latin").text == "caf\\xe9 \\xff\\xfe\n\\xf0\\x9f"


def test_a_binary_file_is_named_not_shown(root: Path) -> None:
    (root / "image").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")

    result = read(root, "image")

    assert result.binary
    assert result.text == "image is a binary file of 16 bytes; it is not shown."


def test_a_long_file_is_cut_and_that_is_said(root: Path) -> None:
    (root / "long").write_bytes(b"0123456789\n" * 10)

    result = read(root, "long", 26)

    assert result.text == "0123456789\n0123456789\n0123\n[cut: the first 26 of 110 bytes are shown]\n"
    assert (result.size_bytes, result.cut_bytes) == (110, 84)


def test_a_file_of_exactly_the_limit_is_whole(root: Path) -> None:
    (root / "file").write_bytes(b"12345")

    assert read(root, "file", 5) == ReadResult("12345", 5)


def test_a_character_is_never_cut_in_two(root: Path) -> None:
    (root / "file").write_bytes("ab🙂cd".encode())

    for limit in (3, 4, 5):
        assert read(root, "file", limit).text.startswith("ab\n[cut")
    assert read(root, "file", 6).text.startswith("ab🙂\n[cut")


def test_a_directory_is_listed_with_what_its_entries_are(root: Path) -> None:
    (root / "d").mkdir()
    (root / "d/file").write_bytes(b"123")
    (root / "d/sub").mkdir()
    (root / "d/link").symlink_to("file")
    (root / "d/new\nline").write_bytes(b"")
    os.mkfifo(root / "d/pipe")
    (root / "d/.takeback-tmp-1").write_bytes(b"")

    result = read(root, "d")

    assert result.directory
    assert result.text.splitlines() == [
        "file (3 bytes)",
        "link -> file",
        "new\\nline (0 bytes)",
        "pipe (neither file nor directory)",
        "sub/",
    ]


def test_the_root_and_an_empty_directory_are_listed(root: Path) -> None:
    assert read(root, "").text == "[the directory is empty]\n"

    (root / "link").symlink_to("/etc")
    assert read(root, "").text == "link -> /etc\n"


def test_a_long_listing_is_cut_and_that_is_said(root: Path) -> None:
    for number in range(LIST_LIMIT + 2):
        (root / f"{number:05}").touch()

    text = read(root, "").text

    assert text.splitlines()[-2:] == ["00999 (0 bytes)", "[cut: 1000 of 1002 names are shown]"]


def test_links_are_followed_inside_only(root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    (root / "file").write_bytes(b"here")
    (root / "inside").symlink_to("file")
    (root / "outside").symlink_to(tmp_path / "secret")

    assert read(root, "inside").text == "here"
    with pytest.raises(ToolRefused, match="outside the workspace"):
        read(root, "outside")


def test_nothing_else_is_read_and_a_fifo_never_blocks(root: Path) -> None:
    os.mkfifo(root / "fifo")
    (root / "dangling").symlink_to("nowhere")

    with pytest.raises(ToolRefused, match="neither a file nor a directory"):
        read(root, "fifo")
    for path in ["missing", "missing/below", "dangling"]:
        with pytest.raises(ToolRefused, match=f"{path}: there is no such file"):
            read(root, path)
    with pytest.raises(PathUnsafe):
        read(root, "../x")


# Writing


def test_a_new_file_gets_the_mode_that_the_umask_leaves(root: Path) -> None:
    assert write(root, "a/b", b"x").mode == 0o644
    assert write(root, "c", b"x", umask=0o077).mode == 0o600
    assert stat.S_IMODE((root / "c").stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o755, 0o600, 0o4750, 0o444])
def test_an_existing_file_keeps_its_mode(root: Path, mode: int) -> None:
    (root / "file").write_bytes(b"old")
    (root / "file").chmod(mode)

    write(root, "file", b"new")

    assert (root / "file").read_bytes() == b"new"
    assert stat.S_IMODE((root / "file").stat().st_mode) == mode


def test_preparing_changes_nothing_and_says_what_stands_there(root: Path) -> None:
    (root / "file").write_bytes(b"old")

    with Tree.open(str(root)) as tree:
        assert prepare_write(tree, "file", b"new") == FileEdit("file", tree.signature("file"), b"new", 0o644)
        assert prepare_write(tree, "x/y", b"new") == FileEdit("x/y", None, b"new", 0o644)

    assert os.listdir(root) == ["file"]
    assert (root / "file").read_bytes() == b"old"


def test_a_write_to_a_link_goes_where_it_leads(root: Path) -> None:
    (root / "file").write_bytes(b"old")
    (root / "link").symlink_to("file")
    (root / "dangling").symlink_to("d/new")

    write(root, "link", b"new")
    write(root, "dangling", b"made")

    assert (root / "link").is_symlink()
    assert (root / "file").read_bytes() == b"new"
    assert (root / "d/new").read_bytes() == b"made"


def test_a_write_out_of_the_workspace_is_refused(root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").write_bytes(b"old")
    (root / "link").symlink_to(tmp_path / "outside")

    with pytest.raises(ToolRefused, match="outside the workspace"):
        write(root, "link", b"new")
    for path in ["../outside", "/etc/x", ".git/config", "sub/.GIT/hooks/x"]:
        with pytest.raises(PathUnsafe):
            write(root, path, b"new")

    assert (tmp_path / "outside").read_bytes() == b"old"


def test_a_directory_is_never_overwritten(root: Path) -> None:
    (root / "d").mkdir()

    with pytest.raises(ToolRefused, match="d: is a directory"):
        write(root, "d", b"x")
    with pytest.raises(ToolRefused, match="workspace itself"):
        write(root, "", b"x")


# Lines


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (Lines(2, 3), "two\nthree\n[lines 2 to 3]\n"),
        (Lines(last=1), "one\n[lines 1 to 1]\n"),
        (Lines(3), "three\nfour\n[lines 3 to 4, the end of the file]\n"),
        (Lines(4, 9), "four\n[lines 4 to 4, the end of the file]\n"),
    ],
)
def test_some_lines_are_read_and_it_is_said_which(root: Path, lines: Lines, text: str) -> None:
    (root / "file").write_text("one\ntwo\nthree\nfour")

    with Tree.open(str(root)) as tree:
        assert read_file(tree, "file", lines).text == text


@pytest.mark.parametrize(
    ("lines", "says"), [(Lines(5), "has only 4 lines"), (Lines(3, 2), "has no lines 3 to 2"), (Lines(0), "from 1")]
)
def test_lines_that_are_not_there_are_refused(root: Path, lines: Lines, says: str) -> None:
    (root / "file").write_text("one\ntwo\nthree\nfour\n")

    with Tree.open(str(root)) as tree, pytest.raises(ToolRefused, match=says):
        read_file(tree, "file", lines)


def test_lines_past_the_limit_are_left_for_the_next_time(root: Path) -> None:
    (root / "file").write_text("12345\n" * 4 + "x" * 50)

    with Tree.open(str(root)) as tree:
        assert read_file(tree, "file", Lines(2), limit_bytes=12).text == (
            "12345\n12345\n[lines 2 to 3; cut: ask for line 4 and what follows]\n"
        )
        assert read_file(tree, "file", Lines(5), limit_bytes=12).text == (
            "xxxxxxxxxxxx\n[line 5, cut: its first 12 bytes are shown]\n"
        )


def test_a_binary_file_has_no_lines(root: Path) -> None:
    (root / "image").write_bytes(b"a\nb\n\0")

    with Tree.open(str(root)) as tree:
        assert "binary" in read_file(tree, "image", Lines(1, 1)).text
