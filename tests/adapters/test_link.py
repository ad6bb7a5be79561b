"""Short troubles on the way to a platform are overcome; others are said at once."""

import pytest

from adapters import link as links
from adapters.contract import ConnectionFailed
from adapters.link import Link, Trouble


class _Down(Exception):
    pass


def link(*, permanent: bool = False, passing: bool = True, wait_s: float | None = None) -> Link:
    return Link((_Down,), lambda error: Trouble(ConnectionFailed(str(error), permanent=permanent), passing, wait_s))


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(links, "DELAYS_S", (0.0, 0.0))


class Calls:
    """Fails so many times with one error, then succeeds."""

    def __init__(self, failures: int, error: Exception) -> None:
        self.made = 0
        self._failures = failures
        self._error = error

    async def __call__(self) -> str:
        self.made += 1
        if self.made <= self._failures:
            raise self._error
        return "answer"


async def test_a_short_trouble_is_overcome():
    used, calls = link(), Calls(2, _Down("away"))
    used.up = True

    assert await used.patiently(calls) == "answer"
    assert calls.made == 3
    assert not used.up


async def test_a_long_one_is_said():
    calls = Calls(9, _Down("away"))

    with pytest.raises(ConnectionFailed, match="away") as caught:
        await link().patiently(calls)

    assert calls.made == 3
    assert caught.value.__suppress_context__


async def test_what_no_attempt_can_mend_is_said_at_once():
    calls = Calls(9, _Down("wrong token"))

    with pytest.raises(ConnectionFailed) as caught:
        await link(permanent=True, passing=False).patiently(calls)

    assert (calls.made, caught.value.permanent) == (1, True)


async def test_the_platforms_own_waits_are_no_attempts():
    calls = Calls(7, _Down("flooded"))

    assert await link(passing=False, wait_s=0.0).patiently(calls) == "answer"


async def test_an_error_that_is_no_refusal_is_not_swallowed():
    calls = Calls(1, KeyError("ours"))

    with pytest.raises(KeyError):
        await link().patiently(calls)

    assert calls.made == 1
