"""The change feed: whatever happens in a workspace is heard of, or the feed says that it cannot tell."""

import gc
import mmap
import os
import random
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine.checkpoints.feed import TRUSTED_S, Feed, WorkspaceFeed
from engine.checkpoints.found import Scan
from engine.checkpoints.hearing import Watches
from engine.checkpoints.scan import Scanner
from engine.checkpoints.source import SourceRules, Tracked
from engine.checkpoints.touched import Touched
from engine.host.mounts import Ground, find_ground
from engine.host.watching import (
    DELETE_SELF,
    IGNORED,
    MODIFY,
    MOVE_SELF,
    OVERFLOW,
    UNMOUNT,
    Event,
    Watcher,
    WatchingImpossible,
)
from engine.model import Limits, Workspace
from engine.store.layout import workspace_hash
from engine.store.rows import Rows
from tests.engine.lab import Lab

ROUNDS = 12


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


class Site:
    """A workspace that is looked at through a feed, as captures do it."""

    def __init__(self, base: Path, **settings: object) -> None:
        self.root = base / "ws"
        self.outside = base / "outside"
        self.root.mkdir()
        self.outside.mkdir()
        self.clock = Clock()
        self.feed = Feed(clock=self.clock, **settings)  # type: ignore[arg-type]
        self.scan = Scan(Rows(), frozenset())

    @property
    def own(self) -> WorkspaceFeed:
        return self.feed.of(Workspace(str(self.root), str(self.root), workspace_hash(str(self.root)), Limits()))

    def scanner(self, *, watch: bool = True) -> Scanner:
        rules = SourceRules(Tracked(), self.scan.rows)
        return Scanner(str(self.root), self.scan.rows, rules, Limits(), frozenset(), self.own.watch if watch else None)

    def look(self) -> Touched | None:
        """Look as a capture does, and return what the feed had to say."""
        touched = self.own.take()
        if touched is None:
            self.scan = self.scanner().scan()
            self.own.scanned(linked=self.scan.linked, walked=True)
        else:
            self.scan = self.scanner().rescan(self.scan, touched)
            self.own.keep(None, self.scan.linked)
        return touched

    def outcome(self) -> tuple[object, ...]:
        return summary(self.scan)

    def truth(self) -> tuple[object, ...]:
        """What a walk finds that owes nothing to the feed."""
        return summary(self.scanner(watch=False).scan())

    def write(self, path: str, content: str = "x") -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)
        return target


def summary(scan: Scan) -> tuple[object, ...]:
    entries = {path: row.entry for path, row in scan.rows.items()}
    return entries, [gap.path for gap in scan.gaps], set(scan.excluded)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    made.write("a/b/one.txt")
    made.write("a/two.txt")
    made.write("three.txt")
    yield made
    made.feed.close()


# --- what is heard


def test_the_first_look_is_a_walk_and_a_quiet_workspace_is_not_looked_at_again(site: Site) -> None:
    assert site.look() is None
    assert site.look() == Touched()


def append(path: Path, content: str) -> None:
    with path.open("a") as stream:
        stream.write(content)


