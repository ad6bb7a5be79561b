"""The host behind ssh: one connection for all commands, clear words where there is none, nothing left behind."""

import os
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from engine.backends.container import this_owner
from engine.errors import ToolRefused
from tests.engine.backends.conftest import Elsewhere
from tests.remote_host import NO_CONFIG, RemoteHost, free_port


def place(base: Path, host: RemoteHost, **options: object) -> Elsewhere:
    return Elsewhere(base, "ssh", {**host.options(), **options})


def test_commands_share_one_connection_which_ends_with_the_backend(ssh: Elsewhere, remote_host: RemoteHost) -> None:
    before = remote_host.logins()
    served = ssh("echo $PPID").output

    assert ssh("true").exit_code == 0
    assert remote_host.logins() == before + 1
    sockets = Path(ssh.backend._sockets)  # type: ignore[attr-defined]
    assert sockets.stat().st_mode & 0o777 == 0o700
    assert len(str(sockets / "c")) < 70
    ssh.backend.close()
    assert not sockets.exists()
    assert served.strip().isdigit()


def test_after_it_was_closed_it_connects_anew(ssh: Elsewhere, remote_host: RemoteHost) -> None:
    ssh("true")
    ssh.backend.close()
    before = remote_host.logins()

    assert ssh("echo again").output == b"again\n"
    assert remote_host.logins() == before + 1


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("port", "no connection: ssh: connect to host 127.0.0.1 port .*: Connection refused. Nothing ran there"),
        ("known_hosts", "no connection: Host key verification failed"),
        ("identity", "no connection: .*Permission denied"),
    ],
)
def test_without_a_connection_it_is_said_why(tmp_path: Path, remote_host: RemoteHost, option: str, reason: str) -> None:
    wrong = {"port": free_port(), "known_hosts": str(tmp_path / "empty"), "identity": remote_host.known_hosts}
    run = place(tmp_path, remote_host, **{option: wrong[option]})
    try:
        with pytest.raises(ToolRefused, match=reason):
            run("touch here")
    finally:
        run.backend.close()

    assert list(run.workspace.iterdir()) == []


def test_without_ssh_it_is_said(tmp_path: Path, remote_host: RemoteHost) -> None:
    run = place(tmp_path, remote_host)
    run.env["PATH"] = str(tmp_path)

    with pytest.raises(ToolRefused, match="the program 'ssh' is not installed here"):
        run("true")
    run.backend.close()


def test_what_a_killed_process_left_of_its_connection_goes_at_the_next(ssh: Elsewhere) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    left = Path(tempfile.mkdtemp(prefix=f"takeback-ssh-{dead.pid}.1-", dir="/tmp"))
    living = Path(tempfile.mkdtemp(prefix=f"takeback-ssh-{this_owner()}-", dir="/tmp"))
    (left / "said").touch()

    ssh("true")

    assert (left.exists(), living.exists()) == (False, True)
    living.rmdir()


def test_a_connection_that_breaks_is_no_exit_code_and_ends_the_command_there(
    tmp_path: Path, remote_host: RemoteHost
) -> None:
    run = place(tmp_path, remote_host)
    pids = tmp_path / "pids"
    # Our grandparent is the server's process for this connection.
    command = f"echo $$ $(cut -d' ' -f4 /proc/$PPID/stat) > {pids}; echo up; sleep 4511"

    watched: list[int] = []

    def cut(data: bytes) -> None:
        own, server = pids.read_text().split()
        watched.append(os.pidfd_open(int(own)))
        os.kill(int(server), signal.SIGKILL)

    result = run.backend.run(command, str(run.workspace), run.env, 60, cut, run.stop)
    run.backend.close()

    assert result.lost
    assert (result.exit_code, result.signal) == (None, None)
    assert select.select(watched, [], [], 30)[0] == watched
    os.close(watched[0])


def test_a_directory_that_is_not_there_is_refused(tmp_path: Path, remote_host: RemoteHost) -> None:
    run = place(tmp_path, remote_host, path="/nowhere/at/all")

    with pytest.raises(ToolRefused, match=r"can't cd to|No such file"):
        run("touch here")
    run.backend.close()


def test_the_workspace_may_have_another_path_there(tmp_path: Path, remote_host: RemoteHost) -> None:
    run = place(tmp_path, remote_host, path=str(tmp_path / "shared"), env={"BUILD": "a b'c"})
    (tmp_path / "shared").symlink_to(run.workspace)
    (run.workspace / "below").mkdir()

    result = run.backend.run(
        'pwd; echo "$BUILD" > made', str(run.workspace / "below"), run.env, 60, run.heard.append, run.stop
    )
    run.backend.close()

    assert result.output.decode().strip() == str(tmp_path / "shared" / "below")
    assert (run.workspace / "below" / "made").read_text() == "a b'c\n"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "its option 'host' is missing"),
        ({"host": "-oProxyCommand=touch x"}, "its option 'host' cannot be '-oProxyCommand=touch x'"),
        ({"host": "h", "prot": 22}, r"has no option 'prot'; did you mean 'port'\?"),
        ({"host": "h", "path": "relative"}, "its option 'path' must be an absolute path"),
        ({"host": "h", "args": "x"}, "its option 'args' must be a list of texts"),
        ({"host": "h", "env": {"A B": "x"}}, "its option 'env' must hold environment variables"),
        ({"host": "h", "port": "22"}, "its option 'port' must be a number"),
    ],
)
def test_an_option_that_cannot_be_used_is_named(tmp_path: Path, options: dict[str, object], reason: str) -> None:
    with pytest.raises(ToolRefused, match=reason):
        Elsewhere(tmp_path, "ssh", options)


def test_nothing_of_the_options_is_read_as_another_option(tmp_path: Path, remote_host: RemoteHost) -> None:
    odd = tmp_path / 'a "b" %d c'
    odd.mkdir()
    (odd / "key").write_bytes(Path(remote_host.identity).read_bytes())
    (odd / "key").chmod(0o600)
    run = place(tmp_path, remote_host, identity=str(odd / "key"), args=NO_CONFIG)

    assert run("echo in").output == b"in\n"
    run.backend.close()
