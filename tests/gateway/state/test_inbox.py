"""Messages are stored once, given out in order, and recognised when they come again."""

from datetime import timedelta

from adapters.contract import Attachment, Inbound, Outbound, Part, Place
from gateway.state.inbox import REMEMBERED
from gateway.state.memory import Memory
from tests.gateway.state.kit import HERE, THERE, MovedClock, message


async def test_a_message_comes_back_whole(memory: Memory):
    files = (Attachment("a \udcff.bin", b"\x00\xff"), Attachment("b", b""))
    sent = Inbound(
        HERE, "u\ud800", "e1", "text \udcff\0", edited=True, files=files, circles=("-1", "T\udcff"), pressed="t"
    )

    inbox_id = await memory.inbox.accept(sent)

    assert inbox_id is not None
    received = await memory.inbox.begin(inbox_id)
    assert received is not None
    assert received.inbound == sent
    assert received.attempts == 1


async def test_remarks_on_a_message_are_stored_with_it_and_are_no_answer(memory: Memory):
    inbox_id = await memory.inbox.accept(message("x", "e1"), remarks=[Outbound(HERE, (Part("one"),))])

    assert inbox_id is not None
    assert await memory.inbox.accept(message("x", "e1"), remarks=[Outbound(HERE, (Part("again"),))]) is None
    rows = await memory.database.fetch_all("SELECT inbox_id, payload LIKE '%one%' AS known FROM outbox")
    assert [tuple(row) for row in rows] == [(None, 1)]


async def test_an_event_is_taken_in_once_per_platform(memory: Memory):
    assert await memory.inbox.accept(message("hello", "e1")) is not None
    assert await memory.inbox.accept(message("hello", "e1")) is None
    assert await memory.inbox.accept(message("other words", "e1", THERE)) is None
    assert await memory.inbox.accept(message("hello", "e1", Place("slack", "here"))) is not None


async def test_a_message_is_begun_once(memory: Memory):
    inbox_id = await memory.inbox.accept(message("x", "e1"))
    assert inbox_id is not None

    assert await memory.inbox.begin(inbox_id) is not None
    assert await memory.inbox.begin(inbox_id) is None


async def test_waiting_messages_are_in_the_order_they_came(memory: Memory):
    ids = [await memory.inbox.accept(message(f"m{n}", f"e{n}", place)) for n, place in enumerate((HERE, THERE, HERE))]
    assert ids[1] is not None
    await memory.inbox.begin(ids[1])

    waiting = await memory.inbox.waiting()

    assert [received.inbound.text for received in waiting] == ["m0", "m2"]


async def test_a_done_message_keeps_only_its_event(memory: Memory):
    sent = Inbound(HERE, "u", "e1", "secret words", files=(Attachment("f", b"content"),))
    inbox_id = await memory.inbox.accept(sent)
    assert inbox_id is not None
    await memory.inbox.begin(inbox_id)

    await memory.inbox.done(inbox_id)

    row = await memory.database.fetch_one("SELECT * FROM inbox")
    assert row is not None
    assert (row["text"], row["state"]) == ("", "done")
    assert await memory.database.fetch_all("SELECT 1 FROM inbox_files") == []
    assert await memory.inbox.accept(sent) is None


async def test_replies_are_stored_with_the_end_of_their_message(memory: Memory):
    inbox_id = await memory.inbox.accept(message("x", "e1"))
    assert inbox_id is not None
    await memory.inbox.begin(inbox_id)

    await memory.inbox.done(inbox_id, [Outbound(HERE, (Part("one"),)), Outbound(HERE, (Part("two"),))])

    reply = await memory.outbox.next(HERE)
    assert reply is not None
    assert reply.message.plain_text == "one"
    linked = await memory.database.fetch_all("SELECT inbox_id FROM outbox")
    assert [row["inbox_id"] for row in linked] == [inbox_id, inbox_id]


async def test_an_event_is_forgotten_when_no_platform_repeats_it_any_more(memory: Memory, clock: MovedClock):
    old, new, open_ = [await memory.inbox.accept(message("x", f"e{n}")) for n in range(3)]
    assert old is not None
    assert new is not None
    await memory.inbox.done(old)
    clock.advance(REMEMBERED)
    await memory.inbox.done(new)
    clock.advance(timedelta(seconds=1))

    assert await memory.inbox.expire() == 1

    left = [row["id"] for row in await memory.database.fetch_all("SELECT id FROM inbox ORDER BY id")]
    assert left == [new, open_]
    again = await memory.inbox.accept(message("x", "e0"))
    assert again not in (old, None), "an id is never used again"


async def test_a_turn_outlives_the_message_it_answered(memory: Memory, clock: MovedClock):
    session = await memory.sessions.start(HERE, workspace="app", root="/w")
    inbox_id = await memory.inbox.accept(message("x", "e1"))
    assert inbox_id is not None
    turn = await memory.turns.begin(session.id, "x", inbox_id=inbox_id)
    await memory.inbox.done(inbox_id)
    clock.advance(REMEMBERED + timedelta(days=1))

    assert await memory.inbox.expire() == 1

    assert (await memory.turns.get(turn.id)).text == "x"
    assert await memory.database.check() == []
