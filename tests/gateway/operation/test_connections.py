"""Each adapter runs on its own, is started again when that helps, and they stop in order."""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import pytest

from adapters.contract import ConnectionFailed, Inbound, Reception
from gateway.operation.connections import Backoff, Connections
from gateway.operation.measures import AdapterFailed, Measure
from tests.gateway.platform_kit import Platform

AT_ONCE = Backoff(first_s=0.0, longest_s=0.0)


async def nothing_comes(_inbound: Inbound) -> Reception:
    raise AssertionError("nobody writes here")


class Line(Platform):
    """A platform whose every connection ends as the next of ``ends`` says; after the last it holds."""

    def __init__(self, name: str, *ends: Exception | None, stopped: list[str] | None = None) -> None:
        super().__init__(name=name)
        self.ends = list(ends)
        self.starts = 0
        self.holding = anyio.Event()
        self.stopped = stopped if stopped is not None else []

    @property
    def connected(self) -> bool:
        return self.holding.is_set()

    async def run(self, receive) -> None:
        del receive  # nobody writes here
        self.starts += 1
        if self.ends:
            end = self.ends.pop(0)
            if end is None:
                return
            raise end
        self.holding.set()
        try:
            await anyio.sleep_forever()
        finally:
            await anyio.lowlevel.cancel_shielded_checkpoint()
            self.stopped.append(self.name)


@asynccontextmanager
async def running(
    *adapters: Line, note: Callable[[Measure], None] = lambda _: None, backoff: Backoff = AT_ONCE
) -> AsyncIterator[Connections]:
    connections = Connections(adapters, persistent=True, backoff=backoff, note=note)
    async with anyio.create_task_group() as group:
        group.start_soon(connections.run, nothing_comes)
        with anyio.fail_after(10):
            yield connections
        group.cancel_scope.cancel()


async def test_an_adapter_that_cannot_connect_is_started_again_and_the_others_never_notice():
    lost = ConnectionFailed("the network is down", permanent=False)
    seen: list[Measure] = []
    weak, strong = Line("weak", lost, lost, lost), Line("strong")

    async with running(weak, strong, note=seen.append) as connections:
        await weak.holding.wait()
        reasons = [connections.unready(name) for name in ("weak", "strong")]

    assert (weak.starts, strong.starts) == (4, 1)
    assert reasons == [None, None]
    assert seen == [AdapterFailed("weak", again=True)] * 3


async def test_an_adapter_that_dies_of_a_defect_is_started_again(caplog):
    broken = Line("broken", KeyError("some"), ExceptionGroup("tasks", [ValueError("other")]))

    async with running(broken):
        await broken.holding.wait()

    assert broken.starts == 3
    assert [record.exc_info is not None for record in caplog.records if record.msg == "an adapter failed"] == [True] * 2


async def test_a_refused_adapter_stays_stopped_and_says_what_to_do(caplog):
    refused = ConnectionFailed("the token is wrong; ask the platform for another", permanent=True)
    weak, strong = Line("weak", ExceptionGroup("tasks", [refused])), Line("strong")

    async with running(weak, strong) as connections:
        await strong.holding.wait()
        reason = connections.unready("weak")

    assert weak.starts == 1
    assert reason == "stopped: the token is wrong; ask the platform for another"
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert "the token is wrong" in caplog.text


async def test_while_an_adapter_waits_the_reason_is_known():
    weak = Line("weak", ConnectionFailed("no route", permanent=False))

    async with running(weak, backoff=Backoff(first_s=100.0)) as connections:
        with anyio.fail_after(5):
            while weak.ends:
                await anyio.lowlevel.checkpoint()
        await anyio.wait_all_tasks_blocked()
        reason = connections.unready("weak")
        connected = dict(connections.connected())

    assert reason == "waiting to be started again: no route"
    assert connected == {"weak": False}


async def test_all_end_in_reverse_order_each_before_the_next_is_told():
    stopped: list[str] = []
    lines = [Line(name, stopped=stopped) for name in ("first", "second", "third")]

    async with running(*lines):
        for line in lines:
            await line.holding.wait()

    assert stopped == ["third", "second", "first"]


async def test_the_run_ends_when_no_adapter_has_more_to_give():
    with anyio.fail_after(5):
        await Connections([Line("one", None), Line("two", None)], persistent=True).run(nothing_comes)


@pytest.mark.parametrize("failure", [ConnectionFailed("no such bot", permanent=True), ValueError("a defect")])
async def test_without_persistence_a_failure_ends_the_run_and_stops_the_others(failure):
    stopped: list[str] = []

    with anyio.fail_after(5), pytest.RaisesGroup(type(failure)):
        await Connections([Line("weak", failure), Line("strong", stopped=stopped)], persistent=False).run(nothing_comes)

    assert stopped == ["strong"]


def test_the_delay_doubles_up_to_its_bound_with_a_random_part():
    backoff = Backoff(first_s=1.0, longest_s=60.0)

    delays = [backoff.delay_s(failures) for failures in range(1, 100)]

    for failures, delay_s in enumerate(delays, 1):
        grown = min(2.0 ** (failures - 1), 60.0)
        assert grown / 2 <= delay_s <= grown
    assert len(set(delays)) == len(delays)


async def test_an_adapter_that_ran_steadily_begins_with_the_first_delay_again(monkeypatch):
    asked: list[int] = []
    monkeypatch.setattr(Backoff, "delay_s", lambda _self, failures: asked.append(failures) or 0.0)
    lost = ConnectionFailed("lost", permanent=False)
    weak = Line("weak", lost, lost)

    async with running(weak, backoff=Backoff(steady_s=0.0)):
        await weak.holding.wait()

    assert asked == [1, 1]
