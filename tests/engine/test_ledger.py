"""What the ledger's records add up to, and what of them a file gives back after whatever befell it."""

import json
import os
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from engine.model import ChangeStats, Entry, EntryKind
from engine.store.ledger import (
    Ledger,
    LedgerEntry,
    Reading,
    Record,
    RestoreRecord,
    WriteRecord,
    append_record,
    entries_of,
    load_ledger,
    read_on,
)

ONE = Entry(EntryKind.FILE, 0o644, "1" * 40)
TWO = Entry(EntryKind.FILE, 0o755, "2" * 40)
LINK = Entry(EntryKind.SYMLINK, 0o777, "3" * 40)
DIRECTORY = Entry(EntryKind.DIRECTORY, 0o2750, None)
BLOCK_BYTES = 65536


def write(
    number: int,
    changes: dict[str, Entry | None],
    *,
    turn: str = "t",
    session: str = "s",
    checkpoint: str | None = None,
    stats: ChangeStats | None = None,
    uncaptured: dict[str, str] | None = None,
) -> WriteRecord:
    return WriteRecord(
        number, "chat", session, turn, checkpoint, None, changes, stats, dict.fromkeys(changes), uncaptured or {}
    )


def restore(number: int, entries: dict[str, LedgerEntry], *, token: str = "token") -> RestoreRecord:
    return RestoreRecord(number, token, "target", None, entries, {})


def ledger_of(*records: Record) -> Ledger:
    ledger = Ledger()
    for record in records:
        ledger.add(record)
    return ledger


RECORDS: list[Record] = [
    WriteRecord(
        1,
        "chat",
        "session",
        "turn",
        "checkpoint",
        "after",
        {"file": ONE, "link": LINK, "dir": DIRECTORY, "gone": None, "na\udcffme": TWO},
        ChangeStats(5, 4, 3),
        {"file": None, "gone": TWO},
        {"link": "too large"},
    ),
    WriteRecord(2, "chat", "session", "turn", None, None, {"file": TWO}),
    RestoreRecord(
        3,
        "token",
        "target",
        "safety",
        {"file": LedgerEntry(ONE, "chat", "turn", None, (1, 2)), "gone": LedgerEntry(None, "", "", 7)},
        {"restored": ["file"]},
        "another chat",
        {"file": TWO},
    ),
    RestoreRecord(4, "token 2", "target", None, {}, {}),
]


