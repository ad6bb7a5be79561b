"""What applying a plan does to each path: in which order, only where all is as planned, and whatever fails half-way."""

import errno
import os
import stat
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from engine.checkpoints.reading import blob_oid
from engine.host.files import Tree
from engine.host.git import Git
from engine.model import Action, Entry, EntryKind, PathNote
from engine.restore.apply import Outcome, apply_items
from engine.store.journal import JournalItem
from engine.store.reader import ObjectReader, open_reader
from tests.engine.lab import describe, snapshot

CHANGED = "changed during the restore, left as it is"
ONE, TWO, NAME, GONE = b"one\n", b"two\n", b"name", b"the store does not hold this"


def file(content: bytes, mode: int = 0o644) -> Entry:
    return Entry(EntryKind.FILE, mode, blob_oid(content))


def link(target: bytes) -> Entry:
    return Entry(EntryKind.SYMLINK, 0o777, blob_oid(target))


def directory(mode: int = 0o755) -> Entry:
    return Entry(EntryKind.DIRECTORY, mode, None)


def restored(path: str, now: Entry | None, target: Entry | None) -> JournalItem:
    return JournalItem(path, Action.RESTORE, now, target, "")


def deleted(path: str, now: Entry | None) -> JournalItem:
    return JournalItem(path, Action.DELETE, now, None, "")


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectReader]:
    """Reads a store that holds all contents used here but one."""
    store = tmp_path_factory.mktemp("store")
    subprocess.run(["git", "init", "-q", "--bare", str(store)], check=True)
    for content in (ONE, TWO, NAME):
        subprocess.run(
            ["git", "hash-object", "-w", "--stdin"], cwd=store, input=content, check=True, capture_output=True
        )
    with open_reader(Git(str(store), search_path=os.environ["PATH"])) as opened:
        yield opened


class Bench:
    """A directory to apply plans to; something may happen at one of the steps."""

    def __init__(self, root: Path, reader: ObjectReader) -> None:
        self.root = root
        self.steps: list[tuple[str, str]] = []
        self._reader = reader
        self._at: tuple[str, str] | None = None
        self._passes = 0
        self._happening: Callable[[], None] = lambda: None

    def put(self, path: str, entry: Entry, content: bytes = b"") -> Entry:
        """Make something stand at a path."""
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if entry.kind is EntryKind.SYMLINK:
            place.symlink_to(os.fsdecode(content))
            return entry
        if entry.kind is EntryKind.FILE:
            place.write_bytes(content)
        else:
            place.mkdir(exist_ok=True)
        place.chmod(entry.mode)
        return entry

    def at(self, step: str, path: str, happening: Callable[[], None] | OSError, *, time: int = 1) -> None:
        """Let something happen once, before a step that is taken for this time; an error makes the step fail."""
        self._at, self._passes = (step, path), time - 1
        if isinstance(happening, OSError):
            error = happening

            def fail() -> None:
                raise error

            self._happening = fail
        else:
            self._happening = happening

    def apply(self, *items: JournalItem) -> Outcome:
        with Tree.open(str(self.root), self._reach) as tree:
            return apply_items(tree, self._reader, items)

    def _reach(self, step: str, path: str) -> None:
        self.steps.append((step, path))
        if self._at != (step, path):
            return
        if self._passes:
            self._passes -= 1
            return
        self._at = None
        self._happening()

    def state(self, path: str) -> tuple[object, ...]:
        return describe(os.fsencode(self.root / path))


@pytest.fixture
def bench(tmp_path: Path, reader: ObjectReader) -> Bench:
    root = tmp_path / "root"
    root.mkdir()
    return Bench(root, reader)


def full() -> OSError:
    return OSError(errno.ENOSPC, "No space left on device")


def done(outcome: Outcome) -> list[str]:
    """The paths that were done, where none failed."""
    assert outcome.failed == []
    return sorted(item.path for item in outcome.done)


def only_failure(outcome: Outcome) -> PathNote:
    assert outcome.done == []
    [note] = outcome.failed
    return note


# --- the order


