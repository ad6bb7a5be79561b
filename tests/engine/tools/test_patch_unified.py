"""Unified diffs, as git, diff and models write them."""

import os
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.errors import ToolRefused
from engine.host.files import Tree
from engine.host.paths import PathUnsafe, resolve_inside
from engine.tools.edits import FileEdit, FileRemoval, apply_edits
from engine.tools.patch import prepare_patch

ROWS = b"".join(b"row %d\n" % number for number in range(1, 11))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "root"
    path.mkdir()
    (path / "app.py").write_bytes(b"one\ntwo\nthree\nfour\nfive\n")
    (path / "rows").write_bytes(ROWS)
    return path


@pytest.fixture
def apply(root: Path) -> Callable[[str], None]:
    def run(text: str) -> None:
        with Tree.open(str(root)) as tree:
            apply_edits(tree, prepare_patch(tree, text, lambda name: resolve_inside(str(root), str(root), name)))

    return run


def snapshot(root: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(root)): (path.read_bytes(), path.stat().st_mode)
        for path in root.rglob("*")
        if path.is_file()
    }


CHANGE = """\
--- a/app.py
+++ b/app.py
@@ -1,3 +1,4 @@
 one
-two
+TWO
+and a half
 three
"""


def test_a_change_is_applied_to_the_byte(root: Path, apply: Callable[[str], None]) -> None:
    (root / "app.py").chmod(0o751)

    apply(CHANGE)

    assert (root / "app.py").read_bytes() == b"one\nTWO\nand a half\nthree\nfour\nfive\n"
    assert stat.S_IMODE((root / "app.py").stat().st_mode) == 0o751


def test_preparing_writes_nothing(root: Path) -> None:
    before = snapshot(root)

    with Tree.open(str(root)) as tree:
        edits = prepare_patch(tree, CHANGE, lambda name: name)
        assert edits == [
            FileEdit("app.py", tree.signature("app.py"), b"one\nTWO\nand a half\nthree\nfour\nfive\n", 0o644)
        ]

    assert snapshot(root) == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a/app.py", "b/app.py"),
        ("app.py", "app.py"),
        ("app.py.orig", "app.py"),
        ("app.py", "app.py.new"),
        ("before/app.py\t2024-01-01 00:00:00.000000000 +0000", "after/app.py\t2024-01-02 00:00:00 +0000"),
        ("./app.py", "./app.py"),
        ("w/app.py", "i/app.py"),
    ],
)
def test_a_plain_diff_finds_the_file_that_there_is(
    root: Path, apply: Callable[[str], None], old: str, new: str
) -> None:
    apply(CHANGE.replace("a/app.py", old, 1).replace("b/app.py", new, 1))

    assert b"TWO" in (root / "app.py").read_bytes()


def test_a_directory_called_like_a_prefix_is_not_cut_off(root: Path, apply: Callable[[str], None]) -> None:
    (root / "b").mkdir()
    (root / "b/x").write_bytes(b"old\n")

    apply("--- b/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n")
    apply("diff --git b/x b/x\n--- b/x\n+++ b/x\n@@ -1 +1 @@\n-new\n+newer\n")

    assert (root / "b/x").read_bytes() == b"newer\n"


def test_text_around_a_diff_means_nothing(root: Path, apply: Callable[[str], None]) -> None:
    apply("Here is the change:\n\n- it is small\n\n```diff\nIndex: app.py\n=====\n" + CHANGE + "```\n\nThat was it.\n")

    assert b"TWO" in (root / "app.py").read_bytes()


def test_mailed_patches_follow_each_other(root: Path, apply: Callable[[str], None]) -> None:
    mail = (
        "From 1234 Mon Sep 17 00:00:00 2001\nFrom: A <a@example.org>\nSubject: [PATCH] x\n\nWhy\n---\n"
        " app.py | 3 ++-\n 1 file changed, 2 insertions(+), 1 deletion(-)\n\n"
    )
    second = "--- a/rows\n+++ b/rows\n@@ -1 +1 @@\n-row 1\n+ROW 1\n"

    apply(f"{mail}{CHANGE}-- \n2.43.0\n\n{mail}{second}-- \n2.43.0\n\n")

    assert b"TWO" in (root / "app.py").read_bytes()
    assert (root / "rows").read_bytes().startswith(b"ROW 1\nrow 2\n")


