"""Replies are valid, bounded, and lose nothing."""

import pytest

from adapters.contract import Place, Style
from engine.model import ChangeStats, DiffResult, PathNote
from gateway.render import block, diff_parts, excerpt, name, names, one_line, output, readable, say, stats


def diff_of(patch: str, stat: str = " a.txt | 2 +-\n 1 file changed") -> DiffResult:
    return DiffResult("since", ChangeStats(1, 1, 1), stat, patch)


def test_reply_is_addressed_with_everything_it_holds() -> None:
    message = say("hello").to(Place("console", "main"), "e1")

    assert (message.plain_text, message.place, message.reply_to) == ("hello", Place("console", "main"), "e1")


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("my_file_[1].py", "my_file_[1].py"),
        ("<x>&.txt", "<x>&.txt"),
        ("a\nb", "a\\nb"),
        ("tab\there", "tab\\there"),
        ("\udcff.txt", "\\xff.txt"),
        ("日本.txt", "日本.txt"),
        ("back\\slash", "back\\\\slash"),
    ],
)
def test_file_names_are_valid_text_on_one_line(path: str, shown: str) -> None:
    assert name(path) == shown


def test_readable_text_keeps_lines_tabs_and_single_backslashes() -> None:
    assert readable("a\\n\tb\n\x1b[31mred\udcff\x00") == "a\\n\tb\n\\x1b[31mred\\xff\\x00"


def test_one_line_joins_lines_and_marks_what_is_cut() -> None:
    assert one_line("cat <<EOF\n  long   text\nEOF", 100) == "cat <<EOF long text EOF"
    assert one_line("x" * 50, 10) == "x" * 9 + "…"


def test_names_beyond_the_limit_are_counted() -> None:
    notes = [PathNote(f"f{number}") for number in range(5)]

    assert names(notes, 3) == "f0, f1, f2 (+2)"
    assert names(notes[:3], 3) == "f0, f1, f2"
    assert names([PathNote("data.csv", "too large")]) == "data.csv (too large)"


@pytest.mark.parametrize(
    ("change", "shown"),
    [(ChangeStats(1, 1, 0), "1 file, +1/-0"), (ChangeStats(2, 3, 1), "2 files, +3/-1")],
)
def test_stats_read_as_in_the_list(change: ChangeStats, shown: str) -> None:
    assert stats(change) == shown


def test_short_diff_stands_whole_in_the_message() -> None:
    parts, files = diff_parts(diff_of("-a\n+b\n"), "x.diff")

    assert [part.style for part in parts] == [Style.BLOCK, Style.PLAIN, Style.DIFF]
    assert parts[2].text == "-a\n+b\n"
    assert files == ()


def test_diff_of_5000_lines_shows_its_head_and_goes_along_whole() -> None:
    patch = "".join(f"+line {number}\n" for number in range(5000))

    parts, (whole,) = diff_parts(diff_of(patch), "rollback-4270a8c.diff")

    text = "".join(part.text for part in parts)
    assert "+line 0\n" in text
    assert "+line 4999" not in text
    assert "… 4,960 more lines, whole in rollback-4270a8c.diff" in text
    assert len(text) < 4000
    assert (whole.name, whole.content.decode()) == ("rollback-4270a8c.diff", patch)


def test_line_of_10000_characters_is_cut_and_goes_along_whole() -> None:
    patch = "+" + "x" * 10_000 + "\n+next\n"

    parts, (whole,) = diff_parts(diff_of(patch), "a.diff")

    text = "".join(part.text for part in parts)
    assert "+next" in text
    assert max(map(len, text.splitlines())) < 300
    assert "1 line cut short, whole in a.diff" in text
    assert whole.content.decode() == patch


def test_diff_with_three_backticks_is_left_as_it_is() -> None:
    parts, _ = diff_parts(diff_of("+```python\n+```\n"), "a.diff")

    assert parts[2].text == "+```python\n+```\n"
    assert parts[2].style is Style.DIFF


def test_endless_lines_are_not_escaped_as_a_whole() -> None:
    head = excerpt("\x00" * 50_000_000)

    assert head.lines_cut == 1
    assert len(head.text) < 300


def test_long_stat_summary_keeps_its_totals() -> None:
    stat = "\n".join(f" f{number} | 1 +" for number in range(400)) + "\n 400 files changed, 400 insertions(+)"

    parts, _ = diff_parts(diff_of("+a\n", stat), "a.diff")

    text = "".join(part.text for part in parts)
    assert "… 375 more\n400 files changed, 400 insertions(+)\n" in text


def test_output_of_a_tool_that_is_no_text_reaches_the_file_as_it_was() -> None:
    parts, (whole,) = block("\udcff" + "y" * 30_000, Style.BLOCK, "output.txt")

    assert parts[0].text.startswith("\\xffyyy")
    assert whole.content == b"\xff" + b"y" * 30_000


def test_text_that_no_encoding_holds_still_makes_a_file() -> None:
    _, (whole,) = block("\ud800" + "y" * 30_000, Style.BLOCK, "output.txt")

    assert whole.content == b"\\ud800" + b"y" * 30_000


def test_long_output_shows_its_beginning_and_its_end() -> None:
    text = "".join(f"{number}\n" for number in range(1, 301))

    parts, (whole,) = output(text, "output.txt")

    shown = "".join(part.text for part in parts)
    assert shown.startswith("1\n2\n")
    assert shown.endswith("\n299\n300\n")
    assert "25\n… 260 more lines, whole in output.txt\n286\n" in shown
    assert whole.content.decode() == text


@pytest.mark.parametrize("lines", [1, 39, 40])
def test_short_output_stands_whole(lines: int) -> None:
    text = "".join(f"{number}\n" for number in range(lines))

    parts, files = output(text, "output.txt")

    assert ("".join(part.text for part in parts), files) == (text, ())


@pytest.mark.parametrize("text", ["x\n" * 41, "x\n" * 54, "y" * 10_000, ("z" * 150 + "\n") * 39, "\n" * 500])
def test_output_that_does_not_fit_is_bounded_and_whole_in_the_file(text: str) -> None:
    parts, (whole,) = output(text, "output.txt")

    assert len("".join(part.text for part in parts)) < 3_000
    assert whole.content.decode() == text


def test_nothing_makes_no_block() -> None:
    assert block("", Style.BLOCK, "output.txt") == ((), ())
