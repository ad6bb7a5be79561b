"""Work in threads is never lost sight of, however its caller is cancelled."""

import asyncio
import threading

import anyio
import pytest
from anyio import CapacityLimiter

from gateway.offload import in_thread


class Work:
    """Blocking work that goes on until it is let go."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.go_on = threading.Event()
        self.ended = False

    def __call__(self) -> str:
        self.begun.set()
        self.go_on.wait()
        self.ended = True
        return "result"

    async def wait_until_begun(self) -> None:
        await anyio.to_thread.run_sync(self.begun.wait)


async def test_the_result_and_the_exception_of_the_work_come_back():
    limiter = CapacityLimiter(1)

    def fail() -> None:
        raise ZeroDivisionError

    assert await in_thread(lambda: "result", limiter) == "result"
    with pytest.raises(ZeroDivisionError):
        await in_thread(fail, limiter)
    assert limiter.borrowed_tokens == 0


async def test_a_cancelled_scope_waits_for_its_thread():
    work, limiter = Work(), CapacityLimiter(1)

    async def cancel(scope: anyio.CancelScope) -> None:
        await work.wait_until_begun()
        scope.cancel()
        work.go_on.set()

    async with anyio.create_task_group() as group:
        with anyio.CancelScope() as scope:
            group.start_soon(cancel, scope)
            await in_thread(work, limiter)

    assert work.ended
    assert scope.cancelled_caught
    assert limiter.borrowed_tokens == 0


@pytest.mark.parametrize("times", [1, 3])
async def test_a_task_cancelled_by_asyncio_waits_for_its_thread_and_is_cancelled_then(times: int):
    work, limiter = Work(), CapacityLimiter(1)
    task = asyncio.create_task(in_thread(work, limiter))
    await work.wait_until_begun()

    for _ in range(times):
        task.cancel()
        await anyio.wait_all_tasks_blocked()
    assert not task.done()
    assert limiter.borrowed_tokens == 1, "the place is taken for as long as the thread runs"
    work.go_on.set()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert work.ended
    assert limiter.borrowed_tokens == 0


async def test_work_that_fails_after_its_caller_was_cancelled_is_waited_for():
    work, limiter = Work(), CapacityLimiter(1)

    def fail() -> None:
        work()
        raise ZeroDivisionError

    task = asyncio.create_task(in_thread(fail, limiter))
    await work.wait_until_begun()
    task.cancel()
    await anyio.wait_all_tasks_blocked()
    work.go_on.set()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert work.ended


async def test_a_caller_cancelled_while_it_waits_for_a_place_never_begins():
    first, second, limiter = Work(), Work(), CapacityLimiter(1)
    running = asyncio.create_task(in_thread(first, limiter))
    await first.wait_until_begun()
    waiting = asyncio.create_task(in_thread(second, limiter))
    await anyio.wait_all_tasks_blocked()

    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    first.go_on.set()

    assert await running == "result"
    assert not second.begun.is_set()
    assert limiter.borrowed_tokens == 0


async def test_a_caller_cancelled_before_its_thread_begins_never_begins_it():
    work, limiter = Work(), CapacityLimiter(1)
    task = asyncio.create_task(in_thread(work, limiter))
    await asyncio.sleep(0)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert not work.begun.is_set()
    assert await in_thread(lambda: "free again", limiter) == "free again"
