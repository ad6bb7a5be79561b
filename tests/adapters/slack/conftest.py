"""The adapter against a Slack of the tests' own. What needs slack-bolt is imported late: it takes seconds."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio
import pytest

from adapters.contract import Attachment, Button, ConnectionFailed, Inbound, Outbound, Part, Place, Reception
from tests.adapters.slack.server import APP_TOKEN, BOT_TOKEN, SlackServer
from tests.adapters.slack.world import TEAM


@dataclass
class Far:
    """The far side of the contract: keeps what it receives, and answers with what a test wants."""

    adapter: Any
    slack: SlackServer
    received: list[Inbound] = field(default_factory=list)
    answer: Callable[[Inbound], Awaitable[Reception]] | None = None
    ended: Exception | None = None

    async def receive(self, inbound: Inbound) -> Reception:
        reception = await self.answer(inbound) if self.answer is not None else Reception()
        self.received.append(inbound)
        self.slack.stir()
        return reception

    async def heard(self, count: int = 1) -> list[Inbound]:
        """Wait until so many different messages were received, and return them."""
        return await self.slack.until(lambda: self.events if len(self.events) >= count else None)

    @property
    def events(self) -> list[Inbound]:
        """What was received, each event once."""
        return [*{inbound.event_id: inbound for inbound in reversed(self.received)}.values()][::-1]

    async def send(
        self,
        chat: str,
        *parts: str | Part,
        files: tuple[Attachment, ...] = (),
        buttons: tuple[Button, ...] = (),
        reply_to: str | None = None,
    ) -> None:
        marked = tuple(Part(part) if isinstance(part, str) else part for part in parts)
        await self.adapter.send(Outbound(Place("slack", f"{TEAM}/{chat}"), marked, files, buttons, reply_to))


def flat(error: BaseException) -> list[BaseException]:
    return (
        [leaf for part in error.exceptions for leaf in flat(part)] if isinstance(error, BaseExceptionGroup) else [error]
    )


def is_command(text: str) -> bool:
    return text.split(maxsplit=1)[0].casefold() in {"/rollback", "/diff", "/stop"} and "please" not in text


def make_adapter(base: str, *, mode: Any = None, token: str = BOT_TOKEN, **options: Any) -> Any:
    from adapters.slack.adapter import Slack
    from adapters.slack.socket_mode import SocketMode

    return Slack(token, base, mode or SocketMode(APP_TOKEN, **options), is_command=is_command)


@pytest.fixture
async def slack() -> AsyncIterator[SlackServer]:
    async with SlackServer().serve() as served:
        yield served


@pytest.fixture
def general(slack: SlackServer) -> str:
    """A channel of two people and the app."""
    return slack.world.channel("C0GEN", "U0ANN", "U0BEN")


@pytest.fixture
def connect(slack: SlackServer) -> Callable[..., Any]:
    """Runs the adapter for a block, once it is connected."""

    @asynccontextmanager
    async def running(**options: Any) -> AsyncIterator[Far]:
        # As in the program, where it is made before the event loop runs: certificates are read.
        far = Far(await anyio.to_thread.run_sync(partial(make_adapter, slack.api_base, **options)), slack)

        async def run() -> None:
            try:
                await far.adapter.run(far.receive)
            except* ConnectionFailed as failures:
                far.ended = flat(failures)[0]
            slack.stir()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await slack.until(lambda: far.adapter.connected or far.ended)
            yield far
            tasks.cancel_scope.cancel()

    return running
