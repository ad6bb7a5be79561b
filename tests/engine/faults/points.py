"""Every step of a process that changes a file or starts a process: counted, and at one of them something happens.

Python announces most of them to audit hooks. What it announces to nobody (bytes written, syncs, statements of SQLite)
is wrapped. A hook cannot be taken out again, so only processes of their own use this: see ``driver``.
"""

import errno
import os
import sqlite3
import stat
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = frozenset(
    f"os.{name}"
    for name in ("chmod", "chown", "link", "mkdir", "remove", "rename", "rmdir", "symlink", "truncate", "utime")
)
ERRORS = (errno.ENOSPC, errno.EACCES, errno.EIO)

Act = Callable[["Point"], str | None]
Write = Callable[[int, Any], int]


class Point:
    """One step: its number, counted from 1, and what it does; ``half`` says that half of a write has been done."""

    def __init__(self, number: int, what: str, *, half: bool = False) -> None:
        self.number = number
        self.what = what
        self.half = half

    @property
    def is_git(self) -> bool:
        """Whether git is about to start."""
        return self.what.startswith("git ")

    @property
    def is_sqlite(self) -> bool:
        """Whether SQLite does it, which has errors of its own."""
        return self.what.startswith("sqlite")

    def error(self) -> Exception:
        """Return an error that this step may fail with; which one depends on its number."""
        if self.is_sqlite:
            return sqlite3.OperationalError("database or disk is full")
        code = ERRORS[self.number % len(ERRORS)]
        return OSError(code, os.strerror(code))


class Trap:
    """Watches this process once ``arm`` is called, and no other that it starts."""

    def __init__(self) -> None:
        self._act: Act | None = None
        self._count = 0
        self._lock = threading.RLock()

    def install(self) -> None:
        """Put the hook and the wrappers in place; they do nothing before ``arm``."""
        sys.addaudithook(self._heard)
        os.write = self._writing(os.write)  # type: ignore[assignment]
        os.pwrite = self._before("write in place", os.pwrite)
        os.fsync = self._before("sync", os.fsync)
        sqlite3.connect = partial(sqlite3.connect, factory=self._connection())  # type: ignore[assignment]

    def arm(self, act: Act) -> None:
        """Call ``act`` before each step from now on."""
        self._act = act

    def disarm(self) -> None:
        """Let everything pass."""
        self._act = None

    def reach(self, what: str, *, half: bool = False) -> None:
        """Note a step."""
        with self._lock:  # threads sync side by side; each step has a number of its own all the same
            self._reach(what, half=half)

    def _reach(self, what: str, *, half: bool) -> None:
        act = self._act
        if act is None:
            return
        self._count += 1
        self._act = None  # what the act does itself is no step
        try:
            act(Point(self._count, what, half=half))
        finally:
            self._act = act

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._act is None:
            return
        if event == "open":
            path, _mode, flags = arguments
            if isinstance(flags, int) and flags & WRITING and path != os.devnull and isinstance(path, str):
                self.reach(f"open {os.path.basename(path)}")
        elif event in CHANGES:
            self.reach(f"{event.removeprefix('os.')} {os.path.basename(str(arguments[0]))}")
        elif event == "sqlite3.connect":
            self.reach("sqlite opens the index")
        elif event == "subprocess.Popen":
            self.reach(_command(arguments[1]))

    def _writing(self, write: Write) -> Write:
        def writing(descriptor: int, data: Any) -> int:
            if self._act is None or not stat.S_ISREG(os.fstat(descriptor).st_mode):  # a pipe between threads is no disk
                return write(descriptor, data)
            self.reach("write")
            half = len(data) // 2
            if half:
                write(descriptor, bytes(data[:half]))
                self.reach("the second half of a write", half=True)
                return half + write(descriptor, bytes(data[half:]))
            return write(descriptor, data)

        return writing

    def _before(self, what: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def stepping(*arguments: Any) -> Any:
            self.reach(what)
            return call(*arguments)

        return stepping

    def _connection(self) -> type[sqlite3.Connection]:
        trap = self

        class Watched(sqlite3.Connection):
            """A connection whose writes are steps."""

            def execute(self, *arguments: Any) -> sqlite3.Cursor:
                if not arguments[0].startswith(("SELECT", "PRAGMA")):
                    trap.reach(f"sqlite: {arguments[0].split(' (')[0]}")
                return super().execute(*arguments)

            def executemany(self, *arguments: Any) -> sqlite3.Cursor:
                trap.reach(f"sqlite: {arguments[0].split(' (')[0]}")
                return super().executemany(*arguments)

            def executescript(self, script: str) -> sqlite3.Cursor:
                trap.reach("sqlite: schema")
                return super().executescript(script)

            def __exit__(self, *failure: object) -> bool:
                if failure[0] is None and self.in_transaction:
                    trap.reach("sqlite: commit")
                return super().__exit__(*failure)  # type: ignore[return-value]

        return Watched


def _command(arguments: list[Any]) -> str:
    """Name a command: git by its subcommand, anything else by its program."""
    words = [os.fsdecode(word) for word in arguments]
    programs = [number for number, word in enumerate(words) if os.path.basename(word) == "git"]
    if not programs:
        return f"start {os.path.basename(words[0])}"
    rest = words[programs[0] + 1 :]
    while rest[:1] == ["-c"]:
        rest = rest[2:]
    return f"git {rest[0]}"