def test_deepest_goes_first_then_all_is_made_from_the_top_and_directories_get_their_bits_from_below(
    bench: Bench,
) -> None:
    now = {"a": bench.put("a", directory()), "a/b": bench.put("a/b", directory())}
    now["a/b/c"] = bench.put("a/b/c", file(ONE), ONE)
    items = [
        deleted("a", now["a"]),
        restored("d/e/f", None, file(ONE)),
        deleted("a/b/c", now["a/b/c"]),
        restored("d", None, directory(0o500)),
        deleted("a/b", now["a/b"]),
        restored("d/e", None, directory(0o510)),
    ]

    outcome = bench.apply(*items)

    assert done(outcome) == ["a", "a/b", "a/b/c", "d", "d/e", "d/e/f"]
    assert [
        (step, path) for step, path in bench.steps if step not in ("sync-directory", "write", "sync", "install")
    ] == [
        ("unlink", "a/b/c"),
        ("rmdir", "a/b"),
        ("rmdir", "a"),
        ("mkdir", "d"),
        ("chmod", "d"),
        ("mkdir", "d/e"),
        ("chmod", "d/e"),
        ("create", "d/e/f"),
        ("chmod", "d/e/f"),
        ("chmod", "d/e"),
        ("chmod", "d"),
    ]
    assert snapshot(bench.root) == {
        "d": ("directory", 0o500),
        "d/e": ("directory", 0o510),
        "d/e/f": ("file", 0o644, ONE),
    }


def test_what_is_to_stay_is_not_touched_and_not_counted(bench: Bench) -> None:
    now = bench.put("a", file(ONE), ONE)
    before = snapshot(bench.root)

    outcome = bench.apply(
        JournalItem("a", Action.KEEP_HAND_EDIT, now, file(TWO), ""),
        JournalItem("a", Action.KEEP_OTHER_CHAT, now, None, ""),
        JournalItem("b", Action.NOT_CAPTURED, None, file(TWO), ""),
    )

    assert (done(outcome), bench.steps, snapshot(bench.root)) == ([], [], before)


def test_applying_twice_does_no_more_than_once(bench: Bench) -> None:
    items = [
        deleted("gone", bench.put("gone", file(ONE), ONE)),
        restored("d", None, directory(0o700)),
        restored("d/f", None, file(ONE, 0o4755)),
        restored("l", bench.put("l", file(ONE), ONE), link(NAME)),
        JournalItem("m", Action.MERGE, bench.put("m", file(ONE), ONE), file(TWO), ""),
    ]
    bench.apply(*items)
    before = snapshot(bench.root)
    bench.steps.clear()

    outcome = bench.apply(*items)

    assert done(outcome) == ["d", "d/f", "gone", "l", "m"]
    assert (bench.steps, snapshot(bench.root)) == ([], before)


def test_one_path_that_fails_stops_no_other(bench: Bench) -> None:
    bench.at("create", "b", full())

    outcome = bench.apply(*(restored(path, None, file(ONE)) for path in ("a", "b", "c")))

    assert [item.path for item in outcome.done] == ["a", "c"]
    assert outcome.failed == [PathNote("b", "No space left on device")]
    assert snapshot(bench.root).keys() == {"a", "c"}


# --- what becomes of each kind

KINDS: dict[str, tuple[Entry, bytes]] = {
    "file": (file(ONE), ONE),
    "executable": (file(ONE, 0o755), ONE),
    "other file": (file(TWO, 0o600), TWO),
    "link": (link(NAME), NAME),
    "other link": (link(ONE), ONE),
    "file of a link's text": (file(NAME), NAME),
    "directory": (directory(), b""),
    "closed directory": (directory(0o550), b""),
}


@pytest.mark.parametrize("then", KINDS)
@pytest.mark.parametrize("now", [*KINDS, "nothing"])
def test_each_kind_takes_the_place_of_each_other(bench: Bench, now: str, then: str) -> None:
    standing = None if now == "nothing" else bench.put("p/it", *KINDS[now])
    wanted, content = KINDS[then]

    outcome = bench.apply(restored("p/it", standing, wanted))

    assert done(outcome) == ["p/it"]
    bench.put("expected", wanted, content)
    assert bench.state("p/it") == bench.state("expected")


def test_permission_bits_alone_are_changed_in_place(bench: Bench) -> None:
    now = bench.put("a", file(ONE), ONE)
    before = (bench.root / "a").stat()

    outcome = bench.apply(restored("a", now, file(ONE, 0o750)))

    after = (bench.root / "a").stat()
    assert done(outcome) == ["a"]
    assert (stat.S_IMODE(after.st_mode), after.st_ino, after.st_mtime_ns) == (0o750, before.st_ino, before.st_mtime_ns)


