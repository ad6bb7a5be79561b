"""Every step of every change fails, is interrupted, is killed or interfered with: old content or new, never mixed."""

import errno
import fcntl
import os
import random
import signal
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest

from engine.host.files import TEMP_PREFIX, ContentChanged, Tree
from engine.host.paths import PathUnsafe

Snapshot = dict[str, tuple[int, bytes]]


@dataclass(frozen=True)
class Operation:
    """A change of one path and the steps it takes."""

    name: str
    path: str
    run: Callable[[Tree], object]
    steps: tuple[str, ...]


OLD = b"old content"
NEW = (b"new ", b"content ", b"in chunks")
OPERATIONS = [
    Operation(
        "create a file",
        "d/new",
        lambda tree: tree.write_file("d/new", NEW, 0o640, expected=None),
        ("create", "write", "write", "write", "chmod", "sync", "install", "sync-directory"),
    ),
    Operation(
        "replace a file",
        "d/file",
        lambda tree: tree.write_file("d/file", NEW, 0o640, expected=tree.signature("d/file")),
        ("create", "write", "write", "write", "chmod", "sync", "install", "sync-directory"),
    ),
    Operation(
        "replace a link by a file",
        "d/link",
        lambda tree: tree.write_file("d/link", [b"new"], 0o640, expected=tree.signature("d/link")),
        ("create", "write", "chmod", "sync", "install", "sync-directory"),
    ),
    Operation(
        "create a link",
        "d/new",
        lambda tree: tree.write_link("d/new", b"target", expected=None),
        ("symlink", "install", "sync-directory"),
    ),
    Operation(
        "replace a file by a link",
        "d/file",
        lambda tree: tree.write_link("d/file", b"target", expected=tree.signature("d/file")),
        ("symlink", "install", "sync-directory"),
    ),
    Operation("remove a file", "d/file", lambda tree: tree.remove_file("d/file"), ("unlink", "sync-directory")),
    Operation(
        "make a directory",
        "d/new",
        lambda tree: tree.make_directory("d/new", 0o711),
        ("mkdir", "chmod", "sync-directory"),
    ),
    Operation(
        "make parents",
        "d/a/b",
        lambda tree: tree.ensure_parents("d/a/b/file"),
        ("mkdir", "sync-directory", "mkdir", "sync-directory"),
    ),
    Operation(
        "remove a directory", "d/empty", lambda tree: tree.remove_directory("d/empty"), ("rmdir", "sync-directory")
    ),
    Operation("change a mode", "d/file", lambda tree: tree.change_mode("d/file", 0o4711), ("chmod",)),
    Operation(
        "change the mode of one of two names",
        "d/hard",
        lambda tree: tree.change_mode("d/hard", 0o711),
        ("chmod", "create", "write", "chmod", "sync", "install", "sync-directory"),
    ),
]
CASES = [
    pytest.param(operation, number, id=f"{operation.name}-{number}-{step}")
    for operation in OPERATIONS
    for number, step in enumerate(operation.steps)
]


class Trap:
    """A fault hook: notes each step, and does something at one of them."""

    def __init__(self, number: int | None = None, act: Callable[[], None] = lambda: None) -> None:
        self.steps: list[str] = []
        self._number = number
        self._act = act

    def __call__(self, operation: str, _path: str) -> None:
        self.steps.append(operation)
        if len(self.steps) - 1 == self._number:
            self._act()


def raising(error: BaseException) -> Callable[[], None]:
    def act() -> None:
        raise error

    return act


def build(root: Path) -> None:
    (root / "d/empty").mkdir(parents=True)
    (root / "d/file").write_bytes(OLD)
    (root / "d/file").chmod(0o604)
    (root / "d/link").symlink_to("file")
    (root / "d/hard").write_bytes(b"two names")
    os.link(root / "d/hard", root.parent / "other name")


def snapshot(root: Path) -> Snapshot:
    found: Snapshot = {}
    for directory, names, files in os.walk(root):
        for name in [*names, *files]:
            path = Path(directory, name)
            status = path.lstat()
            content = b""
            if path.is_symlink():
                content = os.fsencode(os.readlink(path))
            elif path.is_file():
                content = path.read_bytes()
            found[str(path.relative_to(root))] = (status.st_mode, content)
    return found


@pytest.fixture(autouse=True)
def no_descriptor_is_leaked() -> Iterator[None]:
    before = open_descriptors()
    yield
    # What an earlier test of this process left to the collector may go meanwhile; nothing may come.
    assert open_descriptors() <= before


def open_descriptors() -> set[tuple[str, str]]:
    """Return the numbers of this process's descriptors, each with what it leads to."""
    found = set()
    for name in os.listdir("/dev/fd"):
        with suppress(FileNotFoundError):  # that of the listing itself
            found.add((name, os.readlink(f"/dev/fd/{name}")))
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "root"
    path.mkdir()
    build(path)
    return path


