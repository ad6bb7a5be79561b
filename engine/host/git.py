"""The one door to git: hermetic processes of the system's git, started through GitPython.

Promises: no environment variable reaches git but the allow-list of `hermetic`; no global or system configuration, hook,
attribute file, pager, editor, credential helper or fsmonitor program is ever consulted; git only ever works on the
store; every process has a deadline and is killed with its whole group. One command looks at a workspace,
`Git.differing`: it compares stat data with a list of ours, opens nothing that is there, and writes nothing.

GitPython adds its own variables to the inherited environment, so each command is started through ``env -i``, which
makes the allow-list exact.
"""

import errno
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import IO, TYPE_CHECKING, cast

from engine.errors import GitFailed, GitUnavailable
from engine.host.hermetic import ENVIRONMENT, SETTINGS, STRICT_SETTINGS

if TYPE_CHECKING:
    from git.cmd import Git as GitCommand

MINIMUM_VERSION = (2, 30)
_VERSION_TIMEOUT_S = 10.0

_LOADS_WITH = {"GIT_PYTHON_REFRESH": "quiet", "GIT_PYTHON_GIT_EXECUTABLE": os.devnull}
_LOADING = threading.Lock()

Before = Callable[[Sequence[str]], None]


class Git:
    """Runs git on one bare repository.

    Args:
        git_dir: the repository; every command works on it.
        executable: path of git, or ``None`` to look it up in ``search_path``.
        search_path: directories as in ``PATH``.
        timeout_s: how long a command may do nothing, in seconds; then it is killed with all it started.
        before: called with the arguments before each process starts; raising stops it (fault injection).
    """

    def __init__(
        self,
        git_dir: str,
        *,
        executable: str | None = None,
        search_path: str = os.defpath,
        timeout_s: float = 30.0,
        before: Before | None = None,
    ) -> None:
        self.git_dir = git_dir
        self._wanted = executable
        self._search_path = search_path
        self._timeout_s = timeout_s
        self._before = before
        self._executable: str | None = None

    def at(self, git_dir: str) -> "Git":
        """Return the same git on another repository of ours."""
        return Git(
            git_dir,
            executable=self._wanted,
            search_path=self._search_path,
            timeout_s=self._timeout_s,
            before=self._before,
        )

    def executable(self) -> str:
        """Return the path of a usable git.

        Raises:
            GitUnavailable: git is missing, does not start or is older than `MINIMUM_VERSION`.
        """
        if self._executable is None:
            self._executable = self._find()
        return self._executable

    def _find(self) -> str:
        found = shutil.which(self._wanted or "git", path=self._search_path)
        if found is None:
            raise GitUnavailable(f"{self._wanted or 'git'} was not found in {self._search_path}")
        with self._spawn(found, ["version"], timeout_s=min(self._timeout_s, _VERSION_TIMEOUT_S)) as process:
            out = _communicate(process, b"", "version")[0].decode("ascii", "replace")
        match = re.search(r"(\d+)\.(\d+)", out)
        if match is None:
            raise GitUnavailable(f"{found} does not answer like git")
        if (int(match[1]), int(match[2])) < MINIMUM_VERSION:
            raise GitUnavailable(f"{found} is version {match[0]}")
        return found

    def run(
        self,
        arguments: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        literal_pathspecs: bool = True,
        timeout_s: float | None = None,
        keep_open: Sequence[int] = (),
    ) -> bytes:
        """Run a command to its end and return its standard output.

        ``keep_open`` are descriptors that git and all it starts hold until they end: a lock among them outlives us.

        Raises:
            GitUnavailable: git cannot be started.
            GitFailed: it ended with an error or ran out of time.
        """
        executable = self.executable()
        extra = dict(env or {})
        if literal_pathspecs:
            extra["GIT_LITERAL_PATHSPECS"] = "1"
        with self._spawn(executable, arguments, extra, timeout_s, keep_open) as process:
            return _communicate(process, stdin, arguments[0])[0]

    def differing(self, listing: str, work_tree: str, *, keep_open: Sequence[int] = ()) -> list[bytes]:
        """Return the paths whose stat data are not what a file in the format of git's index says of them.

        Nothing of the workspace has a say in it or can have a program run: this repository is the store, so that no
        configuration but ours is read; there are no submodules in the listing, and they would be ignored; a comparison
        without contents needs neither filters nor attributes, and the store's own come before any ``.gitattributes``.
        A content would be read only of a file stamped as late as the listing itself, which ours never lists.
        ``keep_open`` are descriptors that git needs to find the listing.

        Raises:
            GitUnavailable: git cannot be started.
            GitFailed: it complained, also of a path that it could not ask about, or ran out of time.
        """
        arguments = ["diff-files", "--raw", "-z", "--no-renames", "--no-ext-diff", "--ignore-submodules=all"]
        place = {"GIT_INDEX_FILE": listing, "GIT_WORK_TREE": work_tree}
        with self._spawn(self.executable(), arguments, place, keep_open=keep_open, settings=STRICT_SETTINGS) as process:
            out, _name = _communicate(process, b"", arguments[0])
            if process.complained:
                raise process.failure()
        return out.split(b"\0")[1::2]

    def answer(self, arguments: Sequence[str]) -> int:
        """Run a command whose exit code is its answer, and return it.

        Raises:
            GitUnavailable: git cannot be started.
            GitFailed: it complained, was killed or ran out of time.
        """
        with self._spawn(self.executable(), arguments) as process:
            process.stdout.read()
            code = process.wait()
            if code < 0 or process.complained:
                raise process.failure()
            return code

    @contextmanager
    def open(self, arguments: Sequence[str], *, timeout_s: float | None = None) -> Iterator["GitProcess"]:
        """Start a command that is talked to through its pipes; killed when the block raises."""
        with self._spawn(self.executable(), arguments, None, timeout_s) as process:
            yield process

    @contextmanager
    def _spawn(
        self,
        executable: str,
        arguments: Sequence[str],
        env: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        keep_open: Sequence[int] = (),
        settings: Sequence[str] = (),
    ) -> Iterator["GitProcess"]:
        if self._before is not None:
            self._before(arguments)
        variables = {**ENVIRONMENT, "PATH": self._search_path, "GIT_DIR": self.git_dir, **(env or {})}
        command = ["/usr/bin/env", "-i", *(f"{name}={value}" for name, value in variables.items()), executable]
        for setting in (*SETTINGS, *settings):
            command += ["-c", setting]
        process = GitProcess(
            _start([*command, *arguments], keep_open, arguments[0]),
            arguments[0],
            self._timeout_s if timeout_s is None else timeout_s,
        )
        try:
            yield process
        except BaseException:
            process.kill()
            raise
        finally:
            process.close()


