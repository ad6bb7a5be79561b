"""Messages of a chat are handled in order, chats beside each other, and nothing is handled twice or forgotten."""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio
import pytest

from adapters.contract import Inbound, Outbound, Part, Place
from gateway.chats import BROKEN, BUSY, Handled, Hub, Manner
from gateway.delivery import Delivery
from gateway.state.inbox import Received
from gateway.state.memory import Memory, open_memory
from gateway.state.outbox import Outbox
from tests.gateway.platform_kit import HERE, THERE, Platform, message, open_door

MANNERS = {"/status": Manner.IMMEDIATE, "/list": Manner.BESIDE, "/restore": Manner.ALONE, "/retry": Manner.ALONE}
LONG = 3600.0


class Desk:
    """Answers messages as a router would; a turn runs until the test lets it end."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.handled: list[str] = []
        self.running: set[str] = set()
        self.most_running: dict[Place, int] = defaultdict(int)
        self.may_end: dict[str, anyio.Event] = defaultdict(anyio.Event)
        self.changed = anyio.Event()

    async def manner(self, inbound: Inbound) -> Manner:
        if inbound.text == "confusing":
            raise ZeroDivisionError
        return MANNERS.get(inbound.text.split()[0], Manner.TURN)

    async def stop_unstored(self, inbound: Inbound) -> bool:
        return inbound.text == "/stop"

    async def handle(self, received: Received) -> Handled:
        text = received.inbound.text
        self.handled.append(text)
        self._note()
        if text == "broken":
            raise ZeroDivisionError
        if text.split()[0] in MANNERS and not text.startswith("/retry"):
            if text in self.may_end:
                await self.may_end[text].wait()
            return Handled((said(received, f"answer to {text}"),))
        return Handled(turn=lambda: self._turn(received))

    async def _turn(self, received: Received) -> None:
        text = received.inbound.text
        self.running.add(text)
        self._note()
        try:
            await self.may_end[text].wait()
            if text == "breaks":
                raise ZeroDivisionError
            await self.memory.inbox.done(received.id, (said(received, f"end of {text}"),))
        finally:
            self.running.discard(text)

    async def wait_running(self, text: str) -> None:
        with anyio.fail_after(30):
            while text not in self.running:
                await self.changed.wait()

    def _note(self) -> None:
        self.changed.set()
        self.changed = anyio.Event()


def said(received: Received, text: str) -> Outbound:
    return Outbound(received.inbound.place, (Part(text),), reply_to=received.inbound.event_id)


@pytest.fixture
async def memory(tmp_path):
    async with open_memory(str(tmp_path / "home")) as memory:
        yield memory


@pytest.fixture
def desk(memory: Memory) -> Desk:
    return Desk(memory)


@pytest.fixture
def platform() -> Platform:
    return Platform()


class Chats:
    """A hub with its delivery, and a person who writes."""

    def __init__(self, hub: Hub, platform: Platform) -> None:
        self.hub = hub
        self.platform = platform
        self.count = 0

    async def write(self, text: str, place: Place = HERE) -> str:
        self.count += 1
        event_id = f"e{self.count}"
        await self.hub.receive(message(text, event_id, place))
        return event_id


@asynccontextmanager
async def open_chats(
    memory: Memory, platform: Platform, desk: Desk, *, cut_off: bool = False, **options: float
) -> AsyncIterator[Chats]:
    delivery = Delivery(memory.outbox, [platform])
    hub = Hub(memory.inbox, delivery, desk, open_door(memory), **{"moment_s": LONG, "said_after_s": LONG, **options})
    async with anyio.create_task_group() as group:
        await group.start(delivery.run)
        await group.start(hub.run)
        yield Chats(hub, platform)
        if not cut_off:
            with anyio.fail_after(30):
                await hub.idle()
                await delivery.idle()
        group.cancel_scope.cancel()


async def test_a_message_is_answered_and_then_finished(memory: Memory, platform: Platform, desk: Desk):
    async with open_chats(memory, platform, desk) as chats:
        await chats.write("/list")
        await platform.wait_finished("e1")

    assert [(what, text) for what, _, text in platform.seen] == [("sent", "answer to /list"), ("finished", "e1")]
    assert [row["state"] for row in await memory.database.fetch_all("SELECT state FROM inbox")] == ["done"]


async def test_the_same_event_is_handled_once(memory: Memory, platform: Platform, desk: Desk):
    async with open_chats(memory, platform, desk) as chats:
        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(chats.hub.receive, message("/list", "same"))
        await platform.wait_finished("same")

    assert desk.handled == ["/list"]
    assert platform.sent() == ["answer to /list"]


async def test_turns_of_a_chat_run_one_after_the_other(memory: Memory, platform: Platform, desk: Desk):
    for text in ("one", "two", "three"):
        desk.may_end[text].set()

    async with open_chats(memory, platform, desk) as chats:
        for text in ("one", "two", "three"):
            await chats.write(text)
        await platform.wait_finished("e3")

    assert platform.sent() == ["end of one", "end of two", "end of three"]


async def test_a_turn_waits_for_the_running_one(memory: Memory, platform: Platform, desk: Desk):
    async with open_chats(memory, platform, desk, moment_s=0.0) as chats:
        await chats.write("one")
        await desk.wait_running("one")
        await chats.write("two")
        # The clock of another chat's command has run out by now, and so would that of a turn.
        await chats.write("elsewhere", THERE)
        await desk.wait_running("elsewhere")
        await chats.write("/list", THERE)
        await platform.wait_sent("answer to /list", place=THERE)
        desk.may_end["elsewhere"].set()
        assert desk.handled[:2] == ["one", "elsewhere"]
        assert "two" not in desk.handled
        assert chats.hub.waiting(HERE) == 1

        desk.may_end["one"].set()
        await desk.wait_running("two")
        assert "one" not in desk.running
        assert chats.hub.waiting(HERE) == 0
        desk.may_end["two"].set()


async def test_chats_do_not_wait_for_each_other(memory: Memory, platform: Platform, desk: Desk):
    async with open_chats(memory, platform, desk) as chats:
        await chats.write("here", HERE)
        await chats.write("there", THERE)

        await desk.wait_running("here")
        await desk.wait_running("there")
        desk.may_end["here"].set()
        desk.may_end["there"].set()


async def test_a_waiting_message_is_told_its_place_once(memory: Memory, platform: Platform, desk: Desk):
    async with open_chats(memory, platform, desk, said_after_s=0.0) as chats:
        await chats.write("one")
        await desk.wait_running("one")
        await chats.write("two")
        await platform.wait_for(lambda seen: any("place 1" in text for text in seen.sent()))
        await chats.write("/list")
        await platform.wait_for(lambda seen: any("place 2" in text for text in seen.sent()))
        for text in ("one", "two"):
            desk.may_end[text].set()
        await platform.wait_finished("e3")

    notices = [text for text in platform.sent() if "Queued" in text]
    assert len(notices) == 2
    assert [text for text in platform.sent() if text not in notices] == ["end of one", "end of two", "answer to /list"]


async def test_a_short_wait_is_not_worth_a_message(memory: Memory, platform: Platform, desk: Desk):
    async with open_chats(memory, platform, desk) as chats:
        await chats.write("one")
        await desk.wait_running("one")
        await chats.write("two")
        desk.may_end["one"].set()
        desk.may_end["two"].set()
        await platform.wait_finished("e2")

    assert platform.sent() == ["end of one", "end of two"]


async def test_only_a_wait_that_goes_on_is_told(memory: Memory, platform: Platform, desk: Desk):
    """A turn whose time came before the notice, and a command at its moment's wait, get none."""
    async with open_chats(memory, platform, desk, said_after_s=0.05) as chats:
        await chats.write("one")
        await desk.wait_running("one")
        await chats.write("two")
        desk.may_end["one"].set()
        await desk.wait_running("two")
        await chats.write("/list")

        await chats.write("first", THERE)
        await desk.wait_running("first")
        await chats.write("second", THERE)
        await platform.wait_for(lambda seen: any("Queued" in text for text in seen.sent(THERE)))

        assert platform.sent(HERE) == ["end of one"]
        for text in ("two", "first", "second"):
            desk.may_end[text].set()


