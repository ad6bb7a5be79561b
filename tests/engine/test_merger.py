"""How changes are reversed over a content: each rule of the merge, its refusals, what it leaves behind."""

import os
import stat
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from engine.checkpoints.reading import blob_oid
from engine.host.git import Git
from engine.model import Entry, EntryKind
from engine.restore.merge import Merger, Unmergeable
from engine.restore.sharing import Step
from engine.store.reader import ObjectReader, open_reader

LINES = [f"{number}\n" for number in range(20)]


def text(**changed: str) -> bytes:
    """The lines, some of them changed: ``l3="x"`` for the third."""
    return "".join(changed.get(f"l{number}", line) for number, line in enumerate(LINES)).encode()


PLAIN, MINE, OTHER, BOTH = text(), text(l2="mine\n"), text(l12="other\n"), text(l2="mine\n", l12="other\n")
CLASH, LOST = text(l2="clash\n"), b"the store does not hold this"
NUL_EARLY = [b"x" * 7999 + b"\0\n" + content for content in (PLAIN, MINE, BOTH)]
NUL_LATE = [b"x" * 8000 + b"\0\n" + content for content in (PLAIN, MINE, BOTH)]
CONTENTS = [PLAIN, MINE, OTHER, BOTH, CLASH, *NUL_EARLY, *NUL_LATE]


def file(content: bytes, mode: int = 0o644) -> Entry:
    return Entry(EntryKind.FILE, mode, blob_oid(content))


def link(target: bytes) -> Entry:
    return Entry(EntryKind.SYMLINK, 0o777, blob_oid(target))


def step(before: Entry | None, after: Entry | None, *, known: bool = True) -> Step:
    return Step(before, after, known, frozenset(), frozenset())


@pytest.fixture(scope="module")
def git(tmp_path_factory: pytest.TempPathFactory) -> Git:
    store = tmp_path_factory.mktemp("store")
    subprocess.run(["git", "init", "-q", "--bare", str(store)], check=True)
    for content in CONTENTS:
        subprocess.run(
            ["git", "hash-object", "-w", "--stdin"], cwd=store, input=content, check=True, capture_output=True
        )
    return Git(str(store), search_path=os.environ["PATH"])


@pytest.fixture(scope="module")
def reader(git: Git) -> Iterator[ObjectReader]:
    with open_reader(git) as opened:
        yield opened


@pytest.fixture
def merger(git: Git, reader: ObjectReader, tmp_path: Path) -> Iterator[Merger]:
    with Merger(git, reader, str(tmp_path), 100_000) as opened:
        yield opened


def refusal(merger: Merger, now: Entry | None, *steps: Step) -> str:
    with pytest.raises(Unmergeable) as caught:
        merger.reverse(now, steps)
    assert str(caught.value) == caught.value.why
    return caught.value.why


# --- one side alone


@pytest.mark.parametrize(
    ("before", "after", "now", "result"),
    [
        (file(PLAIN), file(MINE), file(MINE), file(PLAIN)),
        (None, file(MINE), file(MINE), None),
        (file(PLAIN), None, None, file(PLAIN)),
        (link(b"a"), file(MINE), file(MINE), link(b"a")),
        (file(MINE), file(MINE), file(OTHER), file(OTHER)),
        (file(PLAIN), file(MINE), file(PLAIN), file(PLAIN)),
        (None, file(MINE), None, None),
    ],
    ids=["changed", "made", "deleted", "another kind", "not changed", "taken back", "gone"],
)
def test_where_one_side_did_nothing_the_other_one_stands(
    merger: Merger, tmp_path: Path, before: Entry | None, after: Entry | None, now: Entry | None, result: Entry | None
) -> None:
    assert merger.reverse(now, [step(before, after)]) == result
    assert os.listdir(tmp_path) == []


def test_nothing_to_reverse_leaves_all_as_it_is(merger: Merger) -> None:
    assert merger.reverse(file(MINE), []) == file(MINE)


MADE_OR_DELETED = "it was made or deleted on one side and changed on the other"


