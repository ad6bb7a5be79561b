"""Replies arrive in order, again until they arrive, each chat on its own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import anyio
import pytest

from adapters.contract import Outbound, Part, Place, SendFailed
from gateway.delivery import GIVE_UP_AFTER, PROGRESS_EVERY_S, Delivery
from gateway.state.memory import Memory, open_memory
from gateway.state.outbox import Outbox, Reply
from tests.gateway.platform_kit import HERE, THERE, Platform


@pytest.fixture
async def memory(tmp_path):
    async with open_memory(str(tmp_path / "home")) as memory:
        yield memory


@pytest.fixture
def platform() -> Platform:
    return Platform()


@asynccontextmanager
async def delivering(memory: Memory, *platforms: Platform, **options) -> AsyncIterator[Delivery]:
    delivery = Delivery(memory.outbox, platforms, **{"first_delay_s": 0.001, **options})
    async with anyio.create_task_group() as group:
        await group.start(delivery.run)
        yield delivery
        group.cancel_scope.cancel()


def reply(text: str, place: Place = HERE) -> Outbound:
    return Outbound(place, (Part(text),))


async def states(memory: Memory) -> list[str]:
    return [row["state"] for row in await memory.database.fetch_all("SELECT state FROM outbox ORDER BY id")]


async def test_replies_arrive_in_order(memory: Memory, platform: Platform):
    texts = [str(number) for number in range(20)]
    async with delivering(memory, platform) as delivery:
        for text in texts:
            await delivery.post(reply(text))
        await delivery.idle()

    assert platform.sent() == texts
    assert set(await states(memory)) == {"sent"}


async def test_a_reply_that_fails_is_tried_again_and_those_behind_it_wait(memory: Memory, platform: Platform):
    platform.failures = [SendFailed("hm", retry_after_s=0.001), OSError("connection lost"), TimeoutError()]

    async with delivering(memory, platform) as delivery:
        await delivery.post(reply("one"))
        await delivery.post(reply("two"))
        await delivery.idle()

    assert platform.sent() == ["one", "two"]
    assert platform.attempts == 5


async def test_a_platforms_own_word_is_kept_and_holds_for_that_chat_only(memory: Memory, platform: Platform):
    """The platform says 33 seconds: no attempt is made in that chat meanwhile, and others go on."""
    async with delivering(memory, platform) as delivery:
        platform.failures = [SendFailed("too many requests", retry_after_s=33)]
        before = datetime.now(UTC)
        await delivery.post(reply("later"))
        await platform.wait_for(lambda seen: ("failed", HERE, "later") in seen.seen)
        for number in range(10):
            await delivery.post(reply(str(number), THERE))
        await platform.wait_sent("9", place=THERE)

        waiting = await memory.outbox.next(HERE)

    assert platform.sent() == []
    assert platform.attempts == 11
    assert waiting is not None
    assert waiting.attempts == 1
    assert timedelta(seconds=33) <= waiting.next_attempt_at - before < timedelta(seconds=36)


async def test_a_reply_that_can_never_arrive_is_given_up_and_the_next_is_sent(
    memory: Memory, platform: Platform, caplog: pytest.LogCaptureFixture
):
    platform.failures = [SendFailed("chat not found", retry_after_s=None)]

    async with delivering(memory, platform) as delivery:
        await delivery.post(reply("secret words"))
        await delivery.post(reply("two"))
        await delivery.idle()

    assert platform.sent() == ["two"]
    assert await states(memory) == ["failed", "sent"]
    assert "given up" in caplog.text
    assert "secret words" not in caplog.text


async def test_an_old_reply_gets_one_try_before_it_is_given_up(memory: Memory, platform: Platform):
    await memory.outbox.put(reply("old"))
    await memory.outbox.put(reply("old too"))
    platform.failures = [OSError("down")]

    async with delivering(
        memory, platform, clock=lambda: datetime.now(UTC) + GIVE_UP_AFTER + timedelta(minutes=1)
    ) as delivery:
        await delivery.idle()

    assert await states(memory) == ["failed", "sent"]


async def test_delays_grow_up_to_a_bound(memory: Memory, platform: Platform):
    delivery = Delivery(memory.outbox, [platform], first_delay_s=1.0)

    delays = [delivery._delay_s(attempts) for attempts in range(20)]

    assert 0.5 <= delays[0] <= 1
    assert 4 <= delays[3] <= 8
    assert all(30 <= delay <= 60 for delay in delays[6:])


async def test_a_slow_chat_holds_nobody_else_up(memory: Memory, platform: Platform):
    platform.blocked[HERE] = anyio.Event()

    async with delivering(memory, platform) as delivery:
        await delivery.post(reply("slow"))
        await platform.wait_for(lambda seen: ("blocked", HERE, "slow") in seen.seen)
        await delivery.post(reply("quick", THERE))
        await platform.wait_sent("quick", place=THERE)
        assert platform.sent() == []
        platform.blocked[HERE].set()
        await delivery.idle()

    assert platform.sent() == ["slow"]


async def test_replies_of_a_process_before_are_sent_first(memory: Memory, platform: Platform):
    await memory.outbox.put(reply("before"))

    async with delivering(memory, platform) as delivery:
        await delivery.post(reply("now"))
        await delivery.idle()

    assert platform.sent() == ["before", "now"]


async def test_a_reply_that_was_being_sent_when_the_service_stopped_is_sent_again(memory: Memory, platform: Platform):
    platform.blocked[HERE] = anyio.Event()
    async with delivering(memory, platform) as delivery:
        await delivery.post(reply("one"))
        await platform.wait_for(lambda seen: bool(seen.attempts))
    del platform.blocked[HERE]

    async with delivering(memory, platform) as delivery:
        await delivery.idle()

    assert platform.sent() == ["one"]


async def test_replies_for_a_platform_that_is_not_served_are_kept(memory: Memory, platform: Platform):
    elsewhere = Place("slack", "C1")

    async with delivering(memory, platform) as delivery:
        await delivery.post(reply("kept", elsewhere))
        await delivery.finished(elsewhere, "e1")
        delivery.progress(elsewhere, "working")
        await delivery.idle()

    assert platform.seen == []
    found = await memory.outbox.next(elsewhere)
    assert found is not None


async def test_two_platforms_get_their_own(memory: Memory, platform: Platform):
    slack = Platform("slack")

    async with delivering(memory, platform, slack) as delivery:
        await delivery.post(reply("for slack", Place("slack", "C1")))
        await delivery.post(reply("for the console"))
        await delivery.idle()

    assert platform.sent() == ["for the console"]
    assert slack.sent(Place("slack", "C1")) == ["for slack"]


async def test_finished_comes_after_the_replies_stored_before_it_and_before_those_after(
    memory: Memory, platform: Platform
):
    platform.blocked[HERE] = anyio.Event()
    async with delivering(memory, platform) as delivery:
        await delivery.post(reply("one"))
        await delivery.finished(HERE, "e1")
        await delivery.post(reply("two"))
        await delivery.finished(HERE, "e2")
        await delivery.finished(HERE, "e3")
        platform.blocked.pop(HERE).set()
        await delivery.idle()

    assert [(what, text) for what, _, text in platform.seen if what != "blocked"] == [
        ("sent", "one"),
        ("finished", "e1"),
        ("sent", "two"),
        ("finished", "e2"),
        ("finished", "e3"),
    ]


async def test_finished_comes_after_a_reply_that_was_given_up(memory: Memory, platform: Platform):
    platform.failures = [SendFailed("blocked by user", retry_after_s=None)]

    async with delivering(memory, platform) as delivery:
        await delivery.post(reply("one"))
        await delivery.finished(HERE, "e1")
        await delivery.idle()

    assert platform.seen == [("failed", HERE, "one"), ("finished", HERE, "e1")]


async def test_only_the_latest_progress_is_shown_and_a_clearing_always(memory: Memory, platform: Platform):
    async with delivering(memory, platform) as delivery:
        for number in range(1000):
            delivery.progress(HERE, f"line {number}")
        await platform.wait_for(lambda seen: bool(seen.seen))
        delivery.progress(HERE, "almost")
        delivery.progress(HERE, "")
        await delivery.post(reply("done"))
        await delivery.idle()

    assert platform.seen == [("progress", HERE, "line 999"), ("progress", HERE, ""), ("sent", HERE, "done")]


async def test_progress_never_comes_before_a_reply_that_is_due(memory: Memory, platform: Platform):
    async with delivering(memory, platform) as delivery:
        await delivery.post(reply("one"))
        delivery.progress(HERE, "working")
        await delivery.post(reply("two"))
        await platform.wait_for(lambda seen: ("progress", HERE, "working") in seen.seen)

    assert [text for _, _, text in platform.seen] == ["one", "two", "working"]


async def test_a_platform_that_cannot_show_progress_still_gets_replies(memory: Memory):
    class Mute(Platform):
        async def progress(self, place: Place, text: str) -> None:
            raise OSError(place, text)

        async def finished(self, place: Place, event_id: str) -> None:
            raise OSError(place, event_id)

    platform = Mute()

    async with delivering(memory, platform) as delivery:
        delivery.progress(HERE, "working")
        await delivery.finished(HERE, "e1")
        await delivery.post(reply("one"))
        await delivery.idle()

    assert platform.sent() == ["one"]


async def test_a_reply_that_was_sent_is_noted_even_when_the_disk_is_full_just_then(memory: Memory, platform: Platform):
    """Otherwise it would be sent again and again while nothing can be stored."""
    platform.blocked[HERE] = anyio.Event()
    async with delivering(memory, platform) as delivery:
        await delivery.post(reply("one"))
        await platform.wait_for(lambda seen: bool(seen.attempts))
        await memory.database.fetch_all("PRAGMA query_only = ON")
        platform.blocked.pop(HERE).set()
        await platform.wait_sent("one")
        await anyio.wait_all_tasks_blocked()
        await memory.database.fetch_all("PRAGMA query_only = OFF")
        await delivery.idle()

    assert platform.attempts == 1
    assert await states(memory) == ["sent"]


async def test_a_reply_stored_while_the_outbox_is_being_asked_is_sent(memory: Memory, platform: Platform):
    """The sender has read that nothing is left when the reply is written: it must not end before it looks again."""

    class Slow(Outbox):
        late: Outbound | None = reply("late")

        async def next(self, place: Place) -> Reply | None:
            found = await super().next(place)
            if found is None and self.late is not None:
                message, self.late = self.late, None
                await delivery.post(message)
            return found

    delivery = Delivery(Slow(memory.database, memory.instance, memory.clock), [platform])
    async with anyio.create_task_group() as group:
        await group.start(delivery.run)
        delivery.wake(HERE)
        await delivery.idle()
        group.cancel_scope.cancel()

    assert platform.sent() == ["late"]


async def test_progress_keeps_a_pace(memory: Memory, platform: Platform):
    times = []
    async with delivering(memory, platform) as delivery:
        for text in ("one", "two", "three"):
            delivery.progress(HERE, text)
            await platform.wait_for(lambda seen, text=text: ("progress", HERE, text) in seen.seen)
            times.append(anyio.current_time())

    assert times[1] - times[0] >= 0.9 * PROGRESS_EVERY_S
    assert times[2] - times[1] >= 0.9 * PROGRESS_EVERY_S


async def test_senders_end_when_nothing_is_left(memory: Memory, platform: Platform):
    async with delivering(memory, platform) as delivery:
        for number in range(50):
            await delivery.post(reply("x", Place("console", str(number))))
        await delivery.idle()

        assert delivery._lines == {}


@pytest.mark.parametrize("attempts", [0, 1])
async def test_a_clock_that_was_set_back_by_hours_holds_no_reply_back(
    memory: Memory, platform: Platform, monkeypatch: pytest.MonkeyPatch, attempts: int
):
    """Stored, and failed once or not, before the gateway was started anew by an earlier time."""
    monkeypatch.setattr("gateway.delivery.LONGEST_DELAY_S", 0.01)
    reply_id = await memory.outbox.put(reply("late"))
    for _ in range(attempts):
        await memory.outbox.postpone(reply_id, until=datetime.now(UTC), error="hm")
    hours_ago = lambda: datetime.now(UTC) - timedelta(hours=3)  # noqa: E731 - a clock
    async with delivering(memory, platform, clock=hours_ago):
        await platform.wait_sent("late")


async def test_a_clock_that_is_set_back_meanwhile_does_not_lengthen_a_delay(memory: Memory, platform: Platform):
    platform.failures = [SendFailed("too many requests", retry_after_s=0.05)]
    ahead = timedelta(hours=3)
    async with delivering(memory, platform, clock=lambda: datetime.now(UTC) + ahead) as delivery:
        await delivery.post(reply("late"))
        await platform.wait_for(lambda seen: ("failed", HERE, "late") in seen.seen)
        ahead = timedelta(0)
        await platform.wait_sent("late")
