"""What happens in one chat happens in order, and holds up no other chat."""

import anyio
import pytest

from adapters.lanes import Lanes, TurnLost


async def test_a_lane_keeps_its_order_and_holds_up_no_other():
    lanes, happened, go = Lanes(), [], anyio.Event()

    async def happen(lane: str, what: str, wait: anyio.Event | None = None) -> None:
        async with lanes.turn(lane):
            if wait is not None:
                await wait.wait()
            happened.append(what)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(happen, "ann", "one", go)
        tasks.start_soon(happen, "ann", "two")
        tasks.start_soon(happen, "ben", "early")
        await anyio.wait_all_tasks_blocked()
        so_far = [*happened]
        go.set()

    assert so_far == ["early"]
    assert happened == ["early", "one", "two"]


async def fail(lanes: Lanes, go: anyio.Event) -> None:
    async with lanes.turn("ann"):
        await go.wait()
        raise OSError("disk full")


async def test_a_failure_takes_the_turn_of_everybody_who_waits_and_of_nobody_later():
    lanes, happened, go = Lanes(), [], anyio.Event()

    async def happen(what: str) -> None:
        async with lanes.turn("ann"):
            happened.append(what)

    async def lose(what: str) -> None:
        with pytest.raises(TurnLost):
            await happen(what)

    async with anyio.create_task_group() as tasks:
        for what in ("two", "three"):
            tasks.start_soon(lose, what)
            go.set()
        with pytest.raises(OSError, match="disk full"):
            await fail(lanes, go)
        # None of the others has run since the failure, so who comes now waits behind them.
        await lose("four")
    await happen("again")

    assert happened == ["again"]


async def test_who_no_longer_wants_a_turn_holds_up_nobody():
    lanes, happened, go = Lanes(), [], anyio.Event()

    async def happen(what: str, scope: anyio.CancelScope | None = None) -> None:
        with scope or anyio.CancelScope():
            async with lanes.turn("ann"):
                await go.wait()
                happened.append(what)

    given_up = anyio.CancelScope()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(happen, "one")
        tasks.start_soon(happen, "two", given_up)
        tasks.start_soon(happen, "three")
        await anyio.wait_all_tasks_blocked()
        given_up.cancel()
        await anyio.wait_all_tasks_blocked()
        go.set()

    assert happened == ["one", "three"]
