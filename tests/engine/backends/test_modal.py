"""Sandboxes of Modal: what is asked for, which bytes come, and what is said of what the service refuses."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from grpclib import GRPCError, Status

from engine.errors import ToolRefused
from tests.engine.backends.rented_kit import Rented, rented


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rented]:
    with rented("modal", tmp_path_factory.mktemp("modal")) as made:
        yield made


@pytest.fixture
def modal(service: Rented, tmp_path: Path) -> Iterator[Rented]:
    service.begin(tmp_path)
    yield service
    service.end()


def test_it_is_asked_for_with_its_token_and_what_is_configured(modal: Rented) -> None:
    modal.place(image="dev:latest", cpus=2, memory_mb=512, idle_hours=1)("true")

    machine = modal.machine()
    assert machine is not None
    asked = machine.facts["definition"]
    assert (asked.timeout_secs, asked.idle_timeout_secs) == (24 * 3600, 3600)
    assert (asked.resources.milli_cpu, asked.resources.memory_mb) == (2000, 512)
    assert modal.service.tokens == {("ak-1", "as-1")}


def test_any_bytes_come_as_they_were_written(modal: Rented) -> None:
    assert modal.place()(r"printf 'a\377\000b'").output == b"a\xff\x00b"


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (Status.UNAUTHENTICATED, r"the service refuses the token; see token_id and token_secret \(no\)"),
        (Status.PERMISSION_DENIED, r"the service refuses the token; see token_id and token_secret \(no\)"),
        (Status.RESOURCE_EXHAUSTED, r"the service gives no more now: a quota or a rate limit is reached \(no\)"),
        (Status.INVALID_ARGUMENT, "no"),
    ],
)
def test_what_the_service_refuses_is_said(modal: Rented, status: Status, reason: str) -> None:
    modal.service.refusal = GRPCError(status, "no")

    with pytest.raises(ToolRefused, match=rf"sandbox \(Modal\): {reason}\. Nothing ran"):
        modal.place()("true")
