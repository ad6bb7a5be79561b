"""Sandboxes of Vercel: what is asked for, that a stopped one wakes, and what is said of what the service refuses."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.errors import ToolRefused
from tests.engine.backends.rented_kit import Rented, rented


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rented]:
    with rented("vercel_sandbox", tmp_path_factory.mktemp("vercel")) as made:
        yield made


@pytest.fixture
def vercel(service: Rented, tmp_path: Path) -> Iterator[Rented]:
    service.begin(tmp_path)
    yield service
    service.end()


def test_it_is_asked_for_with_its_token_and_what_is_configured(vercel: Rented) -> None:
    vercel.place(image="dev:latest", cpus=2)("true")

    (asked,) = [body for method, path, body in vercel.service.asked if (method, path) == ("POST", "/v3/sandboxes")]
    assert (asked["projectId"], asked["image"], asked["resources"]) == ("prj_1", "dev:latest", {"vcpus": 2})
    assert (asked["timeout"], asked["persistent"]) == (45 * 60 * 1000, True)
    assert vercel.service.tokens == {"Bearer vcp_1"}


def test_a_stopped_one_wakes_for_the_next_command(vercel: Rented) -> None:
    run = vercel.place()
    run("echo kept > file")
    machine = vercel.machine()
    assert machine is not None
    machine.stop()

    assert run("cat file").output == b"kept\n"


def test_a_byte_that_is_no_text_comes_as_a_mark_and_nothing_else_is_lost(vercel: Rented) -> None:
    assert vercel.place()(r"printf 'a\377b\n'").output == "a\N{REPLACEMENT CHARACTER}b\n".encode()


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (401, r"refuses the token; see token, team_id and project_id \(.*no.*\)"),
        (402, r"wants to be paid first: the plan's allowance is used up \(.*no.*\)"),
        (403, r"refuses the token for this team or project; see token, team_id and project_id \(.*no.*\)"),
        (429, r"gives no more now: a quota or a rate limit is reached \(.*no.*\)"),
        (400, r"answers with 400 \(.*no.*\)"),
    ],
)
def test_what_the_service_refuses_is_said(vercel: Rented, status: int, reason: str) -> None:
    vercel.service.refusal = (status, {"error": {"code": "x", "message": "no"}})

    with pytest.raises(ToolRefused, match=rf"sandbox \(Vercel\): the service {reason}\. Nothing ran"):
        vercel.place()("true")