async def test_immediate_commands_are_answered_while_a_turn_runs(memory: Memory, platform: Platform, desk: Desk):
    async with open_chats(memory, platform, desk) as chats:
        await chats.write("one")
        await desk.wait_running("one")
        await chats.write("two")

        await chats.write("/status")
        await platform.wait_finished("e3")

        assert platform.sent() == ["answer to /status"]
        desk.may_end["one"].set()
        desk.may_end["two"].set()


async def test_an_immediate_command_is_answered_while_another_command_is_at_work(
    memory: Memory, platform: Platform, desk: Desk
):
    restoring = desk.may_end["/restore 1"]
    async with open_chats(memory, platform, desk) as chats:
        await chats.write("/restore 1")
        await chats.write("/status")
        await platform.wait_finished("e2")
        assert platform.sent() == ["answer to /status"]
        restoring.set()


@pytest.mark.parametrize(("text", "answer"), [("/list", "answer to /list"), ("/restore", BUSY)])
async def test_a_command_waits_a_moment_for_a_running_turn(
    memory: Memory, platform: Platform, desk: Desk, text: str, answer: str
):
    """Then a list is shown beside the turn, and a restore is refused."""
    async with open_chats(memory, platform, desk, moment_s=0.01) as chats:
        await chats.write("one")
        await desk.wait_running("one")
        await chats.write(text)
        await platform.wait_finished("e2")
        assert platform.sent() == [answer]
        assert ("/restore" in desk.handled) is False
        desk.may_end["one"].set()


