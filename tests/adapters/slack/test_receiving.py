"""What people do reaches the gateway: once, in order, in the right place, and is acknowledged only afterwards."""

import anyio
import pytest

from adapters.contract import Inbound, Place, Reception, SendFailed
from tests.adapters.slack.conftest import Far
from tests.adapters.slack.world import BOT, BOT_ID, TEAM

NAME = f"<@{BOT}>"


def texts(far: Far) -> list[tuple[str, bool]]:
    return [(inbound.text, inbound.addressed) for inbound in far.events]


async def test_a_direct_message_says_who_and_where(slack, connect):
    async with connect() as far:
        slack.world.say("U0ANN", "hello  there\n")

        (inbound,) = await far.heard()

    assert (inbound.place, inbound.user, inbound.text) == (Place("slack", f"{TEAM}/D0ANN"), "U0ANN", "hello  there\n")
    assert (inbound.private, inbound.addressed, inbound.circles) == (True, True, (TEAM, "D0ANN"))


async def test_a_delivery_is_acknowledged_only_after_it_was_received(slack, connect):
    taken = anyio.Event()
    began = anyio.Event()

    async def slowly(inbound: Inbound) -> Reception:
        began.set()
        await taken.wait()
        return Reception()

    async with connect() as far:
        far.answer = slowly
        slack.world.say("U0ANN", "first")
        await began.wait()
        before = len(slack.unacknowledged())
        taken.set()
        await slack.until(lambda: not slack.unacknowledged())

    assert before == 1
    assert [inbound.text for inbound in far.received] == ["first"]


async def test_a_busy_chat_keeps_its_order_and_holds_up_no_other(slack, connect):
    taken = anyio.Event()

    async def slow_for_ann(inbound: Inbound) -> Reception:
        if inbound.text == "one":
            await taken.wait()
        return Reception()

    async with connect() as far:
        far.answer = slow_for_ann
        for text in ("one", "two", "three"):
            slack.world.say("U0ANN", text)
        slack.world.say("U0BEN", "early")
        await far.heard()
        so_far = [inbound.text for inbound in far.received]
        taken.set()
        await far.heard(4)

    assert so_far == ["early"]
    assert [inbound.text for inbound in far.received] == ["early", "one", "two", "three"]


async def test_what_comes_only_as_a_repetition_is_taken(slack, connect):
    slack.ack_s = 0.2
    async with connect() as far:
        slack.lose_delivery()
        slack.world.say("U0ANN", "hello")
        await far.heard()
        await slack.until(lambda: not slack.unacknowledged())

    assert [delivery.attempts for delivery in slack.deliveries] == [2]


async def test_a_mention_comes_twice_under_one_id_and_begins_a_thread(slack, connect, general):
    async with connect() as far:
        message = slack.world.say("U0ANN", f"hey {NAME} fix it", channel=general)
        await slack.until(lambda: len(far.received) == 2)

    first, second = far.received
    assert first == second
    assert first.text == "hey fix it"
    assert first.place == Place("slack", f"{TEAM}/C0GEN/{message['ts']}")
    assert (first.addressed, first.private, first.circles) == (True, False, (TEAM, "C0GEN"))


async def test_a_thread_with_the_app_needs_no_more_mentions(slack, connect, general):
    async with connect() as far:
        first = slack.world.say("U0ANN", f"{NAME} begin", channel=general)
        slack.world.say("U0BEN", "and this", channel=general, thread=first["ts"])
        other = slack.world.say("U0BEN", "lunch?", channel=general)
        slack.world.say("U0ANN", "yes", channel=general, thread=other["ts"])
        await far.heard(4)

    assert sorted(texts(far)) == [("and this", True), ("begin", True), ("lunch?", False), ("yes", False)]
    places = {inbound.text: inbound.place for inbound in far.events}
    assert places["begin"] == places["and this"] != places["lunch?"] == places["yes"]


