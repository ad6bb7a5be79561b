"""systemd is told what it asked to be told, over the socket that it named."""

import os
import socket

import anyio
import pytest

from gateway.operation.pulse import beat
from gateway.operation.supervisor import Supervisor


@pytest.fixture
def listener(tmp_path):
    """A socket like systemd's, and the datagrams that have come."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(10)
        yield listening


def test_states_are_told_to_the_socket_that_is_named(listener):
    supervisor = Supervisor.from_environment({"NOTIFY_SOCKET": listener.getsockname()})

    supervisor.ready()
    supervisor.alive()
    supervisor.stopping()

    assert [listener.recv(100) for _ in range(3)] == [b"READY=1", b"WATCHDOG=1", b"STOPPING=1"]


def test_an_abstract_name_is_understood():
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(f"\0takeback-test-{os.getpid()}")
        listening.settimeout(10)

        Supervisor(f"@takeback-test-{os.getpid()}").ready()

        assert listening.recv(100) == b"READY=1"


def test_without_a_socket_nothing_is_told_and_nothing_watches():
    supervisor = Supervisor.from_environment({"WATCHDOG_USEC": "1000000"})

    supervisor.ready()

    assert supervisor.watchdog_s is None


@pytest.mark.parametrize("address", ["vsock:2:1234", "relative/path"])
def test_a_socket_of_another_kind_is_said_and_not_used(address, caplog):
    Supervisor.from_environment({"NOTIFY_SOCKET": address}).ready()

    assert [record.getMessage() for record in caplog.records] == [
        f"NOTIFY_SOCKET names {address}, which is no socket of this machine; not used"
    ]


def test_a_listener_that_is_gone_is_no_reason_to_fail(tmp_path, caplog):
    Supervisor(str(tmp_path / "gone")).ready()

    assert "READY=1" in caplog.text


@pytest.mark.parametrize(
    ("environment", "watchdog_s"),
    [
        ({"WATCHDOG_USEC": "30000000"}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({}, None),
    ],
)
def test_the_watchdog_waits_for_this_process_alone(environment, watchdog_s):
    assert Supervisor.from_environment({"NOTIFY_SOCKET": "/x", **environment}).watchdog_s == watchdog_s


async def test_signs_of_life_come_from_the_loop_and_its_lag_is_measured(listener):
    lags: list[float] = []
    listener.setblocking(False)
    supervisor = Supervisor(listener.getsockname(), watchdog_s=0.03)

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(beat, supervisor, lambda measure: lags.append(measure.seconds))
            for _ in range(3):
                await anyio.wait_readable(listener)
                assert listener.recv(100) == b"WATCHDOG=1"
            group.cancel_scope.cancel()

    assert lags
    assert all(lag_s >= 0 for lag_s in lags)