@pytest.mark.parametrize("text", ["/list", "/restore"])
async def test_a_command_is_handled_when_the_turn_ends_within_the_moment(
    memory: Memory, platform: Platform, desk: Desk, text: str
):
    async with open_chats(memory, platform, desk) as chats:
        await chats.write("one")
        await desk.wait_running("one")
        await chats.write(text)
        await anyio.wait_all_tasks_blocked()
        assert desk.handled == ["one"]
        desk.may_end["one"].set()
        await platform.wait_finished("e2")

    assert platform.sent() == ["end of one", f"answer to {text}"]


async def test_a_command_behind_a_waiting_turn_keeps_its_place(memory: Memory, platform: Platform, desk: Desk):
    async with open_chats(memory, platform, desk, moment_s=0.0) as chats:
        await chats.write("one")
        await desk.wait_running("one")
        await chats.write("two")
        await chats.write("/restore")
        desk.may_end["one"].set()
        await desk.wait_running("two")
        await platform.wait_finished("e3")
        desk.may_end["two"].set()

    assert platform.sent() == ["end of one", BUSY, "end of two"]


async def test_a_turn_waits_for_a_command_that_is_at_work(memory: Memory, platform: Platform, desk: Desk):
    restoring = desk.may_end["/restore 1"]
    async with open_chats(memory, platform, desk) as chats:
        await chats.write("/restore 1")
        await chats.write("one")
        await anyio.wait_all_tasks_blocked()
        assert not desk.running
        restoring.set()
        await desk.wait_running("one")
        desk.may_end["one"].set()

    assert platform.sent() == ["answer to /restore 1", "end of one"]


async def test_a_command_may_run_a_turn_which_the_next_commands_treat_as_one(
    memory: Memory, platform: Platform, desk: Desk
):
    async with open_chats(memory, platform, desk, moment_s=0.0) as chats:
        await chats.write("/retry")
        await desk.wait_running("/retry")
        await chats.write("/restore")
        await platform.wait_finished("e2")
        desk.may_end["/retry"].set()

    assert platform.sent() == [BUSY, "end of /retry"]


