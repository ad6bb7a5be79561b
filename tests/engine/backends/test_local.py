"""Commands on this machine: how they run, how they end, and that nothing of them is left."""

import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from engine.backends.base import ProcessResult, StopSignal
from engine.backends.local import LocalBackend
from engine.errors import ToolRefused

ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
LONG_S = 60.0  # no test waits for it: the command would outlast it only if it were not ended
LINUX = sys.platform == "linux"


class Runner:
    """Runs commands in a directory and keeps what they wrote while they ran."""

    def __init__(self, cwd: Path) -> None:
        self.cwd = cwd
        self.backend = LocalBackend(grace_s=0.5, capture_bytes=64 * 1024)
        self.stop = StopSignal()
        self.pieces: list[bytes] = []
        self.react: Callable[[bytes], None] = lambda _: None

    def __call__(
        self, command: str, *, timeout_s: float | None = LONG_S, env: Mapping[str, str] = ENV, keep: bool = False
    ) -> ProcessResult:
        return self.backend.run(command, str(self.cwd), env, timeout_s, self._hear, self.stop, keep_background=keep)

    def _hear(self, piece: bytes) -> None:
        self.pieces.append(piece)
        self.react(piece)


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


@pytest.fixture(autouse=True)
def nothing_is_leaked() -> Iterator[None]:
    before = sorted(os.listdir("/dev/fd"))
    yield
    assert sorted(os.listdir("/dev/fd")) == before
    assert [thread.name for thread in threading.enumerate() if thread.name == "command-exit"] == []


def alive(pid: int) -> bool:
    """Whether a process runs; one that is dead but not reaped by whoever inherited it does not."""
    state = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, check=False, text=True
    ).stdout.strip()
    return bool(state) and not state.startswith("Z")


def pid_in(path: Path) -> int:
    return int(path.read_text())


def test_output_and_errors_come_together_in_order(run: Runner) -> None:
    result = run("echo one; echo two >&2; echo three")

    assert result.output == b"one\ntwo\nthree\n"
    assert (result.exit_code, result.signal, result.stopped, result.timed_out) == (0, None, False, False)
    assert not result.left_running
    assert b"".join(run.pieces) == result.output


@pytest.mark.parametrize("code", [1, 3, 127, 255])
def test_the_exit_code_is_told(run: Runner, code: int) -> None:
    result = run(f"exit {code}")

    assert (result.exit_code, result.signal) == (code, None)


def test_the_signal_that_ended_it_is_told(run: Runner) -> None:
    result = run("kill -KILL $$")

    assert (result.exit_code, result.signal) == (None, signal.SIGKILL)


def test_it_runs_in_the_directory_with_empty_input_and_a_session_of_its_own(run: Runner, tmp_path: Path) -> None:
    result = run("pwd -P; cat; ps -o pgid= -p $$; echo $$")

    lines = result.output.decode().split()
    assert lines[0] == os.path.realpath(tmp_path)
    assert lines[1] == lines[2]


