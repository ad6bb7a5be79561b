"""What a dead process left is settled once, by one of those that come after it; what a live one holds is left alone."""

from contextlib import AsyncExitStack

import anyio
import pytest

from adapters.contract import Attachment, Inbound, Outbound, Part, Place
from gateway.state.memory import Memory, open_memory
from gateway.state.restores import RestoreKind
from gateway.state.takeover import CARRIED_OUT, GIVEN_UP, INTERRUPTED, MAX_ATTEMPTS, TakenOver
from gateway.state.turns import TurnState
from tests.gateway.state.kit import HERE, message

NOTHING = TakenOver(0, 0, 0, 0)
SLACK = Place("slack", "C1")


@pytest.fixture
async def before(home):
    """The memory of a process that ends when it is closed."""
    async with AsyncExitStack() as stack:
        memory = await stack.enter_async_context(open_memory(str(home)))
        memory_and_end = (memory, stack.aclose)
        yield memory_and_end


@pytest.fixture
async def after(home):
    """Opens the memory of the process that starts next."""
    async with AsyncExitStack() as stack:

        async def start() -> Memory:
            return await stack.enter_async_context(open_memory(str(home)))

        yield start


async def accepted(memory: Memory, text: str, event_id: str = "e1", place: Place = HERE) -> int:
    inbox_id = await memory.inbox.accept(message(text, event_id, place))
    assert inbox_id is not None
    return inbox_id


async def replies(memory: Memory, place: Place = HERE) -> list[str]:
    found = []
    while (reply := await memory.outbox.next(place)) is not None:
        found.append(reply.message.plain_text)
        await memory.outbox.sent(reply.id)
    return found


async def open_messages(memory: Memory) -> list[str]:
    rows = await memory.database.fetch_all("SELECT text FROM inbox WHERE state <> 'done' ORDER BY id")
    return [row["text"] for row in rows]


async def test_a_message_that_was_never_begun_is_handled_as_if_it_had_just_come(before, after):
    memory, end = before
    await memory.inbox.accept(Inbound(HERE, "u", "e1", "hello", files=(Attachment("f", b"x"),)))
    await end()
    now = await after()

    assert await now.takeover.run(["console"]) == TakenOver(turns=0, messages=1, replies=0, given_up=0)

    (waiting,) = await now.inbox.waiting()
    received = await now.inbox.begin(waiting.id)
    assert received is not None
    assert received.inbound.files == (Attachment("f", b"x"),)
    assert await replies(now) == []


async def test_a_turn_that_was_running_is_stored_as_interrupted_and_not_run_again(before, after):
    memory, end = before
    session = await memory.sessions.start(HERE, workspace="app", root="/w")
    inbox_id = await accepted(memory, "$ make")
    await memory.inbox.begin(inbox_id)
    turn = await memory.turns.begin(session.id, "$ make", inbox_id=inbox_id)
    await end()
    now = await after()

    assert await now.takeover.run(["console"]) == TakenOver(turns=1, messages=0, replies=1, given_up=0)

    assert (await now.turns.get(turn.id)).state is TurnState.INTERRUPTED
    assert await open_messages(now) == []
    reply = await now.outbox.next(HERE)
    assert reply is not None
    assert reply.message.reply_to == "e1"
    assert await replies(now) == [INTERRUPTED]
    assert await now.takeover.run(["console"]) == NOTHING


async def test_a_message_that_left_no_trace_is_handled_again(before, after):
    memory, end = before
    await memory.inbox.begin(await accepted(memory, "/rollback"))
    await end()
    now = await after()

    await now.takeover.run(["console"])

    (waiting,) = await now.inbox.waiting()
    assert waiting.inbound.text == "/rollback"


async def test_a_message_that_ends_the_process_again_and_again_is_given_up(before, after):
    memory, end = before
    inbox_id = await accepted(memory, "poison")
    for _ in range(MAX_ATTEMPTS - 1):
        await memory.inbox.begin(inbox_id)
        async with memory.database.transaction() as tx:
            await tx.execute("UPDATE inbox SET state = 'new'")
    await memory.inbox.begin(inbox_id)
    await end()
    now = await after()

    assert (await now.takeover.run(["console"])).given_up == 1

    assert await open_messages(now) == []
    assert await replies(now) == [GIVEN_UP]


