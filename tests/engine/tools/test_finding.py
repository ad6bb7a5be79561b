"""The tools list_files and search: what is source, line by line, the same with ripgrep and without."""

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.api import Engine
from engine.checkpoints.finding import LINES, LISTED
from engine.model import ToolCall, ToolResult, TurnRef, Wanted
from engine.tools import matching
from engine.tools.literal import literal_of

STOP = "finding"


class Place:
    """A workspace, looked at by an engine that finds ripgrep and by one that does not."""

    def __init__(self, base: Path) -> None:
        self.root = base / "work"
        self.root.mkdir()
        programs = base / "programs"
        programs.mkdir()
        git = shutil.which("git")
        assert git is not None
        assert shutil.which("rg") is not None
        (programs / "git").symlink_to(git)
        homes = (base / "with", base / "without")
        self.engines = [
            Engine(str(home / "checkpoints"), user_home=str(base / "home"), search_path=path)
            for home, path in zip(homes, (os.environ["PATH"], str(programs)), strict=True)
        ]

    def write(self, path: str, content: str | bytes) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())

    def call(self, engine: Engine, cwd: str = "") -> ToolCall:
        workspace = engine.open_workspace(str(self.root / cwd))
        return ToolCall(workspace, TurnRef("chat", "session", "1"), guarded=False, operation=STOP)

    def search(self, pattern: str, path: str = ".", *, cwd: str = "", **options: object) -> ToolResult:
        """Search with and without ripgrep, which must come to the same."""
        wanted = Wanted(pattern, **options)  # type: ignore[arg-type]
        first, second = (engine.search(self.call(engine, cwd), wanted, path) for engine in self.engines)
        assert first == second
        return first

    def found(self, pattern: str, path: str = ".", **options: object) -> list[str]:
        return self.search(pattern, path, **options).text.splitlines()

    def listed(self, path: str = ".", pattern: str = "", cwd: str = "") -> list[str]:
        engine = self.engines[0]
        return engine.list_files(self.call(engine, cwd), path, pattern).text.splitlines()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


# What is looked at


def test_source_is_listed_and_nothing_else(place: Place) -> None:
    place.write(".gitignore", "*.gen\n/private/\n")
    for path in ("src/a.py", "src/b.gen", "private/c.py", "node_modules/d.js", ".git/config", "sub/.git/HEAD", "e~"):
        place.write(path, "x\n")
    place.write("sub/inner.py", "x\n")
    place.write("sub/.GIT/HEAD", "x\n")
    place.write("module/.git", "gitdir: ../.git\n")
    place.write("venv/pyvenv.cfg", "")
    place.write(".takeback/inbox/1-f.txt", "x\n")
    (place.root / "link.py").symlink_to("src/a.py")

    assert place.listed() == [".gitignore (16 bytes)", "src/a.py (2 bytes)", "sub/inner.py (2 bytes)"]


def test_what_the_repository_tracks_is_source_whatever_it_is_called(place: Place) -> None:
    for path in ("build/tool.py", "build/made.py", "kept.log"):
        place.write(path, "needle\n")
    git = shutil.which("git")
    assert git is not None
    for words in (("init", "-q"), ("add", "-f", "build/tool.py", "kept.log")):
        os.spawnv(os.P_WAIT, git, ["git", "-C", str(place.root), *words])

    for engine in place.engines:
        engine.checkpoint(engine.open_workspace(str(place.root)), "the store is there")

    assert place.found("needle") == ["build/made.py:1:needle", "build/tool.py:1:needle", "kept.log:1:needle"]


