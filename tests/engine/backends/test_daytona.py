"""Sandboxes of Daytona: what is asked for, whose output is whose, and what is said of what the service refuses."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.errors import ToolRefused
from tests.engine.backends.rented_kit import Rented, rented


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rented]:
    with rented("daytona", tmp_path_factory.mktemp("daytona")) as made:
        yield made


@pytest.fixture
def daytona(service: Rented, tmp_path: Path) -> Iterator[Rented]:
    service.begin(tmp_path)
    yield service
    service.end()


@pytest.mark.parametrize(("image", "minutes"), [(None, 240), ("dev:latest", 60)])
def test_it_is_asked_for_with_its_key_and_what_is_configured(daytona: Rented, image: str | None, minutes: int) -> None:
    daytona.place(image=image, idle_hours=minutes / 60 if image else None)("true")

    machine = daytona.machine()
    assert machine is not None
    assert (machine.facts["autoStopInterval"], machine.facts["autoDeleteInterval"]) == (minutes, 24 * 60)
    assert ("dev:latest" in machine.facts.get("buildInfo", {}).get("dockerfileContent", "")) == bool(image)
    assert {"Bearer dtn_1"} == daytona.service.tokens - {""}


def test_a_stopped_one_is_started_again(daytona: Rented) -> None:
    daytona.place()("echo kept > file")
    machine = daytona.machine()
    assert machine is not None
    machine.stop()

    assert daytona.place()("cat file").output == b"kept\n"
    assert machine.running


def test_marks_and_what_looks_like_the_begin_of_one_are_told_apart(daytona: Rented) -> None:
    result = daytona.place()(r"printf 'a\001\001b\002\n\002\001\n\001'")

    # The service ends a last line that had no end.
    assert result.output == b"a\x01\x01b\x02\n\x02\x01\n\x01\n"


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (401, r"the service refuses the key; see api_key \(Failed to get sandbox: no\)"),
        (403, r"the service refuses the key; see api_key \(Failed to get sandbox: no\)"),
        (429, r"the service gives no more now: a quota or a rate limit is reached \(Failed to get sandbox: no\)"),
        (400, "Failed to get sandbox: no"),
    ],
)
def test_what_the_service_refuses_is_said(daytona: Rented, status: int, reason: str) -> None:
    daytona.service.refusal = (status, {"message": "no", "statusCode": status})

    with pytest.raises(ToolRefused, match=rf"sandbox \(Daytona\): {reason}\. Nothing ran"):
        daytona.place()("true")