async def test_a_thread_of_before_the_start_is_known_by_what_stands_in_it(slack, connect, general, monkeypatch):
    from adapters.slack import threads

    monkeypatch.setattr(threads, "PAGE", 2)
    named = slack.world.write(general, None, {"user": "U0ANN", "text": f"{NAME} begin"})
    answered = slack.world.write(general, None, {"user": "U0ANN", "text": "look"})
    for number in range(3):
        slack.world.write(general, answered["ts"], {"user": "U0BEN", "text": f"{number}"})
    slack.world.write(general, answered["ts"], {"user": BOT, "text": "done"})
    foreign = slack.world.write(general, None, {"user": "U0ANN", "text": "lunch?"})

    async with connect() as far:
        for parent in (named, answered, foreign, foreign):
            slack.world.say("U0BEN", "go on", channel=general, thread=parent["ts"])
        await far.heard(4)

    assert sorted(inbound.addressed for inbound in far.events) == [False, False, True, True]
    assert not [inbound for inbound in far.events if foreign["ts"] in inbound.place.chat and inbound.addressed]
    asked = [call["ts"] for call in slack.called("conversations.replies") if "cursor" not in call]
    assert sorted(asked) == sorted(parent["ts"] for parent in (named, answered, foreign))


@pytest.mark.parametrize("error", ["", "internal_error"])
async def test_a_thread_that_cannot_be_looked_at_now_comes_again(slack, connect, general, error):
    slack.ack_s = 0.3
    parent = slack.world.write(general, None, {"user": "U0ANN", "text": f"{NAME} begin"})
    async with connect() as far:
        slack.fail("conversations.replies", error)
        slack.world.say("U0BEN", "go on", channel=general, thread=parent["ts"])
        await far.heard()

    assert texts(far) == [("go on", True)]


async def test_a_thread_that_the_app_may_not_read_is_none_of_its_own(slack, connect, general):
    parent = slack.world.write(general, None, {"user": "U0ANN", "text": f"{NAME} begin"})
    async with connect() as far:
        slack.fail("conversations.replies", "missing_scope")
        slack.world.say("U0BEN", "go on", channel=general, thread=parent["ts"])
        await far.heard()

    assert texts(far) == [("go on", False)]


@pytest.mark.parametrize(
    ("written", "read", "addressed"),
    [
        ("!rollback 1", "!rollback 1", True),
        ("!nice work", "!nice work", False),
        (f"{NAME} rollback 1", "/rollback 1", True),
        (f"{NAME}: Diff session", "/Diff session", True),
        (f"{NAME} stop please", "stop please", True),
        (f"{NAME} !rollback 1", "!rollback 1", True),
        (f"rollback {NAME}", "rollback", True),
        (f"{NAME} nice work", "nice work", True),
    ],
)
async def test_commands_in_a_thread(slack, connect, general, written, read, addressed):
    parent = slack.world.write(general, None, {"user": "U0ANN", "text": f"{NAME} begin"})
    async with connect() as far:
        slack.world.say("U0ANN", written, channel=general, thread=parent["ts"])
        await far.heard()

    assert texts(far) == [(read, addressed)]
    assert far.events[0].place.chat == f"{TEAM}/C0GEN/{parent['ts']}"


async def test_a_thread_of_direct_messages_belongs_to_their_one_session(slack, connect):
    async with connect() as far:
        first = slack.world.say("U0ANN", "one")
        slack.world.say("U0ANN", "two", thread=first["ts"])
        await far.heard(2)
        await far.send("D0ANN", "answer", reply_to=far.events[1].event_id)

    assert far.events[0].place == far.events[1].place
    assert [message["text"] for message in slack.world.shown("D0ANN", first["ts"])] == ["answer"]


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("a &lt;b&gt; &amp;amp; &amp; c", "a <b> &amp; & c"),
        ("see <http://notes.md|notes.md> and <https://x.org/a?b=1&amp;c>", "see notes.md and https://x.org/a?b=1&c"),
        ("<https://x.org|the page>", "the page (https://x.org)"),
        ("<@U0BEN> <@U0BEN|ben> <#C0GEN|general> <#C0GEN>", "@U0BEN @ben #general #C0GEN"),
        ("<!here> <!subteam^S1|@team> <!date^1^{date}|today> <mailto:a@x.org|a@x.org>", "@here @team today a@x.org"),
        ("if a<b and c>d", "if a<b and c>d"),
    ],
)
async def test_text_is_what_was_typed(slack, connect, written, read):
    async with connect() as far:
        slack.world.say("U0ANN", written)
        await far.heard()

    assert texts(far) == [(read, True)]


