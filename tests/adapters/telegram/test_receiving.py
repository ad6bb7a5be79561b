"""What people do reaches the gateway: once, in order, in the right place, and is confirmed only afterwards."""

import anyio
import pytest

from adapters.contract import Button, Inbound, Place, Reception
from adapters.telegram.token import TokenMalformed, check_token
from tests.adapters.telegram.bot_api import BotApi


@pytest.fixture
def ann(api: BotApi):
    return api.world.person(42, "Ann")


@pytest.fixture
def ben(api: BotApi):
    return api.world.person(43, "Ben")


async def test_a_private_message_arrives_with_who_and_where(api, connect, ann):
    async with connect() as far:
        api.world.say(ann, "hello  there\n")

        (inbound,) = await far.heard()

    assert (inbound.place, inbound.user, inbound.text) == (Place("telegram", "42"), "42", "hello  there\n")
    assert (inbound.private, inbound.addressed, inbound.circles, inbound.edited) == (True, True, (), False)


async def test_an_update_is_confirmed_only_after_it_was_received(api, connect, ann):
    taken = anyio.Event()

    async def slowly(inbound: Inbound) -> Reception:
        await taken.wait()
        return Reception()

    async with connect() as far:
        far.answer = slowly
        api.world.say(ann, "first")
        before = len(api.called("getUpdates"))
        await api.until(lambda: len(api.called("getUpdates")) > before + 2)
        waiting = [*api.world.updates]
        taken.set()
        await api.until(lambda: not api.world.updates)

    assert len(waiting) == 1
    assert [inbound.text for inbound in far.received] == ["first"]


async def test_a_busy_chat_keeps_its_order_and_holds_up_no_other(api, connect, ann, ben):
    taken = anyio.Event()

    async def slow_for_ann(inbound: Inbound) -> Reception:
        if inbound.text == "one":
            await taken.wait()
        return Reception()

    async with connect() as far:
        far.answer = slow_for_ann
        for text in ("one", "two", "three"):
            api.world.say(ann, text)
        api.world.say(ben, "early")
        await far.heard(1)
        api.world.say(ben, "late")
        await far.heard(2)
        so_far = [inbound.text for inbound in far.received]
        taken.set()
        await far.heard(5)

    assert so_far == ["early", "late"]
    assert [inbound.text for inbound in far.received] == ["early", "late", "one", "two", "three"]


async def test_what_was_not_received_comes_again_under_the_same_id(api, connect, ann):
    seen = []

    async def never(inbound: Inbound) -> Reception:
        seen.append(inbound.event_id)
        await anyio.sleep_forever()
        raise AssertionError

    async with connect() as far:
        far.answer = never
        api.world.say(ann, "hello")
        await api.until(lambda: seen)

    async with connect() as again:
        await again.heard()

    assert [inbound.event_id for inbound in again.received] == seen


async def test_what_cannot_be_stored_is_not_confirmed_and_keeps_its_order(api, connect, ann, impatient):
    tried = []

    async def full_at_first(inbound: Inbound) -> Reception:
        tried.append(inbound.text)
        if len(tried) < 3:
            raise OSError("disk full")
        return Reception()

    async with connect() as far:
        far.answer = full_at_first
        api.world.say(ann, "one")
        api.world.say(ann, "two")
        await far.heard(2)
        await api.until(lambda: not api.world.updates)

    assert tried == ["one", "one", "one", "two"]
    assert [inbound.text for inbound in far.received] == ["one", "two"]


async def test_what_came_after_what_could_not_be_stored_is_confirmed_with_it(api, connect, ann, ben, impatient):
    tried = []

    async def full_at_first(inbound: Inbound) -> Reception:
        tried.append(inbound.text)
        if tried == ["one"]:
            raise OSError("disk full")
        return Reception()

    async with connect() as far:
        far.answer = full_at_first
        api.world.say(ann, "one")
        api.world.say(ben, "other")
        await far.heard(2)
        await api.until(lambda: not api.world.updates)

    assert tried == ["one", "other", "one"]


async def test_an_update_nobody_understands_is_passed_over(api, connect, ann):
    async with connect() as far:
        api.world.updates.append({"update_id": 900, "message": {"message_id": "no number", "chat": {"id": 42}}})
        api.world.updates.append({"update_id": 901, "message": 7})
        api.world.say(ann, "after it")
        await far.heard()
        await api.until(lambda: not api.world.updates)

    assert [inbound.text for inbound in far.received] == ["after it"]


