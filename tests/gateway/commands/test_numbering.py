"""Which checkpoint a number or the beginning of an id means."""

from datetime import UTC, datetime

import pytest

from engine.model import Checkpoint, CheckpointKind
from gateway.commands.numbering import NoSuchCheckpoint, resolve


def checkpoint(start: str, sequence: int) -> Checkpoint:
    moment = datetime(2026, 3, 16, 4, sequence, tzinfo=UTC)
    return Checkpoint(start.ljust(40, "0"), sequence, CheckpointKind.TURN, f"before {sequence}", moment)


NEW, SECOND, THIRD, OLD = (checkpoint(start, 9 - i) for i, start in enumerate(("aaaa1", "bbbb2", "12345", "dddd4")))
KNOWN = [NEW, SECOND, THIRD, OLD]
SHOWN = [SECOND.id, THIRD.id, OLD.id]


@pytest.mark.parametrize(("word", "wanted"), [("1", SECOND), ("2", THIRD), ("3", OLD)])
def test_number_means_what_was_shown_though_a_newer_one_exists(word: str, wanted: Checkpoint) -> None:
    assert resolve(word, KNOWN, SHOWN).checkpoint == wanted


@pytest.mark.parametrize(("word", "wanted"), [("1", NEW), ("4", OLD)])
def test_number_counts_from_the_newest_when_no_list_was_shown(word: str, wanted: Checkpoint) -> None:
    assert resolve(word, KNOWN, []).checkpoint == wanted


def test_suggested_command_repeats_the_number_only_where_the_list_fixes_it() -> None:
    assert resolve("1", KNOWN, SHOWN).again == "1"
    assert resolve("1", KNOWN, []).again == NEW.id[:8]
    assert resolve("aaaa", KNOWN, SHOWN).again == "aaaa"


@pytest.mark.parametrize("word", ["aaaa", "AAAA1", "aaaa10000", NEW.id])
def test_beginning_of_an_id_means_its_checkpoint_also_when_not_in_the_list(word: str) -> None:
    assert resolve(word, KNOWN, SHOWN).checkpoint == NEW


def test_digits_beyond_the_list_are_the_beginning_of_an_id() -> None:
    assert resolve("1234", KNOWN, SHOWN).checkpoint == THIRD


def test_digits_within_the_list_are_a_number_even_if_an_id_begins_so() -> None:
    many = [checkpoint(f"{number:05d}", 1) for number in range(40_000, 41_300)]

    assert resolve("1200", [*many, checkpoint("1200f", 1)], []).checkpoint == many[1199]


def test_leading_zero_makes_it_an_id() -> None:
    zero = checkpoint("0001f", 1)

    assert resolve("0001", [*KNOWN, zero], SHOWN).checkpoint == zero


@pytest.mark.parametrize(
    ("word", "shown", "says"),
    [
        ("99", SHOWN, "There is no checkpoint 99: the list has 3 entries. /rollback shows it."),
        ("2", SHOWN[:1], "There is no checkpoint 2: the list has 1 entry."),
        ("0", SHOWN, "The list starts at 1."),
        ("abc", SHOWN, "abc is too short for an id: give 4 characters or more."),
        ("9999", SHOWN, "No checkpoint is numbered 9999 or has an id that begins so."),
        ("ffff", SHOWN, "No checkpoint is numbered ffff"),
    ],
)
def test_unknown_checkpoint_is_named_with_what_to_do(word: str, shown: list[str], says: str) -> None:
    with pytest.raises(NoSuchCheckpoint) as refusal:
        resolve(word, KNOWN, shown)

    assert says in str(refusal.value)


def test_number_without_any_checkpoint_says_that_none_was_taken() -> None:
    with pytest.raises(NoSuchCheckpoint, match="none has been taken yet"):
        resolve("1", [], [])


def test_ambiguous_id_names_the_candidates() -> None:
    with pytest.raises(NoSuchCheckpoint, match=r"Several ids begin with aaaa: aaaa1000, aaaa2000\. Give more"):
        resolve("aaaa", [NEW, checkpoint("aaaa2", 1)], [])


@pytest.mark.parametrize("word", ["3", "dddd"])
def test_pruned_checkpoint_is_said_to_be_pruned(word: str) -> None:
    with pytest.raises(NoSuchCheckpoint, match=r"dddd.*was pruned since"):
        resolve(word, [NEW, SECOND, THIRD], SHOWN)


@pytest.mark.parametrize("word", ["3", "dddd"])
def test_checkpoint_of_a_store_that_holds_none_any_more_is_said_to_be_gone(word: str) -> None:
    with pytest.raises(NoSuchCheckpoint, match=r"dddd.* is gone: the store holds no checkpoint of this workspace"):
        resolve(word, [], SHOWN)