def test_the_environment_is_what_is_handed_in_and_the_mark(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_GATEWAY", "x")

    result = run("env", env={**ENV, "GIVEN": "a b", "BYTES": "\udcff"})

    names = dict(line.split(b"=", 1) for line in result.output.splitlines())
    assert names.keys() - {b"PWD", b"SHLVL", b"_", b"OLDPWD"} == {b"PATH", b"GIVEN", b"BYTES", b"TAKEBACK_OPERATION"}
    assert (names[b"GIVEN"], names[b"BYTES"]) == (b"a b", b"\xff")


def test_bash_understands_bash_and_any_bytes(run: Runner) -> None:
    assert run("a=(x y); [[ ${a[1]} == y ]] && printf '%s' 'caf\udce9'").output == b"caf\xe9"


def test_a_command_that_begins_with_a_dash_is_a_command(run: Runner) -> None:
    assert run("-x").exit_code == 127


def test_without_bash_sh_runs_it(tmp_path: Path) -> None:
    runner = Runner(tmp_path)
    runner.backend = LocalBackend(shell=shutil.which("sh"))

    assert runner("echo $((1 + 2))").output == b"3\n"


def test_a_program_called_bash_in_the_workspace_is_not_the_shell(run: Runner, tmp_path: Path) -> None:
    (tmp_path / "bash").write_text("#!/bin/sh\ntouch was-run\n")
    (tmp_path / "bash").chmod(0o755)

    assert run("echo real", env={"PATH": f"{tmp_path}:/usr/bin:/bin"}).output == b"real\n"
    assert not (tmp_path / "was-run").exists()


@pytest.mark.parametrize(
    ("command", "reason"),
    [("a\0b", "NUL"), ("\ud800", "cannot encode"), ("x" * 3_000_000, "longer than the system takes")],
)
def test_a_command_that_cannot_be_started_is_refused(run: Runner, command: str, reason: str) -> None:
    with pytest.raises(ToolRefused, match=reason):
        run(command)


def test_a_directory_that_is_gone_is_named(run: Runner, tmp_path: Path) -> None:
    run.cwd = tmp_path / "gone"

    with pytest.raises(ToolRefused, match=r"gone': No such file or directory"):
        run("true")


def test_a_shell_that_is_not_there_is_named(run: Runner) -> None:
    run.backend = LocalBackend(shell="/no/such/shell")

    with pytest.raises(ToolRefused, match="the shell '/no/such/shell' cannot be started"):
        run("true")


# Output


def test_lines_come_while_it_runs(run: Runner, tmp_path: Path) -> None:
    """The command waits for a file that is made when its first line is heard."""
    run.react = lambda piece: (tmp_path / "heard").touch() if b"first" in piece else None

    result = run("echo first; until [ -e heard ]; do sleep 0.01; done; echo second")

    assert result.output == b"first\nsecond\n"
    assert run.pieces == [b"first\n", b"second\n"]


def test_a_prompt_without_a_newline_is_heard_while_it_waits(run: Runner, tmp_path: Path) -> None:
    run.react = lambda piece: (tmp_path / "heard").touch() if piece == b"Continue? " else None

    result = run("printf 'Continue? '; until [ -e heard ]; do sleep 0.01; done; echo yes")

    assert result.output == b"Continue? yes\n"


def test_pieces_are_whole_lines(run: Runner) -> None:
    run("for i in $(seq 2000); do echo line $i; done")

    assert all(piece.endswith(b"\n") for piece in run.pieces)
    assert b"".join(run.pieces) == b"".join(b"line %d\n" % number for number in range(1, 2001))


def test_endless_output_is_bounded_and_counted(run: Runner) -> None:
    run.react = lambda _: run.stop.stop() if sum(map(len, run.pieces[-1:])) and len(run.pieces) > 200 else None

    result = run("echo head; yes")

    assert result.stopped
    assert result.head.startswith(b"head\ny\ny\n")
    assert result.tail.rstrip(b"\n").endswith(b"y")
    assert len(result.output) == 64 * 1024
    assert len(result.output) + result.cut_bytes == sum(map(len, run.pieces))


def test_output_written_right_before_the_end_is_not_lost(run: Runner) -> None:
    run.backend = LocalBackend(capture_bytes=1024 * 1024)

    for _ in range(20):
        assert len(run("head -c 60000 /dev/zero").output) == 60000


def test_an_error_of_the_listener_ends_the_command(run: Runner, tmp_path: Path) -> None:
    def break_off(_: bytes) -> None:
        raise RuntimeError("the listener broke")

    run.react = break_off
    with pytest.raises(RuntimeError, match="the listener broke"):
        run("echo $$ > pid; echo x; sleep 60")

    assert not alive(pid_in(tmp_path / "pid"))


# Stopping


def test_a_stop_before_the_start_starts_nothing(run: Runner, tmp_path: Path) -> None:
    run.stop.stop()
    run.stop.stop()

    result = run("touch was-run")

    assert result == ProcessResult(None, None, stopped=True)
    assert not (tmp_path / "was-run").exists()


def test_a_stop_ends_the_whole_group(run: Runner, tmp_path: Path) -> None:
    run.react = lambda _: run.stop.stop()

    result = run("sleep 60 & echo $! > pid; (sleep 60; touch late) & echo started; wait")

    assert (result.stopped, result.timed_out, result.signal) == (True, False, signal.SIGTERM)
    assert not alive(pid_in(tmp_path / "pid"))
    assert result.output == b"started\n"


def test_a_stop_comes_from_any_thread_and_as_often_as_one_likes(run: Runner) -> None:
    begun = threading.Event()
    run.react = lambda _: begun.set()

    def stop_many_times() -> None:
        begun.wait(LONG_S)
        for _ in range(100):
            run.stop.stop()

    stoppers = [threading.Thread(target=stop_many_times) for _ in range(4)]
    for stopper in stoppers:
        stopper.start()
    result = run("echo started; sleep 60")
    for stopper in stoppers:
        stopper.join()

    assert result.stopped


def test_a_stop_during_silence_is_noticed_at_once(run: Runner, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "ready")
    stopper = threading.Thread(target=lambda: ((tmp_path / "ready").read_bytes(), run.stop.stop()))
    stopper.start()

    begun = time.monotonic()
    result = run("echo > ready; exec sleep 60", timeout_s=None)
    stopper.join()

    assert result.stopped
    assert time.monotonic() - begun < 10


def test_what_it_says_when_asked_to_end_is_heard(run: Runner) -> None:
    run.react = lambda piece: run.stop.stop() if b"started" in piece else None

    result = run("trap 'echo cleaning up; exit 7' TERM; echo started; while :; do sleep 0.01; done")

    assert result.output.startswith(b"started\n")
    assert result.output.endswith(b"cleaning up\n")
    assert (result.stopped, result.exit_code) == (True, 7)


def test_what_ignores_the_request_is_killed(run: Runner) -> None:
    run.react = lambda _: run.stop.stop()

    result = run("trap '' TERM; echo started; while :; do sleep 1; done")

    assert (result.stopped, result.signal) == (True, signal.SIGKILL)


def test_a_suspended_command_is_ended_too(run: Runner) -> None:
    run.react = lambda _: run.stop.stop()

    result = run("echo started; kill -STOP $$; sleep 60")

    assert result.stopped
    assert not result.left_running


def test_a_command_that_takes_too_long_is_ended(run: Runner, tmp_path: Path) -> None:
    result = run("echo $$ > pid; echo begun; sleep 60", timeout_s=0.3)

    assert (result.timed_out, result.stopped) == (True, False)
    assert 0.3 <= result.duration_s < 10
    assert result.output == b"begun\n"
    assert not alive(pid_in(tmp_path / "pid"))


# What it leaves


def test_a_background_process_is_ended_with_the_command(run: Runner, tmp_path: Path) -> None:
    result = run("sleep 60 & echo $! > pid; echo done")

    assert (result.exit_code, result.output) == (0, b"done\n")
    assert not alive(pid_in(tmp_path / "pid"))


def test_a_background_process_without_our_pipe_is_ended_too(run: Runner, tmp_path: Path) -> None:
    result = run("sleep 60 >/dev/null 2>&1 & echo $! > pid")

    assert result.exit_code == 0
    assert not alive(pid_in(tmp_path / "pid"))


def test_a_background_process_that_ignores_the_request_is_killed(run: Runner, tmp_path: Path) -> None:
    run("(trap '' TERM HUP; echo up > up; exec sleep 60) & echo $! > pid; until [ -e up ]; do sleep 0.01; done")

    assert not alive(pid_in(tmp_path / "pid"))


def test_a_background_writer_does_not_hold_up_the_end(run: Runner) -> None:
    result = run("yes & echo done")

    assert result.exit_code == 0
    assert b"done\n" in result.head


def test_a_process_substitution_may_finish(run: Runner, tmp_path: Path) -> None:
    run("echo logged > >(sleep 0.05; cat > log)")

    assert (tmp_path / "log").read_bytes() == b"logged\n"


@pytest.mark.parametrize("how", ["nohup", "setsid", "nohup setsid"])
def test_what_is_detached_on_purpose_lives_on_and_nothing_else(run: Runner, tmp_path: Path, how: str) -> None:
    result = run(f"sleep 60 & echo $! > left; {how} sleep 61 & echo $! > pid", keep=True)
    pid = pid_in(tmp_path / "pid")

    try:
        assert (result.exit_code, result.detached, result.left_running) == (0, (f"{pid} sleep 61",), False)
        assert alive(pid)
        assert not alive(pid_in(tmp_path / "left"))
    finally:
        os.kill(pid, signal.SIGKILL)


def test_what_is_detached_ends_with_the_rest_unless_it_is_to_be_kept(run: Runner, tmp_path: Path) -> None:
    result = run("nohup sleep 61 & echo $! > pid; setsid sleep 62 & echo $! > other")

    assert result.detached == ()
    assert not alive(pid_in(tmp_path / "pid"))
    assert not alive(pid_in(tmp_path / "other"))


def test_what_lives_on_may_still_write_its_output(run: Runner, tmp_path: Path) -> None:
    for name in ("go", "written"):
        os.mkfifo(tmp_path / name)
    go, written = (os.open(tmp_path / name, os.O_RDWR) for name in ("go", "written"))
    script = "read line < go; echo later; echo later; echo yes > written"
    result = run(f"nohup sh -c '{script}' & echo now", keep=True)

    try:
        assert result.output == b"now\n"
        os.write(go, b"go\n")
        assert select.select([written], [], [], LONG_S)[0] == [written]
    finally:
        os.close(go)
        os.close(written)


def test_a_stop_ends_the_background_all_the_same(run: Runner, tmp_path: Path) -> None:
    run.react = lambda _: run.stop.stop()

    run("sleep 60 & echo $! > pid; echo started; wait", keep=True)

    assert not alive(pid_in(tmp_path / "pid"))


DAEMON = """
import os, sys, time
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
os.closerange(0, 3)
open("pid", "w").write(str(os.getpid()))
os.rename("pid", "daemon")
time.sleep(60)
open("late", "w")
"""


@pytest.mark.parametrize("how", ["end", "stop", "time"])
def test_a_daemon_that_left_the_group_is_found_by_its_mark(run: Runner, tmp_path: Path, how: str) -> None:
    (tmp_path / "daemon.py").write_text(DAEMON)
    wait = "until [ -e daemon ]; do sleep 0.01; done; echo up"
    rest = {"end": "", "stop": "; sleep 60", "time": "; sleep 60"}[how]
    if how == "stop":
        run.react = lambda _: run.stop.stop()

    result = run(f"{sys.executable} daemon.py; {wait}{rest}", timeout_s=1.0 if how == "time" else LONG_S)

    assert (result.stopped, result.timed_out) == (how == "stop", how == "time")
    # Only Linux shows the environment of another process.
    assert alive(pid_in(tmp_path / "daemon")) is not LINUX
    assert result.left_running is False


def test_runs_at_the_same_time_do_not_end_each_other(tmp_path: Path) -> None:
    first, second = Runner(tmp_path), Runner(tmp_path)
    results: list[ProcessResult] = []
    (tmp_path / "wait.sh").write_text("echo up > up; until [ -e over ]; do sleep 0.01; done; echo ok")
    apart = "import subprocess; subprocess.run(['sh', 'wait.sh'], start_new_session=True)"
    other = threading.Thread(target=lambda: results.append(first(f'{sys.executable} -c "{apart}"')))
    other.start()

    second("until [ -e up ]; do sleep 0.01; done; sleep 60 &")
    (tmp_path / "over").touch()
    other.join()

    assert results[0].output == b"ok\n"


def test_many_short_commands_leave_no_descriptor_and_no_zombie(run: Runner) -> None:
    for _ in range(50):
        assert run("true").exit_code == 0

    # Only the dead count: what other tests keep running beside this one has the same parent.
    listed = subprocess.run(["ps", "-A", "-o", "ppid=,stat="], capture_output=True, check=True, text=True).stdout
    children = [line.split() for line in listed.splitlines()]
    assert [state for parent, state in children if parent == str(os.getpid()) and state.startswith("Z")] == []
