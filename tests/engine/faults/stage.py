"""Where an operation is run again and again from the same beginning, each time in a process of its own.

The process that runs this is warmed up once and then forked, which is a hundred times cheaper than a start of Python.
What stands on disk after a fault is told apart by its fingerprint, so that the same state is proved once.
"""

import gc
import hashlib
import os
import pickle
import re
import signal
import sqlite3
import stat
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any, Self

import engine.checkpoints.bulk
import engine.checkpoints.history
import engine.store.opened
from engine.errors import EngineError
from engine.model import RestoreReport, ToolResult
from tests.e2e.broken_git import WatchedGit
from tests.engine.faults.points import Act, Point, Trap
from tests.engine.faults.scenes import MANY, be_another_process
from tests.engine.lab import Lab

NOW = datetime(2026, 3, 16, 12, 0, tzinfo=UTC)
_RANDOM = re.compile(r"(\.tmp-|\.takeback-tmp-|tmp_\w+_|fast_import_crash_)\w+$")
_BEGUN = re.compile(r"/objects/[0-9a-f]{2}/\.tmp-$")
_PROCESS = re.compile(rb'"pid":\d+,"instance":"[^"]*"')
_INODE = re.compile(rb'"root":\d+')  # the workspace is made anew before each run


class Still(datetime):
    """A clock that stands, so that two runs write the same bytes."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        """Return always the same moment."""
        return cls.fromtimestamp(NOW.timestamp(), tz)


@dataclass(frozen=True)
class Ended:
    """How a run in a process of its own ended: what it returned and said, or that it was killed."""

    killed: bool
    said: str = ""
    surprise: str = ""
    points: tuple[str, ...] = ()
    states: tuple[str | None, ...] = ()


class Stage:
    """One directory with one home in it, taken back to its beginning before each run."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._home = directory / "home"
        self._beginning: dict[str, tuple[os.stat_result, bytes]] = {}
        self.git = WatchedGit(directory / "programs")
        self.trap = Trap()
        self.trap.install()
        time.time = NOW.timestamp
        engine.checkpoints.bulk.LEAST_FILES = MANY
        engine.checkpoints.history.datetime = engine.store.opened.datetime = Still  # type: ignore[attr-defined]

    def lab(self) -> Lab:
        """Return a workspace with a fresh engine, at the place where all of them are."""
        return Lab(self._directory, lock_wait_s=2.0)

    def keep_beginning(self) -> None:
        """Begin from what stands there now."""
        self._beginning = {path: (status, _content(path, status)) for path, status in _walk(str(self._home))}
        gc.collect()
        gc.freeze()  # what a child does not touch it does not copy

    def begin(self) -> None:
        """Take everything back; the directory itself stays, its identity is written down in the store."""
        self.git.work()
        for path, status in reversed([*_walk(str(self._home))]):
            os.rmdir(path) if stat.S_ISDIR(status.st_mode) else os.unlink(path)
        for path, (status, content) in self._beginning.items():
            _make(path, status, content)

    def run(self, work: Callable[[Lab], Any], act: Act | None = None, *, watched_git: bool = False) -> Ended:
        """Run something with a fresh engine in a process of its own and wait until nothing of it lives."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            if watched_git:
                os.environ["PATH"] = self.git.path
            gc.disable()
            os._exit(self._run_here(work, act, writing))
        os.close(writing)
        with os.fdopen(reading, "rb") as stream:
            raw = stream.read()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        with suppress(ChildProcessError):  # a git that it had started ends with its input; it is ours by now
            while True:
                os.waitpid(-1, 0)
        if status == -signal.SIGKILL:
            return Ended(killed=True)
        ended: Ended = pickle.loads(raw)
        return ended

    def _run_here(self, work: Callable[[Lab], Any], act: Act | None, writing: int) -> int:
        points: list[str] = []
        states: list[str | None] = []

        def step(point: Point) -> None:
            points.append(point.what)
            if act is not None:
                states.append(act(point))

        value, said, surprise = None, "", ""
        try:
            be_another_process()
            lab = self.lab()
            self.trap.arm(step)
            value = work(lab)
        except (EngineError, OSError) as error:
            said = f"{type(error).__name__}: {error}"
        except BaseException:  # noqa: BLE001 - whatever it is, it is told
            surprise = traceback.format_exc()
        self.trap.disarm()
        if isinstance(value, ToolResult):
            said = f"{value.text} {value.notes}"
        elif isinstance(value, RestoreReport):
            said = f"failed: {value.failed}"
        ended = Ended(killed=False, said=said, surprise=surprise, points=tuple(points), states=tuple(states))
        with os.fdopen(writing, "wb") as stream:
            stream.write(pickle.dumps(ended))
        return 0

    def fingerprint(self) -> str:
        """Name what stands on disk; random names, process numbers and stat data count for nothing."""
        seen = []
        for path, status in _walk(str(self._home)):
            name = _RANDOM.sub(r"\1", path)
            held = b"" if name.endswith(".lock") else _INODE.sub(b"", _PROCESS.sub(b"", _content(path, status)))
            if os.path.basename(os.path.dirname(path)) == "indexes":
                held = _index_facts(path)
            if _BEGUN.search(name):  # which object it would have been, and how much of it, is all one
                name, held = _BEGUN.sub("/objects/.tmp-", name), b""
            seen.append(f"{name} {status.st_mode:o} {hashlib.sha1(held, usedforsecurity=False).hexdigest()}")
        return hashlib.sha1(
            "\n".join(sorted(seen)).encode("utf-8", "surrogateescape"), usedforsecurity=False
        ).hexdigest()


def _walk(root: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield what lies below a directory, each directory before its content."""
    with os.scandir(root) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        status = entry.stat(follow_symlinks=False)
        yield entry.path, status
        if stat.S_ISDIR(status.st_mode):
            yield from _walk(entry.path)


def _content(path: str, status: os.stat_result) -> bytes:
    if stat.S_ISLNK(status.st_mode):
        return os.fsencode(os.readlink(path))
    if stat.S_ISREG(status.st_mode):
        with open(path, "rb") as stream:
            return stream.read()
    return b""


def _make(path: str, status: os.stat_result, content: bytes) -> None:
    if stat.S_ISLNK(status.st_mode):
        os.symlink(os.fsdecode(content), path)
        return
    if stat.S_ISDIR(status.st_mode):
        os.mkdir(path)
    else:
        with open(path, "wb") as stream:
            stream.write(content)
    os.chmod(path, stat.S_IMODE(status.st_mode))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def _index_facts(path: str) -> bytes:
    """Return what an index says but for stat data, which no two runs share."""
    if path.endswith("-journal") or os.path.exists(f"{path}-journal"):
        return os.fsencode(path)
    with closing(sqlite3.Connection(f"file:{path}?mode=ro", uri=True)) as connection:
        try:
            facts = connection.execute("SELECT * FROM facts ORDER BY name").fetchall()
            rows = connection.execute("SELECT path, kind, mode, oid, older FROM rows ORDER BY path").fetchall()
        except sqlite3.DatabaseError as error:
            return str(error).encode()
    return repr((facts, rows)).encode()
