"""``gateway run``: the service."""

import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import urllib.request

import pytest

from gateway.cli.exits import Exit
from gateway.cli.running import say_unconfigured
from gateway.config import Settings


@pytest.fixture
def service(gateway):
    process = gateway.start("run", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    yield process
    if process.poll() is None:
        process.kill()
        process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        stream.close()


def started(process: subprocess.Popen[bytes]) -> list[bytes]:
    """The lines of stderr up to the one that says that it has started."""
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if b" started " in line:
            return lines
    raise AssertionError(b"".join(lines))


def test_it_says_what_is_not_configured_and_serves_the_console(service):
    said = b"".join(started(service))

    service.stdin.write(b"$ pwd\n")
    service.stdin.flush()

    assert service.stdout.readline().endswith(b"/sample\n")
    assert b"no chat platform is configured" in said
    assert b"gateway init" in said


def test_a_platform_without_a_workspace_is_said_to_serve_the_sample(capsys):
    slack = {"bot_token": "xoxb-1", "app_token": "xapp-1"}
    say_unconfigured(Settings.model_validate({"slack": slack, "workspaces": {"app": {"path": "/srv/app"}}}))
    named = capsys.readouterr().err
    say_unconfigured(Settings.model_validate({"slack": slack}))

    assert named == ""
    assert capsys.readouterr().err == (
        "gateway: no workspace is configured, so chats work in a small sample. To name yours: gateway init.\n"
    )


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, Exit.OK), (signal.SIGINT, Exit.INTERRUPTED)])
def test_a_signal_stops_it_cleanly(service, gateway, number, code):
    started(service)
    service.stdin.close()

    service.send_signal(number)

    assert service.wait(timeout=10) == code
    assert os.listdir(os.path.join(gateway.home, "instances")) == []


def test_the_end_of_the_input_does_not_stop_it(service):
    started(service)
    service.stdin.write(b"$ echo last | tr a-z A-Z\n")
    service.stdin.close()
    assert service.stdout.readline() == b"LAST\n"

    with pytest.raises(subprocess.TimeoutExpired):
        service.wait(timeout=0.5)


def test_a_wrong_configuration_stops_it_before_anything_is_started(gateway):
    result = gateway("run", TAKEBACK_APPROVALS="some")

    assert result.returncode == Exit.USAGE
    assert "TAKEBACK_APPROVALS: approvals must be off, outside, destructive or all, not 'some'" in result.stderr
    assert os.listdir(gateway.home) == []


@pytest.mark.parametrize("variable", ["TAKEBACK_AGENT__KIND"])
def test_an_agent_that_this_version_has_not_is_said(gateway, variable):
    result = gateway("run", **{variable: "acp"})

    assert result.returncode == Exit.USAGE
    assert "agent.kind acp is not part of this version; it has: direct" in result.stderr


def test_a_token_that_cannot_be_one_stops_it_before_anything_is_started(gateway):
    result = gateway("run", TAKEBACK_TELEGRAM__TOKEN="nonsense")

    assert result.returncode == Exit.USAGE
    assert "telegram.token: is no bot token; @BotFather gives one" in result.stderr
    assert "nonsense" not in result.stderr


def test_under_systemd_it_says_that_it_is_ready_alive_and_stopping_and_turns_are_interrupted(gateway, begun):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(os.path.join(gateway.user_home, "notify"))
        manager.settimeout(30)
        watched = {"NOTIFY_SOCKET": manager.getsockname(), "WATCHDOG_USEC": "300000", "TAKEBACK_HTTP__PORT": "0"}
        process = gateway.start(
            "run", stdin=subprocess.PIPE, stderr=subprocess.PIPE, env={**gateway.environment, **watched}
        )
        log = b"".join(started(process)).decode()
        said = {manager.recv(100) for _ in range(3)}
        address = re.search(r"address=(http://127\.0\.0\.1:\d+)", log)[1]
        with urllib.request.urlopen(f"{address}/readyz") as answer:
            ready = json.load(answer)
        process.stdin.write(f"$ echo > {begun.path}; sleep 1000\n".encode())
        process.stdin.flush()
        begun.wait()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=10)
        while manager.recv(100) != b"STOPPING=1":
            pass

    assert said == {b"READY=1", b"WATCHDOG=1"}
    assert ready == {"status": "ready", "checks": {"database": "ok", "adapter console": "ok"}}
    assert process.returncode == Exit.OK
    with sqlite3.connect(os.path.join(gateway.home, "gateway.db")) as database:
        assert database.execute("SELECT state FROM turns").fetchall() == [("interrupted",)]
    database.close()


def test_a_port_that_is_taken_is_said_with_what_to_do(gateway):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = gateway("run", TAKEBACK_HTTP__PORT=str(port))

    assert result.returncode == Exit.ERROR
    assert f"gateway: 127.0.0.1 port {port} cannot be listened on" in result.stderr
    assert "Set http.port to another one" in result.stderr
