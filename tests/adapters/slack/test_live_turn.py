"""A turn of an agent that takes its time, from the message to the button below its answer, over Slack."""

from functools import partial
from pathlib import Path

import anyio
import pytest

from gateway.access.admission import Rules
from tests.adapters.slack.conftest import make_adapter
from tests.adapters.slack.limits import shown_in
from tests.adapters.slack.server import SlackServer
from tests.adapters.slack.world import buttons_of
from tests.gateway.live_kit import ANSWER, PIECES, RECEIPT, Writer
from tests.gateway.service_kit import make_service, serving


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    from adapters.slack import progress

    monkeypatch.setattr(progress.Message, "every_s", 0.05)


async def test_one_message_tells_what_goes_on_and_the_answer_takes_its_place(slack: SlackServer, tmp_path: Path):
    writer = Writer()
    channel = slack.world.dm("U0ANN")
    adapter = await anyio.to_thread.run_sync(partial(make_adapter, slack.api_base))
    rules = {"slack": Rules(owned=True, largest_file_bytes=1000)}

    def words() -> list[str]:
        every = [message for (where, _), message in slack.world.messages.items() if where == channel]
        own = [message for message in every if message["user"] != "U0ANN"]
        return ["\n".join(filter(None, map(shown_in, message.get("blocks", ())))) for message in own]

    async with serving(await make_service(tmp_path, adapter, agents={"direct": writer}, rules=rules)):
        await slack.until(lambda: adapter.connected)
        slack.world.say("U0ANN", "write it down", channel=channel, files=[slack.world.keep("list.txt", b"milk\n")])
        for number, piece in enumerate(PIECES):
            await slack.until(lambda piece=piece: words() == [f"{piece}\n…"])
            writer.go_on(number)
        (answer,) = await slack.until(lambda: "$0.0123" in "".join(words()) and len(words()) == 1 and words())

    said, changed, spent = answer.replace("\n\n", "\n").splitlines()[:3]
    assert (said, spent) == (ANSWER, RECEIPT)
    assert changed.startswith("✎ 1 file, +1/-0: notes.md (new) · checkpoint ")
    assert writer.seen == [b"milk\n"]
    (message,) = [message for message in slack.world.messages.values() if buttons_of(message)]
    assert [button["text"]["text"] for button in buttons_of(message)] == ["Diff", "Undo"]
