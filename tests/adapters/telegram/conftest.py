"""The adapter against a Telegram of the tests' own. What needs aiogram is imported late: it takes seconds."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio
import pytest

from adapters.contract import Attachment, Button, ConnectionFailed, Inbound, Outbound, Part, Place, Reception
from tests.adapters.telegram.bot_api import TOKEN, BotApi


@dataclass
class Far:
    """The far side of the contract: keeps what it receives, and answers with what a test wants."""

    adapter: Any
    api: BotApi
    received: list[Inbound] = field(default_factory=list)
    answer: Callable[[Inbound], Awaitable[Reception]] | None = None
    ended: Exception | None = None

    async def receive(self, inbound: Inbound) -> Reception:
        reception = await self.answer(inbound) if self.answer is not None else Reception()
        self.received.append(inbound)
        self.api._stir()
        return reception

    async def heard(self, count: int = 1) -> list[Inbound]:
        """Wait until so many messages were received, and return all."""
        await self.api.until(lambda: len(self.received) >= count)
        return self.received

    async def send(
        self,
        chat: str | int,
        *parts: str | Part,
        files: tuple[Attachment, ...] = (),
        buttons: tuple[Button, ...] = (),
        reply_to: str | None = None,
    ) -> None:
        marked = tuple(Part(part) if isinstance(part, str) else part for part in parts)
        await self.adapter.send(Outbound(Place("telegram", str(chat)), marked, files, buttons, reply_to))


def flat(error: BaseException) -> list[BaseException]:
    return (
        [leaf for part in error.exceptions for leaf in flat(part)] if isinstance(error, BaseExceptionGroup) else [error]
    )


def make_adapter(token: str, base: str, **options: Any) -> Any:
    from adapters.telegram.adapter import Telegram

    return Telegram(token, base, **options)


@pytest.fixture
async def api() -> AsyncIterator[BotApi]:
    async with BotApi().serve() as served:
        yield served


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Telegram be asked again soon while something is being handed on."""
    from adapters.telegram import polling

    monkeypatch.setattr(polling, "BUSY_S", 0.1)


@pytest.fixture
def connect(api: BotApi) -> Callable[..., Any]:
    """Runs the adapter for a block, once it is connected."""

    @asynccontextmanager
    async def running(token: str = TOKEN, **options: Any) -> AsyncIterator[Far]:
        # As in the program, where it is made before the event loop runs: certificates are read.
        far = Far(await anyio.to_thread.run_sync(partial(make_adapter, token, api.base, **options)), api)

        async def run() -> None:
            try:
                await far.adapter.run(far.receive)
            except* ConnectionFailed as failures:
                far.ended = flat(failures)[0]
            api._stir()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await api.until(lambda: far.adapter.connected or far.ended)
            yield far
            tasks.cancel_scope.cancel()

    return running
