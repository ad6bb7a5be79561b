"""The webhook: Telegram delivers each update to an address, which a reverse proxy leads here.

An update is answered with 200 only after it has been handed on. Telegram delivers what was not, again, and a chat's
updates one after another: so the files of an album cannot wait for each other here, and are messages of their own.
"""

import hmac
import json
import logging
import secrets
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlsplit

import anyio
from aiogram import Bot
from aiohttp import web

from adapters.link import Link
from adapters.listening import Door, listening
from adapters.telegram.reading import TAKEN_IN, Read, Take

SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"  # noqa: S105 - the name of a header

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


async def listen(webhook: Webhook, bot: Bot, read: Read, take: Take, link: Link) -> None:
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
        event = read(update)
        try:
            if event is not None:
                await take(event)
        except Exception:  # noqa: BLE001 - whatever kept it from being stored, Telegram delivers it again
            _log.exception("an update was not taken in")
            return web.Response(status=503)
        return web.Response()

    path = urlsplit(webhook.url).path or "/"
    async with listening(Door("Telegram", webhook.host, webhook.port, path, "telegram.webhook_port"), deliver):
        register = partial(bot.set_webhook, webhook.url, secret_token=secret, allowed_updates=TAKEN_IN)
        await link.patiently(register)
        link.up = True
        await anyio.sleep_forever()