def test_file_and_link_and_empty_directory_are_removed(bench: Bench) -> None:
    now = [bench.put("f", file(ONE), ONE), bench.put("l", link(NAME), NAME), bench.put("d", directory())]

    outcome = bench.apply(*(deleted(path, entry) for path, entry in zip("fld", now, strict=True)))

    assert done(outcome) == ["d", "f", "l"]
    assert snapshot(bench.root) == {}


def test_directory_with_something_left_in_it_stays_and_counts_neither_as_done_nor_as_failed(bench: Bench) -> None:
    now = bench.put("d", directory())
    bench.put("d/x", file(ONE), ONE)

    outcome = bench.apply(deleted("d", now))

    assert outcome == Outcome()
    assert bench.state("d/x") == ("file", 0o644, ONE)


# --- what is not as planned


@pytest.mark.parametrize("then", ["other file", "link", "directory"])
@pytest.mark.parametrize("planned", ["nothing", "other file"])
def test_what_stands_there_unplanned_is_left_alone(bench: Bench, planned: str, then: str) -> None:
    bench.put("it", *KINDS["file"])
    planned_entry = None if planned == "nothing" else file(b"older\n")

    outcome = bench.apply(restored("it", planned_entry, KINDS[then][0]))

    assert only_failure(outcome) == PathNote("it", CHANGED)
    assert bench.state("it") == ("file", 0o644, ONE)


def test_file_that_changed_is_not_deleted(bench: Bench) -> None:
    bench.put("it", file(TWO), TWO)

    assert only_failure(bench.apply(deleted("it", file(ONE)))) == PathNote("it", CHANGED)
    assert bench.state("it") == ("file", 0o644, TWO)


def test_file_that_is_gone_by_now_is_not_made_anew_over_the_deletion(bench: Bench) -> None:
    assert only_failure(bench.apply(restored("it", file(ONE), file(TWO)))) == PathNote("it", CHANGED)
    assert snapshot(bench.root) == {}


def test_directory_that_nobody_planned_for_is_not_removed_for_a_file(bench: Bench) -> None:
    bench.put("it", directory(0o710))

    assert only_failure(bench.apply(restored("it", None, file(ONE)))) == PathNote("it", CHANGED)
    assert bench.state("it") == ("directory", 0o710)


def test_directory_with_something_left_in_it_is_not_replaced_by_a_file(bench: Bench) -> None:
    now = bench.put("it", directory(0o710))
    bench.put("it/x", file(ONE), ONE)

    assert only_failure(bench.apply(restored("it", now, file(TWO)))) == PathNote("it", CHANGED)
    assert snapshot(bench.root) == {"it": ("directory", 0o710), "it/x": ("file", 0o644, ONE)}


def test_file_takes_the_place_of_a_directory_that_a_killed_restore_had_removed(bench: Bench) -> None:
    assert done(bench.apply(restored("it", directory(), file(ONE)))) == ["it"]
    assert bench.state("it") == ("file", 0o644, ONE)


def test_file_in_the_place_of_a_directory_that_was_to_be_replaced_is_left_alone(bench: Bench) -> None:
    bench.put("it", file(TWO), TWO)

    assert only_failure(bench.apply(restored("it", directory(), file(ONE)))) == PathNote("it", CHANGED)
    assert bench.state("it") == ("file", 0o644, TWO)


@pytest.mark.parametrize("item", [deleted("it", file(ONE)), restored("it", file(ONE), file(TWO))])
def test_fifo_in_a_files_place_is_left_alone(bench: Bench, item: JournalItem) -> None:
    os.mkfifo(bench.root / "it")

    assert only_failure(bench.apply(item)) == PathNote("it", CHANGED)
    assert stat.S_ISFIFO((bench.root / "it").lstat().st_mode)


@pytest.mark.parametrize("then", ["file", "link", "directory"])
def test_nothing_is_made_through_a_linked_parent(bench: Bench, tmp_path: Path, then: str) -> None:
    (tmp_path / "outside").mkdir()
    (bench.root / "p").symlink_to(tmp_path / "outside")

    outcome = bench.apply(restored("p/it", None, KINDS[then][0]))

    assert only_failure(outcome) == PathNote("p/it", "is a symbolic link or no directory")
    assert os.listdir(tmp_path / "outside") == []


