"""The index on disk: a directory's rows as a few bytes, and files that older versions left."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from engine.model import Entry, EntryKind
from engine.store.index import Index, load_index, save_index
from engine.store.row_pages import decode_inside, encode_inside
from engine.store.rows import LOST_OID, Row, Rows

AT_NS = 1_796_000_000_123_456_789
OID = "0123456789abcdef0123456789abcdef01234567"
MOST = (1 << 64) - 1

INSIDE = {
    "file.py": Row(Entry(EntryKind.FILE, 0o644, OID), 4000, AT_NS, AT_NS, 77, 5),
    "older": Row(Entry(EntryKind.FILE, 0o7777, LOST_OID), trusted=False, older=True),
    "before the epoch": Row(Entry(EntryKind.FILE, 0o600, OID), MOST, -1, -(1 << 62), MOST, MOST),
    "after it": Row(Entry(EntryKind.FILE, 0, OID), 0, (1 << 63) - 1, 0, 0, 0, trusted=False),
    "\udcff\n": Row(Entry(EntryKind.SYMLINK, 0o777, OID), 3, 1, 2, 3, 4),
    "ü": Row(Entry(EntryKind.DIRECTORY, 0o755, None)),
    "nested": Row(Entry(EntryKind.REPOSITORY, 0, OID)),
}


def test_rows_come_back_as_they_were_and_in_their_order() -> None:
    assert list(decode_inside(encode_inside(INSIDE)).items()) == list(INSIDE.items())
    for name, row in INSIDE.items():
        assert decode_inside(encode_inside({name: row})) == {name: row}


def test_rows_of_a_large_directory_take_less_than_fifty_bytes_each() -> None:
    many = {
        f"file{number}.py": Row(
            Entry(EntryKind.FILE, 0o644, f"{number * 0x9E3779B97F4A7C15F39CC0605CEDC8341082276B % (1 << 160):040x}"),
            4000 + number % 37,
            1_796_000_000_000_000_000 + number * 70_003,
            1_796_000_000_000_000_000 + number * 70_003,
            200_000 + number,
            64,
        )
        for number in range(1000)
    }

    data = encode_inside(many)

    assert decode_inside(data) == many
    assert len(data) < 50 * len(many)


@pytest.mark.parametrize("length", range(0, len(encode_inside(INSIDE)), 7))
def test_cut_or_changed_bytes_are_never_taken_for_rows(length: int) -> None:
    data = encode_inside(INSIDE)

    for damaged in (data[:length], data[:length] + bytes([data[length] ^ 0xFF]) + data[length + 1 :]):
        with pytest.raises(ValueError, match=r"^rows "):
            decode_inside(damaged)


def test_index_of_the_first_schema_is_an_empty_one_until_it_is_written_anew(tmp_path: Path) -> None:
    path, former = tmp_path / "index", tmp_path / "index.sieve"
    former.write_bytes(b"DIRC")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(
            "CREATE TABLE rows (path BLOB PRIMARY KEY, oid TEXT) WITHOUT ROWID; INSERT INTO rows VALUES ('a', 'b');"
            "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
            "INSERT INTO facts VALUES ('schema', '1'), ('base', 'c')"
        )
    assert load_index(str(path)) == Index()
    index = Index(Rows.of({"d/file.py": INSIDE["file.py"], "d": INSIDE["ü"]}), "base", "tree", "modes")

    save_index(str(path), index, None)

    assert load_index(str(path)) == index
    assert [item.name for item in tmp_path.iterdir()] == ["index"]
    with closing(sqlite3.connect(path)) as connection:
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
    assert names == [("directories",), ("facts",)]


def test_only_the_directories_of_what_changed_are_written_again(tmp_path: Path) -> None:
    path = str(tmp_path / "index")
    rows = Rows.of({"a": INSIDE["ü"], "a/one": INSIDE["file.py"], "b": INSIDE["ü"], "b/two": INSIDE["older"]})
    save_index(path, Index(rows), None)
    later = Rows.of({"a": INSIDE["ü"], "a/one": INSIDE["older"], "c": INSIDE["nested"]})

    save_index(path, Index(later, "base"), ["a/one"])
    assert {name: row for name, row in load_index(path).rows.items() if name != "a/one"} == {
        name: row for name, row in rows.items() if name != "a/one"
    }
    save_index(path, Index(later, "base"), ["a/one", "b", "b/two", "c"])

    assert load_index(path) == Index(later, "base")
