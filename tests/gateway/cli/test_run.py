"""``gateway run``: the service."""

import os
import signal
import subprocess

import pytest

from gateway.cli.exits import Exit


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


def test_a_platform_without_an_adapter_is_said_to_be_unserved(gateway):
    os.makedirs(gateway.home, exist_ok=True)
    with open(os.path.join(gateway.home, "config.yaml"), "w") as config:
        config.write("telegram: {token: '1:x', allow: [1]}\n")
    process = gateway.start("run", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    said = b"".join(started(process))
    process.send_signal(signal.SIGTERM)
    process.communicate()

    assert b"telegram is configured, but this version has no adapter for it" in said
    assert b"slack" not in said