def test_records_come_back_as_they_were_written(tmp_path: Path) -> None:
    path = str(tmp_path / "ledger")
    for record in RECORDS:
        append_record(path, record)

    ledger = load_ledger(path)

    assert ledger.records == RECORDS
    assert ledger.entries["file"] == LedgerEntry(ONE, "chat", "turn", None, (1, 2))
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_record_is_one_line_of_the_form_that_older_and_newer_programs_read(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    first = write(1, {"é": ONE}, stats=ChangeStats(1, 2, 3), uncaptured={"x": "too large"})
    append_record(str(path), replace(first, unreached={"d": "unreadable"}))
    append_record(str(path), restore(2, {"é": LedgerEntry(None, "c", "t", 5, (1,))}))

    assert path.read_bytes() == (
        b'{"n":1,"type":"write","chat":"chat","session":"s","turn":"t","checkpoint":null,"after":null,'
        b'"changes":{"\\u00e9":["file",420,"1111111111111111111111111111111111111111"]},"stats":[1,2,3],'
        b'"before":{"\\u00e9":null},"uncaptured":{"x":"too large"},"unreached":{"d":"unreadable"},"place":0}\n'
        b'{"n":2,"type":"restore","token":"token","target":"target","safety":null,'
        b'"entries":{"\\u00e9":[null,"c","t",5,[1]]},"report":{},"chat":"","before":{},"place":0}\n'
    )


def test_records_of_the_first_ledgers_are_read(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    first = {"n": 1, "type": "write", "chat": "c", "session": "s", "turn": "t", "checkpoint": None, "after": None}
    second = {"n": 2, "type": "restore", "token": "k", "target": "g", "safety": None, "report": {}}
    first |= {"changes": {"a": ["file", 0o644, "1" * 40]}, "stats": None}
    second |= {"entries": {"a": [None, "c", "t", 3]}}
    path.write_text(f"{json.dumps(first)}\n{json.dumps(second)}\n")

    assert load_ledger(str(path)).records == [
        WriteRecord(1, "c", "s", "t", None, None, {"a": ONE}, None, {}, {}),
        RestoreRecord(2, "k", "g", None, {"a": LedgerEntry(None, "c", "t", 3, ())}, {}, "", {}),
    ]


# --- the file


def test_missing_ledger_is_empty(tmp_path: Path) -> None:
    ledger = load_ledger(str(tmp_path / "ledger"))

    assert (ledger.records, ledger.number, ledger.empty) == ([], 0, True)


@pytest.mark.parametrize("size", [1, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 3 * BLOCK_BYTES])
@pytest.mark.parametrize("whole", [0, 1, 2])
def test_torn_last_line_of_any_length_is_left_out_and_goes_with_the_next_record(
    tmp_path: Path, whole: int, size: int
) -> None:
    path = tmp_path / "ledger"
    for record in RECORDS[:whole]:
        append_record(str(path), record)
    with open(path, "ab") as stream:
        stream.write(b"{" * size)
    assert load_ledger(str(path)).records == RECORDS[:whole]

    append_record(str(path), RECORDS[whole])

    assert load_ledger(str(path)).records == RECORDS[: whole + 1]
    assert path.read_bytes().count(b"\n") == whole + 1


def test_ledger_that_was_read_on_knows_all_records_of_a_path_and_the_one_before_keeps_its_own(tmp_path: Path) -> None:
    path = str(tmp_path / "ledger")
    first, second = write(1, {"a": ONE}), write(2, {"a": TWO})
    append_record(path, first)
    before = read_on(path, Reading())
    append_record(path, second)

    after = read_on(path, before)

    assert after.ledger.records_on("a") == [first, second]
    assert after.ledger.as_of(1, ["a"]) == before.ledger.entries
    assert before.ledger.records_on("a") == before.ledger.records == [first]


def test_other_file_that_ends_like_the_one_read_before_is_read_anew(tmp_path: Path) -> None:
    path, other = str(tmp_path / "ledger"), str(tmp_path / "other")
    last = write(2, {"a": TWO})
    for name, first in ((path, write(1, {"a": ONE})), (other, write(1, {"b": ONE}))):
        append_record(name, first)
        append_record(name, last)
    before = read_on(path, Reading())
    os.rename(other, path)

    assert read_on(path, before).ledger == ledger_of(write(1, {"b": ONE}), last)


def test_ledger_without_a_whole_line_is_read_on_from_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    path.write_bytes(b"torn")
    before = read_on(str(path), Reading())
    append_record(str(path), RECORDS[0])

    assert before.ledger.records == []
    assert read_on(str(path), before).ledger.records == RECORDS[:1]


def test_line_that_is_no_record_before_the_last_one_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    append_record(str(path), RECORDS[0])
    with open(path, "ab") as stream:
        stream.write(b"torn\n")

    with pytest.raises(ValueError, match="Expecting value"):
        load_ledger(str(path))


def test_link_in_the_ledgers_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").touch()
    (tmp_path / "ledger").symlink_to("elsewhere")

    with pytest.raises(OSError, match="ledger"):
        append_record(str(tmp_path / "ledger"), RECORDS[0])

    assert (tmp_path / "elsewhere").read_bytes() == b""


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """Let no file of this process grow over a size: a write that reaches it is cut there, the next one fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_record_that_there_was_no_room_for_is_not_there_and_the_next_one_is(tmp_path: Path) -> None:
    path = str(tmp_path / "ledger")
    append_record(path, RECORDS[0])
    size = os.path.getsize(path)

    with room_for(size + 20), pytest.raises(OSError, match="File too large"):
        append_record(path, RECORDS[1])
    assert os.path.getsize(path) == size + 20
    assert load_ledger(path).records == RECORDS[:1]
    append_record(path, RECORDS[1])

    assert load_ledger(path).records == RECORDS[:2]


def test_ledger_keeps_no_file_open(tmp_path: Path) -> None:
    before = sorted(os.listdir("/dev/fd"))

    append_record(str(tmp_path / "ledger"), RECORDS[0])
    load_ledger(str(tmp_path / "ledger"))

    assert sorted(os.listdir("/dev/fd")) == before


# --- the sum


def test_ledger_is_empty_until_a_tool_wrote() -> None:
    restored = ledger_of(restore(1, {"a": LedgerEntry(ONE, "", "", 1)}))

    assert restored.empty
    assert not ledger_of(write(1, {}), restore(2, {})).empty


def test_number_is_that_of_the_last_record() -> None:
    assert ledger_of(write(4, {}), write(7, {}), write(9, {})).number == 9


def test_content_that_tools_changed_one_after_the_other_holds_all_their_changes() -> None:
    ledger = ledger_of(write(1, {"a": ONE}), write(2, {"b": ONE}), write(3, {"a": TWO}, turn="u"))

    assert ledger.entries == {
        "a": LedgerEntry(TWO, "chat", "u", live=(1, 3)),
        "b": LedgerEntry(ONE, "chat", "t", live=(2,)),
    }


def test_restore_says_itself_whose_changes_its_content_holds() -> None:
    entry = LedgerEntry(ONE, "chat", "t", live=(1,))
    ledger = ledger_of(write(1, {"a": ONE}), write(2, {"a": TWO}), restore(3, {"a": entry}))

    assert ledger.entries == {"a": entry}
    assert entries_of(ledger.records[2], {"b": entry}) == {"a": entry}


def test_content_is_the_agents_unless_a_restore_took_it_from_a_checkpoint() -> None:
    assert LedgerEntry(ONE, "chat", "t").by_agent
    assert not LedgerEntry(ONE, "", "", 0).by_agent


def test_deleted_paths_are_not_present() -> None:
    assert ledger_of(write(1, {"a": ONE, "b": ONE}), write(2, {"b": None})).present() == ["a"]


LATER = ledger_of(
    write(1, {"a": ONE, "old": ONE}, turn="one", session="first", checkpoint="c1", uncaptured={"a": "old reason"}),
    write(2, {"a": TWO}, turn="two", session="second", checkpoint="c2", uncaptured={"a": "secret", "b": "too large"}),
    restore(3, {"b": LedgerEntry(ONE, "", "", 1)}, token="k3"),
    write(4, {"c": None, "a": ONE}, turn="two", session="second", checkpoint="c2", uncaptured={"b": "unreadable"}),
    restore(5, {"d": LedgerEntry(TWO, "", "", 2)}, token="k5"),
)


def test_written_after_a_record_is_what_tools_changed_after_it() -> None:
    assert LATER.written_after(1) == {"a", "c"}
    assert LATER.written_after(2) == {"a", "c"}
    assert LATER.written_after(4) == set()


def test_uncaptured_after_a_record_is_said_with_the_newest_reason() -> None:
    assert LATER.uncaptured_after(0) == {"a": "secret", "b": "unreadable"}
    assert LATER.uncaptured_after(2) == {"b": "unreadable"}
    assert LATER.uncaptured_after(4) == {}


def test_put_after_a_record_is_what_tools_and_restores_left_where() -> None:
    assert LATER.put_after(1) == {"a": ONE, "b": ONE, "c": None, "d": TWO}
    assert LATER.put_after(4) == {"d": TWO}


def test_sum_as_of_a_record_knows_nothing_later() -> None:
    assert LATER.as_of(2, ["a", "old", "b", "c"]) == ledger_of(*LATER.records[:2]).entries
    assert LATER.as_of(5, LATER.entries) == LATER.entries
    assert LATER.as_of(0, LATER.entries) == {}


def test_writes_of_turns_are_theirs_alone_in_order() -> None:
    assert [record.number for record in LATER.writes_of(iter(["two"]))] == [2, 4]
    assert [record.number for record in LATER.writes_of(["one", "two"])] == [1, 2, 4]
    assert LATER.writes_of([]) == []


def test_ledger_knows_the_checkpoints_and_sessions_that_tools_wrote_after() -> None:
    assert [LATER.knows_checkpoint(name) for name in ("c1", "c2", "c3", "target")] == [True, True, False, False]
    assert [LATER.knows_session(name) for name in ("first", "second", "third")] == [True, True, False]


def test_restore_is_found_by_its_token() -> None:
    found = LATER.restore_by("k5")

    assert found is LATER.records[4]
    assert LATER.restore_by("two") is None


def test_stats_of_a_checkpoint_are_the_newest_of_its_turn() -> None:
    few, more, none = ChangeStats(1, 1, 0), ChangeStats(2, 5, 1), ChangeStats(1, 0, 0)
    ledger = ledger_of(
        write(1, {}, checkpoint="c1", stats=few),
        write(2, {}, checkpoint="c1", stats=more),
        write(3, {}, checkpoint="c1"),
        write(4, {}, checkpoint="c2"),
        write(5, {}, stats=none),
        restore(6, {}),
    )

    assert ledger.stats_of() == {"c1": more}