async def test_what_is_not_needed_of_an_update_may_be_in_words_of_a_later_bot_api(api, connect, ann):
    group = api.world.group(-100)
    async with connect() as far:
        await far.send(-100, "what shall I do?", buttons=(Button("Diff", "/diff", "t1"),))
        mine = api.world.shown(-100)[0]
        mine["paid_media"] = {"star_count": 1, "paid_media": [{"type": "of a later version"}]}
        api.world.say(ann, "this", chat=group, reply_to=mine, suggested_post_info="of a later version")
        api.world.press(ann, "Diff", mine)
        said, pressed = await far.heard(2)

    assert (said.text, said.addressed, said.user) == ("this", True, "42")
    assert (pressed.pressed, pressed.place, pressed.user) == ("t1", said.place, "42")


@pytest.mark.parametrize(
    "fault",
    [
        {},
        {"status": 500, "description": "Internal Server Error"},
        {"status": 429, "description": "Too Many Requests: retry after 1", "retry_after": 1},
    ],
    ids=["cut", "broken", "flooded"],
)
async def test_a_short_trouble_is_overcome(api, connect, ann, fault):
    async with connect() as far:
        api.fail("getUpdates", **fault)
        api.world.say(ann, "before")
        await far.heard()
        api.world.say(ann, "after")
        await far.heard(2)
        connected = far.adapter.connected

    assert connected
    assert len(far.received) == 2


async def test_a_lost_answer_makes_no_second_message(api, connect, ann):
    async with connect() as far:
        api.lose_answer("getUpdates")
        api.world.say(ann, "one")
        api.world.say(ann, "two")
        await far.heard(2)
        await api.until(lambda: not api.world.updates)

    assert [inbound.text for inbound in far.received] == ["one", "two"]


async def test_another_program_that_polls_is_named(api, connect):
    async with connect() as far:
        api.fail("getUpdates", 409, "Conflict: terminated by other getUpdates request")
        api.world.say(api.world.person(1, "Zoe"), "wakes the question up")
        await api.until(lambda: far.ended)

    assert not far.ended.permanent
    assert "another program takes in this bot's messages" in far.ended.reason
    assert not far.adapter.connected


async def test_telegram_is_reached_through_the_proxy_of_the_environment(api, connect, ann, monkeypatch):
    monkeypatch.setenv("http_proxy", api.base)
    api.base = "http://telegram.invalid"

    async with connect() as far:
        api.world.say(ann, "hello")
        await far.heard()

    assert [inbound.text for inbound in far.received] == ["hello"]


async def test_a_webhook_left_behind_is_taken_away(api, connect, ann):
    api.webhook = {"url": "https://old.example/hook"}

    async with connect() as far:
        api.world.say(ann, "hello")
        await far.heard()

    assert api.webhook == {}


@pytest.mark.parametrize("token", ["123456:wrong", "654321:other"])
async def test_a_wrong_token_stops_the_adapter_with_the_remedy(api, connect, token):
    async with connect(token) as far:
        pass

    assert far.ended.permanent
    assert "@BotFather" in far.ended.reason
    assert token not in far.ended.reason


@pytest.mark.parametrize("token", ["", "nonsense", "12 34:x", "x:y", "1:2 3"])
def test_what_cannot_be_a_token_is_known_before_telegram_is_asked(token):
    with pytest.raises(TokenMalformed, match="is no bot token"):
        check_token(token)


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        ("/rollback@TakebackBot 2", "/rollback 2"),
        ("/rollback@takebackbot 2", "/rollback 2"),
        ("/ROLLBACK@TAKEBACKBOT", "/ROLLBACK"),
        ("/rollback 1 src/@TakebackBot.txt", "/rollback 1 src/@TakebackBot.txt"),
        ("/etc/hosts@home looks odd", "/etc/hosts@home looks odd"),
        ("@TakebackBot is you", "@TakebackBot is you"),
        ("/start", "/help"),
        ("/start@takebackbot", "/help"),
        ("/start from-a-link", "/help"),
        ("/started", "/started"),
    ],
)
async def test_the_bots_name_is_taken_out_of_a_command(api, connect, ann, said, heard):
    async with connect() as far:
        api.world.say(ann, said)
        await far.heard()

    assert far.received[0].text == heard


async def test_commands_for_other_bots_and_what_is_no_text_are_left_out(api, connect, ann):
    group = api.world.group(-100)
    async with connect() as far:
        api.world.say(ann, "/rollback@OtherBot 2", chat=group)
        api.world.say(ann, "/rollback@OtherBot 2")
        api.world.say(ann, "", chat=group, new_chat_members=[ann])
        api.world.say({**api.world.person(9, "Robot"), "is_bot": True}, "beep", chat=group)
        api.world.say(ann, "the end")
        await far.heard()

    assert [inbound.text for inbound in far.received] == ["the end"]


