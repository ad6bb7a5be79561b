"""Sends replies: in place, whole, and as plain text where Telegram refuses their markup."""

import logging
from collections.abc import Awaitable
from dataclasses import replace
from functools import partial
from typing import Any

from aiogram import Bot
from aiogram.exceptions import TelegramBadRequest, TelegramMigrateToChat
from aiogram.methods import SendDocument, SendMessage
from aiogram.types import BufferedInputFile, EphemeralMessageParameters, LinkPreviewOptions, ReplyParameters

from adapters.contract import Outbound, Part
from adapters.replies import Deliveries, Piece, compose, file_name
from adapters.telegram.client import REFUSALS, reason_of, send_failure
from adapters.telegram.places import Address, message_of
from adapters.telegram.reading import Event
from adapters.telegram.rendering import LIMITS, keyboard, rendered

LONGEST_ANSWER = 200
"""Characters that an answer to a press may have."""

_BARE = LinkPreviewOptions(is_disabled=True)
"""No preview of a page: many a file's name looks like a host's."""

_log = logging.getLogger(__name__)


class Sender:
    """Sends as one bot."""

    def __init__(self, bot: Bot) -> None:
        self._bot = bot
        self._deliveries = Deliveries()

    async def send(self, message: Outbound) -> None:
        """Send a reply completely.

        Raises:
            SendFailed: not all of it has arrived.
        """
        address = Address.of(message.place)
        # In a private chat it is plain what a reply is about.
        answered = None if address.is_private else message_of(message.reply_to)
        send = partial(self._send_marked, address, answered)
        try:
            await self._deliveries.deliver(message, compose(message, LIMITS), send)
        except REFUSALS as error:
            raise send_failure(error) from None

    async def tell(self, event: Event, notice: str) -> None:
        """Say something to one person; where others read along, so that only this person sees it, if that is possible.

        Best effort: the person can ask again.
        """
        answered, piece = message_of(event.inbound.event_id), Piece((Part(notice),))
        if event.address.is_private:
            await _best_effort(self._send(event.address, piece))
            return
        try:
            await self._send(event.address, piece, answered, only_for=event)
        except REFUSALS:
            await _best_effort(self._send(event.address, piece, answered))

    async def answer(self, event: Event, notice: str | None, *, spent: bool) -> None:
        """Answer a press, which its person's screen waits for, and take away buttons that have had their use."""
        if event.press is None:
            return
        alert = notice if notice is None or len(notice) <= LONGEST_ANSWER else notice[: LONGEST_ANSWER - 1] + "…"
        chat, message = event.address.chat, event.press.message
        await _best_effort(self._bot.answer_callback_query(event.press.query, alert, show_alert=bool(alert)))
        if spent and message is not None:
            await _best_effort(self._bot.edit_message_reply_markup(chat_id=chat, message_id=message))
        if notice is not None and notice != alert:
            await self.tell(event, notice)

    async def _send_marked(self, address: Address, answered: int | None, number: int, piece: Piece) -> None:
        """Send one message; without its markup where that is refused, and to where a group has moved."""
        answered = answered if number == 0 else None
        try:
            await self._send(address, piece, answered)
        except TelegramMigrateToChat as error:
            await self._send(replace(address, chat=error.migrate_to_chat_id), piece)
        except TelegramBadRequest as error:
            if "entit" not in error.message.lower():
                raise
            _log.warning("Telegram refused the markup of a reply, which goes as plain text: %s", reason_of(error))
            await self._send(address, piece, answered, plain=True)

    async def _send(
        self,
        address: Address,
        piece: Piece,
        answered: int | None = None,
        *,
        plain: bool = False,
        only_for: Event | None = None,
    ) -> None:
        text, entities = rendered(piece.parts)
        common: dict[str, Any] = {
            "chat_id": address.chat,
            "message_thread_id": address.topic,
            "reply_markup": keyboard(piece.buttons),
            "reply_parameters": _reply(answered),
            "ephemeral_message_parameters": _only_for(only_for),
        }
        marks = None if plain or not entities else entities
        if piece.file is None:
            await self._bot(SendMessage(text=text, entities=marks, link_preview_options=_BARE, **common))
        else:
            document = BufferedInputFile(piece.file.content, file_name(piece.file.name))
            await self._bot(SendDocument(document=document, caption=text or None, caption_entities=marks, **common))


async def _best_effort(call: Awaitable[object]) -> None:
    """Do what the person can ask for again: a press may be too old to be answered, a message may be gone."""
    try:
        await call
    except REFUSALS as error:
        _log.info("not shown: %s", reason_of(error))


def _reply(answered: int | None) -> ReplyParameters | None:
    # What is answered may have been deleted meanwhile.
    return None if answered is None else ReplyParameters(message_id=answered, allow_sending_without_reply=True)


def _only_for(event: Event | None) -> EphemeralMessageParameters | None:
    if event is None:
        return None
    query = event.press.query if event.press else None
    return EphemeralMessageParameters(receiver_user_id=int(event.inbound.user), callback_query_id=query)
