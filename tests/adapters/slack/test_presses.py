"""Buttons that people press: in the channel, in a thread, and below what is shown to one person alone."""

from adapters.contract import Attachment, Inbound, Part, Reception
from tests.adapters.slack.world import BOT, TEAM

NAME = f"<@{BOT}>"


async def test_a_press_belongs_to_the_chat_of_its_message(slack, connect, general):
    from tests.adapters.contract_suite import TOKEN, Button

    buttons = (Button("Diff", "/diff", token=TOKEN),)
    parent = slack.world.write(general, None, {"user": "U0ANN", "text": f"{NAME} begin"})
    async with connect() as far:
        await far.send(f"C0GEN/{parent['ts']}", "in the thread", buttons=buttons)
        await far.send("C0GEN", "in the channel", buttons=buttons)
        (top,) = slack.world.shown("C0GEN")
        top["thread_ts"] = top["ts"]  # as it is told once somebody has answered it
        for message in (*slack.world.shown("C0GEN", parent["ts"]), top):
            slack.world.press("U0ANN", "Diff", message)
        await far.heard(2)

    assert [inbound.place.chat for inbound in far.events] == [f"{TEAM}/C0GEN/{parent['ts']}", f"{TEAM}/C0GEN"]
    assert [inbound.pressed for inbound in far.events] == [TOKEN, TOKEN]


async def test_a_stale_button_says_so_and_goes(slack, connect, general):
    from tests.adapters.contract_suite import TOKEN, Button

    async def stale(inbound: Inbound) -> Reception:
        return Reception("too old", spent=True)

    parent = slack.world.write(general, None, {"user": "U0ANN", "text": f"{NAME} begin"})
    async with connect() as far:
        far.answer = stale
        await far.send(f"C0GEN/{parent['ts']}", Part("choose"), buttons=(Button("Run", "/approve", token=TOKEN),))
        slack.world.press("U0ANN", "Run")
        messages = await slack.until(lambda: [*slack.world.shown("C0GEN", parent["ts"])][1:])
        await slack.until(lambda: slack.called("chat.update"))

    question = slack.world.shown("C0GEN", parent["ts"])[0]
    assert [block["type"] for block in question["blocks"]] == ["rich_text"]
    assert (messages[0]["text"], messages[0]["only_for"]) == ("too old", "U0ANN")


async def test_buttons_of_a_message_for_one_person_work_and_go(slack, connect):
    from tests.adapters.contract_suite import TOKEN, Button

    async def spend_run(inbound: Inbound) -> Reception:
        return Reception("too old", spent=True) if inbound.pressed == TOKEN else Reception()

    slack.world.channel("C0OUT", "U0ANN", bot=False)
    async with connect() as far:
        far.answer = spend_run
        slack.world.command("U0ANN", "/rollback", channel="C0OUT")
        (asked,) = await far.heard()
        buttons = (Button("Diff", "/diff", token="d1"), Button("Run", "/approve", token=TOKEN))
        await far.send("C0OUT", "choose", buttons=buttons, reply_to=asked.event_id)
        slack.world.press("U0ANN", "Diff")
        diff = (await far.heard(2))[1]
        await far.send("C0OUT", "1 file", files=(Attachment("a.diff", b"+x\n"),), reply_to=diff.event_id)
        slack.world.press("U0ANN", "Run")
        await slack.until(lambda: "too old" in [message["text"] for message in slack.world.shown("C0OUT")])
        slack.world.command("U0ANN", "/status", channel="C0OUT")
        await far.heard(4)

    assert (diff.pressed, diff.place) == ("d1", asked.place)
    shown = slack.world.shown("C0OUT")
    file = "⚠ a.diff could not be sent: the app is not in this channel; /invite it there (not_in_channel)"
    assert [message["text"] for message in shown] == ["1 file", file, "too old"]
    assert {message["only_for"] for message in shown} == {"U0ANN"}
    assert slack.wrong == []


async def test_a_press_in_a_thread_of_a_message_for_one_person_belongs_there(slack, connect, general):
    from tests.adapters.contract_suite import TOKEN, Button

    parent = slack.world.write(general, None, {"user": "U0ANN", "text": f"{NAME} begin"})
    async with connect() as far:
        await far.send(f"C0GEN/{parent['ts']}", "choose", buttons=(Button("Run", "/approve", token=TOKEN),))
        (question,) = slack.world.shown("C0GEN", parent["ts"])
        question["only_for"] = "U0ANN"
        slack.world.press("U0ANN", "Run")
        (pressed,) = await far.heard()

    assert pressed.place.chat == f"{TEAM}/C0GEN/{parent['ts']}"
