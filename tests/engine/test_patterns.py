"""What ``.gitignore`` hides, matched in a time that no line of it can stretch."""

import random
import time

import pytest
from pathspec import GitIgnoreSpec

from engine.checkpoints.patterns import parse_patterns

LETTERS = "ab"
PIECES = ("a", "b", "*", "*", "?", "/", "/", "**/", "/**/", "[ab]", ".")


def random_path(chance: random.Random) -> str:
    names = ["".join(chance.choices(LETTERS, k=chance.randint(1, 4))) for _part in range(chance.randint(1, 5))]
    return "/".join(names) + chance.choice(("", "/"))


@pytest.mark.parametrize("seed", range(20))
def test_the_same_paths_match_as_by_the_library_alone(seed: int) -> None:
    chance = random.Random(seed)
    paths = [random_path(chance) for _path in range(150)]
    rewritten = 0
    for _line in range(150):
        line = "".join(chance.choices(PIECES, k=chance.randint(3, 12)))
        ours, plain = parse_patterns(line.encode()), GitIgnoreSpec.from_lines([line], backend="simple")
        rewritten += str(ours.patterns) != str(plain.patterns) or any(
            one.regex != other.regex for one, other in zip(ours.patterns, plain.patterns, strict=True)
        )
        wanted = [path for path in paths if plain.check_file(path).include]
        assert [path for path in paths if ours.check_file(path).include] == wanted, line

    assert rewritten > 30


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("*a" * 60 + "b", "a" * 250),
        ("a*" * 60 + "b/", "x/" + "a" * 250),
        ("*" * 100 + "b", "a" * 250),
        ("*?" * 60 + "/b", "a" * 250),
        ("**/a" * 40 + "/b", "a/" * 500 + "c"),
        ("a/**/" * 40 + "b", "a/" * 500 + "c"),
        ("*a*/**/" * 40 + "b", "aaa/" * 500 + "c"),
        ("[ab]*" * 60 + "c", "ab" * 125),
    ],
)
def test_no_line_keeps_a_match_busy(line: str, path: str) -> None:
    spec = parse_patterns(line.encode())

    began = time.process_time()
    assert spec.check_file(path).include is None
    assert time.process_time() - began < 20, "without end, as the library's own expression for this line is"


def test_lines_that_cannot_be_read_are_left_out_and_the_others_count() -> None:
    spec = parse_patterns(b"*.log\n" + b"*" * 5000 + b"\n!\n[z-a]*\n\xff*\nbuild/\n")

    assert spec.check_file("x.log").include
    assert spec.check_file("build/").include
    assert spec.check_file("\udcff1").include
    assert spec.check_file("other").include is None