@pytest.mark.parametrize(
    ("before", "after", "now"),
    [
        (file(PLAIN), file(MINE), None),
        (None, file(MINE), file(BOTH)),
        (file(PLAIN), None, file(BOTH)),
    ],
)
def test_what_one_side_made_or_deleted_and_the_other_changed_is_refused(
    merger: Merger, before: Entry | None, after: Entry | None, now: Entry | None
) -> None:
    assert refusal(merger, now, step(before, after)) == MADE_OR_DELETED


@pytest.mark.parametrize(
    ("before", "after", "now"),
    [
        (link(PLAIN), file(MINE), file(BOTH)),
        (file(PLAIN), link(MINE), file(BOTH)),
        (file(PLAIN), file(MINE), link(BOTH)),
    ],
)
def test_different_kinds_are_refused(merger: Merger, before: Entry, after: Entry, now: Entry) -> None:
    assert refusal(merger, now, step(before, after)) == "it is no longer the same kind of thing"


# --- permission bits


@pytest.mark.parametrize(
    ("before", "after", "now", "result"),
    [
        (0o600, 0o644, 0o644, 0o600),
        (0o644, 0o644, 0o640, 0o640),
        (0o600, 0o644, 0o600, 0o600),
        (0o644, 0o644, 0o644, 0o644),
    ],
)
def test_permission_bits_are_merged_beside_the_content(
    merger: Merger, before: int, after: int, now: int, result: int
) -> None:
    merged = merger.reverse(file(BOTH, now), [step(file(PLAIN, before), file(MINE, after))])

    assert merged == file(OTHER, result)


def test_permission_bits_that_both_changed_are_refused(merger: Merger) -> None:
    why = refusal(merger, file(BOTH, 0o640), step(file(PLAIN, 0o600), file(MINE, 0o644)))

    assert why == "its permissions were changed on both sides"


@pytest.mark.parametrize(
    ("before", "after", "now", "result"),
    [
        (file(PLAIN, 0o600), file(PLAIN), file(LOST), file(LOST, 0o600)),
        (file(LOST), file(PLAIN, 0o600), file(PLAIN), file(LOST)),
        (file(LOST, 0o600), file(PLAIN), file(LOST), file(LOST, 0o600)),
    ],
    ids=["bits alone", "content alone", "content taken back"],
)
def test_content_that_only_one_side_changed_is_not_even_read(
    merger: Merger, before: Entry, after: Entry, now: Entry, result: Entry
) -> None:
    assert merger.reverse(now, [step(before, after)]) == result


# --- contents


def test_change_is_taken_out_from_between_others_and_kept_only_on_demand(
    merger: Merger, git: Git, reader: ObjectReader, tmp_path: Path
) -> None:
    merged = text(l5="five\n", l12="other\n")
    now = text(l2="mine\n", l5="five\n", l12="other\n")
    store_only = [step(file(PLAIN), file(MINE))]
    git.run(["hash-object", "-w", "--stdin"], stdin=now)

    result = merger.reverse(file(now), store_only)

    assert result == file(merged)
    [scratch] = os.listdir(tmp_path)
    assert stat.S_IMODE((tmp_path / scratch).stat().st_mode) == 0o700
    assert not reader.proves(blob_oid(merged))
    merger.keep([result, file(LOST), Entry(EntryKind.DIRECTORY, 0o755, None)])
    assert reader.read(blob_oid(merged)) == merged


def test_several_changes_are_reversed_one_over_the_result_of_the_other(merger: Merger) -> None:
    steps = [step(file(PLAIN), file(OTHER)), step(file(PLAIN), file(MINE))]

    assert merger.reverse(file(BOTH), steps) == file(PLAIN)
    assert refusal(merger, file(BOTH), step(file(PLAIN), file(OTHER)), step(file(PLAIN), file(CLASH))) == (
        "the same lines were changed on both sides"
    )


def test_same_lines_changed_on_both_sides_are_refused_and_nothing_is_left_half_merged(merger: Merger, git: Git) -> None:
    assert refusal(merger, file(CLASH), step(file(PLAIN), file(MINE))) == "the same lines were changed on both sides"

    merger.keep([file(CLASH), file(PLAIN)])
    assert merger.reverse(file(BOTH), [step(file(PLAIN), file(MINE))]) == file(OTHER)


def test_links_are_not_merged(merger: Merger) -> None:
    assert refusal(merger, link(b"c"), step(link(b"a"), link(b"b"))) == "links cannot be merged"


