"""Sends replies: in their thread, whole, and what is for one person so that nobody else sees it."""

import logging
from collections.abc import Awaitable, Iterable
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import Any

from slack_sdk.errors import SlackApiError
from slack_sdk.webhook.async_client import AsyncWebhookClient

from adapters.contract import Outbound, Part, Reception, SendFailed
from adapters.pages import Page, apart, divide
from adapters.replies import Deliveries, Piece, compose, file_name
from adapters.slack.client import (
    CALL_S,
    LACKING,
    QUIET,
    REFUSALS,
    Client,
    error_of,
    is_outside,
    is_refused,
    is_unreadable,
    reason_of,
    send_failure,
)
from adapters.slack.places import Address
from adapters.slack.reading import Event
from adapters.slack.rendering import LIMITS, MOST_BLOCKS, ROOM, said, without_buttons

MOST_REMEMBERED = 1000

_log = logging.getLogger(__name__)


class Sender:
    """Sends as one app."""

    def __init__(self, client: Client) -> None:
        self._web = client.web
        self._patient = client.patient
        self._deliveries = Deliveries()
        self._answer_urls: dict[str, str] = {}

    async def send(self, message: Outbound) -> None:
        """Send a reply completely.

        Raises:
            SendFailed: not all of it has arrived.
        """
        address = Address.of(message.place, message.reply_to)
        if address.is_home:
            await self._publish(address, message.parts)
            return
        send = partial(self._send, address, self._answer_urls.get(message.reply_to or ""))
        await self._deliveries.deliver(message, compose(message, LIMITS), send)

    def remember(self, event: Event) -> None:
        """Keep the way to answer a command, or a press, that may have been given where the app is no member."""
        if event.answer_url is not None:
            self._answer_urls[event.inbound.event_id] = event.answer_url
            if len(self._answer_urls) > MOST_REMEMBERED:
                del self._answer_urls[next(iter(self._answer_urls))]

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

    async def _send(self, address: Address, answer_url: str | None, _number: int, piece: Piece) -> None:
        try:
            await self._send_there(address, piece)
        except REFUSALS as error:
            # What an app may say where it is no member, it says to this person alone.
            if is_outside(error) and answer_url is not None and await _answered(answer_url, piece):
                return
            raise _failure(error, piece) from None

    async def _send_there(self, address: Address, piece: Piece) -> None:
        if piece.file is None:
            words = said(piece.parts, piece.buttons)
            try:
                await self._post(address, **words)
            except SlackApiError as error:
                if not is_unreadable(error):
                    raise
                _log.warning("Slack refused the blocks of a reply, which goes as plain text: %s", reason_of(error))
                await self._post(address, text=words["text"], mrkdwn=False)
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

    async def _post(self, address: Address, **words: Any) -> None:
        # Many a file's name looks like a host's.
        words |= {"unfurl_links": False, "unfurl_media": False}
        await self._web.chat_postMessage(channel=address.channel, thread_ts=address.thread, **words)

    async def _tell(self, event: Event, page: Page) -> None:
        url, address = event.answer_url, event.address
        # A command belongs to no thread; a press may, and its own way to answer leads to the channel.
        if event.pressed is None and url is not None and await _answered(url, Piece(page)):
            return
        try:
            await self._patient.chat_postEphemeral(
                channel=address.channel, user=event.inbound.user, thread_ts=address.thread, **said(page)
            )
        except REFUSALS:
            if event.pressed is None or url is None or not await _answered(url, Piece(page)):
                raise

    async def _take_buttons(self, event: Event) -> None:
        message = event.pressed or {}
        if not message:
            # It is shown to one person alone: Slack does not tell what it says, and lets it only be taken away.
            await _webhook(event.answer_url or "").send(delete_original=True)
            return
        await self._patient.chat_update(
            channel=event.address.channel,
            ts=str(message["ts"]),
            text=str(message.get("text") or ""),
            blocks=without_buttons(message.get("blocks") or ()),
        )


async def _answered(url: str, piece: Piece) -> bool:
    """Say something to whoever gave a command, where they gave it; false where that is not possible."""
    if piece.file is not None:
        return False
    with suppress(*REFUSALS):
        words = said(piece.parts, piece.buttons)
        answer = await _webhook(url).send(response_type="ephemeral", replace_original=False, **words)
        return answer.status_code == HTTPStatus.OK
    return False


def _webhook(url: str) -> AsyncWebhookClient:
    return AsyncWebhookClient(url, timeout=CALL_S, trust_env_in_session=True, logger=QUIET)


def _failure(error: Exception, piece: Piece) -> SendFailed:
    """Say why a message was not sent. A file that the app has no scope for must not hold up what comes after it."""
    if not is_refused(error):
        return send_failure(error)
    if piece.file is not None and error_of(error) == LACKING:
        return SendFailed(reason_of(error), retry_after_s=None)
    failure = send_failure(error)
    _log.warning("a reply waits: %s", failure.reason)
    return failure


async def _best_effort(call: Awaitable[object]) -> None:
    """Do what the person can ask for again: a message may be gone, a person may have left."""
    try:
        await call
    except REFUSALS as error:
        _log.info("not shown: %s", reason_of(error))
