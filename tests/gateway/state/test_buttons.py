"""What a button's token stands for."""

import re
import sqlite3
from datetime import timedelta

import pytest

from adapters.contract import Button, Inbound, Outbound, Part
from gateway.state.buttons import KEPT
from gateway.state.errors import ButtonSpent
from gateway.state.memory import Memory
from tests.gateway.state.kit import HERE, MovedClock, message

DIFF, UNDO = Button("Diff", "/diff #1"), Button("Undo", "/undo #1", confirm="Really?")


def reply(*buttons: Button) -> Outbound:
    return Outbound(HERE, (Part("done"),), buttons=buttons)


async def accepted(memory: Memory, user: str = "ann", event_id: str = "e1") -> int:
    inbox_id = await memory.inbox.accept(Inbound(HERE, user, event_id, "work"))
    assert inbox_id is not None
    return inbox_id


async def sent(memory: Memory) -> tuple[Button, ...]:
    """The buttons of the reply that is to be sent next, which then counts as sent."""
    found = await memory.outbox.next(HERE)
    assert found is not None
    await memory.outbox.sent(found.id)
    return found.message.buttons


async def test_every_button_of_a_stored_reply_has_a_token_bound_to_chat_command_and_person(memory: Memory):
    inbox_id = await accepted(memory)

    await memory.inbox.done(inbox_id, [reply(DIFF, UNDO)])

    buttons = await sent(memory)
    assert [(button.label, button.command, button.confirm) for button in buttons] == [
        ("Diff", "/diff #1", None),
        ("Undo", "/undo #1", "Really?"),
    ]
    tokens = [button.token for button in buttons]
    assert all(re.fullmatch("[0-9a-f]{32}", token) for token in tokens)
    assert len(set(tokens)) == 2
    bound = await memory.buttons.find(tokens[1])
    assert bound is not None
    assert (bound.place, bound.command, bound.person, bound.answers) == (HERE, "/undo #1", "ann", inbox_id)
    assert (bound.once, bound.spent_by) == (False, None)


async def test_a_reply_to_nobody_has_buttons_for_everybody(memory: Memory):
    await memory.outbox.put(reply(DIFF))

    bound = await memory.buttons.find((await sent(memory))[0].token)

    assert bound is not None
    assert bound.person is None


async def test_a_reply_may_have_any_number_of_buttons(memory: Memory):
    connection = memory.database._connection
    # Older libraries take no more values in a statement.
    await connection._execute(connection._conn.setlimit, sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 999)

    await memory.outbox.put(reply(*(Button(f"B{number}", f"/b {number}") for number in range(401))))

    (rows,) = await memory.database.fetch_all("SELECT count(*), count(DISTINCT command) FROM buttons")
    assert tuple(rows) == (401, 401)


async def test_a_token_made_before_its_message_stays_the_same(memory: Memory):
    inbox_id = await accepted(memory)
    made = await memory.buttons.mint(HERE, [DIFF, UNDO], inbox_id=inbox_id, once=True, group="a1")

    await memory.outbox.put(reply(*made))

    assert await sent(memory) == made
    rows = await memory.database.fetch_all("SELECT person, once, batch, outbox_id FROM buttons")
    assert [tuple(row) for row in rows] == [("ann", 1, "a1", 1)] * 2


async def test_a_press_spends_its_group_in_the_transaction_that_stores_it(memory: Memory):
    run, deny = await memory.buttons.mint(HERE, [DIFF, UNDO], once=True, group="a1")
    (other,) = await memory.buttons.mint(HERE, [DIFF], once=True, group="a2")

    assert await memory.inbox.accept(message("/diff", "press"), spends=run.token) is not None
    with pytest.raises(ButtonSpent):
        await memory.inbox.accept(message("/undo", "late"), spends=deny.token)

    stored = await memory.database.fetch_all("SELECT event_id FROM inbox")
    assert [row["event_id"] for row in stored] == ["press"], "what was refused left nothing"
    spent = [await memory.buttons.find(button.token) for button in (run, deny, other)]
    assert [bound and bound.spent_by for bound in spent] == ["press", "press", None]


async def test_a_press_that_is_delivered_again_spends_nothing(memory: Memory):
    (run,) = await memory.buttons.mint(HERE, [DIFF], once=True)
    await memory.inbox.accept(message("/diff", "press"), spends=run.token)

    assert await memory.inbox.accept(message("/diff", "press"), spends=run.token) is None


async def test_a_group_can_be_used_up_without_a_press(memory: Memory):
    run, _ = await memory.buttons.mint(HERE, [DIFF, UNDO], once=True, group="a1")

    assert await memory.buttons.withdraw("a1") == 2

    with pytest.raises(ButtonSpent):
        await memory.inbox.accept(message("/diff", "press"), spends=run.token)
    assert await memory.buttons.withdraw("a1") == 0


async def test_a_button_grows_too_old_and_is_forgotten_after_as_long_again(memory: Memory, clock: MovedClock):
    (old,) = await memory.buttons.mint(HERE, [DIFF])
    await memory.shown.remember(HERE, root="/w", ids=["a"], inbox_id=1)
    found = await memory.buttons.find(old.token)
    assert found is not None
    clock.advance(KEPT)
    assert not memory.buttons.expired(found)

    clock.advance(timedelta(seconds=1))
    assert memory.buttons.expired(found)
    assert await memory.buttons.expire() == 0
    clock.advance(KEPT)
    assert await memory.buttons.expire() == 1

    assert await memory.buttons.find(old.token) is None
    assert await memory.database.fetch_all("SELECT 1 FROM lists_answered") == []


async def test_a_button_knows_the_list_it_stands_below_whatever_was_shown_since(memory: Memory):
    first, second = await accepted(memory), await accepted(memory, event_id="e2")
    for inbox_id, ids in ((first, ["a", "b"]), (second, ["c"])):
        await memory.shown.remember(HERE, root="/w", ids=ids, inbox_id=inbox_id)
        await memory.inbox.done(inbox_id, [reply(DIFF)])
    await memory.outbox.put(reply(DIFF))

    lists = [await memory.shown.beside((await sent(memory))[0].token) for _ in range(3)]

    assert [shown and shown.ids for shown in lists] == [("a", "b"), ("c",), None]


async def test_a_reply_stored_by_the_version_before_is_sent_with_its_buttons(memory: Memory):
    await memory.outbox.put(reply())
    old = '{"parts": [["plain", "done"]], "buttons": [["Diff", "/diff #1"]]}'
    async with memory.database.transaction() as tx:
        await tx.execute("UPDATE outbox SET payload = ?", old)

    assert await sent(memory) == (DIFF,)
