"""Socket Mode: Slack delivers through connections that this process opens, so it needs no public address.

Slack asks now and then for a new connection before it ends the old one; both deliver for a moment. A connection that
is silently dead is found out because nothing answers its pings.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import anyio
from aiohttp import ClientError, ClientSession, ClientWebSocketResponse, ClientWSTimeout, WSMsgType
from slack_bolt.async_app import AsyncApp
from slack_bolt.request.async_request import AsyncBoltRequest

from adapters.contract import ConnectionFailed
from adapters.link import DELAYS_S, Link
from adapters.slack.client import Client

HEARTBEAT_S = 10.0
"""How often a connection is pinged; half of this later it is given up."""

GRACE_S = 10.0
"""How long an old connection is still listened to once Slack has asked for a new one."""

STEADY_S = 10.0
"""A connection that ended sooner, or was to be replaced, was none."""

AGAIN_S = (0.0, *DELAYS_S)
"""How long after a connection the next is opened; the delay grows while none is steady."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SocketMode:
    """How deliveries are asked for."""

    app_token: str = field(repr=False)
    heartbeat_s: float = HEARTBEAT_S


async def connect(mode: SocketMode, client: Client, app: AsyncApp, link: Link) -> None:
    """Take in deliveries until cancelled.

    Raises:
        ConnectionFailed: Slack gives no connection, or none that lasts.
    """
    async with ClientSession(trust_env=True) as session, anyio.create_task_group() as tasks:

        async def open_one() -> ClientWebSocketResponse:
            opened = await client.web.apps_connections_open(app_token=mode.app_token)
            return await session.ws_connect(
                str(opened["url"]), heartbeat=mode.heartbeat_s, timeout=ClientWSTimeout(ws_close=1.0)
            )

        delays = iter(AGAIN_S)
        while True:
            connection = _Connection(await link.patiently(open_one), app, link)
            began = anyio.current_time()
            tasks.start_soon(connection.run)
            await connection.over.wait()
            if anyio.current_time() - began > STEADY_S:
                delays = iter(AGAIN_S)
            delay_s = next(delays, None)
            if delay_s is None:
                raise ConnectionFailed("Slack ends every connection at once", permanent=False)
            await anyio.sleep(delay_s)


class _Connection:
    """One connection. ``over`` is set once another is needed; it was ``replaced`` if Slack said so."""

    def __init__(self, socket: ClientWebSocketResponse, app: AsyncApp, link: Link) -> None:
        self.over = anyio.Event()
        self.replaced = False
        self._socket = socket
        self._app = app
        self._link = link

    async def run(self) -> None:
        """Take in what it delivers until it ends."""
        try:
            async with anyio.create_task_group() as handling:
                async for message in self._socket:
                    if message.type is WSMsgType.TEXT:
                        self._heard(message.json(), handling)
        finally:
            if not self.replaced:
                self._link.up = False
            self.over.set()
            with anyio.CancelScope(shield=True):
                await self._socket.close()

    def _heard(self, said: Mapping[str, Any], handling: anyio.abc.TaskGroup) -> None:
        match said.get("type"):
            case "hello":
                self._link.up = True
            case "disconnect":
                _log.info("Slack asks for another connection (%s)", said.get("reason"))
                self.replaced = True
                self.over.set()
                handling.start_soon(self._retire)
            case _ if "envelope_id" in said:
                handling.start_soon(self._deliver, said)

    async def _retire(self) -> None:
        """Close the connection if Slack does not."""
        await anyio.sleep(GRACE_S)
        await self._socket.close()

    async def _deliver(self, envelope: Mapping[str, Any]) -> None:
        request = AsyncBoltRequest(mode="socket_mode", body=dict(envelope.get("payload") or {}))
        answer = await self._app.async_dispatch(request)
        if answer.status != HTTPStatus.OK:
            return
        try:
            await self._socket.send_json({"envelope_id": envelope["envelope_id"]})
        except (ClientError, ConnectionError):
            _log.info("an acknowledgement was lost; Slack delivers again")