async def test_slash_commands_work_in_channels_and_direct_messages(slack, connect, general):
    async with connect() as far:
        slack.world.command("U0ANN", "/rollback", "1 <x>&.txt", channel=general)
        slack.world.command("U0ANN", "/takeback", "status")
        slack.world.command("U0ANN", "/takeback", "")
        await far.heard(3)

    assert texts(far) == [("/rollback 1 <x>&.txt", True), ("/status", True), ("/help", True)]
    assert [inbound.place.chat for inbound in far.events] == [f"{TEAM}/C0GEN", f"{TEAM}/D0ANN", f"{TEAM}/D0ANN"]
    assert far.events[1].private


async def test_what_other_programs_and_slack_itself_say_is_left_out(slack, connect, general):
    async with connect() as far:
        slack.world.say("U0ANN", "joined", channel=general, subtype="channel_join")
        slack.world.say("U0OTHER", f"{NAME} hi", channel=general, bot_id="B0OTHER")
        slack.world.say(BOT, "myself", channel=general, bot_id=BOT_ID)
        slack.world.say("U0ANN", "", channel=general)
        linked = slack.world.say("U0ANN", "see https://x.org", channel=general)
        slack.world.change({**linked, "attachments": [{"title": "X"}]}, dict(linked))
        mine = slack.world.write(general, None, {"user": BOT, "text": "done"})
        slack.world.edit(mine, "done, and more")
        slack.world.event({"type": "reaction_added", "user": "U0ANN"})
        slack.world.event({"type": "message", "channel": general, "user": "U0ANN", "text": "no time stamp"})
        slack.world.say("U0ANN", "last", channel=general)
        await slack.until(lambda: texts(far)[-1:] == [("last", False)] and not slack.unacknowledged())

    assert texts(far) == [("see https://x.org", False), ("last", False)]


async def test_an_edit_has_an_id_of_its_own_and_stays_in_its_thread(slack, connect, general):
    async with connect() as far:
        message = slack.world.say("U0ANN", f"{NAME} !rollback 1", channel=general)
        await slack.until(lambda: len(far.received) == 2)
        slack.world.edit(message, f"{NAME} !rollback 2")
        # As a change of the message and, because it names the app, as a mention.
        await slack.until(lambda: len(far.received) == 4)
        slack.repeat(slack.world.last)
        await slack.until(lambda: len(far.received) == 5)

    first, _, edited, again, repeated = far.received
    assert (edited.text, edited.edited, edited.place) == ("!rollback 2", True, first.place)
    assert edited == again == repeated
    assert edited.event_id != first.event_id


async def test_a_person_of_another_team_is_not_of_this_one(slack, connect, general):
    async with connect() as far:
        event = {"type": "message", "channel": general, "user": "U9FAR", "text": f"{NAME} hi", "ts": "1.1"}
        slack.world.event({**event, "user_team": "T9FAR"}, is_ext_shared_channel=True)
        slack.world.event({**event, "ts": "1.2"}, is_ext_shared_channel=True)
        slack.world.event({**event, "ts": "1.3"})
        await far.heard(3)

    assert [inbound.circles for inbound in far.events] == [("T9FAR", "C0GEN"), ("C0GEN",), (TEAM, "C0GEN")]