class GitProcess:
    """A running git with a deadline, which begins anew with every piece that it takes or gives."""

    def __init__(self, popen: "subprocess.Popen[bytes]", name: str, timeout_s: float) -> None:
        self._popen = popen
        self.name = name
        self.stdin = cast("IO[bytes]", popen.stdin)
        self.stdout = cast("IO[bytes]", popen.stdout)
        self._stderr: list[bytes] = []
        self._timed_out = False
        self._patience_s = timeout_s
        self._active_at = time.monotonic()
        self._ended = threading.Event()
        self._watch = threading.Thread(target=self._watch_deadline, daemon=True)
        self._watch.start()
        # A full stderr pipe would stop git for good, so it is drained beside whatever else goes on.
        self._drain = threading.Thread(target=self._read_stderr, daemon=True)
        self._drain.start()

    def _read_stderr(self) -> None:
        stream = cast("IO[bytes]", self._popen.stderr)
        while chunk := stream.read(8192):
            if len(self._stderr) < 64:  # noqa: PLR2004 - half a megabyte of complaints says enough
                self._stderr.append(chunk)

    def _watch_deadline(self) -> None:
        left = self._patience_s
        while not self._ended.wait(max(left, 0.01)):
            left = self._active_at + self._patience_s - time.monotonic()
            if left <= 0:
                self._timed_out = True
                self.kill()
                return

    def advance(self, patience_s: float | None = None) -> None:
        """Note that git took or gave something, so that its deadline begins anew; ``patience_s`` is what it is now."""
        self._active_at = time.monotonic()
        if patience_s is not None:
            self._patience_s = patience_s

    def kill(self) -> None:
        """End git and everything it started."""
        try:
            os.killpg(self._popen.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            self._popen.kill()

    def read(self, size: int) -> bytes:
        """Read exactly ``size`` bytes of output.

        Raises:
            GitFailed: the output ended before.
        """
        data = self.stdout.read(size)
        self.advance()
        if len(data) != size:
            self.finish()
            raise GitFailed(self.name, "the output ended early")
        return data

    def finish(self) -> None:
        """Wait for the end.

        Raises:
            GitFailed: git failed or ran out of time.
        """
        code = self.wait()
        if code in (126, 127):
            raise GitUnavailable(self._complaint() or f"exit code {code}")
        if code != 0 or self._timed_out:
            raise self.failure()

    def wait(self) -> int:
        """Wait for the end and return the exit code, negative for a signal."""
        with suppress(BrokenPipeError):  # the exit code tells why
            self.stdin.close()
        code = self._popen.wait()
        self._release_threads()
        return code

    @property
    def complained(self) -> bool:
        """Whether it ran out of time or wrote to standard error; known when it has ended."""
        return self._timed_out or bool(self._stderr)

    def _release_threads(self) -> None:
        self._ended.set()
        self._watch.join()
        self._drain.join()

    def failure(self) -> GitFailed:
        """Return the error that describes how git ended."""
        detail = self._complaint()
        if self._timed_out:
            detail = f"it did nothing for {self._patience_s:.0f} s"
        return GitFailed(self.name, detail or f"exit code {self._popen.returncode}", timed_out=self._timed_out)

    def _complaint(self) -> str:
        text = b"".join(self._stderr).decode("utf-8", "backslashreplace").strip()
        return text.splitlines()[0] if text else ""

    def close(self) -> None:
        """Release pipes and threads, ending git if it still runs."""
        if self._popen.poll() is None:
            with suppress(BrokenPipeError):
                self.stdin.close()
            try:
                self._popen.wait(timeout=5)
            except subprocess.TimeoutExpired:
                self.kill()
                self._popen.wait()
        self._release_threads()
        for stream in (self._popen.stdin, self._popen.stdout, self._popen.stderr):
            if stream is not None and not stream.closed:
                with suppress(BrokenPipeError):
                    stream.close()


def _communicate(process: GitProcess, stdin: bytes, name: str) -> tuple[bytes, str]:
    """Feed standard input and read standard output without either blocking the other."""
    if len(stdin) <= 65536:  # noqa: PLR2004 - a pipe takes this much without a reader on Linux; macOS grows to it
        feeder = None
        _feed(process, stdin)
    else:
        feeder = threading.Thread(target=_feed, args=(process, stdin), daemon=True)
        feeder.start()
    out = process.stdout.read()
    if feeder is not None:
        feeder.join()
    process.finish()
    return out, name


def _feed(process: GitProcess, stdin: bytes) -> None:
    try:
        process.stdin.write(stdin)
        process.stdin.close()
    except (BrokenPipeError, ValueError):
        pass  # git ended early; its exit code tells why


def _start(command: Sequence[str], keep_open: Sequence[int], name: str) -> "subprocess.Popen[bytes]":
    GitCommand = _load_gitpython()  # noqa: N806 - a class
    try:
        handle = GitCommand(os.path.sep).execute(
            command, istream=subprocess.PIPE, as_process=True, start_new_session=True, umask=0o077, pass_fds=keep_open
        )
    except OSError as error:
        if error.errno == errno.E2BIG:
            raise GitFailed(name, "the list of paths is longer than a command line may be") from error
        raise GitUnavailable(str(error)) from error
    popen = cast("subprocess.Popen[bytes]", handle.proc)
    handle.proc = None  # from here on this module alone ends the process
    return popen


@cache
def _load_gitpython() -> "type[GitCommand]":
    """Import GitPython, which starts git meanwhile, with all that is in the environment: here it starts nothing.

    Which git is used is decided here, and neither a variable nor a configuration that git cannot read has a say in it.
    """
    with _LOADING:
        before = {name: os.environ.get(name) for name in _LOADS_WITH}
        os.environ.update(_LOADS_WITH)
        try:
            from git.cmd import Git as GitCommand
        except ImportError as error:
            raise GitUnavailable(f"GitPython cannot be loaded ({error})") from error
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
    return GitCommand
