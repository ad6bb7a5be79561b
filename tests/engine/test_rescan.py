"""A rescan finds what a walk finds, whatever changed, as long as it is told where."""

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.checkpoints.found import Scan
from engine.checkpoints.scan import Scanner
from engine.checkpoints.source import SourceRules, Tracked
from engine.checkpoints.touched import EVERYTHING, Touched
from engine.errors import CaptureFailed
from engine.model import Entry, GapReason, Limits
from engine.store.rows import Rows
from tests.engine.lab import remove

LIMIT = 100
LIMITS = Limits(max_file_size_bytes=LIMIT)


@dataclass
class Field:
    """A directory that is edited, and what its last look found."""

    root: Path
    limits: Limits = LIMITS
    tracked: Tracked = field(default_factory=Tracked)
    forced: frozenset[str] = frozenset()
    seen: Scan = field(default_factory=lambda: Scan(Rows()))
    listed: list[str] = field(default_factory=list)

    def scanner(self, before: Rows) -> Scanner:
        parents = {parent for path in self.forced for parent in _above(path)}
        rules = SourceRules(self.tracked, before, self.forced, frozenset(parents))
        return Scanner(
            str(self.root), before, rules, self.limits, on_directory=lambda _fd, path: self.listed.append(path)
        )

    def walk(self) -> Scan:
        self.seen = self.scanner(self.seen.rows).scan()
        return self.seen

    def again(self, *paths: str, below: tuple[str, ...] = ()) -> Scan:
        """Look again at these paths; require what a walk finds."""
        before = self.seen
        self.listed.clear()
        found = self.scanner(before.rows).rescan(before, Touched(frozenset(paths), frozenset(below)))
        listed = list(self.listed)
        walked = self.scanner(before.rows).scan()
        assert _meaning(found.rows) == _meaning(walked.rows)
        assert (found.rows.files, len(found.rows)) == (walked.rows.files, len(walked.rows))
        assert _differing(before.rows, found) == _differing(before.rows, walked)
        assert (found.gaps, found.excluded) == (walked.gaps, walked.excluded)
        assert found.linked <= walked.linked
        self.seen = found
        self.listed = listed
        return found

    def write(self, path: str, content: str = "x") -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)


def _meaning(rows: Rows) -> dict[str, tuple[Entry, bool]]:
    """Return what rows say; whether they are trusted is a matter of how long ago the files changed."""
    return {path: (row.entry, row.older) for path, row in rows.items()}


def _differing(before: Rows, found: Scan) -> set[str]:
    old, new = _meaning(before), _meaning(found.rows)
    differing = {path for path in old.keys() | new.keys() if old.get(path) != new.get(path)}
    assert differing <= found.changed
    return differing


def _above(path: str) -> Iterator[str]:
    while path := path.rpartition("/")[0]:
        yield path


@pytest.fixture
def place(tmp_path: Path) -> Field:
    """A small project that was walked."""
    place = Field(tmp_path / "ws")
    for path in ("a", "src/one.py", "src/two.py", "src/deep/er/three.py", "docs/index.md", "node_modules/pkg/x.js"):
        place.write(path)
    (place.root / "empty").mkdir()
    (place.root / "link").symlink_to("a")
    place.walk()
    return place


def _file_becomes_directory(root: Path) -> None:
    (root / "a").unlink()
    (root / "a").mkdir()
    (root / "a" / "inside").write_text("x")


def _directory_becomes_file(root: Path) -> None:
    shutil.rmtree(root / "src")
    (root / "src").write_text("x")


def _directory_becomes_link(root: Path) -> None:
    (root / "src").rename(root / "moved")
    (root / "src").symlink_to("moved")


def _link_becomes_file(root: Path) -> None:
    (root / "link").unlink()
    (root / "link").write_text("y")


def _no_source_becomes_source(root: Path) -> None:
    (root / "node_modules").rename(root / "mods")


def _write(path: str, content: str) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content)

    return change