def finished(operation: Operation, tmp_path: Path) -> Snapshot:
    """What the tree looks like after the operation ran undisturbed."""
    elsewhere = tmp_path / "undisturbed/root"
    elsewhere.mkdir(parents=True)
    build(elsewhere)
    with Tree.open(str(elsewhere)) as tree:
        operation.run(tree)
    return snapshot(elsewhere)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_the_steps_are_all_of_them(operation: Operation, root: Path) -> None:
    trap = Trap()

    with Tree.open(str(root), trap) as tree:
        operation.run(tree)

    assert tuple(trap.steps) == operation.steps


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EIO, "Input/output error"),
        KeyboardInterrupt(),
    ],
    ids=["full", "broken", "interrupted"],
)
@pytest.mark.parametrize(("operation", "number"), CASES)
def test_a_failing_step_leaves_the_old_state_or_the_new_one(
    operation: Operation, number: int, error: BaseException, root: Path, tmp_path: Path
) -> None:
    old, new = snapshot(root), finished(operation, tmp_path)

    with Tree.open(str(root), Trap(number, raising(error))) as tree, pytest.raises(type(error)) as caught:
        operation.run(tree)

    assert caught.value is error
    stands = operation.steps[number] == "sync-directory" and operation.name != "make parents"
    assert snapshot(root) == (new if stands else old)
    assert (root.parent / "other name").read_bytes() == b"two names"


@pytest.mark.parametrize(("operation", "number"), CASES)
def test_killed_at_any_step_no_file_is_torn(operation: Operation, number: int, root: Path, tmp_path: Path) -> None:
    old, new = snapshot(root), finished(operation, tmp_path)

    child = os.fork()
    if child == 0:
        with Tree.open(str(root), Trap(number, lambda: os.kill(os.getpid(), signal.SIGKILL))) as tree:
            operation.run(tree)
        os._exit(3)
    _, status = os.waitpid(child, 0)

    assert os.WIFSIGNALED(status)
    left = snapshot(root)
    temps = [path for path in left if os.path.basename(path).startswith(TEMP_PREFIX)]
    assert len(temps) <= 1
    for path, entry in left.items():
        # A directory is made 0700 before it gets its mode; nothing else is ever seen half-way.
        half_made = path == "d/new" and operation.name == "make a directory" and entry[0] & 0o7777 == 0o700
        assert path in temps or half_made or entry in {old.get(path), new.get(path)}
    assert old.keys() & new.keys() <= left.keys()


def test_chunks_that_fail_half_way_leave_the_file_as_it_is(root: Path) -> None:
    old = snapshot(root)

    def chunks() -> Iterator[bytes]:
        yield b"half"
        raise RuntimeError("the source broke")

    with Tree.open(str(root)) as tree, pytest.raises(RuntimeError, match="the source broke"):
        tree.write_file("d/file", chunks(), 0o644)

    assert snapshot(root) == old


@pytest.mark.parametrize(
    "operation", [each for each in OPERATIONS if "install" in each.steps], ids=lambda each: each.name
)
def test_a_file_that_appears_or_changes_during_the_write_wins(operation: Operation, root: Path) -> None:
    path = operation.path

    def interfere() -> None:
        (root / "theirs").write_bytes(b"theirs")
        (root / "theirs").rename(root / path)

    number = operation.steps.index("install")
    with Tree.open(str(root), Trap(number, interfere)) as tree, pytest.raises(ContentChanged):
        operation.run(tree)

    assert (root / path).read_bytes() == b"theirs"
    assert [name for name in os.listdir(root / "d") if name.startswith(TEMP_PREFIX)] == []


def test_a_real_limit_on_file_size_leaves_the_file_as_it_is(root: Path) -> None:
    """The kernel itself refuses the write half-way (RLIMIT_FSIZE), in a process of its own."""
    old = snapshot(root)

    child = os.fork()
    if child == 0:
        import resource

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        try:
            with Tree.open(str(root)) as tree:
                tree.write_file("d/file", [bytes(60_000), bytes(60_000)], 0o644)
        except OSError as error:
            os._exit(0 if error.errno == errno.EFBIG else 1)
        os._exit(2)
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0
    assert snapshot(root) == old


# Somebody swaps directories meanwhile


SWAPS = [
    "symlink to outside",
    "moved inside, symlink to outside",
    "moved outside",
    "replaced by a file",
    "removed",
]


@pytest.mark.parametrize("swap", SWAPS)
@pytest.mark.parametrize(("operation", "number"), CASES)
def test_nothing_outside_changes_when_a_parent_is_swapped_meanwhile(
    operation: Operation, number: int, swap: str, root: Path, tmp_path: Path
) -> None:
    sentinel = tmp_path / "sentinel"
    sentinel.mkdir()
    build_sentinel(sentinel)
    outside = snapshot(sentinel)
    old, new = snapshot(root), finished(operation, tmp_path)
    moved = tmp_path / "moved"

    def interfere() -> None:
        parked = root / "parked" if swap == "moved inside, symlink to outside" else moved
        (root / "d").rename(parked)
        match swap:
            case "replaced by a file":
                (root / "d").write_bytes(b"theirs")
            case "removed" | "moved outside":
                pass
            case _:
                (root / "d").symlink_to(sentinel)

    with Tree.open(str(root), Trap(number, interfere)) as tree:
        try:
            operation.run(tree)
        except (PathUnsafe, FileNotFoundError):
            refused = True
        else:
            refused = False

    assert snapshot(sentinel) == outside
    parked = root / "parked" if swap == "moved inside, symlink to outside" else moved
    there = {f"d/{path}": entry for path, entry in snapshot(parked).items()}
    # What was done before the swap went with the directory that was moved.
    begun = operation.steps[number] == "sync-directory" or (operation.name, number) in {
        ("make a directory", 1),
        ("make parents", 2),
    }
    if not begun:
        assert refused
        assert there == {path: entry for path, entry in old.items() if path != "d"}
    else:
        assert all(entry in {old.get(path), new.get(path)} for path, entry in there.items())


