"""A place among running turns is free while its turn waits for a person, and is never given back twice."""

from pathlib import Path

import anyio
import pytest

from gateway.state.approvals import ApprovalState
from gateway.turns.slots import Slot
from tests.gateway.agent_kit import Scripted, runs_what_it_is_told
from tests.gateway.gateway_kit import open_office
from tests.gateway.platform_kit import THERE


@pytest.fixture
def limiter() -> anyio.CapacityLimiter:
    return anyio.CapacityLimiter(1)


class Wait:
    """A tool that waits for a person until it is told to go on."""

    def __init__(self, slot: Slot) -> None:
        self.slot = slot
        self.waits = anyio.Event()
        self.answered = anyio.Event()
        self.goes_on = anyio.Event()

    async def __call__(self) -> None:
        async with self.slot.lent():
            self.waits.set()
            await self.answered.wait()
        self.goes_on.set()


async def test_place_is_free_while_its_turn_waits_and_taken_again_before_it_goes_on(limiter: anyio.CapacityLimiter):
    async with anyio.create_task_group() as group, Slot(limiter) as slot:
        wait = Wait(slot)
        group.start_soon(wait)
        await wait.waits.wait()

        async with Slot(limiter):
            wait.answered.set()
            await anyio.wait_all_tasks_blocked()
            assert not wait.goes_on.is_set()
        await wait.goes_on.wait()

        assert limiter.borrowed_tokens == 1
    assert limiter.borrowed_tokens == 0


async def test_place_is_free_until_the_last_of_several_waits_has_ended(limiter: anyio.CapacityLimiter):
    async with anyio.create_task_group() as group, Slot(limiter) as slot:
        first, second = Wait(slot), Wait(slot)
        for wait in (first, second):
            group.start_soon(wait)
            await wait.waits.wait()

        first.answered.set()
        await first.goes_on.wait()
        assert limiter.borrowed_tokens == 0
        second.answered.set()
        await second.goes_on.wait()

        assert limiter.borrowed_tokens == 1
    assert limiter.borrowed_tokens == 0


async def test_wait_that_begins_while_another_takes_the_place_again_leaves_it_free(limiter: anyio.CapacityLimiter):
    async with anyio.create_task_group() as group, Slot(limiter) as slot:
        first, second = Wait(slot), Wait(slot)
        group.start_soon(first)
        await first.waits.wait()
        async with Slot(limiter):
            first.answered.set()
            await anyio.wait_all_tasks_blocked()
            group.start_soon(second)
            await second.waits.wait()
            await anyio.wait_all_tasks_blocked()
        await first.goes_on.wait()

        assert limiter.borrowed_tokens == 0
        second.answered.set()
        await second.goes_on.wait()
        assert limiter.borrowed_tokens == 1
    assert limiter.borrowed_tokens == 0


@pytest.mark.parametrize("answered", [False, True])
async def test_turn_that_is_cut_off_while_it_waits_gives_nothing_back_twice(
    limiter: anyio.CapacityLimiter, answered: bool
):
    async with Slot(limiter) as other:
        async with other.lent():
            with anyio.CancelScope() as scope:
                async with Slot(limiter) as slot, anyio.create_task_group() as group:
                    wait = Wait(slot)
                    group.start_soon(wait)
                    await wait.waits.wait()
                    if answered:
                        wait.answered.set()
                        async with Slot(limiter):
                            await anyio.wait_all_tasks_blocked()
                            scope.cancel()
                            await anyio.lowlevel.checkpoint()
                    scope.cancel()

            assert limiter.borrowed_tokens == 0
        assert limiter.borrowed_tokens == 1
    assert limiter.borrowed_tokens == 0


async def test_turn_that_waits_for_a_person_keeps_no_other_from_running(clean_home: Path, tmp_path: Path):
    async with open_office(clean_home, max_turns=1) as office:
        agent = Scripted(runs_what_it_is_told)
        asking = await office.request("rm ../elsewhere", tmp_path / "one", agent=agent)
        other = await office.request("/write b.txt\nhello\n", tmp_path / "two", place=THERE)
        async with anyio.create_task_group() as group:
            group.start_soon(office.runner.run, asking)
            await office.platform.wait_for(lambda seen: any("Question #1" in text for text in seen.sent()))

            await office.runner.run(other)

            assert await office.states() == ["running", "done"]
            await office.memory.approvals.settle(1, ApprovalState.DENIED)
            office.runner.wake(1)
        assert await office.states() == ["done", "done"]
