"""A stop on the way to where a command would run: nothing ran, nobody waits, nothing half-made is left."""

import os
import socket
import threading
import time
from pathlib import Path

import pytest

from engine.backends.base import Site, StopSignal
from engine.backends.client import call_client
from engine.backends.container import this_owner
from engine.backends.conversation import NotStarted
from engine.backends.docker import DockerRuntime
from engine.backends.options import Options
from engine.backends.waiting import holding, unless_stopped
from tests.containers import IMAGE, Podman
from tests.engine.backends.conftest import Elsewhere
from tests.remote_host import RemoteHost

SOON_S = 10.0
"""Much less than connecting or starting may take by itself."""


def test_a_stop_ends_ssh_while_it_connects(tmp_path: Path, remote_host: RemoteHost) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        run = Elsewhere(tmp_path, "ssh", {**remote_host.options(), "port": silent.getsockname()[1]})
        called: list[socket.socket] = []

        def hear() -> None:
            called.append(silent.accept()[0])
            assert called[0].recv(4) == b"SSH-"
            run.stop.stop()

        hearing = threading.Thread(target=hear)
        hearing.start()
        begun_s = time.monotonic()
        result = run("touch here")
        took_s = time.monotonic() - begun_s
        hearing.join()
        run.backend.close()

        assert (result.stopped, result.exit_code, result.duration_s) == (True, None, 0.0)
        assert took_s < SOON_S
        assert list(run.workspace.iterdir()) == []
        with called[0]:
            called[0].settimeout(SOON_S)
            while called[0].recv(4096):
                """What it had said before; its end is the end of ssh."""


def test_a_stop_ends_a_start_and_removes_what_was_begun(tmp_path: Path, podman: Podman) -> None:
    begun = tmp_path / "begun"
    os.mkfifo(begun)
    slow = tmp_path / "slow"
    # A program that has made the container and does not come back.
    slow.write_text(f'#!/bin/sh\n"{podman.cli}" "$@"; r=$?\n[ "$1" = run ] && echo > {begun} && sleep 600\nexit $r\n')
    slow.chmod(0o755)
    run = Elsewhere(tmp_path, "docker", podman.options(cli=str(slow)))

    def hear() -> None:
        begun.read_text()
        run.stop.stop()

    hearing = threading.Thread(target=hear)
    hearing.start()
    begun_s = time.monotonic()
    result = run("true")
    took_s = time.monotonic() - begun_s
    hearing.join()

    assert (result.stopped, result.exit_code, result.duration_s) == (True, None, 0.0)
    assert took_s < SOON_S
    assert podman.names() == []


def test_one_of_ours_that_was_made_and_never_ran_is_no_hindrance(tmp_path: Path, podman: Podman) -> None:
    site = Site(str(tmp_path), "0123456789abcdef", str(tmp_path), {"PATH": os.environ["PATH"]})
    runtime = DockerRuntime(Options("docker", {"cli": podman.cli}), site, str(tmp_path))
    podman("create", f"--name={runtime.name}", f"--label=takeback.owner={this_owner()}", IMAGE, "true")

    assert runtime.attach(None) is None
    assert podman.names() == []


def test_whoever_waits_for_a_turn_can_be_stopped() -> None:
    lock, stop = threading.Lock(), StopSignal()

    with lock:
        threading.Thread(target=stop.stop).start()
        with pytest.raises(NotStarted, match="stopped"), holding(lock, stop):
            pytest.fail("it was held twice")
    with holding(lock, None):
        assert lock.locked()
    assert not lock.locked()


def test_what_cannot_be_interrupted_goes_on_without_whoever_stopped() -> None:
    stop, going, ended = StopSignal(), threading.Event(), threading.Event()

    def make() -> None:
        stop.stop()
        going.wait()
        ended.set()

    with pytest.raises(NotStarted, match="stopped"):
        unless_stopped(make, stop)

    assert not ended.is_set()
    going.set()
    assert ended.wait(SOON_S)


def test_what_is_made_in_time_is_returned_and_what_failed_is_raised() -> None:
    assert unless_stopped(lambda: "made", StopSignal()) == "made"
    with pytest.raises(ZeroDivisionError):
        unless_stopped(lambda: 1 // 0, StopSignal())


def test_a_client_that_takes_too_long_is_ended_also_where_it_may_be_stopped() -> None:
    with pytest.raises(NotStarted, match="sh did not answer"):
        call_client(["/bin/sh", "-c", "sleep 600"], {}, timeout_s=0.5, stop=StopSignal())