async def test_a_file_that_slack_does_not_give_away_is_said(slack, connect):
    world = slack.world
    elsewhere = world.keep("plan.txt", b"x", is_external=True)
    kept = world.keep("a.txt", b"12345")
    grown = {**world.keep("b.txt", b"123456789"), "size": 3}
    told_later = {"id": kept["id"], "name": "a.txt", "file_access": "check_file_info"}
    async with connect() as far:
        for file in (elsewhere, kept, grown, told_later, kept):
            world.say("U0ANN", "", files=[file])
        outside, plain, larger, later, lost = [inbound.offered[0] for inbound in await far.heard(5)]
        contents = [await plain.fetch(), await later.fetch()]
        with pytest.raises(SendFailed, match=r"plan\.txt is not kept by Slack"):
            await outside.fetch()
        with pytest.raises(SendFailed, match=r"b\.txt is larger than Slack said"):
            await larger.fetch()
        slack.fail("download")
        with pytest.raises(SendFailed, match=r"a\.txt was lost on its way"):
            await lost.fetch()
        slack.bot_token = "xoxb-other"
        with pytest.raises(SendFailed, match=r"does the app have files:read\?"):
            await lost.fetch()

    assert contents == [b"12345", b"12345"]


async def test_a_notice_is_for_one_person_in_the_thread(slack, connect, general):
    async def refuse(inbound: Inbound) -> Reception:
        return Reception("You are not admitted: <x>&.txt")

    async with connect() as far:
        far.answer = refuse
        message = slack.world.say("U0BEN", f"{NAME} hi", channel=general)
        slack.world.command("U0BEN", "/rollback", channel=general)
        # The app is no member here, and can answer a command nevertheless.
        slack.world.command("U0BEN", "/rollback", channel=slack.world.channel("C0OUT", "U0BEN", bot=False))
        await slack.until(lambda: len(slack.world.shown("C0GEN", message["ts"])) == 2)
        await slack.until(lambda: slack.world.shown("C0GEN") and slack.world.shown("C0OUT"))

    told = [*slack.world.shown("C0GEN", message["ts"]), *slack.world.shown("C0GEN"), *slack.world.shown("C0OUT")]
    assert {message["only_for"] for message in told} == {"U0BEN"}
    assert {message["text"] for message in told} == {"You are not admitted: &lt;x&gt;&amp;.txt"}
    assert slack.refused() == slack.wrong == []


async def test_a_mention_that_was_only_edited_into_a_message_is_an_edit(slack, connect, general):
    async with connect() as far:
        message = slack.world.say("U0ANN", "lunch?", channel=general)
        slack.world.edit(message, f"{NAME} rollback 1")
        await slack.until(lambda: len(far.received) == 3)

    assert [(inbound.text, inbound.edited) for inbound in far.received] == [
        *(("lunch?", False), ("/rollback 1", True), ("/rollback 1", True))
    ]


async def test_a_command_is_answered_also_where_the_app_is_no_member(slack, connect):
    slack.world.channel("C0OUT", "U0ANN", bot=False)
    async with connect() as far:
        slack.world.command("U0ANN", "/status", channel="C0OUT")
        (inbound,) = await far.heard()
        await far.send("C0OUT", "all is well", reply_to=inbound.event_id)
        with pytest.raises(SendFailed, match="the app is not in this channel; /invite it there"):
            await far.send("C0OUT", "out of nothing")

    (told,) = slack.world.shown("C0OUT")
    assert (told["text"], told["only_for"]) == ("all is well", "U0ANN")


async def test_an_answer_address_that_has_gone_out_of_use_is_no_dead_end(slack, connect, general):
    async def refuse(inbound: Inbound) -> Reception:
        return Reception("not admitted")

    async with connect() as far:
        far.answer = refuse
        slack.world.answer_url = lambda *_: f"{slack.world.base}/response/expired"
        slack.world.command("U0ANN", "/status", channel=general)
        (told,) = await slack.until(lambda: slack.world.shown("C0GEN"))

    assert told["only_for"] == "U0ANN"
    assert slack.called("chat.postEphemeral")


async def test_a_notice_waits_as_long_as_slack_asks(slack, connect):
    async def refuse(inbound: Inbound) -> Reception:
        return Reception("not admitted")

    async with connect() as far:
        far.answer = refuse
        slack.fail("chat.postEphemeral", "ratelimited", retry_after=0)
        slack.world.say("U0ANN", "hi")
        await slack.until(lambda: slack.world.shown("D0ANN"))

    assert slack.refused() == ["chat.postEphemeral: ratelimited: "]
