"""The sieve: it finds whatever a walk finds, runs nothing of the workspace's, and is none where it could be wrong."""

import errno
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from engine.checkpoints import sieve
from engine.checkpoints.feed import Feed, WorkspaceFeed
from engine.checkpoints.found import Scan
from engine.checkpoints.scan import Scanner
from engine.checkpoints.sieve import keep_sieve, sift
from engine.checkpoints.source import SourceRules, Tracked
from engine.checkpoints.touched import Touched
from engine.host.git import Git
from engine.host.mounts import Ground
from engine.host.unnamed import UnnamedFile
from engine.model import Limits, Workspace
from engine.store.layout import Layout
from engine.store.opened import Store
from engine.store.rows import Rows
from tests.engine.lab import Lab, snapshot

SETTLED_S = 2.1  # after that, what was made is stamped clearly before the second of a look


class Site:
    """A workspace with a store, looked at as captures do it."""

    def __init__(self, base: Path, *, timeout_s: float = 30.0) -> None:
        self.root = base / "ws"
        self.outside = base / "outside"
        self.root.mkdir(parents=True)
        self.outside.mkdir()
        layout = Layout(str(base / "base"))
        self.commands: list[str] = []
        git = Git(
            layout.store,
            search_path=os.environ["PATH"],
            timeout_s=timeout_s,
            before=lambda arguments: self.commands.append(arguments[0]),
        )
        self.store = Store(layout, git, str(base / "lock"))
        self.workspace = Workspace(str(self.root), str(self.root), "0" * 16, Limits())
        self.scan = Scan(Rows(), frozenset())

    @property
    def sieve(self) -> sieve.Sieve:
        kept = self.store.remembered(self.workspace).sieve
        assert isinstance(kept, sieve.Sieve)
        return kept

    def scanner(self) -> Scanner:
        return Scanner(str(self.root), self.scan.rows, SourceRules(Tracked(), self.scan.rows), Limits())

    def walk(self) -> None:
        """Walk, and keep a sieve."""
        self.store.ensure()
        began_ns = time.time_ns()
        self.scan = self.scanner().scan()
        keep_sieve(self.store, self.workspace, self.scan, began_ns)

    def sift(self, feed: WorkspaceFeed | None = None) -> Touched | None:
        return sift(self.store, self.workspace, self.scan.rows, feed)

    def found(self) -> tuple[object, ...]:
        """What looking where the sieve says finds."""
        touched = self.sift()
        assert touched is not None
        return summary(self.scanner().rescan(self.scan, touched))

    def truth(self) -> tuple[object, ...]:
        return summary(self.scanner().scan())

    def write(self, path: str, content: str = "content") -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)
        return target


def summary(scan: Scan) -> tuple[object, ...]:
    entries = {path: row.entry for path, row in scan.rows.items()}
    return entries, [gap.path for gap in scan.gaps], set(scan.excluded)


def make_plain(site: Site) -> None:
    for path in ("a/b/one.txt", "a/two.txt", "three.txt", "run.sh"):
        site.write(path)
    (site.root / "run.sh").chmod(0o755)
    (site.root / "link").symlink_to("three.txt")
    (site.root / "empty").mkdir()


def make_hidden_rule(site: Site) -> None:
    site.write("a/.gitignore", ".gitignore\n*.gen\n")
    site.write("a/b/x.gen")


def make_rule(site: Site) -> None:
    site.write(".gitignore", ".gitignore\n*.gen\n")
    site.write("a/b/x.gen")


def make_environment(site: Site) -> None:
    site.write("env/pyvenv.cfg")
    site.write("env/lib/code.py")


NAMES = [b"\xff\xfe", b"new\nline", b"tab\t", b'quo"te', "é".encode(), "e\u0301".encode(), b"a-b", b"a/b", b"a.b"]
NAMES += [b"/".join([b"d" * 250] * depth) + b"/" + b"f" * (depth + 1) for depth in range(1, 12)]
NAMES += [b"x" * length for length in range(1, 20)]


