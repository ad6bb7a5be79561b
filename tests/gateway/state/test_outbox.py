"""Replies are kept whole until they are sent, in order within their chat."""

import re
from dataclasses import replace
from datetime import timedelta

from adapters.contract import Attachment, Button, Outbound, Part, Place, Style
from gateway.state.memory import Memory
from gateway.state.outbox import KEPT
from gateway.state.turns import TurnState
from tests.gateway.state.kit import HERE, THERE, MovedClock, message


def reply(text: str, place: Place = HERE) -> Outbound:
    return Outbound(place, (Part(text),))


async def test_a_reply_comes_back_whole(memory: Memory):
    whole = Outbound(
        HERE,
        (Part("Kept \udcff: "), Part("a.py", Style.CODE), Part("-x\n+y\n", Style.DIFF)),
        files=(Attachment("all.diff", b"\xff\x00"),),
        buttons=(Button("Diff", "/diff #1", confirm="Really?"),),
        reply_to="e1",
    )

    await memory.outbox.put(whole)

    found = await memory.outbox.next(HERE)
    assert found is not None
    (button,) = found.message.buttons
    assert re.fullmatch("[0-9a-f]{32}", button.token)
    assert found.message == replace(whole, buttons=(replace(whole.buttons[0], token=button.token),))
    assert found.attempts == 0


async def test_replies_leave_in_order_within_their_chat(memory: Memory):
    for text, place in (("1", HERE), ("2", THERE), ("3", HERE)):
        await memory.outbox.put(reply(text, place))
    assert await memory.outbox.places() == [HERE, THERE]
    assert await memory.outbox.newest(HERE) == 3

    sent = []
    for place in (HERE, HERE, THERE):
        found = await memory.outbox.next(place)
        assert found is not None
        sent.append(found.message.plain_text)
        await memory.outbox.sent(found.id)

    assert sent == ["1", "3", "2"]
    assert await memory.outbox.places() == []
    assert await memory.outbox.newest(HERE) == 0


async def test_a_postponed_reply_still_comes_first(memory: Memory, clock: MovedClock):
    first = await memory.outbox.put(reply("1"))
    await memory.outbox.put(reply("2"))
    later = clock.now + timedelta(seconds=33)

    await memory.outbox.postpone(first, until=later, error="429")

    found = await memory.outbox.next(HERE)
    assert found is not None
    assert (found.id, found.attempts, found.next_attempt_at) == (first, 1, later)


async def test_a_sent_reply_keeps_no_content_and_a_failed_one_does(memory: Memory):
    sent = await memory.outbox.put(Outbound(HERE, (Part("one"),), (Attachment("f", b"x"),)))
    failed = await memory.outbox.put(reply("two"))

    await memory.outbox.sent(sent)
    await memory.outbox.failed(failed, "chat not found")

    rows = {row["id"]: row for row in await memory.database.fetch_all("SELECT * FROM outbox")}
    assert (rows[sent]["state"], rows[sent]["payload"]) == ("sent", "")
    assert (rows[failed]["state"], rows[failed]["error"]) == ("failed", "chat not found")
    assert "two" in rows[failed]["payload"]
    assert await memory.database.fetch_all("SELECT 1 FROM outbox_files") == []
    assert await memory.outbox.next(HERE) is None


async def test_settled_replies_are_forgotten_after_a_while(memory: Memory, clock: MovedClock):
    sent = await memory.outbox.put(reply("one"))
    await memory.outbox.put(reply("waits"))
    await memory.outbox.sent(sent)
    clock.advance(KEPT + timedelta(seconds=1))

    assert await memory.outbox.expire() == 1

    found = await memory.outbox.next(HERE)
    assert found is not None
    assert found.message.plain_text == "waits"


async def test_a_turns_end_its_replies_and_its_messages_end_are_one(memory: Memory):
    session = await memory.sessions.start(HERE, workspace="app", root="/w")
    inbox_id = await memory.inbox.accept(message("go", "e1"))
    assert inbox_id is not None
    await memory.inbox.begin(inbox_id)
    turn = await memory.turns.begin(session.id, "go", inbox_id=inbox_id)

    await memory.turns.finish(turn.id, TurnState.DONE, replies=[reply("went"), reply("well")], inbox_id=inbox_id)

    row = await memory.database.fetch_one("SELECT state FROM inbox")
    found = await memory.outbox.next(HERE)
    assert row is not None
    assert row["state"] == "done"
    assert found is not None
    assert found.message.plain_text == "went"
    assert [message.content for message in await memory.messages.of_turn(turn.id)] == ["go", "went\nwell"]