@pytest.mark.parametrize(
    ("now", "then", "step"),
    [
        ("file", None, "unlink"),
        ("file", "other file", "install"),
        ("file", "link", "install"),
        ("file", "executable", "chmod"),
        ("file", "directory", "unlink"),
    ],
)
def test_edit_between_the_last_look_and_the_step_is_kept(bench: Bench, now: str, then: str | None, step: str) -> None:
    standing = bench.put("it", *KINDS[now])
    bench.at(step, "it", lambda: (bench.root / "it").write_bytes(b"by hand, just now\n") and None)
    item = deleted("it", standing) if then is None else restored("it", standing, KINDS[then][0])

    assert only_failure(bench.apply(item)) == PathNote("it", CHANGED)
    assert snapshot(bench.root) == {"it": ("file", 0o644, b"by hand, just now\n")}


@pytest.mark.parametrize(
    ("now", "then", "step"),
    [
        ("nothing", "file", "install"),
        ("nothing", "link", "install"),
        ("nothing", "directory", "mkdir"),
        ("closed directory", "file", "install"),
        ("closed directory", "link", "install"),
        ("other file", "directory", "mkdir"),
        ("link", "directory", "mkdir"),
    ],
)
def test_file_that_appears_where_the_way_was_just_made_free_is_kept(
    bench: Bench, now: str, then: str, step: str
) -> None:
    standing = None if now == "nothing" else bench.put("it", *KINDS[now])
    bench.at(step, "it", lambda: (bench.root / "it").write_bytes(b"by hand, just now\n") and None)

    note = only_failure(bench.apply(restored("it", standing, KINDS[then][0])))

    assert note.why in (CHANGED, "File exists")
    assert snapshot(bench.root) == {"it": ("file", 0o644, b"by hand, just now\n")}


@pytest.mark.parametrize(
    ("now", "then", "step"),
    [
        ("nothing", "file", "install"),
        ("directory", "file", "install"),
        ("file", "directory", "mkdir"),
        ("file", None, "unlink"),
        ("directory", "closed directory", "chmod"),
    ],
)
def test_parent_that_is_swapped_for_a_link_during_a_step_fails_that_path_alone(
    bench: Bench, tmp_path: Path, now: str, then: str | None, step: str
) -> None:
    standing = None if now == "nothing" else bench.put("p/it", *KINDS[now])
    (bench.root / "p").mkdir(exist_ok=True)
    (tmp_path / "outside").mkdir()

    def swap() -> None:
        (bench.root / "p").rename(bench.root / "moved")
        (bench.root / "p").symlink_to(tmp_path / "outside")

    bench.at(step, "p/it", swap)
    item = deleted("p/it", standing) if then is None else restored("p/it", standing, KINDS[then][0])

    outcome = bench.apply(item, restored("z", None, file(ONE)))

    assert [done.path for done in outcome.done] == ["z"]
    assert [note.path for note in outcome.failed] == ["p/it"]
    assert os.listdir(tmp_path / "outside") == []


# --- what fails half-way


@pytest.mark.parametrize("step", ["rmdir", "create", "write", "install"])
def test_directory_whose_place_a_file_could_not_take_is_put_back(bench: Bench, step: str) -> None:
    now = bench.put("it", directory(0o710))
    bench.at(step, "it", full())

    assert only_failure(bench.apply(restored("it", now, file(ONE)))) == PathNote("it", "No space left on device")
    assert snapshot(bench.root) == {"it": ("directory", 0o710)}


@pytest.mark.parametrize("kind", ["executable", "link"])
@pytest.mark.parametrize("step", ["unlink", "mkdir"])
def test_what_a_directory_could_not_take_the_place_of_is_put_back(bench: Bench, kind: str, step: str) -> None:
    now = bench.put("it", *KINDS[kind])
    before = snapshot(bench.root)
    bench.at(step, "it", full())

    outcome = bench.apply(restored("it", now, directory()))

    assert only_failure(outcome) == PathNote("it", "No space left on device")
    assert snapshot(bench.root) == before


@pytest.mark.parametrize("now", ["other file", "directory"])
def test_content_that_the_store_lost_is_said_and_what_stands_there_stays(bench: Bench, now: str) -> None:
    standing = bench.put("it", *KINDS[now])
    before = snapshot(bench.root)

    outcome = bench.apply(restored("it", standing, file(GONE)))

    assert only_failure(outcome) == PathNote("it", f"object {blob_oid(GONE)} is missing")
    assert snapshot(bench.root) == before


def test_file_without_content_in_the_checkpoint_is_damage(bench: Bench) -> None:
    outcome = bench.apply(restored("it", None, Entry(EntryKind.FILE, 0o644, None)))

    assert only_failure(outcome) == PathNote("it", "the checkpoint names no content")


