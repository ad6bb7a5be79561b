"""One writer at a time in a workspace, whoever asks, in the order they came."""

from pathlib import Path

import anyio
import pytest
from anyio import CapacityLimiter

from engine.store.claims import Claims
from gateway.offload import SharedClaim
from gateway.turns.writers import WorkspaceBusy, Writers


@pytest.fixture
def writers() -> Writers:
    return Writers(said_after_s=0.0)


class Holder:
    """Holds a workspace until it is let go."""

    def __init__(self, writers: Writers, root: str, name: str, order: list[str]) -> None:
        self.writers = writers
        self.root = root
        self.name = name
        self.order = order
        self.holds = anyio.Event()
        self.may_end = anyio.Event()
        self.told: list[str] = []
        self.was_told = anyio.Event()

    async def __call__(self) -> None:
        async with self.writers.hold(self.root, self.name, on_wait=self.tell):
            self.order.append(self.name)
            self.holds.set()
            await self.may_end.wait()

    async def tell(self, holder: str) -> None:
        self.told.append(holder)
        self.was_told.set()


@pytest.mark.parametrize(("one", "other"), [("/w", "/w"), ("/w", "/w/app"), ("/w/app", "/w")])
async def test_roots_that_touch_have_one_writer(writers: Writers, one: str, other: str):
    order: list[str] = []
    first, second = Holder(writers, one, "A", order), Holder(writers, other, "B", order)
    async with anyio.create_task_group() as group:
        group.start_soon(first)
        await first.holds.wait()
        group.start_soon(second)
        await second.was_told.wait()
        assert order == ["A"]
        assert writers.holder(other) == "A"

        first.may_end.set()
        await second.holds.wait()
        assert second.told == ["A"]
        assert first.told == []
        second.may_end.set()

    assert writers.holder(one) is None


@pytest.mark.parametrize("other", ["/x", "/w-other", "/w2/app"])
async def test_roots_apart_have_writers_of_their_own(writers: Writers, other: str):
    order: list[str] = []
    first, second = Holder(writers, "/w", "A", order), Holder(writers, other, "B", order)
    async with anyio.create_task_group() as group:
        group.start_soon(first)
        group.start_soon(second)
        await first.holds.wait()
        await second.holds.wait()
        first.may_end.set()
        second.may_end.set()

    assert first.told == second.told == []


async def test_who_waits_longer_goes_first(writers: Writers):
    order: list[str] = []
    holders = [Holder(writers, "/w", name, order) for name in "ABC"]
    async with anyio.create_task_group() as group:
        for holder in holders:
            group.start_soon(holder)
            await (holder.was_told if order else holder.holds).wait()
        for holder in holders:
            await holder.holds.wait()
            holder.may_end.set()

    assert order == ["A", "B", "C"]
    assert holders[2].told == ["A"], "it is said once who is in the way"


async def test_a_bounded_wait_ends_with_the_name_of_the_holder(writers: Writers):
    async with writers.hold("/w", "the slack chat C1"):
        with pytest.raises(WorkspaceBusy, match="the slack chat C1 is at work"):
            async with writers.hold("/w", "B", wait_s=0.01):
                pass
        async with writers.hold("/x", "B", wait_s=0.0):
            assert writers.holder("/x") == "B"

    async with writers.hold("/w", "B", wait_s=0.0):
        assert writers.holder("/w") == "B"


async def test_who_gives_up_waiting_is_in_nobodys_way(writers: Writers):
    order: list[str] = []
    first, second, third = (Holder(writers, "/w", name, order) for name in "ABC")
    async with anyio.create_task_group() as group:
        group.start_soon(first)
        await first.holds.wait()
        async with anyio.create_task_group() as inner:
            inner.start_soon(second)
            await anyio.wait_all_tasks_blocked()
            inner.cancel_scope.cancel()
        group.start_soon(third)
        first.may_end.set()
        await third.holds.wait()
        third.may_end.set()

    assert order == ["A", "C"]


async def test_a_short_wait_is_not_worth_a_word():
    writers = Writers(said_after_s=3600)
    order: list[str] = []
    first, second = Holder(writers, "/w", "A", order), Holder(writers, "/w", "B", order)
    async with anyio.create_task_group() as group:
        group.start_soon(first)
        await first.holds.wait()
        group.start_soon(second)
        await anyio.wait_all_tasks_blocked()
        first.may_end.set()
        await second.holds.wait()
        second.may_end.set()

    assert second.told == []


async def test_writers_of_two_processes_have_one_writer_and_who_gives_up_lets_go(tmp_path: Path):
    claims = Claims(str(tmp_path))

    def claim(root: str, holder: str) -> SharedClaim:
        return SharedClaim(claims.make(root, holder), CapacityLimiter(1))

    ours, theirs = Writers(claim), Writers(claim)
    async with ours.hold("/w", "the slack chat C1"):
        with pytest.raises(WorkspaceBusy, match=r"process \d+ \(the slack chat C1, since .*\) is at work"):
            async with theirs.hold("/w", "B", wait_s=0.0):
                pass
        async with theirs.hold("/x", "B", wait_s=0.0):
            assert theirs.holder("/x") == "B"

    async with theirs.hold("/w", "B", wait_s=0.0):
        assert theirs.holder("/w") == "B"
