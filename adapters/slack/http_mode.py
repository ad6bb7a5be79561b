"""HTTP mode: Slack delivers to an address, which a reverse proxy leads here."""

from dataclasses import dataclass, field

import anyio
from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
from slack_bolt.async_app import AsyncApp

from adapters.contract import ConnectionFailed
from adapters.link import Link

PATH = "/slack/events"
FAREWELL_S = 2.0
"""How long a delivery that is being handed on may take once the gateway stops."""


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

    server = web.Application()
    server.router.add_post(PATH, deliver)
    runner = web.AppRunner(server, access_log=None, shutdown_timeout=FAREWELL_S)
    await runner.setup()
    try:
        await web.TCPSite(runner, mode.host, mode.port).start()
        link.up = True
        await anyio.sleep_forever()
    except OSError as error:
        where = f"{mode.host}:{mode.port}"
        reason = f"cannot listen on {where} for Slack's deliveries ({error.strerror}); see slack.http_port"
        raise ConnectionFailed(reason, permanent=False) from error
    finally:
        with anyio.CancelScope(shield=True):
            await runner.cleanup()
