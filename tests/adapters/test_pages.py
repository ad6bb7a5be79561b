"""What a reply says is shared out over pages: within any platform's limits, nothing lost, cut where it reads well."""

import html

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.contract import Part, Style
from adapters.pages import Room, apart, divide, plain, shorten, valid

LETTERS = st.sampled_from(["a", "é", "漢", "😀", "👨‍👩‍👧", "*", "`", "<", "&", " ", "\n", "\n\n", "word "])
TEXTS = st.builds(
    lambda pieces, times: "".join(pieces) * times, st.lists(LETTERS, max_size=12), st.sampled_from([1, 1, 7, 60])
)
PARTS = st.lists(st.builds(Part, TEXTS, st.sampled_from(list(Style))), max_size=8)


def in_units(part: Part) -> int:
    return len(part.text.encode("utf-16-le")) // 2


def in_bytes(part: Part) -> int:
    return len(part.text.encode())


def escaped(part: Part) -> int:
    fence = 8 if part.style in (Style.BLOCK, Style.DIFF) else 0
    return len(html.escape(part.text)) + fence


ROOMS = [Room(50), Room(64, in_units, 3), Room(80, in_bytes, 1), Room(120, escaped, 5)]


@pytest.mark.parametrize("room", ROOMS, ids=["characters", "units", "bytes", "escaped"])
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(parts=PARTS)
def test_every_page_is_within_the_limits_and_nothing_is_lost(room, parts):
    pages = divide(apart(parts), room)

    for page in pages:
        assert plain(page).strip()
        assert room.taken(page) <= room.longest
        assert sum(part.style is not Style.PLAIN for part in page) <= (room.most_marked or len(page))
    assert "".join("".join(map(plain, pages)).split()) == "".join(plain(parts).split())


@pytest.mark.parametrize(
    ("text", "pages"),
    [
        ("one two\nthree four\n\nfive six seven", ["one two\nthree four", "five six seven"]),
        ("one two three four\nfive six", ["one two three four", "five six"]),
        ("one two three four five", ["one two three four ", "five"]),
        ("x" * 45, ["x" * 20, "x" * 20, "x" * 5]),
        # A border near the beginning would leave most of a page empty.
        ("one\n" + "x" * 30, ["one\n" + "x" * 16, "x" * 14]),
    ],
)
def test_a_page_ends_where_it_reads_well(text, pages):
    assert [*map(plain, divide([Part(text)], Room(20)))] == pages


def test_what_does_not_end_well_on_a_page_begins_the_next():
    word = Part("x" * 15, Style.CODE)

    assert divide([Part("ten chars "), word], Room(20)) == [(Part("ten chars "),), (word,)]


def test_a_block_stands_on_lines_of_its_own_without_the_newlines_around_it():
    parts = [Part("before"), Part("\n+one\n+two\n", Style.DIFF), Part("after"), Part(" \n", Style.BLOCK)]

    assert apart(parts) == [Part("before"), Part("\n"), Part("+one\n+two", Style.DIFF), Part("\n"), Part("after")]


def test_a_character_that_is_larger_than_a_page_does_not_stop_the_rest():
    assert [*map(plain, divide([Part("😀😀")], Room(1, in_units)))] == ["😀", "😀"]


def test_a_page_has_no_more_marked_parts_than_are_allowed():
    parts = [Part(str(number), Style.CODE) for number in range(5)]

    assert [*map(plain, divide(parts, Room(100, most_marked=2)))] == ["01", "23", "4"]


def test_a_long_part_is_measured_no_further_than_a_page():
    longest = 0

    def measure(part: Part) -> int:
        nonlocal longest
        longest = max(longest, len(part.text))
        return len(part.text)

    divide([Part("word " * 20_000)], Room(100, measure))

    assert longest <= 100


def test_a_shortened_page_is_its_beginning_cut_anywhere_if_it_must_be():
    page = (Part("two files\n"), Part("+" + "x" * 50, Style.DIFF), Part("end"))

    assert shorten(page, Room(30)) == (Part("two files\n"), Part("+" + "x" * 19, Style.DIFF))
    assert shorten(page, Room(10)) == (Part("two files"),)


def test_text_that_is_no_text_becomes_something():
    assert valid("half \ud83d of a pair, NUL \0, \ud83d\ude00\r\n") == "half \ufffd of a pair, NUL \ufffd, 😀\n"
