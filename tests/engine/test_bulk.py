"""The first checkpoint of a workspace, and any with very many new files, goes into a pack of its own."""

import os
import random
import subprocess
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.checkpoints.bulk import LARGE_BYTES, LEAST_FILES
from engine.checkpoints.reading import blob_oid, hash_content, read_directory, read_file
from engine.errors import StorageFailed
from engine.host.git import Git
from engine.model import GapReason
from engine.store.packing import PackWriter, encode_index, pack_object
from engine.store.rows import Row
from engine.store.soundness import find_known
from engine.upkeep.retention import PrunePolicy
from tests.engine.lab import Lab, snapshot

LIMIT = 10 * 1024 * 1024
# Around the sizes at which a header grows by a byte, another window is taken, a file counts as large.
SIZES = (0, 1, 15, 16, 2047, 2048, 8192, 8193, 100_000, LARGE_BYTES, LARGE_BYTES + 1, 3 * LARGE_BYTES)


def git(store: Path, *arguments: str, stdin: bytes = b"") -> str:
    done = subprocess.run(
        ["git", f"--git-dir={store}", *arguments], input=stdin, check=True, capture_output=True, timeout=60
    )
    return done.stdout.decode()


def fill(lab: Lab, files: int = LEAST_FILES, named: str = "") -> None:
    for number in range(files):
        lab.edit(f"{named}d{number % 7}/f{number}.txt", f"{named}{number}\n" * (number % 40 + 1))


def packs(lab: Lab) -> list[Path]:
    return sorted((lab.store / "objects" / "pack").glob("*.pack"))


def assert_sound(lab: Lab) -> None:
    for pack in packs(lab):
        git(lab.store, "index-pack", "--verify", "--strict", str(pack))
        git(lab.store, "verify-pack", str(pack))
    told = git(lab.store, "fsck", "--full", "--strict", "--no-dangling")
    assert told in ("", "notice: HEAD points to an unborn branch (none)\n")
    assert lab.engine.upkeep.verify().findings == ()


def objects_in(pack: Path, store: Path) -> set[str]:
    return {
        line.split()[1] for line in git(store, "show-index", stdin=pack.with_suffix(".idx").read_bytes()).splitlines()
    }


def test_git_finds_every_file_of_a_first_checkpoint_sound(lab: Lab) -> None:
    chance = random.Random(7)
    fill(lab)
    for size in SIZES:
        lab.edit(f"sizes/{size}.random", chance.randbytes(size))
        lab.edit(f"sizes/{size}.zeros", bytes(size))
        lab.edit(f"sizes/{size}.again", bytes(size))
    (lab.root / "link").symlink_to("d1/f1.txt")
    (lab.root / "d1" / "f1.txt").chmod(0o755)
    (lab.root / "d2" / os.fsdecode(b"caf\xe9")).write_bytes(b"latin\n")
    taken = snapshot(lab.root)

    lab.engine.checkpoint(lab.workspace, "first")

    blobs = {blob_oid(path.read_bytes()) for path in lab.root.rglob("*") if path.is_file() and not path.is_symlink()}
    (pack,) = packs(lab)
    assert objects_in(pack, lab.store) >= blobs
    assert_sound(lab)
    for path in list(lab.root.rglob("*")):
        if path.is_file() or path.is_symlink():
            path.unlink()
    lab.rollback(1, everything=True)
    assert snapshot(lab.root) == taken


def test_content_that_the_store_has_is_not_packed_again(lab: Lab) -> None:
    fill(lab)
    lab.engine.checkpoint(lab.workspace, "one branch")
    for path in lab.root.rglob("*.txt"):
        path.unlink()
    fill(lab, named="other")
    lab.engine.checkpoint(lab.workspace, "another branch")
    for path in lab.root.rglob("*.txt"):
        path.unlink()
    fill(lab)
    lab.edit("new", "new\n")

    lab.engine.checkpoint(lab.workspace, "back again")

    held = [oid for pack in packs(lab) for oid in objects_in(pack, lab.store)]
    assert len(held) == len(set(held))
    assert len(held) >= 2 * LEAST_FILES
    assert_sound(lab)