@pytest.mark.parametrize("binary", [0, 1, 2])
def test_binary_on_any_side_is_refused(merger: Merger, binary: int) -> None:
    plain, mine, both = (file(content) for content in (PLAIN, MINE, BOTH))
    sides = [plain, mine, both]
    sides[binary] = file(NUL_EARLY[binary])

    assert refusal(merger, sides[2], step(sides[0], sides[1])) == "it is binary, so it cannot be merged"


def test_only_the_beginning_says_whether_it_is_binary(merger: Merger) -> None:
    plain, mine, both = NUL_LATE

    result = merger.reverse(file(both), [step(file(plain), file(mine))])

    assert result == file(b"x" * 8000 + b"\0\n" + OTHER)


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_content_that_the_store_lost_is_refused_each_time(merger: Merger, lost: int) -> None:
    sides = [file(content) for content in (PLAIN, MINE, BOTH)]
    sides[lost] = file(LOST)

    for _time in range(2):
        assert refusal(merger, sides[2], step(sides[0], sides[1])) == (
            "the store no longer holds what stood there in between"
        )


def test_changes_of_a_ledger_too_old_to_tell_are_refused(merger: Merger) -> None:
    steps = (step(file(MINE), file(BOTH)), step(file(PLAIN), file(MINE), known=False))

    assert refusal(merger, file(BOTH), *steps) == "the ledger is too old to tell whose lines are whose"


# --- room


def sizes(*contents: bytes) -> Sequence[int]:
    return [len(content) for content in contents]


def test_contents_and_results_may_be_as_large_as_a_checkpoint_could_hold_and_no_larger(
    git: Git, reader: ObjectReader, tmp_path: Path
) -> None:
    shrunk = text(l2="")
    long = text(l2="a line of many words\n")
    now = text(l2="", l12="other\n")
    for content in (shrunk, long, now):
        git.run(["hash-object", "-w", "--stdin"], stdin=content)
    result = text(l2="a line of many words\n", l12="other\n")
    longest_input = max(sizes(shrunk, long, now))
    assert len(result) > longest_input
    reverse = [step(file(long), file(shrunk))]

    with Merger(git, reader, str(tmp_path), len(result)) as merger:
        assert merger.reverse(file(now), reverse) == file(result)
    for limit in (len(result) - 1, longest_input - 1):
        with Merger(git, reader, str(tmp_path), limit) as merger:
            for _time in range(2):
                assert refusal(merger, file(now), *reverse).startswith("it is larger than ")


@pytest.mark.parametrize("lines", [1, 30_000], ids=["one piece", "several pieces"])
def test_content_of_just_the_limit_is_merged_and_one_over_it_is_not(
    git: Git, reader: ObjectReader, tmp_path: Path, lines: int
) -> None:
    long = "".join(f"{number} of many\n" for number in range(lines))
    grown, now = text(l2=long), text(l2=long, l12="other\n")
    for content in (grown, now):
        git.run(["hash-object", "-w", "--stdin"], stdin=content)
    assert len(now) > len(grown) > len(OTHER)

    with Merger(git, reader, str(tmp_path), len(now)) as merger:
        assert merger.reverse(file(now), [step(file(PLAIN), file(grown))]) == file(OTHER)
    with Merger(git, reader, str(tmp_path), len(now) - 1) as merger:
        assert refusal(merger, file(now), step(file(PLAIN), file(grown))).startswith("it is larger than ")


def test_scratch_that_cannot_be_made_is_a_refusal(git: Git, reader: ObjectReader, tmp_path: Path) -> None:
    with Merger(git, reader, str(tmp_path / "missing"), 100_000) as merger:
        why = refusal(merger, file(BOTH), step(file(PLAIN), file(MINE)))

    assert why == "there is no room to merge it (No such file or directory)"


def test_no_scratch_is_left(git: Git, reader: ObjectReader, tmp_path: Path) -> None:
    with Merger(git, reader, str(tmp_path), 100_000) as merger:
        merger.reverse(file(BOTH), [step(file(PLAIN), file(MINE))])
        assert os.listdir(tmp_path) != []

    assert os.listdir(tmp_path) == []