def test_a_directory_that_is_named_is_looked_into(place: Place) -> None:
    place.write(".gitignore", "made/\n")
    place.write("made/a.py", "x\n")
    place.write("made/.gitignore", "no.py\n")
    place.write("made/no.py", "x\n")

    assert place.listed("made") == ["made/.gitignore (6 bytes)", "made/a.py (2 bytes)"]
    assert place.found("x", "made/a.py") == ["made/a.py:1:x"]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.py", ["a.py", "src/b.py", "src/deep/c.py"]),
        ("src/*.py", ["src/b.py"]),
        ("deep", ["src/deep/c.py"]),
        ("/a.py", ["a.py"]),
        ("!odd.txt", ["!odd.txt"]),
    ],
)
def test_a_pattern_means_what_it_means_in_gitignore(place: Place, pattern: str, names: Sequence[str]) -> None:
    for path in ("a.py", "src/b.py", "src/deep/c.py", "notes.md", "!odd.txt"):
        place.write(path, "x")

    assert [line.partition(" ")[0] for line in place.listed(pattern=pattern)] == names


def test_names_are_as_seen_from_where_commands_run(place: Place) -> None:
    place.write("Makefile", "needle\n")
    place.write("app/one.py", "needle\n")
    place.write("app/deep/two.py", "needle\n")

    assert place.listed("deep", cwd="app") == ["deep/two.py (7 bytes)"]
    assert place.found("needle", "..", cwd="app") == [
        "../Makefile:1:needle",
        "deep/two.py:1:needle",
        "one.py:1:needle",
    ]


@pytest.mark.parametrize("path", ["..", "/etc", ".git", "way", "none", "~"])
def test_nothing_outside_and_no_repository_is_looked_at(place: Place, path: str) -> None:
    place.write("a.py", "needle\n")
    place.write(".git/config", "needle\n")
    (place.root / "way").symlink_to(place.root.parent)

    for result in (
        place.search("needle", path),
        place.engines[0].list_files(place.call(place.engines[0]), path),
    ):
        assert not result.ok
        assert "needle\n" not in result.text


def test_a_secret_is_named_and_never_read_out(place: Place) -> None:
    place.write(".env", "KEY=needle\n")
    place.write("app.py", "needle\n")

    assert place.found("needle") == ["app.py:1:needle", "[files that look like secrets were not searched: .env]"]
    assert place.found("needle", ".env") == ["[no line fits]", "[files that look like secrets were not searched: .env]"]
    assert ".env (11 bytes)" in place.listed()


# Lines


def test_lines_are_numbered_and_binaries_passed_over(place: Place) -> None:
    place.write("crlf.txt", "one\r\ntwo needle\r\nthree needle")
    place.write("image.bin", b"needle\n\0")
    place.write("latin.txt", b"caf\xe9 needle\n")

    assert place.found("needle$") == [
        "crlf.txt:2:two needle",
        "crlf.txt:3:three needle",
        "latin.txt:1:caf\ufffd needle",
    ]


def test_a_literal_text_and_the_case_are_as_asked(place: Place) -> None:
    place.write("a.py", "f(x)\nF(X)\nfx\n")

    assert place.found("f(x)", literal=True) == ["a.py:1:f(x)"]
    assert place.found("f(x)", literal=True, ignore_case=True) == ["a.py:1:f(x)", "a.py:2:F(X)"]
    assert place.found("f(x)") == ["a.py:3:fx"]


def test_results_are_bounded_and_that_is_said(place: Place) -> None:
    place.write("many.txt", "needle\n" * (LINES + 5) + "needle" + "x" * 1000)
    place.write("large.txt", "needle\n" * 200_000)

    found = place.found("needle")
    wide = place.found("needlex")

    assert len(found) == LINES + 2
    assert found[-2:] == [
        f"[cut: the first {LINES} lines are shown; name a narrower path or pattern]",
        "[files larger than 1 MB were not searched: large.txt]",
    ]
    assert len(wide[0]) < 350
    assert wide[0].endswith("x…")


def test_a_long_list_is_cut_and_that_is_said(place: Place) -> None:
    for number in range(LISTED + 1):
        place.write(f"files/{number:04}", "")

    lines = place.listed("files")

    assert len(lines) == LISTED + 1
    assert lines[-1].startswith(f"[cut: {LISTED} of {LISTED + 1} files are shown")