@pytest.mark.parametrize(
    ("now", "then", "time"),
    [
        ("nothing", "file", 1),
        ("file", "other file", 1),
        ("file", "link", 1),
        ("file", "nothing", 1),
        ("directory", "nothing", 1),
        ("nothing", "closed directory", 1),
        ("directory", "file", 2),
    ],
)
def test_step_that_stands_but_could_not_be_made_durable_counts_as_done(
    bench: Bench, now: str, then: str, time: int
) -> None:
    standing = None if now == "nothing" else bench.put("it", *KINDS[now])
    wanted = None if then == "nothing" else bench.put("expected", *KINDS[then])
    bench.at("sync-directory", "it", full(), time=time)

    outcome = bench.apply(deleted("it", standing) if wanted is None else restored("it", standing, wanted))

    assert done(outcome) == ["it"]
    assert snapshot(bench.root).get("it") == (None if wanted is None else bench.state("expected"))


def test_step_that_failed_counts_as_failed_whatever_stands_there_by_now(bench: Bench) -> None:
    def replace_by_a_fifo() -> None:
        (bench.root / "it").unlink()
        os.mkfifo(bench.root / "it")
        raise full()

    bench.at("sync-directory", "it", replace_by_a_fifo)

    assert only_failure(bench.apply(restored("it", None, file(ONE)))) == PathNote("it", "No space left on device")


def test_error_without_words_of_the_system_is_said_in_its_own(bench: Bench) -> None:
    bench.at("create", "it", OSError("out of paper"))

    assert only_failure(bench.apply(restored("it", None, file(ONE)))) == PathNote("it", "out of paper")


def test_directory_that_could_not_get_its_bits_is_not_done(bench: Bench) -> None:
    now = bench.put("d", directory())
    bench.at("chmod", "d", full())

    outcome = bench.apply(restored("d", now, directory(0o500)), restored("e", None, directory(0o500)))

    assert [item.path for item in outcome.done] == ["e"]
    assert outcome.failed == [PathNote("d", "[Errno 28] No space left on device")]
    assert snapshot(bench.root) == {"d": ("directory", 0o755), "e": ("directory", 0o500)}


@pytest.mark.parametrize("appears", ["nothing", "file"])
def test_directory_that_was_replaced_meanwhile_leaves_its_successor_alone(bench: Bench, appears: str) -> None:
    now = bench.put("d", directory())

    def replace_it() -> None:
        (bench.root / "d").rmdir()
        if appears == "file":
            bench.put("d", file(ONE), ONE)

    bench.at("create", "z", replace_it)

    outcome = bench.apply(restored("d", now, directory(0o500)), restored("z", None, file(TWO)))

    assert done(outcome) == ["d", "z"]
    assert snapshot(bench.root).get("d") == (None if appears == "nothing" else ("file", 0o644, ONE))


def test_directory_is_made_writable_until_its_content_is_in_it(bench: Bench) -> None:
    seen: Sequence[int] = []
    bench.at("create", "d/f", lambda: seen.append(stat.S_IMODE((bench.root / "d").stat().st_mode)))

    outcome = bench.apply(restored("d", None, directory(0o2055)), restored("d/f", None, file(ONE)))

    assert done(outcome) == ["d", "d/f"]
    assert seen == [0o2755]
    assert bench.state("d") == ("directory", 0o2055)


def test_read_only_directory_is_open_while_what_is_in_it_changes(bench: Bench) -> None:
    shut = bench.put("d", directory(0o555))
    one = bench.put("d/one", file(ONE), ONE)
    bench.root.joinpath("d").chmod(0o555)

    outcome = bench.apply(deleted("d/one", one), restored("d", shut, directory(0o755)))

    assert bench.steps.index(("chmod", "d")) < bench.steps.index(("unlink", "d/one"))
    assert not outcome.failed
    assert bench.state("d") == ("directory", 0o755)


@pytest.mark.parametrize("left_open", [False, True], ids=["as it was planned", "as a crash left it"])
def test_read_only_directory_that_stays_is_read_only_again(bench: Bench, *, left_open: bool) -> None:
    shut = directory(0o555)
    bench.put("d", directory())
    bench.put("d/stays", file(ONE), ONE)
    bench.root.joinpath("d").chmod(0o755 if left_open else shut.mode)

    bench.apply(deleted("d", shut))

    assert bench.state("d") == ("directory", 0o555)