def test_large_files_are_never_in_memory_as_a_whole(lab: Lab) -> None:
    fill(lab)
    size = 9 * LARGE_BYTES
    for number in range(4):
        with (lab.root / f"large{number}").open("wb") as file:
            file.write(b"%d" % number)
            file.truncate(size)
    workspace = lab.workspace
    tracemalloc.start()
    try:
        lab.engine.checkpoint(workspace, "first")
        _now, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < size
    assert not lab.checkpoints()[0].gaps


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[int]:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    yield descriptor
    os.close(descriptor)


@pytest.mark.parametrize("moves", [1, 2, 3])
def test_file_that_changes_while_it_is_read_is_read_again_and_then_given_up(
    tmp_path: Path, directory: int, moves: int
) -> None:
    (tmp_path / "file").write_bytes(b"0")
    left = moves

    def take(size: int, chunks: Iterator[bytes]) -> str | None:
        nonlocal left
        oid = hash_content(size, chunks)
        if left:
            (tmp_path / "file").write_bytes(b"0" * (moves - left + 2))
            left -= 1
        return oid

    row = read_file(directory, "file", LIMIT, take)

    assert (row and row.entry.oid) == (None if moves == 3 else blob_oid(b"0" * (moves + 1)))


def test_what_is_no_file_any_more_is_told_by_name(tmp_path: Path, directory: int) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "file").write_bytes(b"content")
    (tmp_path / "d" / "link").symlink_to("file")
    (tmp_path / "d" / "directory").mkdir()
    (tmp_path / "moved").symlink_to("d")

    names = ["file", "link", "directory", "gone"]
    here = dict(read_directory(directory, "d", names, LIMIT, hash_content))
    moved = dict(read_directory(directory, "moved", names, LIMIT, hash_content))
    large = dict(read_directory(directory, "d", ["file"], 3, hash_content))

    file = here["d/file"]
    assert isinstance(file, Row)
    assert file.entry.oid == blob_oid(b"content")
    assert isinstance(here["d/link"], OSError)
    assert not isinstance(here["d/link"], FileNotFoundError)
    assert here["d/directory"] is None
    assert isinstance(here["d/gone"], FileNotFoundError)
    assert {name: type(outcome) for name, outcome in moved.items()} == dict.fromkeys(
        [f"moved/{name}" for name in names], FileNotFoundError
    )
    assert large == {"d/file": None}


def test_pack_takes_back_what_came_out_too_short_too_long_or_unwanted(lab: Lab) -> None:
    store = lab.store
    lab.edit("a", "one\n")
    lab.engine.checkpoint(lab.workspace, "one")
    pack = PackWriter(str(store))

    assert pack.stream(5, [b"12"], lambda _oid: True) is None
    assert pack.stream(5, [b"123", b"456"], lambda _oid: True) is None
    assert pack.stream(2, [b"no"], lambda _oid: False) == blob_oid(b"no")
    assert pack.stream(3, [b"y", b"es"], lambda _oid: True) == blob_oid(b"yes")
    assert pack.stream(3, [b"yes"], lambda _oid: True) == blob_oid(b"yes")
    pack.add([pack_object("blob", blob_oid(b"yes"), b"yes"), pack_object("blob", blob_oid(b"too"), b"too")])
    assert pack.oids == {blob_oid(b"yes"), blob_oid(b"too")}
    pack.install()
    pack.close()

    (installed,) = packs(lab)
    assert objects_in(installed, store) == {blob_oid(b"yes"), blob_oid(b"too")}
    assert_sound(lab)


def test_pack_that_is_given_up_leaves_nothing(lab: Lab) -> None:
    lab.edit("a", "one\n")
    lab.engine.checkpoint(lab.workspace, "one")
    before = snapshot(lab.store)
    pack = PackWriter(str(lab.store))
    pack.add([pack_object("blob", blob_oid(b"yes"), b"yes")])

    pack.close()
    pack.close()

    assert snapshot(lab.store) == before


