"""The page that the app has for each person: opening it asks where things stand, and the answer appears on it."""

from adapters.contract import Inbound, Part, Place, Reception, Style
from tests.adapters.slack.limits import shown_in
from tests.adapters.slack.world import TEAM


def read(slack, person: str) -> str:
    return "\n".join(map(shown_in, slack.world.homes[person]["blocks"]))


async def test_opening_it_is_a_private_question_whose_answer_it_shows(slack, connect):
    async with connect() as far:
        slack.world.open_home("U0ANN")
        (inbound,) = await far.heard()
        await far.adapter.progress(inbound.place, "counting")
        await far.send("home/U0ANN", "first", reply_to=inbound.event_id)
        await far.send("home/U0ANN", "Your sessions:\n", Part("<x>&.txt", Style.CODE), reply_to=inbound.event_id)

    assert (inbound.place, inbound.user, inbound.text) == (
        *(Place("slack", f"{TEAM}/home/U0ANN"), "U0ANN", "/status all"),
    )
    assert (inbound.private, inbound.addressed, inbound.circles) == (True, True, (TEAM,))
    assert read(slack, "U0ANN") == "Your sessions:\n<x>&.txt"
    assert slack.called("chat.postMessage") == []


async def test_a_stranger_reads_there_how_to_be_admitted(slack, connect):
    async def refuse(inbound: Inbound) -> Reception:
        return Reception("You are not admitted here yet.")

    async with connect() as far:
        far.answer = refuse
        slack.world.open_home("U0BEN")
        await slack.until(lambda: "U0BEN" in slack.world.homes)

    assert read(slack, "U0BEN") == "You are not admitted here yet."


async def test_a_page_is_as_long_as_slack_allows(slack, connect):
    async with connect() as far:
        await far.send("home/U0ANN", "x" * 2500 + "\n" + "y" * 2500)

    assert read(slack, "U0ANN") == "x" * 2500 + "\n" + "y" * 2500


async def test_opening_the_messages_of_the_app_asks_nothing(slack, connect):
    async with connect() as far:
        slack.world.event({"type": "app_home_opened", "user": "U0ANN", "channel": "D0ANN", "tab": "messages"})
        await slack.until(lambda: not slack.unacknowledged())

    assert far.received == []
