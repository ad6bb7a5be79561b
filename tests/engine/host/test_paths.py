"""Which paths may be named, how typed names are resolved, how names are shown."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.host.paths import PathUnsafe, display, is_repository_part, resolve_inside, validate, within


@pytest.mark.parametrize(
    "path",
    [
        "a",
        "a/b/c.txt",
        " leading and trailing ",
        "-dash",
        ":colon",
        "[1]",
        "back\\slash",
        "new\nline",
        "\udcff\udcfe",
        "日本語",
        ".gitignore",
        ".github/x",
        "a.git",
        "...",
        "..a",
        "git~1",
    ],
)
def test_an_ordinary_name_is_valid(path: str) -> None:
    assert validate(path) == tuple(path.split("/"))


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("", "empty"),
        ("/", "absolute"),
        ("/etc/passwd", "absolute"),
        ("a//b", "empty part"),
        ("a/", "empty part"),
        (".", "'.'"),
        ("./a", "'.'"),
        ("..", "'..'"),
        ("a/../b", "'..'"),
        ("a/..", "'..'"),
        ("a\0b", "NUL"),
        (".git", "git"),
        (".git/config", "git"),
        ("sub/.git/hooks/x", "git"),
        (".GIT/config", "git"),
        (".Git", "git"),
        (".g\u200cit/config", "git"),
        ("\ufeff.git", "git"),
        ("\ud800", "encoding"),
    ],
)
def test_a_path_that_is_never_touched_is_refused_with_its_reason(path: str, reason: str) -> None:
    with pytest.raises(PathUnsafe, match=reason) as caught:
        validate(path)

    assert caught.value.path == path
    str(caught.value).encode("utf-8")  # whatever the path held, the message is valid text


def test_only_git_itself_is_git() -> None:
    assert is_repository_part(".gIt")
    assert not any(map(is_repository_part, ["git", ".gitx", "x.git", ".gitmodules", ". git"]))


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("src/app.py", "src/app.py"),
        ("日本 語.txt", "日本 語.txt"),
        ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
        ("\x1b[31mred\x07\x7f", "\\x1b[31mred\\x07\\x7f"),
        ("\udcff\udc80", "\\xff\\x80"),
        ("back\\slash", "back\\\\slash"),
        ("evil\u202etxt.exe", "evil\\u202etxt.exe"),
        ("no\u00a0break", "no\\u00a0break"),
        ("\U000e0001", "\\U000e0001"),
        ("\ud800", "\\ud800"),
    ],
)
def test_a_name_is_shown_as_valid_escaped_text(path: str, shown: str) -> None:
    assert display(path) == shown


@given(st.text(st.characters(), max_size=60), st.integers(min_value=12, max_value=80))
def test_any_name_is_shown_on_one_printable_line_within_the_limit(path: str, limit: int) -> None:
    shown = display(path, limit)

    assert len(shown) <= limit
    assert shown.isprintable()


@given(st.lists(st.text(st.characters(), max_size=8), unique=True, min_size=2, max_size=2))
def test_two_names_are_never_shown_alike(names: list[str]) -> None:
    assert display(names[0], 1000) != display(names[1], 1000)


def test_a_long_name_loses_its_middle_and_no_escape_is_cut() -> None:
    shown = display("start" + "\n" * 300 + "end.txt", 40)

    assert shown.startswith("start\\n")
    assert shown.endswith("\\nend.txt")
    assert "…" in shown
    assert shown.replace("\\n", "").replace("…", "") == "startend.txt"


@pytest.mark.parametrize(
    ("path", "root", "inside"),
    [
        ("/w", "/w", True),
        ("/w/a", "/w", True),
        ("/w/a", "/w/", True),
        ("/wx", "/w", False),
        ("/", "/w", False),
        ("/anything", "/", True),
    ],
)
def test_within_compares_whole_parts(path: str, root: str, inside: bool) -> None:
    assert within(path, root) is inside


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    (root / "src/deep").mkdir(parents=True)
    (root / "real").mkdir()
    (root / "alias").symlink_to("real")
    (root / "escape").symlink_to(tmp_path)
    (root / "absolute-alias").symlink_to(root / "src")
    (root / "loop").symlink_to("loop")
    (root / ".git").mkdir()
    (root / "disguised").symlink_to(".git")
    return root


@pytest.mark.parametrize(
    ("cwd", "named", "path"),
    [
        ("", "app.py", "app.py"),
        ("src", "app.py", "src/app.py"),
        ("src", "./app.py", "src/app.py"),
        ("src/deep", "../app.py", "src/app.py"),
        ("src", "..", ""),
        ("", ".", ""),
        ("", "src/", "src"),
        ("", "missing/dir/x", "missing/dir/x"),
        ("", "alias/x", "real/x"),
        ("", "alias", "alias"),
        ("", "absolute-alias/deep/x", "src/deep/x"),
        ("", "alias/../x", "x"),
        ("", "escape", "escape"),
        ("", "loop", "loop"),
        ("", "-x", "-x"),
        ("", "./~/x", "~/x"),
        ("", "bytes-\udcff", "bytes-\udcff"),
    ],
)
def test_a_typed_name_becomes_a_path_below_the_root(workspace: Path, cwd: str, named: str, path: str) -> None:
    assert resolve_inside(str(workspace), str(workspace / cwd), named) == path


def test_an_absolute_name_inside_is_taken(workspace: Path) -> None:
    assert resolve_inside(str(workspace), str(workspace / "src"), f"{workspace}/real/x") == "real/x"


def test_a_root_reached_through_a_symlink_is_the_same_root(workspace: Path) -> None:
    other = workspace.parent / "other"
    other.symlink_to(workspace)

    assert resolve_inside(str(workspace), str(other / "src"), "app.py") == "src/app.py"
    assert resolve_inside(str(workspace), str(workspace), f"{other}/src/app.py") == "src/app.py"


@pytest.mark.parametrize(
    ("named", "reason"),
    [
        ("", "no path"),
        ("a\0b", "NUL"),
        ("..", "outside"),
        ("../x", "outside"),
        ("src/../../x", "outside"),
        ("/etc/passwd", "outside"),
        ("/", "outside"),
        ("escape/x", "outside"),
        ("escape/workspace2/x", "outside"),
        ("~", "not expanded"),
        ("~/x", "not expanded"),
        (".git/config", "git"),
        (".GIT/config", "git"),
        ("disguised/config", "git"),
        (".git/../x", "git"),
        ("\ud800", "encoding"),
    ],
)
def test_a_typed_name_that_leads_elsewhere_is_refused(workspace: Path, named: str, reason: str) -> None:
    with pytest.raises(PathUnsafe, match=reason):
        resolve_inside(str(workspace), str(workspace), named)


def test_a_neighbour_with_the_same_beginning_is_outside(workspace: Path) -> None:
    with pytest.raises(PathUnsafe, match="outside"):
        resolve_inside(str(workspace), str(workspace), f"{workspace}-other/x")


def test_a_name_too_long_to_look_up_is_still_resolved_by_its_text(workspace: Path) -> None:
    named = "/".join(["part" * 10] * 200)

    assert resolve_inside(str(workspace), str(workspace), named) == named
    assert len(os.fsencode(named)) > 4096
