"""Whose changes stand at a path and which of them are reversed, read off the acts on it alone."""

from collections.abc import Sequence

import pytest

from engine.model import Entry, EntryKind
from engine.restore.sharing import Claim, Shared, Step, live_after, shared
from engine.store.acts import Act

S0, S1, S2, S3, S4 = (Entry(EntryKind.FILE, 0o644, str(digit) * 40) for digit in range(5))
A = Claim(frozenset({"a"}))
NONE: frozenset[int] = frozenset()

Live = tuple[int, ...]


def wrote(
    number: int, chat: str, sides: tuple[Entry | None, Entry | None], live: Live, *, turn: str = "t", known: bool = True
) -> Act:
    """A tool's act over a content that holds the changes ``live``."""
    before, after = sides
    return Act(number, chat, turn, before, after, known, live, (*live, number))


def restored(
    number: int, chat: str, sides: tuple[Entry | None, Entry | None], before: Live, after: Live, *, known: bool = True
) -> Act:
    return Act(number, chat, None, sides[0], sides[1], known, before, after)


def step(act: Act) -> Step:
    """The step that reverses one act of a tool."""
    return Step(act.before, act.after, act.known, frozenset({act.number}), NONE)


# --- a claim


def test_claim_takes_tools_acts_of_its_chats_and_turns() -> None:
    act = wrote(1, "a", (S0, S1), ())
    nobodys = wrote(1, "", (S0, S1), ())
    restore = restored(1, "a", (S0, S1), (), ())

    assert [claim.takes(act) for claim in (A, Claim(None), Claim(frozenset({"b"})))] == [True, True, False]
    assert [A.takes(nobodys), A.takes(restore), A.of_chats(restore)] == [True, False, True]
    assert Claim(frozenset({"a"}), frozenset({"t", "u"})).takes(act)
    assert not Claim(frozenset({"a"}), frozenset({"u"})).takes(act)


# --- all goes


def test_path_that_nobody_touched_since_is_not_shared() -> None:
    acts = [wrote(1, "b", (S0, S1), ()), wrote(2, "b", (S1, S2), (1,))]

    assert shared(acts, 2, S2, S2, A) is None
    assert shared(acts, 1, S1, S2, A) == Shared((), ("b",), writers=("b",))


def test_path_that_only_its_own_chat_led_from_then_to_now_is_not_shared() -> None:
    acts = [wrote(1, "b", (S0, S1), ()), wrote(2, "a", (S1, S2), (1,)), wrote(3, "a", (S2, S3), (1, 2))]

    assert shared(acts, 1, S1, S3, A) is None
    assert shared(acts, 0, S0, S3, Claim(None)) is None


def test_act_of_which_nothing_is_known_before_follows_whatever_was_there() -> None:
    acts = [wrote(1, "a", (None, S1), (), known=False), wrote(2, "a", (None, S2), (1,), known=False)]

    assert shared(acts, 0, S0, S2, A) is None


def test_path_from_which_the_other_chats_changes_were_taken_back_is_not_shared() -> None:
    acts = [
        wrote(1, "a", (S0, S1), ()),
        wrote(2, "b", (S1, S2), (1,)),
        restored(3, "b", (S2, S1), (1, 2), (1,)),
    ]

    assert shared(acts, 0, S0, S1, A) is None


# --- a hand in between


@pytest.mark.parametrize(
    ("then", "between", "now"),
    [(S0, S4, S2), (S4, S1, S2), (S0, S1, S4)],
    ids=["between", "before the first", "after the last"],
)
def test_hand_that_came_between_makes_each_change_a_step_newest_first(then: Entry, between: Entry, now: Entry) -> None:
    first, second = wrote(1, "a", (S0, S1), ()), wrote(2, "a", (between, S2), (1,))

    assert shared([first, second], 0, then, now, A) == Shared((step(second), step(first)), ())


# --- other chats


def test_changes_of_another_chat_stay_and_it_is_named() -> None:
    mine, other = wrote(1, "a", (S0, S1), ()), wrote(2, "b", (S1, S2), (1,))

    assert shared([mine, other], 0, S0, S2, A) == Shared((step(mine),), ("b",), writers=("b",))


def test_chats_are_named_once_each_in_order_and_on_one_line() -> None:
    acts = [
        wrote(1, "c\n", (S0, S1), ()),
        wrote(2, "b", (S1, S2), (1,)),
        wrote(3, "c\n", (S2, S3), (1, 2)),
        wrote(4, "a", (S3, S4), (1, 2, 3)),
    ]

    assert shared(acts, 0, S0, S4, A) == Shared((step(acts[3]),), ("b", "c\\n"), writers=("b", "c\\n"))


def test_chat_whose_changes_were_taken_back_by_its_restore_has_a_part_but_wrote_nothing_of_it() -> None:
    acts = [
        wrote(1, "a", (S0, S1), ()),
        wrote(2, "b", (S1, S2), (1,)),
        restored(3, "b", (S2, S3), (1, 2), (1,)),
    ]

    assert shared(acts, 0, S0, S3, A) == Shared((step(acts[0]),), ("b",), writers=())


def test_own_changes_that_were_taken_back_are_no_step() -> None:
    acts = [
        wrote(1, "a", (S0, S1), ()),
        restored(2, "a", (S1, S0), (1,), ()),
        wrote(3, "b", (S0, S2), ()),
    ]

    assert shared(acts, 0, S0, S2, A) == Shared((), ("b",), writers=("b",))