def make_names(site: Site) -> None:
    for name in NAMES:
        path = os.path.join(os.fsencode(site.root), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(os.fsdecode(path)).write_bytes(name)


def make_hostile(site: Site) -> None:
    program = site.outside / "program"
    program.write_text(f"#!/bin/sh\necho ran >> {site.outside / 'ran'}\ncat\n")
    program.chmod(0o755)
    settings = {key: str(program) for key in RUNNING_KEYS} | {"core.trustctime": "false", "core.checkStat": "minimal"}
    for place in (".", "nested"):
        (site.root / place).mkdir(exist_ok=True)
        subprocess.run(["git", "init", "-q"], cwd=site.root / place, check=True)
        for key, value in settings.items():
            subprocess.run(["git", "config", key, value], cwd=site.root / place, check=True)
    rules = "* filter=f diff=f ident eol=crlf text working-tree-encoding=UTF-16\n"
    site.write(".gitattributes", rules)
    site.write("nested/.gitattributes", rules)
    site.write(".gitmodules", '[submodule "nested"]\n\tpath = nested\n\turl = ext::sh -c x\n\tupdate = !program\n')
    for name in ("a.txt", "b.txt", "nested/c.txt"):
        site.write(name, "$Id$\r\n")


RUNNING_KEYS = ("core.fsmonitor", "filter.f.clean", "filter.f.smudge", "filter.f.process", "diff.f.command",
                "diff.f.textconv", "core.pager", "core.alternateRefsCommand")  # fmt: skip

MAKERS = (make_plain, make_hidden_rule, make_rule, make_environment, make_names, make_hostile)
SEEDS = 8


class Yard:
    """Workspaces that were all made some time ago."""

    def __init__(self, base: Path) -> None:
        self._sites: dict[str, list[Site]] = {}
        for maker in MAKERS:
            for number in range(len(CHANGES) + SEEDS + 24 if maker is make_plain else 1):
                site = Site(base / maker.__name__ / str(number))
                maker(site)
                self._sites.setdefault(maker.__name__, []).append(site)
        time.sleep(SETTLED_S)  # a ctime is not to be had otherwise

    def take(self, maker: Callable[[Site], None]) -> Site:
        """Give one that nobody had, with a sieve."""
        site = self._sites[maker.__name__].pop()
        site.walk()
        return site


@pytest.fixture(autouse=True)
def small_workspaces_have_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sieve, "LEAST_ROWS", 0)


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Yard:
    return Yard(tmp_path_factory.mktemp("yard"))


@pytest.fixture
def fresh(tmp_path: Path) -> Site:
    made = Site(tmp_path)
    made.store.ensure()
    return made


@pytest.fixture
def site(yard: Yard) -> Site:
    return yard.take(make_plain)


def test_a_quiet_workspace_takes_one_git_and_no_look(site: Site) -> None:
    site.sift()
    site.commands.clear()

    assert site.sift() == Touched()
    assert site.commands == ["diff-files"]


def keep_stamps(path: Path, change: Callable[[], object]) -> None:
    """Change a file and set back what can be set back of its stamps."""
    status = path.stat()
    change()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


