"""HTTP mode: Slack delivers to an address, which a reverse proxy leads here."""

import logging
import re
import time
from dataclasses import dataclass, field
from http import HTTPStatus

import anyio
from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
from slack_bolt.async_app import AsyncApp

from adapters.link import Link
from adapters.listening import Door, listening

PATH = "/slack/events"
TIME_HEADER = "X-Slack-Request-Timestamp"

OFF_S = 300
"""A delivery whose time is further off is refused: it may be an old one that somebody repeats."""

TOLD_EVERY_S = 60.0
"""How often it is said that deliveries are refused: anybody can send some."""

_TIME = re.compile("[0-9]{1,12}")
_log = logging.getLogger(__name__)


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
    doubts = _Doubts()

    async def deliver(request: web.Request) -> web.Response:
        sent_at = request.headers.get(TIME_HEADER)
        if sent_at is not None and not _TIME.fullmatch(sent_at):
            return web.Response(status=HTTPStatus.UNAUTHORIZED)
        answer = await app.async_dispatch(await to_bolt_request(request))
        if answer.status == HTTPStatus.UNAUTHORIZED and sent_at is not None:
            doubts.tell(int(sent_at))
        return await to_aiohttp_response(answer)

    async with listening(Door("Slack", mode.host, mode.port, PATH, "slack.http_port"), deliver):
        link.up = True
        await anyio.sleep_forever()


class _Doubts:
    """Says why deliveries are refused that may be Slack's: else nobody could tell why the app does not answer."""

    def __init__(self) -> None:
        self._told_at = -TOLD_EVERY_S

    def tell(self, sent_at: int) -> None:
        """Say of one delivery why it was refused, now and then."""
        now = time.monotonic()
        if now - self._told_at < TOLD_EVERY_S:
            return
        self._told_at = now
        off_s = int(time.time()) - sent_at
        if abs(off_s) > OFF_S:
            _log.warning("a delivery was refused: its time and this machine's clock are %d s apart", abs(off_s))
        else:
            _log.warning(
                "a delivery was refused that is not signed with slack.signing_secret; if it is Slack's, copy the secret"
                " anew from the app's page Basic Information"
            )