@pytest.mark.parametrize("text", ["broken", "breaks"])
async def test_a_message_that_breaks_its_handler_is_answered_and_the_next_is_handled(
    memory: Memory, platform: Platform, desk: Desk, text: str
):
    desk.may_end[text].set()

    async with open_chats(memory, platform, desk) as chats:
        await chats.write(text)
        await chats.write("/list")
        await platform.wait_finished("e2")

    assert platform.sent() == [BROKEN, "answer to /list"]


async def test_a_message_that_is_not_understood_at_first_is_kept_and_handled(
    memory: Memory, platform: Platform, desk: Desk
):
    desk.may_end["confusing"].set()

    async with open_chats(memory, platform, desk) as chats:
        await chats.write("confusing")
        await platform.wait_finished("e1")

    assert platform.sent() == ["end of confusing"]


async def test_what_was_stored_and_not_begun_is_handled_at_the_next_start(
    memory: Memory, platform: Platform, desk: Desk
):
    """The hub stops with one turn running, one waiting and a command behind it."""
    async with open_chats(memory, platform, desk, cut_off=True) as chats:
        await chats.write("one")
        await desk.wait_running("one")
        await chats.write("two")
        await chats.write("/list")

    desk.may_end["two"].set()
    async with open_chats(memory, platform, desk):
        await platform.wait_finished("e3")

    assert desk.handled == ["one", "two", "/list"]
    assert platform.sent() == ["end of two", "answer to /list"]


async def test_a_message_that_comes_while_the_hub_is_not_running_is_kept(
    memory: Memory, platform: Platform, desk: Desk
):
    hub = Hub(memory.inbox, Delivery(memory.outbox, [platform]), desk, open_door(memory))
    await hub.receive(message("/list", "early"))

    async with open_chats(memory, platform, desk):
        await platform.wait_finished("early")

    assert platform.sent() == ["answer to /list"]


async def test_nothing_is_kept_of_chats_that_are_done(memory: Memory, platform: Platform, desk: Desk):
    async with open_chats(memory, platform, desk) as chats:
        for number in range(50):
            place = Place("console", str(number))
            desk.may_end[f"turn {number}"].set()
            await chats.write("/list", place)
            await chats.write(f"turn {number}", place)
            await chats.write("/status", place)
        with anyio.fail_after(60):
            await chats.hub.idle()

        assert chats.hub._lines == {}
        assert len(desk.handled) == 150


async def test_a_message_that_cannot_be_stored_is_not_acknowledged(memory: Memory, platform: Platform, desk: Desk):
    async with open_chats(memory, platform, desk) as chats:
        await memory.database.fetch_all("PRAGMA query_only = ON")
        with pytest.raises(Exception, match="Nothing was stored"):
            await chats.hub.receive(message("/list", "e1"))
        await memory.database.fetch_all("PRAGMA query_only = OFF")

        await chats.hub.receive(message("/list", "e1"))
        await platform.wait_finished("e1")

    assert platform.sent() == ["answer to /list"]


class HeldUp(Outbox):
    """The loop is kept busy while a message's end is looked up, so that all that falls due meanwhile comes at once."""

    async def newest(self, place: Place) -> int:
        asyncio.get_running_loop().call_soon(busy, 0.1)
        return await super().newest(place)


def busy(seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass


async def test_a_message_that_is_begun_just_when_its_place_would_be_said_ends_no_service(
    memory: Memory, platform: Platform, desk: Desk
):
    held_up = replace(memory, outbox=HeldUp(memory.database, memory.instance, memory.clock))
    async with open_chats(held_up, platform, desk, said_after_s=0.05) as chats:
        desk.may_end["/list"] = anyio.Event()
        await chats.write("/list")
        await chats.write("/list again")
        desk.may_end["/list"].set()
        await platform.wait_finished("e2")

    assert platform.sent() == ["answer to /list", "answer to /list again"]
