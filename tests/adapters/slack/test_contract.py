"""What every adapter has to do, for Slack: one person's direct messages with the app."""

from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

import anyio
import pytest

from tests.adapters.contract_suite import Edits, EveryAdapter, OfferedFiles, Presses, Refusals, Repeats
from tests.adapters.slack.conftest import make_adapter
from tests.adapters.slack.limits import shown_in
from tests.adapters.slack.server import SlackServer
from tests.adapters.slack.world import buttons_of


class SlackScene:
    """A person and their direct messages."""

    def __init__(self, slack: SlackServer, adapter: Any) -> None:
        self.adapter = adapter
        self.slack = slack
        self.last: dict[str, Any] = {}

    async def write(self, text: str) -> None:
        self.last = self.slack.world.say("U0ANN", text)

    async def repeat(self) -> None:
        self.slack.repeat(self.slack.world.last)

    async def edit(self, text: str) -> None:
        self.slack.world.edit(self.last, text)

    async def attach(self, name: str, content: bytes, text: str) -> None:
        self.slack.world.say("U0ANN", text, subtype="file_share", files=[self.slack.world.keep(name, content)])

    async def press(self, label: str) -> None:
        self.slack.world.press("U0ANN", label)

    async def until_no_button(self) -> None:
        await self.slack.until(lambda: not any(map(buttons_of, self.slack.world.shown("D0ANN"))))

    def refuse_once(self, retry_after_s: float) -> None:
        self.slack.fail("chat.postMessage", "ratelimited", retry_after=int(retry_after_s))

    async def until_seen(self, text: str) -> None:
        await self.slack.until(lambda: text in self.seen())

    def seen(self) -> str:
        return "\n".join([*self._read(), *(content.decode("utf-8", "replace") for content in self.files().values())])

    def files(self) -> dict[str, bytes]:
        sent = [file for message in self.slack.world.shown("D0ANN") for file in message.get("files", ())]
        return {file["name"]: self.slack.world.content[file["id"]] for file in sent}

    def _read(self) -> Iterator[str]:
        for message in self.slack.world.shown("D0ANN"):
            yield from map(shown_in, message.get("blocks", ()))
            yield from (button["text"]["text"] for button in buttons_of(message))


@pytest.fixture
async def scene(slack: SlackServer) -> AsyncIterator[SlackScene]:
    yield SlackScene(slack, await anyio.to_thread.run_sync(partial(make_adapter, slack.api_base)))
    assert slack.refused() in ([], ["chat.postMessage: ratelimited: "])
    assert slack.wrong == []


class TestSlack(EveryAdapter, Repeats, Edits, Presses, OfferedFiles, Refusals):
    """The contract."""
