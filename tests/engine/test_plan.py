"""What is decided for each path from what differs, what the ledger knows, and what no capture holds."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from engine.model import Action, Entry, EntryKind, Gap, GapReason, PlanItem
from engine.restore.plan import Difference, Facts, classify, is_full, is_ours, ledger_after
from engine.store.ledger import Ledger, LedgerEntry, WriteRecord

OLD = Entry(EntryKind.FILE, 0o644, "1" * 40)
NEW = Entry(EntryKind.FILE, 0o644, "2" * 40)
FOLDER = Entry(EntryKind.DIRECTORY, 0o755, None)
SHUT = Entry(EntryKind.DIRECTORY, 0, None)
NESTED = Entry(EntryKind.REPOSITORY, 0, "3" * 40)
SEQUENCE = 5
NOTHING = Facts(
    sequence=SEQUENCE,
    entries={},
    everything=False,
    scope=None,
    target_gaps=(),
    target_excluded=frozenset(),
    now_gaps=(),
    now_excluded=frozenset(),
    occupied=frozenset(),
    written_since=frozenset(),
    standing=frozenset(),
    shared={},
    uncaptured={},
    named=frozenset(),
)
EVERYTHING = replace(NOTHING, everything=True)
MOVE_AWAY = "; move it away first, then restore it again"

Sides = tuple[Entry | None, Entry | None]
Said = tuple[Action, str]


def decide(differences: Mapping[str, Sides], facts: Facts) -> dict[str, Said]:
    """Return what becomes of each path, and why, where each differs from its checkpoint as (then, now)."""
    items = classify([Difference(path, then, now) for path, (then, now) in differences.items()], facts)
    for item in items:
        if item.path in differences:
            assert (item.target, item.now) == differences[item.path]
    return {item.path: (item.action, item.why) for item in items}


def known(**states: Entry | None) -> dict[str, LedgerEntry]:
    return {path: LedgerEntry(state, "chat", "turn") for path, state in states.items()}


def by_agent(differences: Mapping[str, Sides], facts: Facts = NOTHING) -> Facts:
    """Return facts by which the agent wrote all that stands now."""
    return replace(facts, entries={path: LedgerEntry(now, "chat", "turn") for path, (_, now) in differences.items()})


RESTORE: Said = (Action.RESTORE, "")
DELETE: Said = (Action.DELETE, "")
BY_HAND: Said = (Action.KEEP_HAND_EDIT, "changed by hand")


def not_captured(why: str) -> Said:
    return Action.NOT_CAPTURED, why


# --- whose content it is


@pytest.mark.parametrize(
    ("entry", "ours"),
    [
        (LedgerEntry(NEW, "chat", "turn"), True),
        (None, False),
        (LedgerEntry(OLD, "chat", "turn"), False),
        (LedgerEntry(None, "chat", "turn"), False),
        (LedgerEntry(NEW, "", "", SEQUENCE - 1), True),
        (LedgerEntry(NEW, "", "", SEQUENCE), False),
        (LedgerEntry(NEW, "", "", SEQUENCE + 1), False),
    ],
)
def test_path_goes_back_only_where_takeback_put_what_stands_there(entry: LedgerEntry | None, *, ours: bool) -> None:
    facts = replace(NOTHING, entries={"a": entry, "b": entry} if entry else {})

    decided = decide({"a": (OLD, NEW), "b": (None, NEW)}, facts)

    assert is_ours(entry, NEW, SEQUENCE) is ours
    assert decided == ({"a": RESTORE, "b": DELETE} if ours else {"a": BY_HAND, "b": BY_HAND})


def test_everything_asked_for_takes_hand_edits_too() -> None:
    differences: dict[str, Sides] = {"a": (OLD, NEW), "b": (None, NEW), "c": (OLD, None)}

    assert decide(differences, EVERYTHING) == {"a": RESTORE, "b": DELETE, "c": RESTORE}


def test_deletion_by_hand_stands_unless_the_path_is_named() -> None:
    differences: dict[str, Sides] = {"gone": (OLD, None), "there": (OLD, NEW), "unnamed": (OLD, None)}

    decided = decide(differences, replace(NOTHING, named=frozenset({"gone", "there"})))

    assert decided == {"gone": RESTORE, "there": BY_HAND, "unnamed": BY_HAND}


def test_shared_path_is_done_as_judged_only_where_no_hand_came_after() -> None:
    judged = {path: PlanItem(path, Action.MERGE, NEW, OLD, "judged") for path in ("ours", "edited")}
    differences: dict[str, Sides] = {"ours": (OLD, NEW), "edited": (OLD, NEW)}

    decided = decide(differences, replace(NOTHING, entries=known(ours=NEW), shared=judged))

    assert decided == {"ours": (Action.MERGE, "judged"), "edited": BY_HAND}


def test_shared_path_that_does_not_differ_is_done_too_unless_it_is_not_captured() -> None:
    judged = {path: PlanItem(path, Action.MERGE, NEW, OLD, "judged") for path in ("it", "hidden", "below/x", "uncap")}
    facts = replace(
        NOTHING,
        shared=judged,
        occupied=frozenset({"hidden"}),
        target_excluded=frozenset({"below"}),
        uncaptured={"uncap": "too large"},
    )

    assert decide({}, facts) == {
        "it": (Action.MERGE, "judged"),
        "uncap": not_captured("too large before it was changed"),
    }


def test_paths_outside_the_scope_are_no_matter() -> None:
    differences: dict[str, Sides] = {"a": (OLD, NEW), "b": (OLD, NEW)}

    assert decide(differences, replace(EVERYTHING, scope=frozenset({"b", "c"}))) == {"b": RESTORE}
    assert decide(differences, replace(EVERYTHING, scope=frozenset())) == {}


def test_items_come_in_the_order_of_their_paths() -> None:
    differences = [Difference(path, OLD, NEW) for path in ("c", "a")]
    facts = replace(EVERYTHING, target_gaps=[Gap("b", GapReason.SECRET)])

    assert [item.path for item in classify(differences, facts)] == ["a", "b", "c"]


# --- what no capture holds


@pytest.mark.parametrize("sides", [(NESTED, NEW), (OLD, NESTED), (NESTED, None)])
def test_nested_repository_is_left_alone(sides: Sides) -> None:
    facts = replace(EVERYTHING, now_gaps=[Gap("b", GapReason.SECRET)])

    assert decide({"a": sides, "b": sides}, facts) == {
        "a": not_captured("nested git repository"),
        "b": not_captured("now looks like a secret"),
    }


def test_what_is_not_captured_now_is_left_alone() -> None:
    differences: dict[str, Sides] = {"big": (OLD, None), "a/dark/deep/x": (OLD, None), "hidden": (OLD, None)}
    gaps = [Gap("big", GapReason.TOO_LARGE), Gap("a/dark", GapReason.UNREADABLE)]
    facts = replace(EVERYTHING, now_gaps=gaps, occupied=frozenset({"hidden"}))

    assert decide(differences, facts) == {
        "a/dark": not_captured("unreadable"),
        "a/dark/deep/x": not_captured("now unreadable"),
        "big": not_captured("now too large"),
        "hidden": not_captured("excluded now"),
    }


def test_named_path_that_is_not_captured_now_says_what_to_do_where_there_is_something_to_bring_back() -> None:
    gaps = [Gap("big", GapReason.TOO_LARGE), Gap("made", GapReason.TOO_LARGE)]
    facts = replace(EVERYTHING, now_gaps=gaps, named=frozenset({"big", "made"}))

    assert decide({"big": (OLD, None), "made": (None, NEW)}, facts) == {
        "big": not_captured(f"now too large{MOVE_AWAY}"),
        "made": not_captured("now too large"),
    }


def test_what_the_checkpoint_could_not_capture_is_never_deleted() -> None:
    differences: dict[str, Sides] = {"big": (None, NEW), "dark/deep/x": (None, NEW), "logs/x": (None, NEW)}
    gaps = [Gap("big", GapReason.TOO_LARGE), Gap("dark", GapReason.UNREADABLE)]
    facts = replace(EVERYTHING, target_gaps=gaps, target_excluded=frozenset({"logs"}))

    assert decide(differences, facts) == {
        "big": not_captured("too large in the checkpoint"),
        "dark": not_captured("unreadable"),
        "dark/deep/x": not_captured("unreadable in the checkpoint"),
        "logs/x": not_captured("excluded in the checkpoint"),
    }


def test_file_that_the_checkpoint_holds_comes_back_also_where_its_directory_was_excluded() -> None:
    assert decide({"logs/x": (OLD, NEW)}, replace(EVERYTHING, target_excluded=frozenset({"logs"}))) == {
        "logs/x": RESTORE
    }


@pytest.mark.parametrize(
    ("named", "older", "then", "expected"),
    [
        (True, True, OLD, RESTORE),
        (True, False, OLD, not_captured("too large in the checkpoint")),
        (True, True, None, not_captured("too large in the checkpoint")),
        (False, True, OLD, not_captured("too large in the checkpoint")),
    ],
)
def test_older_content_of_a_gap_comes_back_only_by_name(
    *, named: bool, older: bool, then: Entry | None, expected: Said
) -> None:
    facts = replace(
        EVERYTHING,
        target_gaps=[Gap("big", GapReason.TOO_LARGE, older=older)],
        named=frozenset({"big"} if named else ()),
    )

    assert decide({"big": (then, NEW)}, facts) == {"big": expected}


def test_older_content_below_a_gap_does_not_come_back_by_name() -> None:
    facts = replace(
        EVERYTHING, target_gaps=[Gap("dark", GapReason.UNREADABLE, older=True)], named=frozenset({"dark/x"})
    )

    assert decide({"dark/x": (OLD, NEW)}, facts)["dark/x"] == not_captured("unreadable in the checkpoint")


def test_content_that_no_capture_held_before_a_tool_changed_it_goes_only_by_name() -> None:
    differences: dict[str, Sides] = {"a": (OLD, NEW), "b": (OLD, NEW)}
    facts = replace(EVERYTHING, uncaptured={"a": "too large", "b": "too large"}, named=frozenset({"b"}))

    assert decide(differences, facts) == {
        "a": not_captured("too large before it was changed; name it to restore it"),
        "b": RESTORE,
    }


# --- what no difference speaks of


def test_gaps_that_no_difference_speaks_of_are_said() -> None:
    facts = replace(
        NOTHING,
        target_gaps=[Gap("both", GapReason.SECRET), Gap("then", GapReason.SPECIAL, "a socket")],
        now_gaps=[Gap("both", GapReason.TOO_LARGE, "9 MB"), Gap("now", GapReason.UNREADABLE)],
    )

    assert decide({}, facts) == {
        "both": not_captured("too large: 9 MB"),
        "now": not_captured("unreadable"),
        "then": not_captured("not a regular file: a socket"),
    }


def test_restore_of_some_paths_is_silent_on_gaps_outside_that_were_there_all_the_time() -> None:
    facts = replace(
        NOTHING,
        scope=frozenset({"in"}),
        target_gaps=[Gap(path, GapReason.SECRET) for path in ("lasting", "in", "went")],
        now_gaps=[Gap(path, GapReason.SECRET) for path in ("lasting", "in", "came")],
    )

    assert decide({}, facts).keys() == {"in", "went", "came"}


@pytest.mark.parametrize(
    ("now", "older", "named", "said"),
    [
        (True, True, True, f"too large: 9 MB{MOVE_AWAY}"),
        (True, True, False, "too large: 9 MB"),
        (True, False, True, "too large: 9 MB"),
        (False, True, True, "too large: 9 MB"),
    ],
)
def test_named_gap_over_older_content_says_to_move_it_away(*, now: bool, older: bool, named: bool, said: str) -> None:
    gap = Gap("big", GapReason.TOO_LARGE, "9 MB", older)
    facts = replace(NOTHING, named=frozenset({"big"} if named else ()))
    facts = replace(facts, now_gaps=[gap]) if now else replace(facts, target_gaps=[gap])

    assert decide({}, facts) == {"big": not_captured(said)}


def test_what_tools_changed_uncaptured_is_said_once_and_only_in_scope() -> None:
    facts = replace(
        EVERYTHING,
        scope=frozenset({"a", "diff", "gap", "was"}),
        uncaptured=dict.fromkeys(("a", "outside", "diff", "gap", "was"), "unreadable"),
        named=frozenset({"diff"}),
        now_gaps=[Gap("gap", GapReason.SECRET)],
        target_gaps=[Gap("was", GapReason.SPECIAL)],
        target_excluded=frozenset({"a"}),
        written_since=frozenset({"a"}),
    )

    assert decide({"diff": (OLD, NEW)}, facts) == {
        "a": not_captured("unreadable before it was changed"),
        "diff": RESTORE,
        "gap": not_captured("looks like a secret"),
        "was": not_captured("not a regular file"),
    }
    assert decide({}, replace(facts, scope=None))["outside"] == not_captured("unreadable before it was changed")


def test_what_tools_wrote_where_the_checkpoint_looked_away_is_said() -> None:
    facts = replace(
        EVERYTHING,
        written_since=frozenset({"logs/x", "logs/outside", "seen", "logs/diff", "logs/gap"}),
        scope=frozenset({"logs/x", "seen", "logs/diff", "logs/gap"}),
        target_excluded=frozenset({"logs"}),
        now_gaps=[Gap("logs/gap", GapReason.SECRET)],
    )

    assert decide({"logs/diff": (OLD, NEW)}, facts) == {
        "logs/diff": RESTORE,
        "logs/gap": not_captured("looks like a secret"),
        "logs/x": not_captured("excluded in the checkpoint"),
    }
    assert "logs/outside" in decide({}, replace(facts, scope=None))


# --- a directory in the way of something else

SWAP: dict[str, Sides] = {"d": (OLD, FOLDER), "d/x": (None, NEW), "d/y/z": (None, NEW), "d2/x": (None, NEW)}


def test_directory_becomes_a_file_where_all_in_it_goes() -> None:
    assert decide(SWAP, replace(by_agent(SWAP), standing=SWAP.keys())) == {
        "d": RESTORE,
        "d/x": DELETE,
        "d/y/z": DELETE,
        "d2/x": DELETE,
    }


@pytest.mark.parametrize(
    ("change", "stays"),
    [
        ({"standing": frozenset({*SWAP, "d/user", "d/zoo"})}, "d/user"),
        ({"now_excluded": frozenset({"d/z", "d/node_modules"})}, "d/node_modules"),
        ({"now_gaps": [Gap("d/big", GapReason.TOO_LARGE)]}, "d/big"),
    ],
)
def test_directory_with_something_that_stays_is_kept_whole(change: Mapping[str, object], stays: str) -> None:
    decided = decide(SWAP, replace(by_agent(SWAP), **change))  # type: ignore[arg-type]

    why = f"the directory holds {stays}, which stays"
    assert {path: decided[path] for path in SWAP} == {
        "d": not_captured(why),
        "d/x": not_captured(why),
        "d/y/z": not_captured(why),
        "d2/x": DELETE,
    }


@pytest.mark.parametrize(
    "change",
    [
        {"standing": frozenset({*SWAP, "d", "d2/user", "dd"})},
        {"now_excluded": frozenset({"d2/x", "e"})},
        {"now_gaps": [Gap("d2/big", GapReason.TOO_LARGE)]},
    ],
)
def test_what_lies_beside_a_directory_does_not_keep_it(change: Mapping[str, object]) -> None:
    decided = decide(SWAP, replace(by_agent(SWAP), **change))  # type: ignore[arg-type]

    assert (decided["d"], decided["d/x"]) == (RESTORE, DELETE)


def test_directory_with_a_hand_edit_in_it_is_kept_and_the_edit_keeps_its_own_reason() -> None:
    entries = by_agent({path: sides for path, sides in SWAP.items() if path != "d/y/z"}).entries

    assert decide(SWAP, replace(NOTHING, entries=entries)) == {
        "d": not_captured("the directory holds d/y/z, which stays"),
        "d/x": not_captured("the directory holds d/y/z, which stays"),
        "d/y/z": BY_HAND,
        "d2/x": DELETE,
    }


def test_directory_whose_permission_bits_alone_differ_is_no_swap() -> None:
    differences: dict[str, Sides] = {"d": (replace(FOLDER, mode=0o700), FOLDER), "d/x": (None, NEW)}

    decided = decide(differences, replace(by_agent(differences), standing={"d", "d/x", "d/user"}))

    assert decided == {"d": RESTORE, "d/x": DELETE}


def test_directory_kept_by_hand_does_not_settle_what_is_in_it_and_later_swaps_are_settled() -> None:
    differences: dict[str, Sides] = {"c": (OLD, FOLDER), "c/x": (None, NEW), "d": (OLD, FOLDER), "d/x": (None, NEW)}
    facts = by_agent({path: sides for path, sides in differences.items() if path != "c"})

    decided = decide(differences, replace(facts, standing={"c/user", "d/user"}))

    assert decided == {
        "c": BY_HAND,
        "c/x": DELETE,
        "d": not_captured("the directory holds d/user, which stays"),
        "d/x": not_captured("the directory holds d/user, which stays"),
    }


def test_names_in_reasons_are_shown_on_one_line() -> None:
    differences: dict[str, Sides] = {"d\n": (OLD, FOLDER), "f\n": (FOLDER, NEW), "f\n/x": (OLD, None)}
    facts = replace(
        NOTHING,
        entries={"d\n": LedgerEntry(FOLDER, "c", "t"), "f\n/x": LedgerEntry(None, "c", "t")},
        standing={"d\n/\t"},
    )

    decided = decide(differences, facts)

    assert decided["d\n"] == not_captured("the directory holds d\\n/\\t, which stays")
    assert decided["f\n/x"] == (Action.KEEP_HAND_EDIT, "f\\n stays as it is")


# --- something else in the way of a directory


def test_nothing_is_put_below_what_stays_and_is_no_directory() -> None:
    differences: dict[str, Sides] = {
        "p": (FOLDER, NEW),
        "p/q": (FOLDER, None),
        "p/q/x": (OLD, None),
        "p2/x": (OLD, None),
    }
    facts = by_agent({path: sides for path, sides in differences.items() if path != "p"})

    assert decide(differences, facts) == {
        "p": BY_HAND,
        "p/q": (Action.KEEP_HAND_EDIT, "p stays as it is"),
        "p/q/x": (Action.KEEP_HAND_EDIT, "p stays as it is"),
        "p2/x": RESTORE,
    }


def test_what_stays_in_the_way_is_found_at_any_depth() -> None:
    differences: dict[str, Sides] = {"r/p": (FOLDER, NEW), "r/p/x": (OLD, None), "r/p/q/s/x": (OLD, None)}
    facts = by_agent({path: sides for path, sides in differences.items() if path != "r/p"})

    assert decide(differences, facts) == {
        "r/p": BY_HAND,
        "r/p/x": (Action.KEEP_HAND_EDIT, "r/p stays as it is"),
        "r/p/q/s/x": (Action.KEEP_HAND_EDIT, "r/p stays as it is"),
    }


@pytest.mark.parametrize(
    ("parent", "by_hand", "decision"),
    [
        ((FOLDER, NEW), False, RESTORE),
        ((FOLDER, None), True, RESTORE),
        ((replace(FOLDER, mode=0o700), FOLDER), True, BY_HAND),
    ],
    ids=["goes", "is not there", "is a directory"],
)
def test_parent_that_is_not_in_the_way_lets_its_content_come_back(
    parent: Sides, decision: Said, *, by_hand: bool
) -> None:
    differences: dict[str, Sides] = {"p": parent, "p/x": (OLD, None)}
    facts = by_agent({path: sides for path, sides in differences.items() if path != "p" or not by_hand})

    decided = decide(differences, facts)

    assert decided == {"p": decision, "p/x": RESTORE}


def test_what_is_kept_for_its_own_reason_below_what_stays_keeps_that_reason() -> None:
    differences: dict[str, Sides] = {"p": (FOLDER, NEW), "p/x": (OLD, None)}
    facts = replace(by_agent({"p/x": (OLD, None)}), occupied=frozenset({"p/x"}))

    assert decide(differences, facts) == {"p": BY_HAND, "p/x": not_captured("excluded now")}


# --- directories that go, or seem to

GOING: dict[str, Sides] = {"d": (None, FOLDER), "d/e": (None, FOLDER), "d/e/x": (None, NEW)}


def test_directories_go_with_all_that_is_in_them() -> None:
    assert decide(GOING, replace(by_agent(GOING), standing={*GOING, "other"})) == dict.fromkeys(GOING, DELETE)


@pytest.mark.parametrize(
    "change",
    [
        {"standing": frozenset({*GOING, "d/e/user"})},
        {"now_excluded": frozenset({"d/e/node_modules"})},
        {"now_gaps": [Gap("d/e/big", GapReason.TOO_LARGE)]},
    ],
)
def test_directory_in_which_something_stays_is_not_said_to_go(change: Mapping[str, object]) -> None:
    decided = decide(GOING, replace(by_agent(GOING), **change))  # type: ignore[arg-type]

    assert {path: said for path, said in decided.items() if path in GOING} == {"d/e/x": DELETE}


@pytest.mark.parametrize("action", [Action.RESTORE, Action.MERGE])
def test_directory_in_which_something_is_made_is_not_said_to_go(action: Action) -> None:
    differences: dict[str, Sides] = {"d": (None, FOLDER), "d/x": (OLD, None)}
    judged = {"d/x": PlanItem("d/x", action, None, OLD, "judged")}

    decided = decide(differences, replace(by_agent(differences), shared=judged))

    assert decided == {"d/x": (action, "judged")}


def test_empty_directory_that_gained_something_is_not_said_to_go() -> None:
    assert decide({"d": (None, FOLDER)}, replace(by_agent({"d": (None, FOLDER)}), standing={"d", "d/user"})) == {}


def test_directory_that_changes_but_does_not_go_stays_in_the_plan() -> None:
    differences: dict[str, Sides] = {**GOING, "k": (replace(FOLDER, mode=0o700), FOLDER)}

    decided = decide(differences, replace(by_agent(differences), standing={"k/x"}))

    assert decided["k"] == RESTORE


# --- the ledger of a restore


def test_restored_content_is_its_writers_again_where_the_ledger_of_then_knew_it() -> None:
    then = {
        "same": LedgerEntry(OLD, "chat", "turn", None, (1,)),
        "other": LedgerEntry(NEW, "chat", "turn", None, (2,)),
        "gone": LedgerEntry(None, "chat", "turn", None, (3,)),
    }

    entries = ledger_after([("same", OLD), ("other", OLD), ("gone", None), ("unknown", OLD)], then, SEQUENCE)

    assert entries == {
        "same": then["same"],
        "other": LedgerEntry(OLD, "", "", SEQUENCE, (2,)),
        "gone": then["gone"],
        "unknown": LedgerEntry(OLD, "", "", SEQUENCE, ()),
    }


@pytest.mark.parametrize(
    ("wrote", "everything", "full"),
    [(True, False, False), (True, True, True), (False, False, True), (False, True, True)],
)
def test_hand_edits_go_too_where_asked_for_or_where_no_tool_ever_wrote(
    *, wrote: bool, everything: bool, full: bool
) -> None:
    ledger = Ledger()
    records: Sequence[WriteRecord] = [WriteRecord(1, "c", "s", "t", None, None, {})] if wrote else []
    for record in records:
        ledger.add(record)

    assert is_full(ledger, everything=everything) is full


@pytest.mark.parametrize("side", ["now", "in the checkpoint"])
def test_mode_of_a_directory_that_cannot_be_read_is_restored_and_what_is_in_it_is_not(side: str) -> None:
    differences: dict[str, Sides] = {"d": (FOLDER, SHUT), "d/f": (OLD, NEW)}
    gaps = [Gap("d", GapReason.UNREADABLE, "Permission denied")]
    facts = by_agent(differences)
    facts = replace(facts, now_gaps=gaps) if side == "now" else replace(facts, target_gaps=gaps)

    decided = decide(differences, facts)

    assert decided["d"][0] is Action.RESTORE
    assert ("restore it again with --all" in decided["d"][1]) == (side == "now")
    assert decided["d/f"] == (
        Action.NOT_CAPTURED,
        "now unreadable" if side == "now" else "unreadable in the checkpoint",
    )


def test_mode_of_a_directory_below_one_that_cannot_be_read_is_left() -> None:
    differences: dict[str, Sides] = {"d/e": (FOLDER, SHUT)}
    gaps = [Gap("d", GapReason.UNREADABLE), Gap("d/e", GapReason.UNREADABLE)]

    assert decide(differences, replace(by_agent(differences), now_gaps=gaps))["d/e"][0] is Action.NOT_CAPTURED