def test_a_later_mail_renames_what_an_earlier_one_changed(root: Path, apply: Callable[[str], None]) -> None:
    rename = "diff --git a/app.py b/main.py\nsimilarity index 100%\nrename from app.py\nrename to main.py\n"

    apply(f"{CHANGE}-- \n2.43.0\n\n{rename}-- \n2.43.0\n\n")

    assert (root / "main.py").read_bytes() == b"one\nTWO\nand a half\nthree\nfour\nfive\n"
    assert not (root / "app.py").exists()


def test_hunks_move_together_to_the_only_place_they_fit(root: Path, apply: Callable[[str], None]) -> None:
    (root / "rows").write_bytes(b"new at the top\n" * 3 + ROWS)

    apply("--- a/rows\n+++ b/rows\n@@ -2,2 +2,2 @@\n row 2\n-row 3\n+ROW 3\n@@ -8,2 +8,1 @@\n row 8\n-row 9\n")

    expected = ROWS.replace(b"row 3\n", b"ROW 3\n").replace(b"row 9\n", b"")
    assert (root / "rows").read_bytes() == b"new at the top\n" * 3 + expected


def test_the_stated_line_decides_between_equal_places(root: Path, apply: Callable[[str], None]) -> None:
    (root / "same").write_bytes(b"x\n}\n" * 3)

    apply("--- a/same\n+++ b/same\n@@ -3,2 +3,2 @@\n x\n-}\n+};\n")

    assert (root / "same").read_bytes() == b"x\n}\nx\n};\nx\n}\n"


@pytest.mark.parametrize("header", ["@@ @@", "@@", "@@ ... @@", "@@ @@ def main():"])
def test_a_hunk_without_numbers_goes_where_it_fits(root: Path, apply: Callable[[str], None], header: str) -> None:
    apply(f"--- a/rows\n+++ b/rows\n{header}\n row 4\n-row 5\n+ROW 5\n\n")

    assert (root / "rows").read_bytes() == ROWS.replace(b"row 5", b"ROW 5")


def test_lines_that_look_like_headers_inside_a_hunk_are_lines(root: Path, apply: Callable[[str], None]) -> None:
    (root / "sql").write_bytes(b"-- a comment\n++ b\nselect\n")

    apply("--- a/sql\n+++ b/sql\n@@ -1,3 +1,3 @@\n--- a comment\n+++ another\n ++ b\n select\n")

    assert (root / "sql").read_bytes() == b"++ another\n++ b\nselect\n"


def test_an_empty_line_that_lost_its_blank_is_context(root: Path, apply: Callable[[str], None]) -> None:
    (root / "gap").write_bytes(b"a\n\nb\n\nc\n")

    apply("--- a/gap\n+++ b/gap\n@@ -1,5 +1,5 @@\n a\n\n-b\n+B\n\n c\n")

    assert (root / "gap").read_bytes() == b"a\n\nB\n\nc\n"


