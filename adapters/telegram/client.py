"""The client of Telegram's Bot API, and what its refusals mean in the contract's words.

Nothing said here repeats an address that was called: each holds the bot's token.
"""

import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

import anyio
from aiogram import Bot
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.exceptions import (
    ClientDecodeError,
    TelegramAPIError,
    TelegramConflictError,
    TelegramEntityTooLarge,
    TelegramNetworkError,
    TelegramNotFound,
    TelegramRetryAfter,
    TelegramServerError,
    TelegramUnauthorizedError,
)
from aiohttp import ClientSession

from adapters.contract import ConnectionFailed, SendFailed

DELAYS_S = (0.5, 1.0, 2.0, 4.0, 8.0)
"""How long a lost connection is waited for between attempts, before whoever started the adapter hears of it."""

SEND_AGAIN_S = 5.0
"""When a reply is tried again that got lost on the way."""

REMEDY = (
    "Telegram does not know this bot's token. Copy it from @BotFather (/mybots, API Token) to telegram.token,"
    " TAKEBACK_TELEGRAM__TOKEN or the file that TAKEBACK_TELEGRAM__TOKEN_FILE names, and start the gateway again"
)
OTHER_POLLER = (
    "another program takes in this bot's messages with the same token, so some of them are lost to it. Stop the other"
    " one, or give this gateway a bot of its own"
)

REFUSALS = (TelegramAPIError, ClientDecodeError)
"""Whatever can come of a call."""

_ADDRESS = re.compile(r"\S*bot\d+:\S*")
_log = logging.getLogger(__name__)
T = TypeVar("T")


class _Session(AiohttpSession):
    """Goes through the proxy that the environment names, if it names one, as other programs do."""

    async def create_session(self) -> ClientSession:
        session = await super().create_session()
        # aiogram makes the session itself, and has no other way to say this.
        session._trust_env = True  # noqa: SLF001
        return session


class Client:
    """The one client of a bot; its connections are open as long as somebody uses it."""

    def __init__(self, token: str, api_base: str) -> None:
        self.bot = Bot(token, session=_Session(api=TelegramAPIServer.from_base(api_base)))
        self._users = 0

    @asynccontextmanager
    async def used(self) -> AsyncIterator[Bot]:
        """Keep the connections open for a block; replies are sent before and after messages are taken in too."""
        self._users += 1
        try:
            yield self.bot
        finally:
            self._users -= 1
            if not self._users:
                with anyio.CancelScope(shield=True):
                    await self.bot.session.close()


@dataclass(eq=False, slots=True)
class Link:
    """Whether Telegram answered last."""

    up: bool = False


async def patiently(call: Callable[[], Awaitable[T]], link: Link) -> T:
    """Call until it succeeds, over short troubles of the network.

    Raises:
        ConnectionFailed: it stays in vain, or a person has to do something.
    """
    delays = iter(DELAYS_S)
    while True:
        try:
            return await call()
        except TelegramRetryAfter as error:
            link.up = False
            await anyio.sleep(error.retry_after)
        except REFUSALS as error:
            link.up = False
            failure = connection_failure(error)
            delay_s = next(delays, None)
            if not _may_pass(error) or delay_s is None:
                raise failure from None
            _log.info("%s; trying again in %.1f s", failure.reason, delay_s)
            await anyio.sleep(delay_s)


def connection_failure(error: Exception) -> ConnectionFailed:
    """Say why messages cannot be taken in."""
    match error:
        case TelegramUnauthorizedError() | TelegramNotFound():
            return ConnectionFailed(REMEDY, permanent=True)
        case TelegramConflictError():
            return ConnectionFailed(OTHER_POLLER, permanent=False)
        case _:
            return ConnectionFailed(f"Telegram cannot be reached: {reason_of(error)}", permanent=False)


def send_failure(error: Exception) -> SendFailed:
    """Say why a reply did not arrive, and when it may be tried again."""
    match error:
        case TelegramRetryAfter():
            return SendFailed("too many messages to this chat", retry_after_s=float(error.retry_after))
        case TelegramUnauthorizedError():
            return SendFailed(REMEDY, retry_after_s=60.0)
        case _ if _may_pass(error):
            return SendFailed(reason_of(error), retry_after_s=SEND_AGAIN_S)
        case _:
            return SendFailed(reason_of(error), retry_after_s=None)


def reason_of(error: Exception) -> str:
    """What Telegram, or the way to it, said."""
    if isinstance(error, TelegramAPIError):
        said = error.message.splitlines()[0] if error.message else type(error).__name__
        return _ADDRESS.sub("…", said)
    return "the answer is not Telegram's; see telegram.api_base"


def _may_pass(error: Exception) -> bool:
    """Whether a call that failed so may succeed when it is made again."""
    if isinstance(error, TelegramEntityTooLarge):
        return False
    return isinstance(error, (TelegramNetworkError, TelegramServerError, ClientDecodeError))
