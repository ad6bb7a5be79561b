"""The adapter for Telegram: what the contract asks for, each done by a module of its own beside this one."""

from collections.abc import Sequence
from functools import partial

import anyio

from adapters.contract import MenuEntry, Outbound, Place, Receive
from adapters.pacing import Pacer
from adapters.telegram.client import Client, link
from adapters.telegram.menu import publish
from adapters.telegram.places import NAME
from adapters.telegram.polling import poll
from adapters.telegram.progress import Screens
from adapters.telegram.reading import Event, Reader
from adapters.telegram.sending import Sender
from adapters.telegram.webhook import Webhook, listen


class Telegram:
    """A bot on Telegram. Without a ``webhook`` it asks for updates.

    ``admins`` are the ids of the people who get the whole ``menu``; `adapters.telegram.token` knows what a token is.
    """

    name = NAME
    has_buttons = True

    def __init__(
        self,
        token: str,
        api_base: str,
        *,
        menu: Sequence[MenuEntry] = (),
        admins: Sequence[int] = (),
        webhook: Webhook | None = None,
    ) -> None:
        self._client = Client(token, api_base)
        self._sender = Sender(self._client.bot)
        self._progress = Pacer(Screens(self._client.bot).of)
        self._menu = menu
        self._admins = admins
        self._webhook = webhook
        self._link = link()

    @property
    def connected(self) -> bool:
        """Whether Telegram answered last, and with what it has."""
        return self._link.up

    async def run(self, receive: Receive) -> None:
        """Take in updates until cancelled.

        Raises:
            ConnectionFailed: Telegram gives none: the token is wrong, another program takes them, or it stays away.
        """
        try:
            async with self._client.used() as bot, anyio.create_task_group() as tasks:
                me = await self._link.patiently(bot.get_me)
                await tasks.start(self._progress.run)
                tasks.start_soon(publish, bot, self._menu, self._admins)
                read, take = Reader(bot, me).read, partial(self._take, receive)
                if self._webhook is None:
                    await poll(bot, read, take, self._link)
                else:
                    await listen(self._webhook, bot, read, take, self._link)
        finally:
            self._link.up = False

    async def send(self, message: Outbound) -> None:
        """Send one reply."""
        async with self._client.used():
            await self._sender.send(message)

    async def progress(self, place: Place, text: str) -> None:
        """Show what is going on, at the pace that Telegram allows."""
        await self._progress.show(place, text)

    async def finished(self, place: Place, event_id: str) -> None:
        """Nothing: a reply says by itself that it has come."""

    async def _take(self, receive: Receive, event: Event) -> None:
        """Hand one event on, and show what became of it at once."""
        await self._sender.react(event, await receive(event.inbound))
