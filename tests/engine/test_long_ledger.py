"""A long ledger costs what was added to it, and is read anew wherever it is not the one that was read before."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.model import ChangeStats, Entry, EntryKind
from engine.store import ledger as ledgers
from engine.store.acts import acts_on
from engine.store.ledger import (
    Ledger,
    LedgerEntry,
    Reading,
    Record,
    RestoreRecord,
    WriteRecord,
    append_record,
    load_ledger,
    read_on,
)
from tests.engine.lab import Lab


def entry(number: int) -> Entry:
    return Entry(EntryKind.FILE, 0o644, f"{number:040x}")


def record(number: int) -> Record:
    path = f"f{number % 3}"
    if number % 4 == 0:
        entries = {path: LedgerEntry(entry(number - 1), "chat", "turn", None, (number - 1,))}
        return RestoreRecord(number, f"token {number}", "target", "safety", entries, {}, "chat")
    changes = {path: entry(number), f"only {number}": None}
    return WriteRecord(number, "chat", "s", "turn", f"c{number}", "after", changes, ChangeStats(1, 1, 0))


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A ledger of ten records."""
    path = str(tmp_path / "ledger.jsonl")
    for number in range(1, 11):
        append_record(path, record(number))
    return path


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the records that are decoded."""
    numbers: list[int] = []
    decode = ledgers._decode

    def counting(value: dict[str, object]) -> Record:
        found = decode(value)
        numbers.append(found.number)
        return found

    monkeypatch.setattr(ledgers, "_decode", counting)
    return numbers


def test_only_what_was_appended_is_decoded(path: str, decoded: list[int]) -> None:
    first = read_on(path, Reading())
    append_record(path, record(11))
    decoded.clear()

    second = read_on(path, first)

    assert decoded == [11]
    assert second.ledger == load_ledger(path)
    assert first.ledger.number == 10
    assert "only 11" not in first.ledger.entries


def test_torn_line_is_read_once_it_is_whole(path: str) -> None:
    first = read_on(path, Reading())
    with open(path, "ab") as stream:
        stream.write(b'{"n": 11, "type": "wr')
    torn = read_on(path, first)
    append_record(path, record(11))

    whole = read_on(path, torn)

    assert torn.ledger == first.ledger
    assert whole.ledger == load_ledger(path)
    assert whole.ledger.number == 11


def cut(path: str) -> None:
    with open(path, "rb") as stream:
        lines = stream.readlines()
    os.truncate(path, sum(map(len, lines[:5])))


def replace_whole(path: str) -> None:
    with open(path, "rb") as stream:
        lines = stream.readlines()
    with open(f"{path}.new", "wb") as stream:
        stream.writelines([*lines[1:], *lines[:1]])
    os.rename(f"{path}.new", path)


def write_over(path: str) -> None:
    with open(path, "rb") as stream:
        value = [json.loads(line) for line in stream]
    value[-1]["turn"] = "more of it than there was before"
    with open(path, "r+b") as stream:
        stream.writelines(json.dumps(item).encode() + b"\n" for item in value)


@pytest.mark.parametrize("change", [cut, replace_whole, write_over, os.unlink])
def test_ledger_that_is_another_one_is_read_anew(path: str, change: Callable[[str], None]) -> None:
    before = read_on(path, Reading())
    change(path)

    after = read_on(path, before).ledger

    assert after == load_ledger(path)
    assert after != before.ledger


def test_what_is_known_of_a_path_is_what_all_records_add_up_to() -> None:
    ledger = Ledger()
    for number in range(1, 40):
        ledger.add(record(number))

    for until in range(41):
        added = Ledger()
        for number in range(1, min(until, 39) + 1):
            added.add(record(number))
        assert ledger.as_of(until, added.entries) == added.entries
        assert ledger.as_of(until, ["unknown", "only 39"]).keys() == added.entries.keys() & {"only 39"}
        later = [record(number) for number in range(until + 1, 40)]
        writes = [item for item in later if isinstance(item, WriteRecord)]
        assert ledger.written_after(until) == {name for write in writes for name in write.changes}
        assert ledger.put_after(until).keys() == {name for one in later for name in ledgers.entries_of(one, {})}
    acts = acts_on(ledger, ["f1", "unknown"])
    assert {name: [act.number for act in of] for name, of in acts.items()} == {
        "f1": [number for number in range(1, 40) if number % 3 == 1]
    }


def test_turns_read_on_in_a_long_ledger(lab: Lab, decoded: list[int]) -> None:
    for number in range(3):
        lab.write("a.txt", f"{number}\n")
    assert len(lab.checkpoints()) == 3
    decoded.clear()

    lab.write("a.txt", "more\n")
    report = lab.rollback()

    assert decoded == [4]
    lab.checkpoints()
    assert decoded == [4, 5]
    assert [note.path for note in report.restored] == ["a.txt"]