def build_sentinel(sentinel: Path) -> None:
    """Hold every name that an operation could reach through the symlink."""
    for name in ["file", "new", "hard", "link"]:
        (sentinel / name).write_bytes(b"sentinel " + name.encode())
        (sentinel / name).chmod(0o604)
    (sentinel / "empty").mkdir()


def swap_for_ever(root: Path, sentinel: Path) -> NoReturn:
    pauses = random.Random(0)
    try:
        while True:
            # The true directory stands long enough for some operations to come through whole, also on a busy machine.
            time.sleep(pauses.choice([0, 0.0001, 0.001, 0.01]))
            os.rename(root / "d", root / "parked")
            os.symlink(sentinel, root / "d")
            os.unlink(root / "d")
            os.rename(root / "parked", root / "d")
    finally:
        os._exit(1)


def test_a_process_that_swaps_as_fast_as_it_can_leads_nobody_outside(root: Path, tmp_path: Path) -> None:
    sentinel = tmp_path / "sentinel"
    sentinel.mkdir()
    build_sentinel(sentinel)
    outside = snapshot(sentinel)
    outcomes = {"done": 0, "refused": 0}

    swapper = os.fork()
    if swapper == 0:
        swap_for_ever(root, sentinel)
    try:
        with Tree.open(str(root)) as tree:
            attempts = [
                lambda: tree.write_file("d/file", NEW, 0o644),
                lambda: tree.change_mode("d/file", 0o600),
                lambda: tree.remove_file("d/file"),
                lambda: tree.make_directory("d/new", 0o755),
                lambda: tree.remove_directory("d/new"),
            ]
            deadline = time.monotonic() + 20
            while min(outcomes.values()) < 50 and time.monotonic() < deadline:
                for attempt in attempts:
                    outcomes[outcome(attempt)] += 1
        assert os.waitpid(swapper, os.WNOHANG) == (0, 0)  # it swapped to the end
    finally:
        os.kill(swapper, signal.SIGKILL)
        os.waitpid(swapper, 0)

    assert snapshot(sentinel) == outside
    assert min(outcomes.values()) > 0  # both were seen, else this proves nothing; how often is the machine's affair


def outcome(attempt: Callable[[], object]) -> str:
    try:
        attempt()
    except (PathUnsafe, FileNotFoundError, FileExistsError):
        return "refused"
    return "done"


# What happens between the last check and the step itself


def before_call(monkeypatch: pytest.MonkeyPatch, name: str, act: Callable[..., None]) -> None:
    """Let something happen right before a system call."""
    call = getattr(os, name)

    def interfered(*arguments: object, **named: object) -> object:
        act(*arguments)
        return call(*arguments, **named)

    monkeypatch.setattr(os, name, interfered)


def test_a_file_that_appears_at_the_last_moment_is_not_replaced(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before_call(monkeypatch, "link", lambda *_: (root / "d/new").write_bytes(b"theirs"))

    with Tree.open(str(root)) as tree, pytest.raises(ContentChanged):
        tree.write_file("d/new", NEW, 0o644, expected=None)

    assert (root / "d/new").read_bytes() == b"theirs"
    assert [name for name in os.listdir(root / "d") if name.startswith(TEMP_PREFIX)] == []


def test_a_file_that_takes_the_place_at_the_last_moment_keeps_its_mode(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def replace(path: object, *_: object) -> None:
        if path == "file":
            (root / "theirs").write_bytes(b"theirs")
            (root / "theirs").chmod(0o600)
            (root / "theirs").rename(root / "d/file")

    before_call(monkeypatch, "open", replace)

    with Tree.open(str(root)) as tree, pytest.raises(ContentChanged):
        tree.change_mode("d/file", 0o777)

    assert (root / "d/file").stat().st_mode & 0o777 == 0o600


def test_content_is_durable_before_it_has_its_name_and_the_name_after(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[bool, bool]] = []

    def note(descriptor: int) -> None:
        is_directory = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        synced.append((is_directory, (root / "d/new").exists()))

    before_call(monkeypatch, "fsync", note)
    monkeypatch.delattr(fcntl, "F_FULLFSYNC", raising=False)

    with Tree.open(str(root)) as tree:
        tree.write_file("d/new", NEW, 0o644)

    assert synced == [(False, False), (True, True)]