@pytest.mark.parametrize(
    ("before", "hunk", "after"),
    [
        (b"a", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n", b"b"),
        (b"a", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n", b"a\n"),
        (b"a\n", "@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n", b"a"),
        (b"a\nb", "@@ -1,2 +1,2 @@\n-a\n+A\n b\n\\ No newline at end of file\n", b"A\nb"),
        (b"a", "@@ -1 +1,2 @@\n-a\n\\ No newline at end of file\n+a\n+b\n", b"a\nb\n"),
    ],
)
def test_a_missing_newline_at_the_end_is_kept_made_or_removed(
    root: Path, apply: Callable[[str], None], before: bytes, hunk: str, after: bytes
) -> None:
    (root / "end").write_bytes(before)

    apply(f"--- a/end\n+++ b/end\n{hunk}")

    assert (root / "end").read_bytes() == after


def test_a_pasted_diff_may_lack_its_last_newline(root: Path, apply: Callable[[str], None]) -> None:
    apply(CHANGE.removesuffix("\n"))

    assert (root / "app.py").read_bytes() == b"one\nTWO\nand a half\nthree\nfour\nfive\n"


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_windows_file_stays_one_whatever_line_ends_the_diff_has(
    root: Path, apply: Callable[[str], None], ends: str
) -> None:
    (root / "app.py").write_bytes(b"one\r\ntwo\r\nthree\r\n")

    apply(CHANGE.replace("\n", ends))

    assert (root / "app.py").read_bytes() == b"one\r\nTWO\r\nand a half\r\nthree\r\n"


def test_a_diff_with_windows_line_ends_leaves_a_unix_file_one(root: Path, apply: Callable[[str], None]) -> None:
    apply(CHANGE.replace("\n", "\r\n"))

    assert (root / "app.py").read_bytes() == b"one\nTWO\nand a half\nthree\nfour\nfive\n"


def test_in_a_file_of_mixed_line_ends_only_the_exact_bytes_fit(root: Path, apply: Callable[[str], None]) -> None:
    (root / "mixed").write_bytes(b"a\r\nb\nc\n")

    with pytest.raises(ToolRefused, match="not in the file"):
        apply("--- a/mixed\n+++ b/mixed\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n")
    apply("--- a/mixed\n+++ b/mixed\n@@ -1,2 +1,2 @@\n a\r\n-b\n+B\r\n")

    assert (root / "mixed").read_bytes() == b"a\r\nB\r\nc\n"


@pytest.mark.parametrize("separator", [b"\r", b"\x0b", b"\x0c", b"\x1c", b"\x85", b"\xe2\x80\xa8", b"\xff"])
def test_only_a_newline_ends_a_line_and_any_bytes_are_kept(
    root: Path, apply: Callable[[str], None], separator: bytes
) -> None:
    (root / "odd").write_bytes(b"a" + separator + b"b\nc\n")
    patch = b"--- a/odd\n+++ b/odd\n@@ -1,2 +1,2 @@\n a" + separator + b"b\n-c\n+d" + separator + b"e\n"

    apply(patch.decode("utf-8", "surrogateescape"))

    assert (root / "odd").read_bytes() == b"a" + separator + b"b\nd" + separator + b"e\n"


# Making, removing, renaming


def test_a_file_is_made_with_its_directories(root: Path, apply: Callable[[str], None]) -> None:
    apply("--- /dev/null\n+++ b/pkg/sub/new.py\n@@ -0,0 +1,2 @@\n+a\n+b\n")

    assert (root / "pkg/sub/new.py").read_bytes() == b"a\nb\n"
    assert stat.S_IMODE((root / "pkg/sub/new.py").stat().st_mode) == 0o644


def test_git_makes_executable_and_empty_files(root: Path, apply: Callable[[str], None]) -> None:
    apply(
        "diff --git a/run b/run\nnew file mode 100755\nindex 0000000..1234567\n"
        "--- /dev/null\n+++ b/run\n@@ -0,0 +1 @@\n+#!\n"
        "diff --git a/my empty b/my empty\nnew file mode 100644\nindex 0000000..e69de29\n"
    )

    assert stat.S_IMODE((root / "run").stat().st_mode) == 0o755
    assert (root / "my empty").read_bytes() == b""


def test_diff_n_makes_a_file_it_names_on_both_sides(root: Path, apply: Callable[[str], None]) -> None:
    apply("--- new.py\t1970-01-01 00:00:00\n+++ new.py\t2024-01-01 00:00:00\n@@ -0,0 +1 @@\n+a\n")

    assert (root / "new.py").read_bytes() == b"a\n"


def test_a_file_is_removed_when_all_its_lines_are(root: Path, apply: Callable[[str], None]) -> None:
    (root / "gone").write_bytes(b"a\n")
    (root / "empty").write_bytes(b"")

    apply(
        "--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"
        "diff --git a/empty b/empty\ndeleted file mode 100644\nindex e69de29..0000000\n"
    )

    assert sorted(os.listdir(root)) == ["app.py", "rows"]


def test_a_rename_moves_content_and_mode(root: Path, apply: Callable[[str], None]) -> None:
    (root / "app.py").chmod(0o750)

    apply(
        "diff --git a/app.py b/pkg/main.py\nsimilarity index 80%\nrename from app.py\nrename to pkg/main.py\n"
        "--- a/app.py\n+++ b/pkg/main.py\n@@ -1,2 +1,2 @@\n-one\n+ONE\n two\n"
        "diff --git a/rows b/lines\nsimilarity index 100%\nrename from rows\nrename to lines\n"
    )

    assert (root / "pkg/main.py").read_bytes() == b"ONE\ntwo\nthree\nfour\nfive\n"
    assert stat.S_IMODE((root / "pkg/main.py").stat().st_mode) == 0o750
    assert (root / "lines").read_bytes() == ROWS
    assert sorted(os.listdir(root)) == ["lines", "pkg"]


def test_files_may_change_their_names_with_each_other_or_one_after_the_other(
    root: Path, apply: Callable[[str], None]
) -> None:
    one, two = (root / "app.py").read_bytes(), (root / "rows").read_bytes()
    swap = (
        "diff --git a/app.py b/rows\nrename from app.py\nrename to rows\n"
        "diff --git a/rows b/app.py\nrename from rows\nrename to app.py\n"
    )
    row = (
        "diff --git a/app.py b/app.py\nnew file mode 100644\n--- /dev/null\n+++ b/app.py\n@@ -0,0 +1 @@\n+new\n"
        "diff --git a/rows b/last\nrename from rows\nrename to last\n"
        "diff --git a/app.py b/rows\nrename from app.py\nrename to rows\n"
    )

    apply(swap)
    assert ((root / "app.py").read_bytes(), (root / "rows").read_bytes()) == (two, one)
    apply(row)
    assert [(root / name).read_bytes() for name in ("app.py", "rows", "last")] == [b"new\n", two, one]


def test_a_long_line_is_read_quickly(apply: Callable[[str], None]) -> None:
    begun_s = time.monotonic()

    with pytest.raises(ToolRefused):
        apply("diff --git " + "a " * 30_000 + '"\n')

    assert time.monotonic() - begun_s < 5


def test_a_copy_leaves_its_source(root: Path, apply: Callable[[str], None]) -> None:
    apply("diff --git a/rows b/more\nsimilarity index 100%\ncopy from rows\ncopy to more\n")

    assert (root / "rows").read_bytes() == (root / "more").read_bytes() == ROWS


@pytest.mark.parametrize(("before", "line", "after"), [(0o640, "100755", 0o750), (0o4755, "100644", 0o4644)])
def test_a_mode_line_changes_who_may_execute_and_nothing_else(
    root: Path, apply: Callable[[str], None], before: int, line: str, after: int
) -> None:
    (root / "app.py").chmod(before)

    apply(f"diff --git a/app.py b/app.py\nold mode 100644\nnew mode {line}\n")

    assert stat.S_IMODE((root / "app.py").stat().st_mode) == after
    assert (root / "app.py").read_bytes() == b"one\ntwo\nthree\nfour\nfive\n"


def test_a_quoted_name_is_the_name_it_stands_for(root: Path, apply: Callable[[str], None]) -> None:
    name = 'ä\n"q"\\\t\udcff.txt'
    (root / name).write_bytes(b"a\n")
    quoted = '\\303\\244\\n\\"q\\"\\\\\\t\\377.txt'

    apply(f'diff --git "a/{quoted}" "b/{quoted}"\n--- "a/{quoted}"\n+++ "b/{quoted}"\n@@ -1 +1 @@\n-a\n+b\n')

    assert (root / name).read_bytes() == b"b\n"


def test_several_parts_for_one_file_follow_each_other(root: Path, apply: Callable[[str], None]) -> None:
    apply(CHANGE + "--- a/app.py\n+++ b/app.py\n@@ -2,2 +2,2 @@\n-TWO\n+2\n and a half\n")

    assert (root / "app.py").read_bytes() == b"one\n2\nand a half\nthree\nfour\nfive\n"


def test_what_is_made_and_removed_again_is_no_change(root: Path) -> None:
    text = "--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"

    with Tree.open(str(root)) as tree, pytest.raises(ToolRefused, match="changes nothing"):
        prepare_patch(tree, text, lambda name: name)


def test_a_rename_is_a_write_and_then_a_removal(root: Path) -> None:
    text = "diff --git a/rows b/lines\nsimilarity index 100%\nrename from rows\nrename to lines\n"

    with Tree.open(str(root)) as tree:
        edits = prepare_patch(tree, text, lambda name: name)
        before = tree.signature("rows")

    assert before is not None
    assert edits == [FileEdit("lines", None, ROWS, 0o644), FileRemoval("rows", before)]


def test_a_link_in_the_workspace_is_written_through(root: Path, apply: Callable[[str], None]) -> None:
    (root / "link.py").symlink_to("app.py")

    apply(CHANGE.replace("app.py", "link.py"))

    assert (root / "link.py").is_symlink()
    assert b"TWO" in (root / "app.py").read_bytes()


# Refusals


def refused(text: str, *reasons: str) -> object:
    return pytest.param(text, reasons, id=reasons[0])


@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        refused("", "neither a unified diff nor"),
        refused("just talk\n", "neither a unified diff nor", "<<<<<<< SEARCH"),
        refused(CHANGE.replace("app.py", "no.py"), "a/no.py", "there is no such file"),
        refused(CHANGE.replace("app.py", "x/../../../y"), "outside"),
        refused(CHANGE.replace("b/app.py", "/etc/passwd").replace("a/app.py", "/etc/passwd"), "outside"),
        refused(CHANGE.replace("app.py", ".git/config"), "belongs to git"),
        refused("--- /dev/null\n+++ b/.git/hooks/x\n@@ -0,0 +1 @@\n+a\n", "belongs to git, which"),
        refused("--- /dev/null\n+++ b/app.py\n@@ -0,0 +1 @@\n+a\n", "app.py", "there already"),
        refused("--- /dev/null\n+++ b/app.py/x\n@@ -0,0 +1 @@\n+a\n", "app.py is not a directory"),
        refused("--- /dev/null\n+++ b/x\n@@ -1,1 +1,2 @@\n a\n+b\n", "not in the file"),
        refused("--- a/app.py\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-two\n", "removes this file, but not all"),
        refused("--- a/app.py\n+++ b/app.py\n@@ -1,2 +1,2 @@\n one\n-too\n+2\n", "hunk 1", "1 | one\n", "2 | two"),
        refused("--- a/app.py\n+++ b/app.py\n@@ -1,5 +1,5 @@\n one\n-two\n+2\n", "says 5 old and 5 new", "2 and 2"),
        refused("--- a/app.py\n+++ b/app.py\n@@ -1 +1 @@\n-one\n+1\n+2\n", "line 6 of the patch", "'+2'"),
        refused("--- a/app.py\n+++ b/app.py\n@@ -1 @@\n-one\n+1\n", "no hunk header"),
        refused(f"--- a/app.py\n+++ b/app.py\n@@ -{'9' * 5000} +1 @@\n-one\n+1\n", "is no hunk header"),
        refused("diff --git a/rows b/rows\nrename from rows\nrename to rows\n", "rows: the patch would rename"),
        refused("--- a/app.py\n+++ b/app.py\n@@@ -1 -1 +1 @@@\n--one\n++1\n", "no hunk header", "@@@"),
        refused("--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n", "name no file"),
        refused("diff --git a/x b/x\nnew file mode 120000\n", "symbolic links"),
        refused("diff --git a/x b/x\nindex 1..2 160000\nnew mode 160000\n", "submodules"),
        refused("diff --git a/app.py b/app.py\nindex 1..2 100644\nGIT binary patch\nliteral 1\n", "binary"),
        refused("--- a/app.py\n+++ b/app.py\nBinary files a/app.py and b/app.py differ\n", "binary patch"),
        refused("diff --git a/x b/rows\nrename from x\nrename to y\n", "x: there is no such file"),
        refused("diff --git a/app.py b/rows\nrename from app.py\nrename to rows\n", "is taken"),
        refused("diff --git a/app.py b/app.py\n", "changes nothing"),
        refused("--- a/rows\n+++ b/rows\n@@ @@\n+x\n", "no lines to find its place"),
        refused("--- a/rows\n+++ b/rows\n@@ -99,0 +100 @@\n+x\n", "starts after line 99", "10 lines"),
        refused("--- a/rows\n+++ b/rows\n@@ @@\n-row 9\n@@ @@\n-row 2\n", "hunks in order"),
        refused("--- a/rows\n+++ b/rows\n@@ -1 +1 @@\n-row 1\n+x\n\\ No newline at end of file\n", "goes on there"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_reason_and_changes_nothing(
    root: Path, apply: Callable[[str], None], text: str, reasons: tuple[str, ...]
) -> None:
    before = snapshot(root)

    with pytest.raises((ToolRefused, PathUnsafe)) as caught:
        apply(text)

    for reason in reasons:
        assert reason in str(caught.value)
    assert snapshot(root) == before


def test_a_place_that_is_not_the_only_one_is_refused(root: Path, apply: Callable[[str], None]) -> None:
    (root / "same").write_bytes(b"x\n}\n" * 7)

    with pytest.raises(ToolRefused, match=r"fits in 7 places \(lines 1, 3, 5, 7, 9, …\); give it more"):
        apply("--- a/same\n+++ b/same\n@@ -2,2 +2,2 @@\n x\n-}\n+};\n")

    assert (root / "same").read_bytes() == b"x\n}\n" * 7


def test_a_missing_newline_that_the_diff_overlooks_is_said(root: Path, apply: Callable[[str], None]) -> None:
    (root / "end").write_bytes(b"a\nb")

    with pytest.raises(ToolRefused, match="last line has no newline at its end"):
        apply("--- a/end\n+++ b/end\n@@ -1,2 +1,2 @@\n-a\n+A\n b\n")


def test_one_file_that_does_not_fit_keeps_every_file_as_it_is(root: Path, apply: Callable[[str], None]) -> None:
    before = snapshot(root)

    with pytest.raises(ToolRefused, match="rows, hunk 1"):
        apply(CHANGE + "--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+a\n--- a/rows\n+++ b/rows\n@@ -1 +1 @@\n-no\n+x\n")

    assert snapshot(root) == before


def test_a_link_out_of_the_workspace_is_not_written_through(
    root: Path, apply: Callable[[str], None], tmp_path: Path
) -> None:
    (tmp_path / "outside").write_bytes(b"one\ntwo\nthree\n")
    (root / "link.py").symlink_to(tmp_path / "outside")

    with pytest.raises(ToolRefused, match=r"symbolic link to .*, which is outside"):
        apply(CHANGE.replace("app.py", "link.py"))

    assert (tmp_path / "outside").read_bytes() == b"one\ntwo\nthree\n"


def test_the_nearest_lines_are_shown_as_valid_text(root: Path, apply: Callable[[str], None]) -> None:
    (root / "odd").write_bytes(b"\tdef caf\xe9():\x1b[31m  # \\d\n")

    with pytest.raises(ToolRefused) as caught:
        apply("--- a/odd\n+++ b/odd\n@@ -1 +1 @@\n-\tdef cafe():  # \\d\n+x\n")

    assert "1 | \tdef caf\\xe9():\\x1b[31m  # \\d" in str(caught.value)
    str(caught.value).encode("utf-8")
