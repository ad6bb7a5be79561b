"""Presses of buttons and what is said of them at once: each is answered, in its place, however little is told of it."""

import pytest

from adapters.contract import Button, Inbound, Place, Reception

LONG = "0123456789" * 21


@pytest.fixture
def ann(api):
    person = api.world.person(42, "Ann")
    api.world.private(person)
    return person


async def test_a_press_is_answered_and_spent_buttons_go(api, connect, ann):
    async def take(inbound: Inbound) -> Reception:
        return Reception(spent=inbound.pressed == "restore1")

    async with connect() as far:
        far.answer = take
        await far.send(42, "list", buttons=(Button("Diff", "/diff", "diff1"), Button("Restore", "/r", "restore1")))
        asked = api.world.press(ann, "Diff")
        await api.until(lambda: asked in api.world.answers)
        # Handed on only when all that came of the press is done.
        api.world.say(ann, "hello")
        await far.heard(2)
        still = "reply_markup" in api.world.shown(42)[0]
        done = api.world.press(ann, "Restore")
        await api.until(lambda: done in api.world.answers and "reply_markup" not in api.world.shown(42)[0])

    assert still
    assert [(inbound.pressed, inbound.text) for inbound in far.received] == [
        *(("diff1", ""), (None, "hello"), ("restore1", ""))
    ]
    assert (far.received[0].user, far.received[0].place) == ("42", Place("telegram", "42"))
    assert api.world.answers[done] == {"text": "", "show_alert": False}


async def test_a_press_in_a_topic_belongs_to_it(api, connect, ann):
    api.world.group(-200, topics=(7,))
    async with connect() as far:
        await far.send("-200/7", "list", buttons=(Button("Diff", "/diff", "diff1"),))
        api.world.press(ann, "Diff")
        (inbound,) = await far.heard()

    assert (inbound.place.chat, inbound.circles, inbound.private) == ("-200/7", ("-200",), False)


async def test_a_press_on_a_message_that_telegram_tells_no_more_of_belongs_to_its_topic(api, connect, ann):
    api.world.group(-200, topics=(7,))
    async with connect() as far:
        buttons = (Button("Diff", "/diff", "0123456789abcdef0123456789abcdef"),)
        await far.send("-200/7", "list", buttons=buttons)
        await far.send("-200", "general", buttons=buttons)
        for message in (*api.world.shown(-200, 7), *api.world.shown(-200)):
            # As Telegram tells of one that is some days old.
            old = {"chat": message["chat"], "message_id": message["message_id"], "date": 0}
            api.world.press(ann, "Diff", message, told=old)
        there, general = await far.heard(2)

    assert (there.place.chat, general.place.chat) == ("-200/7", "-200")
    assert there.pressed == general.pressed == buttons[0].token


async def test_a_press_of_which_no_message_is_told_is_answered_too(api, connect, ann):
    async def refuse(inbound: Inbound) -> Reception:
        return Reception(notice="This button is too old.", spent=True)

    async with connect() as far:
        far.answer = refuse
        for query, data in (("q1", {"data": "t1"}), ("q2", {"game_short_name": "chess"})):
            api.world.queries[query] = {}
            event = {"id": query, "from": ann, "chat_instance": "1", **data}
            api.world.happen("callback_query", event, who=ann, text="")
        await api.until(lambda: len(api.world.answers) == 2)

    assert [(inbound.pressed, inbound.place.chat) for inbound in far.received] == [("t1", "42"), ("", "42")]
    assert {answer["text"] for answer in api.world.answers.values()} == {"This button is too old."}
    assert [call for call in api.calls if call.method == "editMessageReplyMarkup"] == []


async def test_a_press_that_is_too_old_to_be_answered_is_answered_by_a_message(api, connect, ann):
    async def refuse(inbound: Inbound) -> Reception:
        return Reception(notice="This list is stale.")

    async with connect() as far:
        far.answer = refuse
        await far.send(42, "list", buttons=(Button("One", "/x", "t1"),))
        api.fail("answerCallbackQuery", 400, "Bad Request: query is too old and response timeout expired")
        api.world.press(ann, "One")
        await api.until(lambda: len(api.world.shown(42)) == 2)

    assert api.world.texts(42) == ["list", "This list is stale."]


async def test_a_notice_on_a_press_is_an_alert_for_that_person(api, connect, ann):
    async def refuse(inbound: Inbound) -> Reception:
        return Reception(notice={"short": "This list is stale. ", "long": LONG, "wide": "😀" * 101}[inbound.pressed])

    async with connect() as far:
        far.answer = refuse
        labels = {"short": "One", "long": "Two", "wide": "Three"}
        await far.send(42, "list", buttons=tuple(Button(label, "/x", token) for token, label in labels.items()))
        short, long, wide = (api.world.press(ann, label) for label in labels.values())
        await api.until(lambda: len(api.world.shown(42)) == 3)

    assert api.world.answers[short] == {"text": "This list is stale. ", "show_alert": True}
    assert api.world.answers[long]["text"] == LONG[:199] + "…"
    assert api.world.answers[wide]["text"] == "😀" * 99 + "…"
    assert api.world.texts(42) == ["list", LONG, "😀" * 101]


@pytest.mark.parametrize("has_ephemeral", [True, False])
async def test_a_notice_is_shown_to_its_person_alone_where_that_is_possible(api, connect, ann, has_ephemeral):
    async def refuse(inbound: Inbound) -> Reception:
        return Reception(notice="You are not admitted.")

    group = api.world.group(-100)
    api.answers.has_ephemeral = has_ephemeral
    async with connect() as far:
        far.answer = refuse
        api.world.say(ann, "/status")
        asked = api.world.say(ann, "/status", chat=group)
        await api.until(lambda: api.world.shown(42) and api.world.shown(-100))

    (shown,) = api.world.shown(-100)
    assert shown["text"] == api.world.texts(42)[0] == "You are not admitted."
    assert shown["reply_to_message"]["message_id"] == asked["message_id"]
    assert shown.get("only_for") == (42 if has_ephemeral else None)


async def test_a_notice_that_cannot_be_shown_does_not_stop_anything(api, connect, ann):
    async def refuse(inbound: Inbound) -> Reception:
        return Reception(notice="You are not admitted.", spent=inbound.pressed is not None)

    async with connect() as far:
        far.answer = refuse
        await far.send(42, "list", buttons=(Button("One", "/x", "t"),))
        api.fail("sendMessage", 403, "Forbidden: bot was blocked by the user")
        api.fail("answerCallbackQuery", 400, "Bad Request: query is too old and response timeout expired")
        api.world.say(ann, "hello")
        api.world.press(ann, "One")
        await far.heard(2)
        await api.until(lambda: not api.world.updates)

    assert len(api.refused("sendMessage")) == len(api.refused("answerCallbackQuery")) == 1
    assert "reply_markup" not in api.world.shown(42)[0]