def test_index_names_offsets_beyond_what_four_bytes_say(tmp_path: Path) -> None:
    entries = [(bytes([number]) * 20, number, offset) for number, offset in enumerate((12, 1 << 31, 99, 5 << 33))]

    index = encode_index(entries, bytes(20))

    told = [line.split() for line in git(tmp_path, "show-index", stdin=index).splitlines()]
    assert told == [[str(offset), oid.hex(), f"({crc:08x})"] for oid, crc, offset in entries]


def test_store_that_cannot_take_a_pack_is_told_and_nothing_is_captured(lab: Lab) -> None:
    fill(lab)
    lab.engine.checkpoint(lab.workspace, "one")
    fill(lab, named="more")
    directory = lab.store / "objects" / "pack"
    aside = directory.rename(lab.store / "objects" / "aside")
    directory.touch()

    with pytest.raises(StorageFailed, match=str(lab.store)):
        lab.engine.checkpoint(lab.workspace, "two")

    directory.unlink()
    aside.rename(directory)
    assert [item.reason for item in lab.checkpoints()] == ["one"]
    assert lab.engine.checkpoint(lab.workspace, "two").created
    assert_sound(lab)


def test_gap_among_many_files_is_noted(lab: Lab) -> None:
    fill(lab)
    lab.edit("large", bytes(lab.limits.max_file_size_bytes + 1))

    lab.engine.checkpoint(lab.workspace, "first")

    assert [(gap.path, gap.reason) for gap in lab.checkpoints()[0].gaps] == [("large", GapReason.TOO_LARGE)]


def test_who_wants_hears_how_far_the_reading_of_many_files_is(lab: Lab) -> None:
    fill(lab, 5 * LEAST_FILES)
    heard: list[tuple[int, int]] = []

    with lab.engine.readings.heard(lab.workspace, lambda done, total: heard.append((done, total))):
        lab.engine.checkpoint(lab.workspace, "first")
        lab.edit("one more", "few\n")
        lab.engine.checkpoint(lab.workspace, "second")
    fill(lab, named="more")
    lab.engine.checkpoint(lab.workspace, "third")

    assert heard[0] == (0, 5 * LEAST_FILES)
    assert heard[-1] == (5 * LEAST_FILES, 5 * LEAST_FILES)
    assert heard == sorted(heard)
    assert len(heard) > 3


def test_index_whose_pack_was_never_named_is_no_holding_and_is_swept(lab: Lab) -> None:
    fill(lab)
    lab.engine.checkpoint(lab.workspace, "first")
    pack = PackWriter(str(lab.store))
    pack.add([pack_object("blob", blob_oid(b"new\n"), b"new\n")])
    pack.install()
    pack.close()
    (added,) = [path for path in packs(lab) if blob_oid(b"new\n") in objects_in(path, lab.store)]
    added.unlink()
    index = added.with_suffix(".idx")
    lab.edit("new", "new\n")
    assert not find_known(Git(str(lab.store)), [blob_oid(b"new\n")])

    assert lab.engine.checkpoint(lab.workspace, "second").created

    assert_sound(lab)
    assert not lab.engine.upkeep.prune(PrunePolicy()).errors
    assert not index.exists()
    assert_sound(lab)


def test_prune_keeps_later_versions_as_differences_from_what_was_packed_whole(lab: Lab) -> None:
    fill(lab)
    lines = [f"{number} {random.Random(number).random()}\n" for number in range(500)]
    lab.edit("long", "".join(lines))
    lab.engine.checkpoint(lab.workspace, "first")
    lines[250] = "another line\n"
    lab.edit("long", "".join(lines))
    lab.engine.checkpoint(lab.workspace, "second")

    report = lab.engine.upkeep.prune(PrunePolicy())

    assert not report.errors
    (pack,) = packs(lab)
    sizes = [line.split() for line in git(lab.store, "verify-pack", "-v", str(pack)).splitlines() if " blob " in line]
    assert any(len(fields) == 7 and int(fields[3]) < 200 for fields in sizes), "one of the two is a difference"
    assert_sound(lab)
