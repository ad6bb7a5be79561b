"""Search/replace edits."""

import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.errors import ToolRefused
from engine.host.files import Tree
from engine.host.paths import PathUnsafe, resolve_inside
from engine.tools.edits import apply_edits
from engine.tools.patch import prepare_patch


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "root"
    path.mkdir()
    (path / "app.py").write_bytes(b"def f():\n    return 1\n\n\ndef g():\n    return 2\n")
    (path / "two words.md").write_bytes(b"# Title\n")
    return path


@pytest.fixture
def apply(root: Path) -> Callable[[str], None]:
    def run(text: str) -> None:
        with Tree.open(str(root)) as tree:
            apply_edits(tree, prepare_patch(tree, text, lambda name: resolve_inside(str(root), str(root), name)))

    return run


def block(search: str, replace: str, extra: int = 0) -> str:
    marks = ("<" * (7 + extra), "=" * (7 + extra), ">" * (7 + extra))
    return f"{marks[0]} SEARCH\n{search}{marks[1]}\n{replace}{marks[2]} REPLACE\n"


def test_the_lines_found_are_replaced(root: Path, apply: Callable[[str], None]) -> None:
    (root / "app.py").chmod(0o755)

    apply("app.py\n" + block("    return 1\n", "    x = 1\n    return x\n"))

    assert (root / "app.py").read_bytes() == b"def f():\n    x = 1\n    return x\n\n\ndef g():\n    return 2\n"
    assert stat.S_IMODE((root / "app.py").stat().st_mode) == 0o755


def test_blocks_follow_each_other_and_a_name_holds_until_the_next(root: Path, apply: Callable[[str], None]) -> None:
    apply(
        "app.py\n"
        + block("def f():\n", "def first():\n")
        + "\n"
        + block("def first():\n    return 1\n", "def first():\n    return 10\n")
        + "two words.md\n```\n"
        + block("# Title\n", "# Other\n")
        + "```\n"
    )

    assert (root / "app.py").read_bytes() == b"def first():\n    return 10\n\n\ndef g():\n    return 2\n"
    assert (root / "two words.md").read_bytes() == b"# Other\n"


def test_talk_before_a_name_means_nothing(root: Path, apply: Callable[[str], None]) -> None:
    apply("I will change it:\n\napp.py\n\n```python\n" + block("    return 2\n", "") + "```\nDone.\n")

    assert (root / "app.py").read_bytes() == b"def f():\n    return 1\n\n\ndef g():\n"


@pytest.mark.parametrize("empty", [None, b""])
def test_an_empty_search_makes_a_file(root: Path, apply: Callable[[str], None], empty: bytes | None) -> None:
    if empty is not None:
        (root / "new").write_bytes(empty)

    apply(("new\n" if empty is not None else "pkg/new\n") + block("", "a\nb\n"))

    assert (root / ("new" if empty is not None else "pkg/new")).read_bytes() == b"a\nb\n"


def test_a_file_can_be_emptied(root: Path, apply: Callable[[str], None]) -> None:
    apply("two words.md\n" + block("# Title\n", ""))

    assert (root / "two words.md").read_bytes() == b""


@pytest.mark.parametrize(
    ("before", "search", "replace", "after"),
    [
        (b"a\nb", "b\n", "c\n", b"a\nc"),
        (b"a\nb", "a\n", "A\n", b"A\nb"),
        (b"a\nb", "b\n", "", b"a"),
        (b"only", "only\n", "x\ny\n", b"x\ny"),
        (b"a\r\nb", "b\n", "c\nd\n", b"a\r\nc\r\nd"),
        (b"a\r\nb\r\n", "a\nb\n", "c\n", b"c\r\n"),
        (b"a\r\nb\r\n", "a\r\n", "c\r\n", b"c\r\nb\r\n"),
        (b"a\nb\n", "a\r\n", "c\r\n", b"c\nb\n"),
        (b"a\r\nb\nc\n", "b\n", "B\n", b"a\r\nB\nc\n"),
        (b"a\r", "a\r\n", "b\n", b"b"),
        (b"x\na\r", "x\n", "y\n", b"y\na\r"),
    ],
)
def test_line_ends_and_a_missing_last_newline_stay(
    root: Path, apply: Callable[[str], None], before: bytes, search: str, replace: str, after: bytes
) -> None:
    (root / "f").write_bytes(before)

    apply("f\n" + block(search, replace))

    assert (root / "f").read_bytes() == after


