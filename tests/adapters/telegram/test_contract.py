"""What every adapter has to do, for Telegram: one person in a private chat with the bot."""

from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

import anyio
import pytest

from tests.adapters.contract_suite import Edits, EveryAdapter, OfferedFiles, Presses, Refusals, Repeats
from tests.adapters.telegram.bot_api import TOKEN, BotApi
from tests.adapters.telegram.conftest import make_adapter


class TelegramScene:
    """A person and their private chat."""

    def __init__(self, api: BotApi, adapter: Any) -> None:
        self.adapter = adapter
        self.api = api
        self.ann = api.world.person(42, "Ann")
        self.last: dict[str, Any] = {}

    async def write(self, text: str) -> None:
        self.last = self.api.world.say(self.ann, text)

    async def repeat(self) -> None:
        self.api.repeat(self.api.world.last)

    async def edit(self, text: str) -> None:
        self.api.world.edit(self.last, text)

    async def attach(self, name: str, content: bytes, text: str) -> None:
        self.api.world.send_file(self.ann, name, content, text)

    async def press(self, label: str) -> None:
        self.api.world.press(self.ann, label)

    async def until_no_button(self) -> None:
        await self.api.until(lambda: not any("reply_markup" in message for message in self.api.world.shown(42)))

    def refuse_once(self, retry_after_s: float) -> None:
        seconds = int(retry_after_s)
        self.api.fail("sendMessage", 429, f"Too Many Requests: retry after {seconds}", retry_after=seconds)

    async def until_seen(self, text: str) -> None:
        await self.api.until(lambda: text in self.seen())

    def seen(self) -> str:
        return "\n".join([*self._read(), *(content.decode("utf-8", "replace") for content in self.files().values())])

    def files(self) -> dict[str, bytes]:
        sent = [message["document"] for message in self.api.world.shown(42) if "document" in message]
        return {document["file_name"]: self.api.world.files[document["file_id"]] for document in sent}

    def _read(self) -> Iterator[str]:
        for message in self.api.world.shown(42):
            yield message.get("text", message.get("caption", ""))
            for row in message.get("reply_markup", {}).get("inline_keyboard", ()):
                yield from (button["text"] for button in row)
        yield from (answer["text"] for answer in self.api.world.answers.values())


@pytest.fixture
async def scene(api: BotApi) -> AsyncIterator[TelegramScene]:
    return TelegramScene(api, await anyio.to_thread.run_sync(partial(make_adapter, TOKEN, api.base)))


class TestTelegram(EveryAdapter, Repeats, Edits, Presses, OfferedFiles, Refusals):
    """The contract."""
