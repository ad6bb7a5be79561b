"""A turn of an agent that takes its time, from the message to the button below its answer, over Telegram."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import pytest

from gateway.access.admission import Rules
from tests.adapters.telegram.bot_api import TOKEN, BotApi
from tests.adapters.telegram.conftest import make_adapter
from tests.gateway.live_kit import ANSWER, PIECES, RECEIPT, Writer
from tests.gateway.service_kit import make_service, serving

GROUP, ANN = -100, 42


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    from adapters.telegram import progress

    monkeypatch.setattr(progress, "EVERY_S", 0.05)
    monkeypatch.setattr(progress, "EVERY_IN_GROUP_S", 0.05)


@pytest.fixture
def ann(api: BotApi):
    api.world.group(GROUP)
    person = api.world.person(ANN, "Ann")
    api.world.private(person)
    return person


@pytest.fixture
def writer() -> Writer:
    return Writer()


@asynccontextmanager
async def served(api: BotApi, tmp_path: Path, writer: Writer) -> AsyncIterator[None]:
    adapter = await anyio.to_thread.run_sync(partial(make_adapter, TOKEN, api.base))
    rules = {"telegram": Rules(owned=True, largest_file_bytes=1000)}
    async with serving(await make_service(tmp_path, adapter, agents={"direct": writer}, rules=rules)):
        await api.until(lambda: adapter.connected)
        yield


async def test_one_message_tells_what_goes_on_and_the_answer_takes_its_place(api, ann, writer, tmp_path):
    async with served(api, tmp_path, writer):
        api.world.say(ann, "@TakebackBot write it down", chat=api.world.chats[GROUP])
        for number, piece in enumerate(PIECES):
            await api.until(lambda piece=piece: api.world.texts(GROUP) == [f"{piece}\n…"])
            writer.go_on(number)
        (answer,) = await api.until(
            lambda: [text for text in api.world.texts(GROUP) if text.endswith("$0.0123")] and api.world.texts(GROUP)
        )
        api.world.press(ann, "Undo")
        await api.until(lambda: any("Took back" in text for text in api.world.texts(GROUP)))

    said, changed, spent = answer.replace("\n\n", "\n").splitlines()
    assert said == ANSWER
    assert changed.startswith("✎ 1 file, +1/-0: notes.md (new) · checkpoint ")
    assert spent == RECEIPT
    assert len(api.called("sendMessage")) == 3
    assert not (tmp_path / "project" / "notes.md").exists()


async def test_in_a_private_chat_what_was_sent_is_read_and_stop_says_what_was_changed(api, ann, writer, tmp_path):
    async with served(api, tmp_path, writer):
        api.world.send_file(ann, "list.txt", b"milk\n", "write it down")
        await api.until(lambda: api.world.drafts.get(ANN, {}).get("text") == PIECES[0])
        api.world.say(ann, "/stop")
        await api.until(lambda: api.world.texts(ANN))
    (said,) = api.world.texts(ANN)

    assert writer.seen == [b"milk\n"]
    assert said.startswith("⏹ Stopped.\n✎ 1 file, +1/-0: notes.md (new) · checkpoint ")