# --- turns


def test_undoing_one_turn_of_several_reverses_it_alone() -> None:
    acts = [wrote(1, "a", (S0, S1), (), turn="t"), wrote(2, "a", (S1, S2), (1,), turn="u")]
    another = ("another turn",)

    undo_first = shared(acts, 0, S0, S2, Claim(frozenset({"a"}), frozenset({"t"})))
    undo_second = shared(acts, 0, S0, S2, Claim(frozenset({"a"}), frozenset({"u"})))

    assert undo_first == Shared((step(acts[0]),), another, writers=another)
    assert undo_second == Shared((step(acts[1]),), another, writers=another)
    assert shared(acts, 0, S0, S2, Claim(frozenset({"a"}), frozenset({"t", "u"}))) is None


def test_turns_of_which_nothing_is_left_in_a_chats_own_content_share_nothing() -> None:
    acts = [wrote(1, "a", (S0, S1), ())]

    assert shared(acts, 0, S0, S1, Claim(frozenset({"a"}), frozenset({"u"}))) is None


def test_all_that_lasts_may_go_only_where_it_leads_from_then_to_now() -> None:
    acts = [wrote(1, "a", (S4, S1), (), turn="t")]

    assert shared(acts, 0, S0, S1, Claim(frozenset({"a"}), frozenset({"t"}))) == Shared((step(acts[0]),), ())


# --- what the checkpoint holds more


def test_own_changes_in_the_checkpoint_that_are_gone_by_now_are_said() -> None:
    acts = [
        wrote(1, "a", (S0, S1), ()),
        restored(2, "a", (S1, S0), (1,), ()),
        wrote(3, "b", (S0, S2), ()),
    ]

    assert shared(acts, 1, S1, S2, A) == Shared((), ("b",), forward=True, writers=("b",))
    assert shared(acts, 1, S1, S2, Claim(frozenset({"a"}), frozenset({"t"}))) == Shared((), ("b",), writers=("b",))


def test_changes_of_others_in_the_checkpoint_that_are_gone_by_now_are_their_own_matter() -> None:
    acts = [
        wrote(1, "b", (S0, S1), ()),
        restored(2, "b", (S1, S0), (1,), ()),
        wrote(3, "b", (S0, S2), ()),
    ]

    assert shared(acts, 1, S1, S2, A) == Shared((), ("b",), writers=("b",))


# --- redo


REDO = Claim(frozenset({"a"}), redoes=True)


def test_redo_of_what_only_its_chat_did_is_not_shared() -> None:
    acts = [wrote(1, "a", (S0, S1), ()), restored(2, "a", (S1, S0), (1,), ())]

    assert shared(acts, 1, S1, S0, REDO) is None


def test_redo_reverses_restores_too_each_run_of_acts_as_one() -> None:
    acts: Sequence[Act] = [
        wrote(1, "a", (S0, S1), ()),
        restored(2, "a", (S1, S0), (1,), ()),
        wrote(3, "a", (S0, S2), ()),
        wrote(4, "b", (S2, S3), (3,)),
        wrote(5, "a", (S3, S4), (3, 4)),
    ]

    assert shared(acts, 1, S1, S4, REDO) == Shared(
        (
            Step(S3, S4, True, frozenset({5}), NONE),
            Step(S1, S2, True, frozenset({3}), frozenset({1})),
        ),
        ("b",),
        writers=("b",),
    )


def test_redo_does_not_run_over_a_hand_in_between() -> None:
    acts = [
        wrote(1, "a", (S0, S1), ()),
        restored(2, "a", (S1, S0), (1,), ()),
        wrote(3, "a", (S2, S3), (), known=False),
        wrote(4, "a", (S4, S1), (3,)),
    ]

    assert shared(acts, 1, S1, S1, REDO) == Shared(
        (
            Step(S4, S1, True, frozenset({4}), NONE),
            Step(S1, S3, True, frozenset({3}), frozenset({1})),
        ),
        (),
    )


def test_run_that_ends_where_it_began_is_no_step() -> None:
    acts = [
        wrote(1, "a", (S0, S1), ()),
        restored(2, "a", (S1, S0), (1,), ()),
        restored(3, "a", (S0, S1), (), (1,)),
        wrote(4, "b", (S1, S2), (1,)),
    ]

    assert shared(acts, 1, S1, S2, REDO) == Shared((), ("b",), writers=("b",))


def test_redo_of_a_merge_that_holds_no_more_of_its_chat_is_not_said_to_lack_it() -> None:
    acts = [
        wrote(1, "a", (S0, S1), ()),
        restored(2, "a", (S1, S0), (1,), ()),
        wrote(3, "b", (S0, S2), ()),
    ]

    assert shared(acts, 1, S1, S2, REDO) == Shared(
        (Step(S1, S0, True, NONE, frozenset({1})),), ("b",), forward=False, writers=("b",)
    )


# --- whose changes are left


def test_reversing_a_step_takes_out_what_it_put_in_and_puts_in_what_it_took_out() -> None:
    steps = [
        Step(None, None, known=True, put_in=frozenset({5, 9}), took_out=frozenset({2})),
        Step(None, None, known=True, put_in=frozenset({2, 1}), took_out=frozenset({9})),
    ]

    assert live_after((1, 5, 7), steps[:1]) == (1, 2, 7)
    assert live_after((1, 5, 7), steps) == (7, 9)
    assert live_after((3, 1), ()) == (1, 3)
