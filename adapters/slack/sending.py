"""Sends replies: in their thread, whole, and what is for one person so that nobody else sees it."""

import logging
from collections.abc import Awaitable, Iterable
from contextlib import suppress
from functools import partial

from slack_sdk.webhook.async_client import AsyncWebhookClient

from adapters.contract import Outbound, Part, Reception, SendFailed
from adapters.pages import Page, apart, divide
from adapters.replies import Deliveries, Piece, compose, file_name
from adapters.slack.client import CALL_S, QUIET, REFUSALS, Client, reason_of, send_failure
from adapters.slack.places import Address
from adapters.slack.reading import Event
from adapters.slack.rendering import LIMITS, MOST_BLOCKS, ROOM, said, without_buttons

_log = logging.getLogger(__name__)


class Sender:
    """Sends as one app."""

    def __init__(self, client: Client) -> None:
        self._web = client.web
        self._patient = client.patient
        self._deliveries = Deliveries()

    async def send(self, message: Outbound) -> None:
        """Send a reply completely.

        Raises:
            SendFailed: not all of it has arrived.
        """
        address = Address.of(message.place, message.reply_to)
        if address.is_home:
            await self._publish(address, message.parts)
            return
        await self._deliveries.deliver(message, compose(message, LIMITS), partial(self._send, address))

    async def show(self, event: Event, reception: Reception) -> None:
        """Show at once what became of something: a word to its person, and buttons that have had their use gone.

        Best effort: the person can ask again.
        """
        if reception.spent and event.pressed is not None:
            await _best_effort(self._take_buttons(event))
        if reception.notice is not None and event.address.is_home:
            with suppress(SendFailed):
                await self._publish(event.address, [Part(reception.notice)])
        elif reception.notice is not None:
            for page in divide([Part(reception.notice)], ROOM):
                await _best_effort(self._tell(event, page))

    async def _publish(self, address: Address, parts: Iterable[Part]) -> None:
        """Show something on a person's page, instead of what stood there."""
        blocks = [block for page in divide(apart(parts), ROOM) for block in said(page)["blocks"]]
        try:
            view = {"type": "home", "blocks": blocks[:MOST_BLOCKS]}
            await self._patient.views_publish(user_id=str(address.thread), view=view)
        except REFUSALS as error:
            raise send_failure(error) from None

    async def _send(self, address: Address, _number: int, piece: Piece) -> None:
        try:
            if piece.file is None:
                await self._web.chat_postMessage(
                    channel=address.channel,
                    thread_ts=address.thread,
                    # Many a file's name looks like a host's.
                    unfurl_links=False,
                    unfurl_media=False,
                    **said(piece.parts, piece.buttons),
                )
            else:
                name = file_name(piece.file.name)
                await self._web.files_upload_v2(
                    channel=address.channel,
                    thread_ts=address.thread,
                    filename=name,
                    title=name,
                    file=piece.file.content,
                    snippet_type="diff" if name.endswith(".diff") else None,
                )
        except REFUSALS as error:
            raise send_failure(error) from None

    async def _tell(self, event: Event, page: Page) -> None:
        if event.pressed is None and event.answer_url is not None:
            # A command can be given where the app is no member; then this is the only way.
            client = AsyncWebhookClient(event.answer_url, timeout=CALL_S, trust_env_in_session=True, logger=QUIET)
            await client.send(response_type="ephemeral", **said(page))
            return
        address = event.address
        await self._patient.chat_postEphemeral(
            channel=address.channel, user=event.inbound.user, thread_ts=address.thread, **said(page)
        )

    async def _take_buttons(self, event: Event) -> None:
        message = event.pressed or {}
        await self._patient.chat_update(
            channel=event.address.channel,
            ts=str(message["ts"]),
            text=str(message.get("text") or ""),
            blocks=without_buttons(message.get("blocks") or ()),
        )


async def _best_effort(call: Awaitable[object]) -> None:
    """Do what the person can ask for again: a message may be gone, a person may have left."""
    try:
        await call
    except REFUSALS as error:
        _log.info("not shown: %s", reason_of(error))
