"""The adapter for Slack: what the contract asks for, each done by a module of its own beside this one."""

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import anyio
from anyio.abc import TaskGroup

from adapters.contract import Outbound, Place, Receive
from adapters.lanes import Lanes
from adapters.link import Link
from adapters.pacing import Pacer
from adapters.slack.client import REFUSALS, Client, diagnose
from adapters.slack.dispatching import make_app
from adapters.slack.downloads import Downloads
from adapters.slack.http_mode import HttpMode, listen
from adapters.slack.places import NAME, Address
from adapters.slack.progress import Message
from adapters.slack.reading import Reader
from adapters.slack.sending import Sender
from adapters.slack.socket_mode import SocketMode, connect
from adapters.slack.threads import Threads

_log = logging.getLogger(__name__)


class Slack:
    """An app on Slack. ``is_command`` tells whether a text that begins with ``/`` is a command, arguments and all."""

    name = NAME
    has_buttons = True

    def __init__(
        self, bot_token: str, api_base: str, mode: SocketMode | HttpMode, *, is_command: Callable[[str], bool]
    ) -> None:
        self._client = Client(bot_token, api_base)
        self._sender = Sender(self._client)
        self._pacer = Pacer(partial(Message, self._client))
        self._mode = mode
        self._is_command = is_command
        self._lanes = Lanes()
        self._link = Link(REFUSALS, diagnose)

    @property
    def connected(self) -> bool:
        """Whether Slack can deliver what it has."""
        return self._link.up

    async def run(self, receive: Receive) -> None:
        """Take in what is delivered until cancelled.

        Raises:
            ConnectionFailed: Slack delivers nothing: a token is refused, or it stays away.
        """
        try:
            async with anyio.create_task_group() as tasks:
                me = await self._link.patiently(self._client.who)
                await tasks.start(self._pacer.run)
                reader = Reader(me, Downloads(self._client), self._is_command)
                take = partial(self._take, reader, Threads(self._client, me), receive, tasks)
                if isinstance(self._mode, SocketMode):
                    await connect(self._mode, self._client, make_app(me, take), self._link)
                else:
                    await listen(self._mode, make_app(me, take, self._mode.signing_secret), self._link)
        finally:
            self._link.up = False

    async def send(self, message: Outbound) -> None:
        """Send one reply."""
        await self._sender.send(message)

    async def progress(self, place: Place, text: str) -> None:
        """Show what is going on, at the pace that Slack allows."""
        if not Address.of(place).is_home:
            await self._pacer.show(place, text)

    async def finished(self, place: Place, event_id: str) -> None:
        """Nothing: a reply says by itself that it has come."""

    async def _take(
        self, reader: Reader, threads: Threads, receive: Receive, tasks: TaskGroup, body: Mapping[str, Any]
    ) -> None:
        """Hand one delivery on, and have shown what became of it at once."""
        try:
            event = reader.read(body)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with it would be wrong each time it comes
            _log.warning("a delivery was not understood and is passed over: %s", type(error).__name__)
            return
        if event is None:
            return
        self._sender.remember(event)
        async with self._lanes.turn(event.inbound.place):
            event = await threads.settle(event)
            reception = await receive(event.inbound)
        # Not before Slack has its acknowledgement.
        tasks.start_soon(self._sender.show, event, reception)