@pytest.mark.parametrize("answered", [False, True])
async def test_a_restore_that_was_carried_out_is_not_repeated(before, after, answered: bool):
    memory, end = before
    session = await memory.sessions.start(HERE, workspace="app", root="/w")
    inbox_id = await accepted(memory, "/rollback 1")
    await memory.inbox.begin(inbox_id)
    await memory.restores.plan(
        session.id, token="t", kind=RestoreKind.ROLLBACK, checkpoint_id="c", new_head=None, inbox_id=inbox_id
    )
    await memory.restores.complete("t", safety_id="s")
    if answered:
        await memory.outbox.put(Outbound(HERE, (Part("Restored"),)), inbox_id=inbox_id)
    await end()
    now = await after()

    await now.takeover.run(["console"])

    assert await open_messages(now) == []
    assert await replies(now) == (["Restored"] if answered else [CARRIED_OUT])


async def test_a_restore_that_was_refused_left_no_trace(before, after):
    memory, end = before
    session = await memory.sessions.start(HERE, workspace="app", root="/w")
    inbox_id = await accepted(memory, "/rollback 1")
    await memory.inbox.begin(inbox_id)
    await memory.restores.plan(
        session.id, token="t", kind=RestoreKind.ROLLBACK, checkpoint_id="c", new_head=None, inbox_id=inbox_id
    )
    await memory.restores.refuse("t")
    await end()
    now = await after()

    await now.takeover.run(["console"])

    assert [waiting.inbound.text for waiting in await now.inbox.waiting()] == ["/rollback 1"]


async def test_replies_that_were_not_sent_are_sent_by_the_next_process(before, after):
    memory, end = before
    sent = await memory.outbox.put(Outbound(HERE, (Part("one"),)))
    await memory.outbox.put(Outbound(HERE, (Part("two"),)))
    await memory.outbox.sent(sent)
    await end()
    now = await after()

    assert (await now.takeover.run(["console"])).replies == 1

    assert await replies(now) == ["two"]


async def test_what_belongs_to_another_platform_waits_for_who_serves_it(before, after):
    memory, end = before
    session = await memory.sessions.start(SLACK, workspace="app", root="/w")
    await accepted(memory, "new", "e1", SLACK)
    inbox_id = await accepted(memory, "$ make", "e2", SLACK)
    await memory.inbox.begin(inbox_id)
    turn = await memory.turns.begin(session.id, "$ make", inbox_id=inbox_id)
    await end()
    console = await after()

    assert await console.takeover.run(["console"]) == TakenOver(turns=1, messages=0, replies=0, given_up=0)
    assert (await console.turns.get(turn.id)).state is TurnState.INTERRUPTED
    assert await replies(console, SLACK) == []

    slack = await after()
    assert await slack.takeover.run(["slack"]) == TakenOver(turns=0, messages=1, replies=1, given_up=0)
    assert await replies(slack, SLACK) == [INTERRUPTED]


async def test_what_a_live_process_holds_is_left_alone(before, after):
    memory, _ = before
    session = await memory.sessions.start(HERE, workspace="app", root="/w")
    await accepted(memory, "waits", "e1")
    inbox_id = await accepted(memory, "$ make", "e2")
    await memory.inbox.begin(inbox_id)
    turn = await memory.turns.begin(session.id, "$ make", inbox_id=inbox_id)
    await memory.outbox.put(Outbound(HERE, (Part("one"),)))
    beside = await after()

    assert await beside.takeover.run(["console"]) == NOTHING

    assert (await beside.turns.get(turn.id)).state is TurnState.RUNNING
    assert [waiting.inbound.text for waiting in await memory.inbox.waiting()] == ["waits"]


async def test_of_two_that_start_at_once_one_takes_over(before, after):
    memory, end = before
    await accepted(memory, "hello")
    await end()
    one, two = await after(), await after()
    found: list[TakenOver] = []

    async def take_over(memory: Memory) -> None:
        found.append(await memory.takeover.run(["console"]))

    async with anyio.create_task_group() as group:
        group.start_soon(take_over, one)
        group.start_soon(take_over, two)

    assert sorted(taken.messages for taken in found) == [0, 1]
    assert len(await one.inbox.waiting()) + len(await two.inbox.waiting()) == 1