@pytest.mark.parametrize(
    ("said", "heard", "addressed"),
    [
        ("just talking", "just talking", False),
        ("/status", "/status", True),
        ("/status@TakebackBot", "/status", True),
        ("@TakebackBot fix it", "fix it", True),
        ("😀 hey @takebackbot fix it", "😀 hey  fix it", True),
        ("@TakebackBot /rollback 2", "/rollback 2", True),
        ("@TakebackBot, fix it", "fix it", True),
        (" @takebackBOT: /rollback 2", "/rollback 2", True),
        ("well @TakebackBot, fix it", "well , fix it", True),
        ("hi @TakebackBot", "hi", True),
        ("@TakebackBotX fix it", "@TakebackBotX fix it", False),
    ],
)
async def test_in_a_group_the_bot_knows_whether_it_is_meant(api, connect, ann, said, heard, addressed):
    group = api.world.group(-100)
    async with connect() as far:
        api.world.say(ann, said, chat=group)
        (inbound,) = await far.heard()

    assert (inbound.text, inbound.addressed) == (heard, addressed)
    assert (inbound.place, inbound.circles, inbound.private) == (Place("telegram", "-100"), ("-100",), False)


async def test_an_answer_to_the_bot_is_meant_for_it_and_one_to_a_person_is_not(api, connect, ann, ben):
    group = api.world.group(-100)
    async with connect() as far:
        await far.send(-100, "what shall I do?")
        mine = api.world.shown(-100)[0]
        api.world.say(ann, "this", chat=group, reply_to=mine)
        api.world.say(ben, "that", chat=group, reply_to=api.world.say(ann, "hm", chat=group))
        await far.heard(3)

    assert {inbound.text: inbound.addressed for inbound in far.received} == {"this": True, "hm": False, "that": False}


async def test_each_topic_is_a_place_and_its_root_is_no_answer(api, connect, ann):
    forum = api.world.group(-200, topics=(7, 8))
    async with connect() as far:
        api.world.say(ann, "in seven", chat=forum, topic=7)
        api.world.say(ann, "/status", chat=forum, topic=8)
        api.world.say(ann, "in general", chat=forum)
        # A chain of replies outside of a topic has a thread as well.
        api.world.say(ann, "in a thread", chat=forum, message_thread_id=3)
        await far.heard(4)

    by_text = {inbound.text: inbound for inbound in far.received}
    assert [by_text[text].place.chat for text in ("in seven", "/status", "in general", "in a thread")] == [
        *("-200/7", "-200/8", "-200", "-200")
    ]
    assert [inbound.text for inbound in far.received if inbound.addressed] == ["/status"]


async def test_a_group_that_becomes_a_supergroup_says_where_it_was(api, connect, ann):
    old, new = api.world.group(-5, kind="group"), api.world.group(-1005)
    async with connect() as far:
        api.world.say(ann, "", chat=old, migrate_to_chat_id=-1005)
        api.world.say(ann, "", chat=new, migrate_from_chat_id=-5)
        there, here = await far.heard(2)

    for told in (there, here):
        assert (told.place, told.continues) == (Place("telegram", "-1005"), Place("telegram", "-5"))
        assert (told.text, told.user, told.circles, told.addressed) == ("", "42", ("-1005",), False)
    assert there.event_id != here.event_id


async def test_an_anonymous_administrator_is_not_every_groups(api, connect):
    group = api.world.group(-100)
    anonymous = {**api.world.person(1087968824, "Group"), "is_bot": True}
    async with connect() as far:
        api.world.say(anonymous, "/status", chat=group, sender_chat=group)
        (inbound,) = await far.heard()

    assert inbound.user == "-100"


async def test_an_edit_says_that_it_is_one(api, connect, ann):
    async with connect() as far:
        message = api.world.say(ann, "/rollback 1")
        api.world.edit(message, "/rollback 2")
        await far.heard(2)

    assert [(inbound.text, inbound.edited) for inbound in far.received] == [
        ("/rollback 1", False),
        ("/rollback 2", True),
    ]
    assert far.received[0].event_id != far.received[1].event_id


async def test_the_platforms_own_stop_is_a_stop(api, connect, ann):
    async with connect() as far:
        api.world.say(ann, "work")
        await far.heard()
        await far.adapter.progress(Place("telegram", "42"), "running")
        await api.until(lambda: 42 in api.world.drafts)
        api.world.stop_draft(ann)
        await far.heard(2)

    assert api.called("sendMessageDraft")[0]["can_stop"] is True
    assert (far.received[1].text, far.received[1].user, far.received[1].private) == ("/stop", "42", True)