CHANGES: dict[str, Callable[[Site], object]] = {
    "written": lambda site: site.write("a/b/one.txt", "longer than before"),
    "written at the same length": lambda site: site.write("a/b/one.txt", "CONTENT"),
    "mtime set back": lambda site: keep_stamps(
        site.root / "three.txt", lambda: (site.root / "three.txt").write_text("CONTENT")
    ),
    "exchanged, and mtime set back": lambda site: keep_stamps(
        site.root / "three.txt",
        lambda: (site.write("new", "CONTENT"), (site.root / "new").rename(site.root / "three.txt")),
    ),
    "mode changed": lambda site: (site.root / "three.txt").chmod(0o755),
    "mode changed within the executable": lambda site: (site.root / "run.sh").chmod(0o700),
    "removed": lambda site: (site.root / "three.txt").unlink(),
    "made": lambda site: site.write("a/b/new.txt"),
    "made in new directories": lambda site: site.write("n/e/w/file.txt"),
    "renamed": lambda site: (site.root / "three.txt").rename(site.root / "a/3.txt"),
    "directory renamed": lambda site: (site.root / "a").rename(site.root / "z"),
    "directory mode changed": lambda site: (site.root / "a").chmod(0o700),
    "empty directory removed": lambda site: (site.root / "empty").rmdir(),
    "link changed": lambda site: ((site.root / "link").unlink(), (site.root / "link").symlink_to("run.sh")),
    "file made a link": lambda site: ((site.root / "run.sh").unlink(), (site.root / "run.sh").symlink_to("three.txt")),
    "directory made a link": lambda site: (
        (site.root / "a").rename(site.outside / "a"),
        (site.root / "a").symlink_to(site.outside / "a"),
    ),
    "parent made a link, then written behind it": lambda site: (
        (site.root / "a").rename(site.outside / "a"),
        (site.root / "a").symlink_to(site.outside / "a"),
        (site.outside / "a/b/one.txt").write_text("CONTENT"),
    ),
    "directory made a file": lambda site: (shutil.rmtree(site.root / "a"), site.write("a")),
    "file made a fifo": lambda site: ((site.root / "three.txt").unlink(), os.mkfifo(site.root / "three.txt")),
    "became a nested repository": lambda site: (site.root / "a/.git").mkdir(),
    "became an environment": lambda site: site.write("a/pyvenv.cfg"),
    "ignored from now on": lambda site: (site.write(".gitignore", "*.new"), site.write("a/b/c.new")),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_found(site: Site, change: str) -> None:
    before = summary(site.scan)

    CHANGES[change](site)

    assert site.found() == site.truth() != before


def test_a_change_in_the_second_of_the_look_is_found(fresh: Site) -> None:
    """Whole seconds say nothing of it: same size, same mtime, the ctime within the same second."""
    target = fresh.write("a/one.txt")
    same_second = False
    while not same_second:
        target.write_text("content")
        os.utime(target, (1, 1))
        second = target.stat().st_ctime_ns // 10**9
        time.sleep(0.03)  # so that the row itself is not racy
        fresh.walk()
        keep_stamps(target, lambda: target.write_text("CONTENT"))
        same_second = target.stat().st_ctime_ns // 10**9 == second
    assert fresh.scan.rows["a/one.txt"].trusted

    assert fresh.found() == fresh.truth()


def test_a_row_that_is_not_to_be_trusted_is_always_looked_at(fresh: Site) -> None:
    row = None
    while row is None or row.trusted:  # a busy machine may take too long between the two
        fresh.write("one.txt")
        fresh.walk()
        row = fresh.scan.rows["one.txt"]

    touched = fresh.sift()
    assert touched is not None
    assert "one.txt" in touched.paths


def test_a_directory_listed_as_it_changed_is_always_listed(fresh: Site) -> None:
    fresh.write("a/one.txt")
    fresh.scan = fresh.scanner().scan()

    keep_sieve(fresh.store, fresh.workspace, fresh.scan, (fresh.root / "a").stat().st_mtime_ns)

    touched = fresh.sift()
    assert touched is not None
    assert "a" in touched.paths


def test_what_a_later_capture_found_is_looked_at_again(site: Site) -> None:
    """A file may have gone back to what the list says while the rows moved on."""
    kept = site.root / "kept"
    (site.root / "three.txt").rename(kept)
    site.write("three.txt", "another")
    site.scan = site.scanner().scan()

    touched = site.sift()

    assert touched is not None
    assert {"three.txt", "kept"} <= touched.paths


def test_a_hidden_rule_that_changes_in_place_is_found(yard: Yard) -> None:
    site = yard.take(make_hidden_rule)
    rule = site.root / "a/.gitignore"
    assert "a/.gitignore" in site.scan.excluded

    keep_stamps(rule, lambda: rule.write_text(".gitignore\n*.xxx\n"))

    assert site.found() == site.truth()
    assert "a/b/x.gen" in site.truth()[0]  # type: ignore[operator]


def test_a_hidden_rule_that_appears_is_found(yard: Yard) -> None:
    site = yard.take(make_rule)

    site.write("a/.gitignore", "!*.gen\n")

    assert site.found() == site.truth()
    assert "a/b/x.gen" in site.truth()[0]  # type: ignore[operator]


def test_an_environment_that_becomes_source_is_found(yard: Yard) -> None:
    site = yard.take(make_environment)
    assert "env" in site.scan.excluded

    (site.root / "env/pyvenv.cfg").unlink()

    assert site.found() == site.truth()
    assert "env/lib/code.py" in site.truth()[0]  # type: ignore[operator]


def test_names_of_any_bytes_and_length_are_kept_apart(yard: Yard) -> None:
    site = yard.take(make_names)
    assert site.sift() == Touched()
    for name in NAMES:
        Path(os.fsdecode(os.path.join(os.fsencode(site.root), name))).write_bytes(b"changed")

    assert site.sift() == Touched(frozenset(os.fsdecode(name) for name in NAMES))


# --- nothing of the workspace runs, or has a say


def test_nothing_of_the_workspace_runs_or_answers(yard: Yard) -> None:
    site = yard.take(make_hostile)
    assert site.sift() == Touched()

    keep_stamps(site.root / "b.txt", lambda: site.write("b.txt", "$ID$\r\n"))

    assert site.sift() == Touched(frozenset({"b.txt"}))
    assert site.found() == site.truth()
    assert not (site.outside / "ran").exists()


def test_what_stands_where_a_racy_file_was_holds_nobody_up(tmp_path: Path) -> None:
    site = Site(tmp_path, timeout_s=5.0)
    site.store.ensure()
    site.write("a/racy.txt")
    site.write("a/calm.txt")
    site.walk()
    for name in ("racy.txt", "calm.txt"):
        (site.root / "a" / name).unlink()
        os.mkfifo(site.root / "a" / name)
    began = time.monotonic()

    assert site.found() == site.truth()
    assert time.monotonic() - began < 3


# --- when it is none


def test_a_process_that_never_looked_has_no_sieve(site: Site) -> None:
    another = Store(site.store.layout, site.store.git, site.store.lock_path)

    assert sift(another, site.workspace, site.scan.rows) is None


def test_after_the_clock_was_set_back_there_is_none(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() - 2 * 10**9)

    assert site.sift() is None


def test_after_a_mount_there_is_none(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sieve, "find_ground", lambda _root: Ground(1, 2, "another", frozenset({"ext4"}), ()))

    assert site.sift() is None


def test_on_a_file_system_with_ctimes_of_its_own_there_is_none(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sieve, "find_ground", lambda _root: Ground(1, 2, "mount", frozenset({"vfat"}), ()))

    site.walk()

    assert site.sift() is None


def test_where_the_list_cannot_be_written_there_is_none(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_content: bytes) -> UnnamedFile:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(sieve, "UnnamedFile", full)
        assert site.sift() is None

    assert site.sift() == Touched()


@pytest.mark.parametrize("program", ["/bin/false", "/nonexistent/git"])
def test_where_git_complains_or_is_gone_there_is_none(site: Site, program: str) -> None:
    site.store.git = Git(site.store.layout.store, executable=program, search_path=os.environ["PATH"])
    site.store.git._executable = program

    assert site.sift() is None


def test_a_small_workspace_has_none(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sieve, "LEAST_ROWS", 300)

    site.walk()

    assert site.sift() is None


def test_other_systems_have_one(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.delattr(os, "memfd_create", raising=False)
    site.walk()

    site.write("a/two.txt", "changed")

    assert site.sift() == Touched(frozenset({"a/two.txt"}))


def test_the_list_is_made_when_it_is_first_asked_and_is_no_part_of_the_store(site: Site) -> None:
    before = snapshot(Path(site.store.layout.base))
    assert site.sieve.listed is None

    site.sift()
    listed = site.sieve.listed
    site.sift()

    assert listed is site.sieve.listed is not None
    assert snapshot(Path(site.store.layout.base)) == before


def test_an_unnamed_file_is_gone_with_who_holds_it() -> None:
    file = UnnamedFile(b"content")
    descriptor = file.descriptor
    assert subprocess.check_output(["cat", file.path], pass_fds=[descriptor]) == b"content"

    del file

    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


# --- beside the feed, and over time


def test_a_feed_that_began_anew_is_whole_after_a_sifted_look(site: Site) -> None:
    feed = Feed()
    own = feed.of(site.workspace)
    assert own.take() is None
    touched = site.sift(own)
    assert touched is not None
    site.scan = Scanner(
        str(site.root), site.scan.rows, SourceRules(Tracked(), site.scan.rows), Limits(), frozenset(), own.watch
    ).rescan(site.scan, touched)
    own.scanned(walked=False)

    site.write("a/b/one.txt", "changed")

    assert own.watched == 4
    assert own.take() == Touched(frozenset({"a/b/one.txt"}))
    feed.close()


def test_the_list_is_written_anew_once_much_differs(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sieve, "_MOST_DIFFERING", 2)
    first = site.sieve
    site.sift()
    site.write("three.txt", "changed")
    site.walk()
    second = site.sieve
    for number in range(3):
        site.write(f"new{number}.txt")
    site.walk()

    assert first is second is not site.sieve
    assert site.found() == site.truth()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_sifted_looks_find_what_walks_find(site: Site, seed: int) -> None:
    dice = random.Random(seed)
    places = ("a/b/one.txt", "a/two.txt", "three.txt", "run.sh", "a/b/x", "a/.gitignore", ".gitignore", "empty/y")
    for step in range(6):
        for _change in range(dice.randrange(1, 5)):
            disturb(site, dice, *dice.choices(places, k=2))

        assert site.found() == site.truth(), f"seed {seed}, round {step}"
        if dice.random() < 0.5:
            site.walk()


def disturb(site: Site, dice: random.Random, name: str, another: str) -> None:
    """Do one thing to a workspace; where it cannot be done, nothing."""
    one, other = site.root / name, site.root / another
    deeds: list[Callable[[], object]] = [
        lambda: site.write(name, dice.choice(("CONTENT", "content", "*.none", "b"))),
        lambda: site.write(name, dice.choice(("CONTENT", "content", "*.none", "b"))),
        lambda: one.rename(other),
        lambda: one.parent.rename(other),
        one.unlink,
        lambda: shutil.rmtree(one),
        lambda: keep_stamps(one, lambda: one.write_text(dice.choice(("CONTENT", "context")))),
        lambda: one.chmod(dice.choice((0o600, 0o755))),
    ]
    with suppress(OSError):
        dice.choice(deeds)()


def test_an_engine_restores_exactly_through_the_sieve(lab: Lab) -> None:
    for number in range(40):
        lab.edit(f"d{number % 7}/f{number}.txt", f"{number}\n")
    lab.write("d1/f1.txt", "agent\n")
    lab.edit("d2/f2.txt", "by hand\n")
    lab.run("rm -r d3 && echo new > d4/new.txt")

    report = lab.rollback(2, everything=True)

    assert not report.failed
    assert lab.read("d1/f1.txt") == "1\n"
    assert lab.exists("d3/f3.txt")
    assert lab.read("d2/f2.txt") == "2\n"