CHANGES: dict[str, Callable[[Site], object]] = {
    "written": lambda site: site.write("a/b/one.txt", "other"),
    "appended": lambda site: append(site.root / "a/two.txt", "more"),
    "made": lambda site: site.write("a/new.txt"),
    "made in new directories": lambda site: site.write("n/e/w/file.txt"),
    "removed": lambda site: (site.root / "three.txt").unlink(),
    "renamed": lambda site: (site.root / "three.txt").rename(site.root / "a/3.txt"),
    "mode changed": lambda site: (site.root / "three.txt").chmod(0o755),
    "mode of a directory changed": lambda site: (site.root / "a").chmod(0o700),
    "mode of the root changed": lambda site: site.root.chmod(0o700),
    "mtime set back": lambda site: os.utime(site.write("three.txt", "y"), (1, 1)),
    "directory renamed": lambda site: (site.root / "a").rename(site.root / "z"),
    "directory moved out": lambda site: (site.root / "a").rename(site.outside / "a"),
    "directory removed": lambda site: shutil.rmtree(site.root / "a"),
    "link made": lambda site: (site.root / "link").symlink_to("three.txt"),
    "directory made a link": lambda site: (
        (site.root / "a").rename(site.outside / "a"),
        (site.root / "a").symlink_to(site.outside / "a"),
    ),
    "directory made a file": lambda site: (shutil.rmtree(site.root / "a"), site.write("a")),
    "fifo made": lambda site: os.mkfifo(site.root / "fifo"),
    "became a nested repository": lambda site: (site.root / "a/.git").mkdir(),
    "became an environment": lambda site: site.write("a/pyvenv.cfg"),
    "ignored from now on": lambda site: (site.write(".gitignore", "*.new"), site.write("a/b/c.new")),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_heard(site: Site, change: str) -> None:
    site.look()
    before = site.outcome()

    CHANGES[change](site)

    assert site.look() is not None
    assert site.outcome() == site.truth()
    assert change == "mode of the root changed" or site.outcome() != before


def test_a_directory_is_heard_at_its_new_place_and_another_at_its_old(site: Site) -> None:
    site.look()
    (site.root / "a").rename(site.root / "z")
    site.write("a/b/one.txt", "of another directory")
    site.look()

    site.write("z/b/one.txt", "moved, then written")
    site.write("a/b/one.txt", "made anew, then written")

    assert site.look() == Touched(frozenset({"z/b/one.txt", "a/b/one.txt"}))
    assert site.outcome() == site.truth()


def test_a_directory_exchanged_for_one_that_looks_alike_is_walked(site: Site) -> None:
    shutil.copytree(site.root / "a", site.outside / "alike")
    (site.outside / "alike/b/one.txt").write_text("not the same")
    site.look()

    (site.root / "a").rename(site.outside / "a")
    (site.outside / "alike").rename(site.root / "a")
    site.look()
    assert site.outcome() == site.truth()

    site.write("a/b/one.txt", "written after the exchange")
    assert site.look() == Touched(frozenset({"a/b/one.txt"}))


def test_what_may_have_become_unreachable_is_walked(site: Site) -> None:
    site.look()

    (site.root / "a").chmod(0o600)

    touched = site.look()
    assert touched is not None
    assert touched.below == {"a"}


def test_a_directory_moved_in_is_heard_like_any_other(site: Site) -> None:
    (site.outside / "d/e").mkdir(parents=True)
    (site.outside / "d/e/f.txt").write_text("brought")
    site.look()
    (site.outside / "d").rename(site.root / "d")
    site.look()

    site.write("d/e/f.txt", "written here")
    site.look()

    assert site.outcome() == site.truth()


def test_a_directory_moved_out_is_no_longer_heard(site: Site) -> None:
    site.look()
    (site.root / "a").rename(site.outside / "a")
    site.look()

    (site.outside / "a/two.txt").write_text("of no interest")

    assert site.own.watched == 1
    assert site.look() == Touched()


def test_what_is_excluded_is_not_watched(site: Site) -> None:
    site.write("node_modules/p/index.js")
    site.look()

    site.write("node_modules/p/index.js", "changed")

    assert site.own.watched == 3
    assert site.look() == Touched()


def test_a_file_with_several_names_is_always_looked_at(site: Site) -> None:
    os.link(site.root / "three.txt", site.outside / "other name")
    site.look()

    (site.outside / "other name").write_text("through another name")

    assert site.look() == Touched(frozenset({"three.txt"}))
    assert site.outcome() == site.truth()


def test_a_file_written_through_a_mapping_is_heard_when_it_ends(site: Site) -> None:
    target = site.write("mapped.bin", "0" * 4096)
    site.look()
    with target.open("r+b") as stream:
        mapping = mmap.mmap(stream.fileno(), 4096)
        mapping[:4] = b"work"

        mapping.close()

    site.look()
    assert site.outcome() == site.truth()


def test_a_file_touched_lately_is_looked_at_while_it_is_mapped(site: Site) -> None:
    site.look()
    target = site.write("mapped.bin", "0" * 4096)
    with target.open("r+b") as stream, mmap.mmap(stream.fileno(), 4096) as mapping:
        site.look()
        mapping[:4] = b"work"
        mapping.flush()

        site.look()

        assert site.outcome() == site.truth()


def test_what_a_failed_capture_took_is_told_again(site: Site) -> None:
    site.look()
    (site.root / "three.txt").unlink()
    touched = site.own.take()
    assert touched is not None

    site.own.put_back(touched)

    assert site.look() == touched
    assert site.outcome() == site.truth()


# --- when it cannot tell


def test_too_many_changes_at_once_are_said(site: Site) -> None:
    site.look()
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    for number in range(most // 2 + 1):  # each makes two events that differ from the one before
        os.symlink("x", site.root / f"l{number % 2}")
        os.unlink(site.root / f"l{number % 2}")

    assert site.look() is None
    assert site.outcome() == site.truth()
    assert site.look() == Touched()


def test_nothing_is_trusted_long_after_the_last_look_at_everything(site: Site) -> None:
    site.look()
    site.clock.now += TRUSTED_S + 1

    assert site.look() is None
    assert site.look() == Touched()


def test_another_captures_rows_are_not_built_upon(site: Site) -> None:
    site.look()

    assert site.own.take("what another process made the base") is None


def test_another_directory_at_the_roots_name_is_noticed(site: Site) -> None:
    site.look()
    site.root.rename(site.outside / "ws")
    site.root.mkdir()
    site.write("three.txt", "another's")

    assert site.look() is None
    assert site.outcome() == site.truth()


def test_a_root_moved_with_a_directory_above_it_is_noticed(tmp_path: Path) -> None:
    above = tmp_path / "above"
    above.mkdir()
    site = Site(above)
    site.write("one.txt")
    site.look()
    above.rename(tmp_path / "elsewhere")
    above.mkdir()
    site.root.mkdir()

    assert site.look() is None
    assert site.outcome() == site.truth()
    site.feed.close()


def test_a_fork_does_not_take_what_its_parent_is_to_hear(site: Site) -> None:
    site.look()
    site.write("three.txt", "changed")
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # a test's process may have threads
        child = os.fork()
    if child == 0:
        os._exit(0 if site.own.take() is None else 1)
    _pid, status = os.waitpid(child, 0)

    assert status == 0
    assert site.look() is not None
    assert site.outcome() == site.truth()


@pytest.mark.parametrize("kind", ["nfs4", "fuse.sshfs", "9p", "virtiofs", "vfat"])
def test_a_file_system_that_others_may_write_is_not_listened_to(tmp_path: Path, kind: str) -> None:
    def ground(_root: str) -> Ground:
        return Ground(1, 2, "a mount", frozenset({"ext4", kind}), ("another",))

    site = Site(tmp_path, ground=ground)

    assert [site.look(), site.look()] == [None, None]
    assert kind in (site.own.why or "")
    assert not site.own.watching
    site.feed.close()


def test_a_new_mount_is_noticed(tmp_path: Path) -> None:
    mounts = ["one"]

    def ground(_root: str) -> Ground:
        return Ground(1, 2, "a mount", frozenset({"ext4"}), tuple(mounts))

    site = Site(tmp_path, ground=ground)
    site.look()
    assert site.look() == Touched()

    mounts.append("two")

    assert site.look() is None
    site.feed.close()


def test_a_mount_below_a_directory_is_part_of_its_ground(tmp_path: Path) -> None:
    name = "with space"
    (tmp_path / name).mkdir()
    script = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from engine.host.mounts import find_ground
import subprocess
before = find_ground({str(tmp_path)!r})
subprocess.run(["mount", "-t", "tmpfs", "none", {str(tmp_path / name)!r}], check=True)
after = find_ground({str(tmp_path)!r})
assert before.below == () and len(after.below) == 1 and "tmpfs" in after.kinds, (before, after)
"""
    alone = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-r", "-m"]
    subprocess.run([*alone, sys.executable, "-c", script], check=True)


def test_a_file_mounted_over_another_is_not_listened_to(tmp_path: Path) -> None:
    (tmp_path / "with space").write_text("here\n")
    (tmp_path / "elsewhere").write_text("there\n")
    script = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from engine.checkpoints.feed import Feed
import subprocess
before = Feed().hindrance({str(tmp_path)!r})
target = {str(tmp_path / "with space")!r}
subprocess.run(["mount", "--bind", {str(tmp_path / "elsewhere")!r}, target], check=True)
after = Feed().hindrance({str(tmp_path)!r})
assert (before, after) == (None, f"a file is mounted over {{target}}"), (before, after)
"""
    alone = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-r", "-m"]
    subprocess.run([*alone, sys.executable, "-c", script], check=True)


def test_an_overlay_is_listened_to_where_its_layers_are_out_of_reach_alone(tmp_path: Path) -> None:
    script = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from engine.checkpoints.feed import Feed
import os, subprocess
base = {str(tmp_path)!r}
subprocess.run(["mount", "-t", "tmpfs", "none", base], check=True)
for name in ("lower", "with space", "work", "ws"):
    os.mkdir(f"{{base}}/{{name}}")
options = f"lowerdir={{base}}/lower,upperdir={{base}}/with space,workdir={{base}}/work"
subprocess.run(["mount", "-t", "overlay", "-o", options, "none", f"{{base}}/ws"], check=True)
reached = Feed().hindrance(f"{{base}}/ws")
os.rename(f"{{base}}/lower", f"{{base}}/lower2")
upper = Feed().hindrance(f"{{base}}/ws")
os.rename(f"{{base}}/with space", f"{{base}}/upper2")
hidden = Feed().hindrance(f"{{base}}/ws")
assert reached == f"it is an overlay, and what changes in {{base}}/lower would not be heard of", reached
assert upper == f"it is an overlay, and what changes in {{base}}/with space would not be heard of", upper
assert hidden is None, hidden
"""
    alone = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-r", "-m"]
    subprocess.run([*alone, sys.executable, "-c", script], check=True)


def test_where_too_many_directories_would_be_watched_none_is(tmp_path: Path) -> None:
    site = Site(tmp_path, most_watches=2)
    site.write("a/b/c.txt")

    assert [site.look(), site.look()] == [None, None]
    assert "directories to watch" in (site.own.why or "")
    assert site.own.watched == 0
    site.feed.close()


def test_the_workspace_not_used_for_longest_gives_its_watches_back(tmp_path: Path) -> None:
    feed = Feed(most_watches=5)
    sites = []
    for name in ("one", "two", "three"):
        (tmp_path / name).mkdir()
        site = Site(tmp_path / name)
        site.feed = feed
        site.write("a/file.txt")
        sites.append(site)

    for site in sites:
        site.look()

    assert [site.own.watched for site in sites] == [0, 2, 2]
    assert [sites[0].look(), sites[2].look()] == [None, Touched()]
    feed.close()


def test_a_machine_without_a_watcher_to_spare_is_walked(tmp_path: Path) -> None:
    def refuse() -> Watcher:
        raise WatchingImpossible("the machine's limit of watchers is reached")

    site = Site(tmp_path, make_watcher=refuse)

    assert [site.look(), site.look()] == [None, None]
    assert "limit of watchers" in (site.own.why or "")
    site.feed.close()


def test_a_feed_that_is_switched_off_watches_nothing(tmp_path: Path) -> None:
    site = Site(tmp_path, enabled=False)

    assert [site.look(), site.look()] == [None, None]
    assert not site.own.watching


def test_other_systems_are_walked(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")

    assert [site.look(), site.look()] == [None, None]
    assert "only Linux" in (site.own.why or "")
    assert site.feed.hindrance(str(site.root)) == site.own.why


def test_closing_gives_the_queue_back(site: Site) -> None:
    site.look()
    gc.collect()  # what other tests left must not be counted
    before = len(os.listdir("/proc/self/fd"))

    site.feed.close()

    assert len(os.listdir("/proc/self/fd")) == before - 1
    assert site.look() is None


class Script:
    """A queue that gives what it is told to."""

    def __init__(self, *events: Event) -> None:
        self._events = events

    def add(self, descriptor: int) -> int:
        return descriptor

    def remove(self, watch: int) -> None:
        raise AssertionError(f"watch {watch} is gone already")

    def close(self) -> None:
        pass

    def drain(self) -> Iterable[Event]:
        return self._events


def test_a_watch_that_ended_by_itself_is_forgotten_and_its_place_walked() -> None:
    watches = Watches(Script(Event(7, IGNORED)))
    watches.add(3, "")
    watches.add(7, "a")

    assert watches.hear().touched == Touched(below=frozenset({"a"}))
    assert [len(watches), watches.has_path("a")] == [1, False]


@pytest.mark.parametrize("event", [Event(-1, OVERFLOW), Event(7, UNMOUNT), Event(3, MOVE_SELF), Event(3, DELETE_SELF)])
def test_a_loss_is_said(event: Event) -> None:
    watches = Watches(Script(Event(7, MODIFY, "file"), event))
    watches.add(3, "")
    watches.add(7, "a")

    with pytest.raises(WatchingImpossible):
        watches.hear()


# --- whatever becomes of the events


class Tampered:
    """A queue that drops events as the kernel does, saying so, and besides gives them in any order, and twice."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._real = Watcher()
        self.lost = False

    def add(self, descriptor: int) -> int:
        return self._real.add(descriptor)

    def remove(self, watch: int) -> None:
        self._real.remove(watch)

    def close(self) -> None:
        self._real.close()

    def drain(self) -> Iterable[Event]:
        events = [event for event in self._real.drain() for _copy in range(self._dice.choice((1, 1, 2, 3)))]
        self._dice.shuffle(events)
        self.lost = bool(events) and self._dice.random() < 0.1
        if self.lost:
            kept = events[: self._dice.randrange(len(events))]
            return [*kept, Event(-1, OVERFLOW)]
        return events


@pytest.mark.parametrize("seed", range(30))
def test_no_change_is_lost_unsaid(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    queues: list[Tampered] = []

    def make() -> Tampered:
        queues.append(Tampered(dice))
        return queues[-1]

    site = Site(tmp_path, make_watcher=make)
    site.look()
    for step in range(ROUNDS):
        for _change in range(dice.randrange(1, 8)):
            disturb(site, dice)
        queue = queues[-1]

        touched = site.look()

        assert (touched is None) == queue.lost, f"seed {seed}, round {step}"
        assert site.outcome() == site.truth(), f"seed {seed}, round {step}: {touched}"
    site.feed.close()


NAMES = ("a", "b", "c.txt", "d.txt", ".gitignore", "node_modules")


def disturb(site: Site, dice: random.Random) -> None:
    """Do one thing to a workspace; where it cannot be done, nothing."""
    here, there = (str(dice.choice((site.root, site.root, site.root, site.outside))) for _ in range(2))
    one = os.path.join(here, *dice.choices(NAMES, k=dice.randrange(1, 4)))
    other = os.path.join(there, *dice.choices(NAMES, k=dice.randrange(1, 4)))
    deeds: list[Callable[[], object]] = [
        lambda: os.makedirs(one),
        lambda: overwrite(one, dice.choice(("x", "y", "*.txt", ""))),
        lambda: overwrite(one, str(dice.random())),
        lambda: os.rename(one, other),
        lambda: os.rename(one, other),
        lambda: shutil.rmtree(one),
        lambda: os.unlink(one),
        lambda: os.symlink(other, one),
        lambda: os.chmod(one, dice.choice((0o700, 0o755, 0o644))),
    ]
    try:
        dice.choice(deeds)()
    except OSError:
        return


def overwrite(path: str, content: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    Path(path).write_text(content)


def test_the_ground_is_the_same_as_long_as_nothing_happens(tmp_path: Path) -> None:
    ground = find_ground(str(tmp_path))

    assert ground is not None
    assert ground == find_ground(str(tmp_path))


# --- in the engine


def test_two_processes_take_turns_and_neither_builds_on_what_the_other_changed(tmp_path: Path) -> None:
    mine = Lab(tmp_path)
    for name in ("a.txt", "b.txt", "c.txt"):
        mine.edit(name, "first\n")
    mine.run("echo >> mine.txt")
    theirs = Lab(tmp_path)
    theirs.turn = 100
    theirs.edit("b.txt", "by hand\n")
    theirs.run("echo agent > c.txt")

    mine.edit("a.txt", "by hand, too\n")
    mine.run("rm a.txt b.txt c.txt")
    report = mine.rollback(1, everything=True)

    assert not report.failed
    assert [mine.read(name) for name in ("a.txt", "b.txt", "c.txt")] == ["by hand, too\n", "by hand\n", "agent\n"]
    mine.engine.close()
    theirs.engine.close()


def test_a_turn_on_a_quiet_workspace_starts_no_git(lab: Lab) -> None:
    commands: list[str] = []
    lab.settings = {"before_git": lambda arguments: commands.append(arguments[0]), "change_feed": True}
    lab.engine = lab.open_engine()
    lab.edit("a.txt", "first\n")
    lab.run("rm -f nothing")
    lab.run("rm -f nothing")
    commands.clear()

    lab.run("rm -f nothing")

    assert commands == []
    lab.engine.close()