def test_longer_marks_let_lines_hold_the_usual_ones(root: Path, apply: Callable[[str], None]) -> None:
    (root / "rst").write_bytes(b"Heading\n=======\ntext\n")

    apply("rst\n" + block("Heading\n=======\n", "Chapter\n=======\n" + block("a\n", "b\n"), extra=2))

    assert (root / "rst").read_bytes() == b"Chapter\n=======\n" + block("a\n", "b\n").encode() + b"text\n"


def test_bytes_that_are_no_text_are_kept(root: Path, apply: Callable[[str], None]) -> None:
    (root / "latin").write_bytes(b"caf\xe9\nx\n\xff\n")

    apply("latin\n" + block("caf\udce9\n", "th\udce9\n"))

    assert (root / "latin").read_bytes() == b"th\xe9\nx\n\xff\n"


@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        ("app.py\n" + block("    return 10\n", "x\n"), ["app.py, block 1", "matches nothing", "2 |     return 1"]),
        ("app.py\n" + block("return 1\n", "x\n"), ["matches nothing", "2 |     return 1"]),
        ("app.py\n" + block("\n", "x\n"), ["block 1", "matches 2 times (lines 3, 4)"]),
        ("app.py\n" + block("def f():\n", "x\n") + block("def f():\n", "y\n"), ["block 2", "matches nothing"]),
        ("app.py\n" + block("zzzzzz qqqqqq\n", "x\n"), ["No line of the file resembles"]),
        ("app.py\n" + block("", "x\n"), ["SEARCH is empty", "holds lines"]),
        ("no.py\n" + block("a\n", "b\n"), ["no.py: there is no such file"]),
        (block("a\n", "b\n"), ["line 1 of the patch", "names the file"]),
        ("```\n" + block("a\n", "b\n"), ["names the file"]),
        ("app.py\n<<<<<<< SEARCH\na\n=======\nb\n", ["line 2 of the patch", "never ended"]),
        ("app.py\n<<<<<<< SEARCH\na\n>>>>>>> REPLACE\n", ["without a line ======="]),
        ("app.py\n<<<<<<< SEARCH\na\n" + block("a\n", "b\n"), ["line 2", "not ended before the next one, at line 4"]),
        ("app.py\n" + block("a\n=======\n", "b\n"), ["2 lines =======", "longer", "<<<<<<<< SEARCH"]),
        ("app.py\n" + block("def f():\n", "b\n") + "<<<<<< SEARCH\n", ["mark outside a block"]),
        ("app.py\n" + block("def f():\n", "b\n") + ">>>>>>> REPLACE\n", ["line 7", "mark outside a block"]),
        ("../x\n" + block("", "b\n"), ["outside"]),
        (".git/config\n" + block("", "b\n"), ["git"]),
        ("app.py\n" + block("def f():\n", "def f():\n"), ["changes nothing"]),
    ],
)
def test_what_does_not_fit_is_refused_with_its_reason_and_changes_nothing(
    root: Path, apply: Callable[[str], None], text: str, reasons: list[str]
) -> None:
    before = {path.name: path.read_bytes() for path in root.iterdir()}

    with pytest.raises((ToolRefused, PathUnsafe)) as caught:
        apply(text)

    for reason in reasons:
        assert reason in str(caught.value)
    assert {path.name: path.read_bytes() for path in root.iterdir()} == before


def test_one_block_that_does_not_fit_keeps_every_file_as_it_is(root: Path, apply: Callable[[str], None]) -> None:
    before = {path.name: path.read_bytes() for path in root.iterdir()}

    with pytest.raises(ToolRefused, match="matches nothing"):
        apply(
            "two words.md\n"
            + block("# Title\n", "# New\n")
            + "new\n"
            + block("", "x\n")
            + "app.py\n"
            + block("no\n", "")
        )

    assert {path.name: path.read_bytes() for path in root.iterdir()} == before


def test_a_large_file_is_searched_quickly_and_its_nearest_lines_found(root: Path, apply: Callable[[str], None]) -> None:
    (root / "large").write_bytes(b"".join(b"line %d\n" % number for number in range(200_000)))

    with pytest.raises(ToolRefused, match=r"199990 \| line 199989\n  199991 \| line 199990"):
        apply("large\n" + block("line 199989\nline  199990\nline 199991\n", "x\n"))
