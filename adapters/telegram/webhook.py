"""The webhook: Telegram delivers each update to an address, which a reverse proxy leads here.

An update is answered with 200 only after it has been handed on. Telegram delivers what was not, again, and a chat's
updates one after another.
"""

import hmac
import json
import logging
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import anyio
from aiogram import Bot
from aiohttp import web

from adapters.contract import ConnectionFailed
from adapters.link import Link
from adapters.telegram.reading import TAKEN_IN

SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"  # noqa: S105 - the name of a header
FAREWELL_S = 2.0
"""How long a delivery that is being handed on may take once the gateway stops."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where updates are delivered: the public address, and where this process listens for the proxy.

    Without a ``secret`` a new one is made at each start; Telegram sends along whichever it was told last.
    """

    url: str
    host: str
    port: int
    secret: str | None = None


async def listen(webhook: Webhook, bot: Bot, take: Callable[[dict[str, Any]], Awaitable[None]], link: Link) -> None:
    """Take in updates until cancelled; ``take`` returns once an update may be acknowledged.

    Raises:
        ConnectionFailed: it cannot listen, or Telegram does not accept the address.
    """
    secret = webhook.secret or secrets.token_urlsafe(32)

    async def deliver(request: web.Request) -> web.Response:
        if not hmac.compare_digest(request.headers.get(SECRET_HEADER, "").encode(), secret.encode()):
            return web.Response(status=401)
        try:
            update = json.loads(await request.read())
        except ValueError:
            return web.Response(status=400)
        try:
            await take(update)
        except Exception:  # noqa: BLE001 - whatever kept it from being stored, Telegram delivers it again
            _log.exception("an update was not taken in")
            return web.Response(status=503)
        return web.Response()

    app = web.Application()
    app.router.add_post(urlsplit(webhook.url).path or "/", deliver)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=FAREWELL_S)
    await runner.setup()
    try:
        await _bind(runner, webhook)
        register = partial(bot.set_webhook, webhook.url, secret_token=secret, allowed_updates=TAKEN_IN)
        await link.patiently(register)
        link.up = True
        await anyio.sleep_forever()
    finally:
        with anyio.CancelScope(shield=True):
            await runner.cleanup()


async def _bind(runner: web.AppRunner, webhook: Webhook) -> None:
    try:
        await web.TCPSite(runner, webhook.host, webhook.port).start()
    except OSError as error:
        where = f"{webhook.host}:{webhook.port}"
        reason = f"cannot listen on {where} for Telegram's deliveries ({error.strerror}); see telegram.webhook_port"
        raise ConnectionFailed(reason, permanent=False) from error