@pytest.mark.parametrize(
    ("pattern", "says"), [("(a", "is no regular expression"), ("", "is empty"), ("a**", "regular")]
)
def test_what_is_no_pattern_is_said(place: Place, pattern: str, says: str) -> None:
    result = place.search(pattern)

    assert not result.ok
    assert says in result.text


def test_a_pattern_that_never_ends_is_ended(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "PATTERN_S", 1)
    place.write("a.txt", "a" * 60 + "b\n")
    engine = place.engines[0]

    result = engine.search(place.call(engine), Wanted("(a+)+$"), ".")

    assert not result.ok
    assert "a pattern that repeats less" in result.text


def test_a_search_that_takes_too_long_says_how_far_it_came(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "LIMIT_S", 0.0)
    place.write("a.py", "needle\n")
    place.write("b.py", "needle\n")

    assert place.found("needle") == [
        "a.py:1:needle",
        "[it took too long: nothing after a.py was searched; name a narrower path]",
    ]


def test_a_stopped_turn_searches_no_more(place: Place) -> None:
    place.write("a.py", "needle\n")
    for engine in place.engines:
        engine.stop(STOP)

    assert "stopped" in place.search("needle").text


# Agreement

WORDS = st.text(alphabet="abkK i\u017f.é\\(", min_size=1, max_size=5)
EXAMPLES = st.one_of(
    WORDS.map(lambda word: (re.escape(word), word)),
    st.sampled_from(
        [
            ("a+", "aa"),
            ("b?", ""),
            ("(ab)?", ""),
            ("a|b", "b"),
            ("[ab]", "a"),
            (r"\w", "k"),
            (".", "x"),
            ("abc{2}", "abcc"),
        ]
    ),
)
"""Pieces of patterns, each with a text that it fits."""


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(st.lists(WORDS, max_size=4), min_size=1, max_size=4),
    pieces=st.lists(EXAMPLES, min_size=1, max_size=3),
    ignore_case=st.booleans(),
)
def test_ripgrep_our_own_walk_and_a_plain_loop_agree(
    place: Place, texts: list[list[str]], pieces: list[tuple[str, str]], ignore_case: bool
) -> None:
    shutil.rmtree(place.root)
    pattern = "".join(piece for piece, _ in pieces)
    texts[0].append("".join(text for _, text in pieces))
    for number, lines in enumerate(texts):
        place.write(f"{number}/text", "".join(f"{line}\n" for line in lines))
    fits = re.compile(pattern, re.IGNORECASE if ignore_case else 0).search
    expected = [
        f"{number}/text:{count}:{line}"
        for number, lines in enumerate(texts)
        for count, line in enumerate(lines, 1)
        if fits(line)
    ]

    assert place.found(pattern, ignore_case=ignore_case) == (expected or ["[no line fits]"])


@settings(max_examples=100, deadline=None)
@given(pieces=st.lists(EXAMPLES, min_size=1, max_size=4), ignore_case=st.booleans())
def test_what_fits_a_pattern_holds_the_text_that_is_looked_for_first(
    pieces: list[tuple[str, str]], ignore_case: bool
) -> None:
    pattern, line = ("".join(column) for column in zip(*pieces, strict=True))
    line = line.swapcase() if ignore_case else line
    literal = literal_of(Wanted(pattern, ignore_case=ignore_case))
    if literal is not None and re.search(pattern, line, re.IGNORECASE if ignore_case else 0):
        assert literal.lower() in line.lower() if ignore_case else literal in line


def test_a_text_is_looked_for_first_where_a_pattern_has_one() -> None:
    assert literal_of(Wanted(r"def parse\(")) == "def parse("
    assert literal_of(Wanted("class Foo.*Bar")) == "class Foo"
    assert literal_of(Wanted("parsed?")) == "parse"
    assert literal_of(Wanted("one|three")) is None
    assert literal_of(Wanted("task", ignore_case=True)) is None
    assert literal_of(Wanted("sidewalk", ignore_case=True)) == "dewal"
    assert literal_of(Wanted("a.b(c)", literal=True)) == "a.b(c)"