CHANGES: dict[str, tuple[Callable[[Path], object], tuple[str, ...]]] = {
    "content": (_write("src/one.py", "other"), ("src/one.py",)),
    "new file": (_write("src/new.py", "n"), ("src/new.py",)),
    "new file in a new directory": (_write("src/a/b/c.py", "n"), ("src/a",)),
    "new file, told by its path alone": (_write("src/a/b/c.py", "n"), ("src/a/b/c.py",)),
    "new file, told by its directory": (_write("src/new.py", "n"), ("src",)),
    "new file at the root, told by the root": (_write("new", "n"), ("",)),
    "file gone": (lambda root: (root / "a").unlink(), ("a",)),
    "file gone, told by its directory": (lambda root: (root / "src/two.py").unlink(), ("src",)),
    "directory gone": (lambda root: shutil.rmtree(root / "src"), ("src",)),
    "last file of a directory gone": (lambda root: (root / "docs/index.md").unlink(), ("docs/index.md",)),
    "mode of a file": (lambda root: (root / "src/one.py").chmod(0o755), ("src/one.py",)),
    "mode of a directory": (lambda root: (root / "src").chmod(0o700), ("src",)),
    "file becomes directory": (_file_becomes_directory, ("a",)),
    "directory becomes file": (_directory_becomes_file, ("src",)),
    "directory becomes file, told by what was in it": (_directory_becomes_file, ("src/deep/er/three.py",)),
    "directory becomes link": (_directory_becomes_link, ("src", "moved")),
    "link becomes file": (_link_becomes_file, ("link",)),
    "directory renamed": (lambda root: (root / "src").rename(root / "lib"), ("src", "lib")),
    "source renamed to no source": (lambda root: (root / "src").rename(root / "build"), ("src", "build")),
    "no source renamed to source": (_no_source_becomes_source, ("node_modules", "mods")),
    "no source renamed, told by the root": (_no_source_becomes_source, ("",)),
    "no source touched": (_write("node_modules/pkg/y.js", "n"), ("node_modules/pkg/y.js",)),
    "gitignore appears": (_write("src/.gitignore", "new.py\n"), ("src/.gitignore",)),
    "gitignore appears at the root": (_write(".gitignore", "*.py\n"), (".gitignore",)),
    "environment appears": (_write("src/pyvenv.cfg", ""), ("src/pyvenv.cfg",)),
    "environment appears, told by its directory": (_write("src/pyvenv.cfg", ""), ("src",)),
    "repository appears": (_write("src/.git/HEAD", "ref: refs/heads/main\n"), ("src/.git",)),
    "repository appears, told by its directory": (_write("src/.git/HEAD", "0" * 40), ("src",)),
    "file grows over the limit": (_write("src/one.py", "x" * (LIMIT + 1)), ("src/one.py",)),
    "fifo appears": (lambda root: os.mkfifo(root / "src/pipe"), ("src/pipe",)),
    "nothing": (lambda _root: None, ("a", "src", "gone", "src/gone/deeper")),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_rescan_finds_what_a_walk_finds(place: Field, change: str) -> None:
    act, touched = CHANGES[change]
    act(place.root)

    place.again(*touched)
    place.again(*touched)


def test_what_ceases_to_rule_is_judged_anew(place: Field) -> None:
    for path in ("src/.gitignore", "docs/pyvenv.cfg", "src/deep/.git/HEAD"):
        place.write(path, "*.py\n")
        place.write("src/new.py")
        place.again(path, "src/new.py")
        remove(place.root / path if ".git/" not in path else place.root / "src/deep/.git")
        place.again(path)

    assert "src/deep/er/three.py" in place.seen.rows
    assert place.seen.gaps == ()


def test_gaps_are_looked_at_without_being_told(place: Field) -> None:
    place.write("src/one.py", "x" * (LIMIT + 1))
    place.again("src/one.py")
    assert [(gap.path, gap.older) for gap in place.seen.gaps] == [("src/one.py", True)]

    place.write("src/one.py", "small again")
    found = place.again()

    assert found.gaps == ()
    assert not found.rows["src/one.py"].older


def test_unreadable_directory_keeps_what_was_captured_and_comes_back(place: Field) -> None:
    with _unprivileged(place.root):
        (place.root / "src").chmod(0)
        reasons = [gap.reason for gap in place.again("src").gaps]
        kept, mode = place.seen.rows["src/deep/er/three.py"], place.seen.rows["src"].entry.mode
        (place.root / "src").chmod(0o755)
        found = place.again()

    assert reasons == [GapReason.UNREADABLE]
    assert (kept.older, mode) == (True, 0)
    assert found.gaps == ()
    assert not found.rows["src/deep/er/three.py"].older


@contextmanager
def _unprivileged(root: Path) -> Iterator[None]:
    """Be nobody where root would be allowed to read everything."""
    if os.geteuid() != 0:
        yield
        return
    for path in (root, *root.rglob("*")):
        os.chown(path, 65534, 65534, follow_symlinks=False)
    for parent in root.parents[:-1]:
        parent.chmod(parent.stat().st_mode | 0o055)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_more_files_than_the_limit_are_found_by_what_is_new(place: Field) -> None:
    count = place.seen.rows.files
    place.limits = Limits(max_file_size_bytes=LIMIT, max_source_files=count + 1)
    place.write("src/new1")
    place.again("src/new1")
    place.write("src/new2")

    with pytest.raises(CaptureFailed, match="more than"):
        place.again("src/new2")


def test_rescan_lists_no_directory_that_is_not_touched(place: Field) -> None:
    place.write("src/one.py", "other")
    place.again("src/one.py")
    assert place.listed == []

    place.write("src/more/new.py")
    place.again("src/more")
    assert place.listed == ["src/more"]

    place.again("src")
    assert place.listed == ["src"]


def test_everything_touched_is_a_walk(place: Field) -> None:
    place.write("src/one.py", "other")
    found = place.scanner(place.seen.rows).rescan(place.seen, EVERYTHING)

    assert "src/one.py" in found.changed
    assert set(place.listed) >= {"", "src", "src/deep", "src/deep/er", "docs", "empty"}


def test_file_with_two_names_is_told(place: Field) -> None:
    os.link(place.root / "a", place.root / "src/second")
    found = place.again("src/second")

    assert found.linked == {"src/second"}
    assert place.walk().linked == {"a", "src/second"}


Gesture = tuple[str, str, str]
NAMES = st.sampled_from(["a", "b", "build", "c.log"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
RULING = st.sampled_from([".gitignore", "pyvenv.cfg", ".git"])
RULING_PATHS = st.builds(lambda parents, name: "/".join([*parents, name]), st.lists(NAMES, max_size=2), RULING)
GESTURES = st.one_of(
    st.tuples(st.just("write"), st.one_of(PATHS, PATHS, RULING_PATHS), st.sampled_from(["1", "22", "a\n", "x" * 101])),
    st.tuples(st.sampled_from(["make", "remove", "mode", "fifo"]), PATHS, st.just("")),
    st.tuples(st.just("remove"), RULING_PATHS, st.just("")),
    st.tuples(st.sampled_from(["rename", "exchange", "link", "second name"]), PATHS, PATHS),
)


def _perform(root: Path, gesture: Gesture) -> None:
    act, first, second = gesture
    path, other = root / first, root / second
    with suppress(OSError, shutil.Error):
        if act == "remove":
            remove(path)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        if act == "write":
            # A FIFO that nobody reads refuses instead of waiting for ever.
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK, 0o644)
            os.write(descriptor, second.encode())
            os.close(descriptor)
        elif act == "make":
            path.mkdir()
        elif act == "mode":
            path.chmod(path.stat().st_mode ^ 0o111 if path.is_file() else 0o711)
        elif act == "fifo":
            os.mkfifo(path)
        elif act == "link":
            path.symlink_to(second)
        elif act == "second name":
            os.link(other, path, follow_symlinks=False)
        else:
            if act == "exchange":
                remove(other)
            path.rename(other)


def _stamps(root: Path) -> dict[str, os.stat_result]:
    return {str(path.relative_to(root)): path.lstat() for path in root.rglob("*")}


def _touched(before: dict[str, os.stat_result], after: dict[str, os.stat_result]) -> tuple[set[str], set[str]]:
    """Say what a feed that misses nothing would say, and no more."""
    paths, below = set(), set()
    for path in before.keys() | after.keys():
        old, new = before.get(path), after.get(path)
        if (
            old is None
            or new is None
            or (old.st_ino, old.st_mode) != (new.st_ino, new.st_mode)
            or (not stat.S_ISDIR(new.st_mode) and old != new)
        ):
            paths.add(path)
        if new is not None and stat.S_ISDIR(new.st_mode) and (old is None or old.st_ino != new.st_ino):
            below.add(path)
    return paths, below


@settings(max_examples=40)
@given(st.lists(st.lists(GESTURES, min_size=1, max_size=5), min_size=1, max_size=4), st.frozensets(PATHS, max_size=2))
def test_rescans_of_random_edits_find_what_walks_find(batches: list[list[Gesture]], chosen: frozenset[str]) -> None:
    with TemporaryDirectory() as directory:
        place = Field(Path(directory), tracked=Tracked.of(chosen), forced=frozenset(f"{path}/z" for path in chosen))
        place.walk()
        for batch in batches:
            before = _stamps(place.root)
            for gesture in batch:
                _perform(place.root, gesture)
            paths, below = _touched(before, _stamps(place.root))

            place.again(*paths, below=tuple(below))
