"""HTTP mode: Slack delivers to an address, which a reverse proxy leads here."""

from dataclasses import dataclass, field

import anyio
from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
from slack_bolt.async_app import AsyncApp

from adapters.link import Link
from adapters.listening import Door, listening

PATH = "/slack/events"


@dataclass(frozen=True, slots=True)
class HttpMode:
    """Where this process listens for the proxy, and what Slack signs its deliveries with."""

    signing_secret: str = field(repr=False)
    host: str
    port: int


async def listen(mode: HttpMode, app: AsyncApp, link: Link) -> None:
    """Take in deliveries until cancelled.

    Raises:
        ConnectionFailed: it cannot listen.
    """

    async def deliver(request: web.Request) -> web.Response:
        return await to_aiohttp_response(await app.async_dispatch(await to_bolt_request(request)))

    async with listening(Door("Slack", mode.host, mode.port, PATH, "slack.http_port"), deliver):
        link.up = True
        await anyio.sleep_forever()
