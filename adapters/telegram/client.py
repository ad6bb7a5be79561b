"""The client of Telegram's Bot API, and what its refusals mean in the contract's words.

Nothing said here repeats an address that was called: each holds the bot's token.
"""

import logging
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

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
from adapters.link import Link, Trouble

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

_log = logging.getLogger(__name__)
_ADDRESS = re.compile(r"\S*bot\d+:\S*")


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


def link() -> Link:
    """The way to Telegram."""
    return Link(REFUSALS, diagnose)


@contextmanager
def sending() -> Iterator[None]:
    """Say in the contract's words why calls in a block did not succeed.

    Raises:
        SendFailed: one did not.
    """
    try:
        yield
    except REFUSALS as error:
        # Not chained: an address that was called holds the token.
        raise send_failure(error) from None


@contextmanager
def best_effort(what: str) -> Iterator[None]:
    """Do in a block what nobody misses, or can ask for again."""
    try:
        yield
    except REFUSALS as error:
        _log.info("%s: %s", what, reason_of(error))


def taken(error: ClientDecodeError) -> Mapping[str, Any] | None:
    """What Telegram made of a call that it carried out and told of in words that this client does not know yet.

    ``None`` for an answer that is not Telegram's.
    """
    said = error.data
    result = said.get("result") if isinstance(said, Mapping) and said.get("ok") is True else None
    return result if isinstance(result, Mapping) else None


def diagnose(error: Exception) -> Trouble:
    """Say why messages cannot be taken in."""
    match error:
        case TelegramRetryAfter():
            wait_s = float(error.retry_after)
            return Trouble(ConnectionFailed("Telegram wants to be asked less often", permanent=False), wait_s=wait_s)
        case TelegramUnauthorizedError() | TelegramNotFound():
            return Trouble(ConnectionFailed(REMEDY, permanent=True))
        case TelegramConflictError():
            return Trouble(ConnectionFailed(OTHER_POLLER, permanent=False))
        case _:
            reason = f"Telegram cannot be reached: {reason_of(error)}"
            return Trouble(ConnectionFailed(reason, permanent=False), passing=_may_pass(error))


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
    if isinstance(error, TelegramAPIError) and "too many requests" in error.message.lower():
        return True  # without a word on when
    return isinstance(error, (TelegramNetworkError, TelegramServerError, ClientDecodeError))
