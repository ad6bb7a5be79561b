"""What is decided for a path that others changed too, on ledgers that say exactly who did what in which order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from engine.checkpoints.history import Held
from engine.checkpoints.reading import blob_oid
from engine.model import Action, Checkpoint, CheckpointKind, Entry, EntryKind, PlanItem
from engine.restore.judgement import Judged, judge
from engine.restore.plan import Difference
from engine.restore.sharing import Claim
from engine.store.ledger import LedgerEntry, Record, RestoreRecord, WriteRecord, append_record
from engine.store.reader import open_reader
from tests.engine.upkeep.kit import Kit

SEQUENCE = 5
A = Claim(frozenset({"a"}))
LINES = [f"{number}\n" for number in range(20)]

Sides = tuple[Entry | None, Entry | None]


def text(**changed: str) -> bytes:
    """The lines, some of them changed: ``l3="x"`` for the third."""
    return "".join(changed.get(f"l{number}", line) for number, line in enumerate(LINES)).encode()


def file(content: bytes) -> Entry:
    return Entry(EntryKind.FILE, 0o644, blob_oid(content))


CONTENTS = {
    "plain": text(),
    "mine": text(l2="mine\n"),
    "other": text(l12="other\n"),
    "both": text(l2="mine\n", l12="other\n"),
    "clash": text(l2="clash\n"),
    "clash and other": text(l2="clash\n", l12="other\n"),
    "three": text(l2="mine\n", l7="more\n", l12="other\n"),
}
PLAIN, MINE, OTHER, BOTH, CLASH, CLASH_OTHER, THREE = map(file, CONTENTS.values())
MERGED = text(l7="more\n", l12="other\n")
LOST = file(b"the store does not hold this")


def wrote(number: int, chat: str, sides: Sides, path: str = "f") -> WriteRecord:
    before, after = sides
    turn = f"turn {number}"
    return WriteRecord(number, chat, "s", turn, None, None, {path: after}, None, {path: before})


def restored(number: int, chat: str, sides: Sides, live: tuple[int, ...], path: str = "f") -> RestoreRecord:
    before, after = sides
    entry = LedgerEntry(after, "", "", SEQUENCE - 1, live)
    return RestoreRecord(number, f"k{number}", "target", None, {path: entry}, {}, chat, {path: before})


@dataclass
class Court:
    """A store that holds the contents, and a workspace for each ledger."""

    kit: Kit
    count: int = 0

    def judge(
        self, records: Sequence[Record], differences: Mapping[str, Sides], *, claim: Claim = A, since: int = 0
    ) -> Judged:
        """Judge paths that differ as (then, now) after these records; the checkpoint is as old as record ``since``."""
        self.count += 1
        workspace = self.kit.workspace(f"ws{self.count}")
        checkpoint = Checkpoint("c" * 40, SEQUENCE, CheckpointKind.TURN, "before", datetime(2026, 3, 16, tzinfo=UTC))
        with self.kit.store.use(workspace, "a test"):
            for record in records:
                append_record(self.kit.store.layout.ledger(workspace.hash), record)
            return judge(
                self.kit.store,
                workspace,
                Held(checkpoint, "", frozenset(), since),
                [Difference(path, then, now) for path, (then, now) in differences.items()],
                claim,
            )

    def one(self, records: Sequence[Record], then: Entry | None, now: Entry | None, *, since: int = 0) -> Judged:
        return self.judge(records, {"f": (then, now)}, since=since)

    def reads(self, content: bytes) -> bool:
        with open_reader(self.kit.store.git) as reader:
            return reader.proves(blob_oid(content))


@pytest.fixture(scope="module")
def court(tmp_path_factory: pytest.TempPathFactory) -> Court:
    base: Path = tmp_path_factory.mktemp("court")
    kit = Kit.in_directory(base)
    with kit.store.use(kit.workspace("first"), "a test"):
        for content in CONTENTS.values():
            kit.store.git.run(["hash-object", "-w", "--stdin"], stdin=content)
    return Court(kit)


def kept(why: str, then: Entry | None, now: Entry | None, action: Action = Action.KEEP_OTHER_CHAT) -> Judged:
    return Judged({"f": PlanItem("f", action, now, then, why)})


def merged(why: str, now: Entry | None, result: Entry | None, known: LedgerEntry) -> Judged:
    action = Action.DELETE if result is None else Action.MERGE
    return Judged({"f": PlanItem("f", action, now, result, why)}, {"f": known})


# --- what is not judged


def test_only_paths_that_stand_as_takeback_left_them_are_judged(court: Court) -> None:
    records = [
        wrote(1, "b", (PLAIN, MINE), "edited"),
        wrote(2, "b", (PLAIN, MINE), "theirs"),
        restored(3, "b", (PLAIN, MINE), (), "put back"),
        wrote(4, "a", (PLAIN, MINE), "mine alone"),
    ]
    differences = {
        "edited": (PLAIN, OTHER),
        "theirs": (PLAIN, MINE),
        "put back": (PLAIN, MINE),
        "mine alone": (PLAIN, MINE),
        "unknown": (PLAIN, MINE),
    }

    judged = court.judge(records, differences)

    assert {path: (item.action, item.why) for path, item in judged.items.items()} == {
        "theirs": (Action.KEEP_OTHER_CHAT, "written by b"),
        "put back": (Action.KEEP_OTHER_CHAT, "changed by b"),
    }
    assert judged.known == {}


# --- what a hand led away from and back to


@pytest.mark.parametrize(
    ("record", "claim", "judged"),
    [
        (wrote(1, "b\n", (PLAIN, MINE)), A, kept("written by b\\n", PLAIN, MINE)),
        (wrote(1, "a", (PLAIN, MINE)), A, Judged()),
        (wrote(1, "b", (PLAIN, MINE)), Claim(None), Judged()),
        (restored(1, "b", (PLAIN, MINE), ()), A, Judged()),
    ],
    ids=["another chat's", "its own", "all chats asked for", "a restore's"],
)
def test_content_from_before_the_checkpoint_is_its_writers(
    court: Court, record: Record, claim: Claim, judged: Judged
) -> None:
    assert court.judge([record], {"f": (PLAIN, MINE)}, claim=claim, since=1) == judged


# --- merged


def test_change_of_another_chat_is_kept_and_the_merged_content_is_its_newest_writers(court: Court) -> None:
    records = [wrote(1, "a", (PLAIN, MINE)), wrote(2, "b", (MINE, BOTH)), wrote(3, "c", (BOTH, THREE))]
    assert not court.reads(MERGED)

    judged = court.one(records, PLAIN, THREE)

    known = LedgerEntry(file(MERGED), "c", "turn 3", None, (2, 3))
    assert judged == merged("keeps what b and c wrote", THREE, file(MERGED), known)
    assert court.reads(MERGED)


def test_merge_after_which_a_restore_came_last_is_still_its_newest_tools(court: Court) -> None:
    records = [
        wrote(1, "a", (PLAIN, MINE)),
        wrote(2, "b", (MINE, BOTH)),
        wrote(3, "b", (BOTH, THREE)),
        restored(4, "b", (THREE, BOTH), (1, 2)),
    ]

    assert court.one(records, PLAIN, BOTH) == merged(
        "keeps what b wrote", BOTH, OTHER, LedgerEntry(OTHER, "b", "turn 2", None, (2,))
    )


def test_what_another_chat_took_back_stays_away(court: Court) -> None:
    records = [
        wrote(1, "b", (PLAIN, OTHER)),
        wrote(2, "a", (OTHER, BOTH)),
        restored(3, "b", (BOTH, MINE), (2,)),
    ]

    assert court.one(records, OTHER, MINE, since=1) == merged(
        "keeps what b took back", MINE, PLAIN, LedgerEntry(PLAIN, "", "", SEQUENCE, ())
    )


def test_hand_edit_in_between_is_kept_and_nobodys(court: Court) -> None:
    records = [wrote(1, "a", (PLAIN, MINE)), wrote(2, "a", (BOTH, THREE))]

    assert court.one(records, PLAIN, THREE) == merged(
        "keeps what was edited by hand", THREE, OTHER, LedgerEntry(OTHER, "", "", SEQUENCE, ())
    )


def test_what_a_person_had_removed_before_stays_removed(court: Court) -> None:
    assert court.one([wrote(1, "a", (None, MINE))], OTHER, MINE) == merged(
        "keeps what was edited by hand", MINE, None, LedgerEntry(None, "", "", SEQUENCE, ())
    )


@pytest.mark.parametrize(("then", "action"), [(PLAIN, Action.RESTORE), (None, Action.DELETE)])
def test_reversing_that_ends_where_the_checkpoint_is_is_a_plain_restore(
    court: Court, then: Entry | None, action: Action
) -> None:
    records = [wrote(1, "a", (then, MINE)), wrote(2, "a", (then, OTHER))]

    assert court.one(records, then, OTHER) == Judged({"f": PlanItem("f", action, OTHER, then, "")})


# --- kept


def test_path_without_own_changes_is_kept_unless_it_is_as_the_checkpoint_holds_it(court: Court) -> None:
    records = [wrote(1, "b", (PLAIN, MINE))]

    assert court.one(records, PLAIN, MINE) == kept("written by b", PLAIN, MINE)
    assert court.one(records, MINE, MINE) == Judged()


def test_conflict_with_another_chat_or_a_hand_is_kept_with_the_reason(court: Court) -> None:
    why = "the same lines were changed on both sides"

    assert court.one([wrote(1, "a", (PLAIN, MINE)), wrote(2, "b", (MINE, CLASH))], PLAIN, CLASH) == kept(
        f"written by b; {why}", PLAIN, CLASH
    )
    by_hand = [wrote(1, "a", (PLAIN, MINE)), wrote(2, "a", (CLASH, CLASH_OTHER))]
    assert court.one(by_hand, PLAIN, CLASH_OTHER) == kept(
        f"edited by hand in between; {why}", PLAIN, CLASH_OTHER, Action.KEEP_HAND_EDIT
    )


def test_checkpoint_with_more_of_its_chat_than_stands_is_not_gone_back_to(court: Court) -> None:
    records = [
        wrote(1, "a", (PLAIN, MINE)),
        wrote(2, "a", (MINE, THREE)),
        restored(3, "a", (THREE, MINE), (1,)),
        wrote(4, "b", (MINE, BOTH)),
    ]

    assert court.one(records, THREE, BOTH, since=2) == kept(
        "written by b; it was taken back and changed since", THREE, BOTH
    )


# --- where nothing stands now


def test_what_was_deleted_last_comes_back_where_no_more_can_be_reversed(court: Court) -> None:
    records = [wrote(1, "a", (None, MINE)), wrote(2, "a", (CLASH, None))]

    assert court.one(records, None, None) == merged(
        "keeps what was edited by hand", None, CLASH, LedgerEntry(CLASH, "a", "turn 1", None, (1,))
    )


def test_as_many_steps_are_reversed_as_can_be(court: Court) -> None:
    records = [wrote(1, "a", (None, MINE)), wrote(2, "a", (CLASH, CLASH_OTHER)), wrote(3, "a", (CLASH_OTHER, None))]

    assert court.one(records, None, None) == merged(
        "keeps what was edited by hand", None, CLASH, LedgerEntry(CLASH, "a", "turn 1", None, (1,))
    )


def test_step_after_which_nothing_would_stand_is_not_where_it_stops(court: Court) -> None:
    records = [
        wrote(1, "a", (PLAIN, MINE)),
        wrote(2, "a", (None, CLASH)),
        wrote(3, "a", (CLASH, None)),
    ]

    judged = court.one(records, PLAIN, None)

    assert judged == merged(
        "keeps what was edited by hand", None, CLASH, LedgerEntry(CLASH, "a", "turn 2", None, (1, 2))
    )


def test_directory_comes_back_too(court: Court) -> None:
    folder = Entry(EntryKind.DIRECTORY, 0o750, None)
    records = [wrote(1, "a", (None, MINE)), wrote(2, "a", (folder, None))]

    assert court.one(records, None, None) == merged(
        "keeps what was edited by hand", None, folder, LedgerEntry(folder, "a", "turn 1", None, (1,))
    )


def test_what_another_chat_made_where_all_was_deleted_is_kept(court: Court) -> None:
    records = [wrote(1, "a", (PLAIN, MINE)), wrote(2, "a", (MINE, None)), wrote(3, "b", (None, OTHER))]

    assert court.one(records, PLAIN, OTHER) == kept(
        "written by b; it was made or deleted on one side and changed on the other", PLAIN, OTHER
    )


def test_nothing_comes_back_where_no_step_can_be_reversed(court: Court) -> None:
    records = [wrote(1, "a", (PLAIN, MINE)), wrote(2, "b", (MINE, None))]

    assert court.one(records, PLAIN, None) == kept(
        "written by b; it was made or deleted on one side and changed on the other", PLAIN, None
    )


# --- what the store lost


def test_content_that_would_come_back_but_is_lost_is_said_and_not_promised(court: Court) -> None:
    records = [
        wrote(1, "a", (None, MINE), "lost"),
        wrote(2, "a", (LOST, None), "lost"),
        wrote(3, "a", (None, MINE), "sound"),
        wrote(4, "a", (CLASH, None), "sound"),
        wrote(5, "a", (None, MINE), "removed"),
    ]

    judged = court.judge(records, {"lost": (None, None), "sound": (None, None), "removed": (OTHER, MINE)})

    assert judged.items["lost"] == PlanItem(
        "lost", Action.NOT_CAPTURED, None, None, "the store no longer holds what stood there in between"
    )
    assert judged.items["sound"].target == CLASH
    assert judged.items["removed"].action is Action.DELETE
    assert judged.known.keys() == {"sound", "removed"}
