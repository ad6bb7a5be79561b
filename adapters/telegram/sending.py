"""Sends replies: in place, whole, and as plain text where Telegram refuses their markup."""

import logging
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from aiogram import Bot
from aiogram.exceptions import ClientDecodeError, TelegramBadRequest, TelegramMigrateToChat
from aiogram.types import BufferedInputFile, EphemeralMessageParameters, LinkPreviewOptions, ReplyParameters

from adapters.contract import Outbound, Part, Reception
from adapters.pages import Room, plain, shorten
from adapters.replies import Deliveries, Piece, compose, file_name
from adapters.telegram.client import REFUSALS, best_effort, reason_of, sending, taken
from adapters.telegram.places import Address, message_of
from adapters.telegram.reading import Event
from adapters.telegram.rendering import LIMITS, keyboard, rendered, units

ANSWER = Room(200, units)
"""How much an answer to a press may say."""

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
        send = partial(self._send_piece, address, answered)
        await self._deliveries.deliver(message, compose(message, LIMITS), send)

    async def react(self, event: Event, reception: Reception) -> None:
        """Show what became of a message or a press at once; best effort, for the person can ask again.

        A press is answered always: its person's screen waits for it.
        """
        told = ""
        if event.query is not None:
            words = _cut(reception.notice or "")
            # One that waited for the gateway to start, or for its turn, is too old to be answered.
            with best_effort("a press was not answered"):
                await self._bot.answer_callback_query(event.query, words or None, show_alert=bool(words))
                told = words
        message = message_of(event.inbound.event_id)
        if reception.spent and message is not None:
            chat = Address.of(event.inbound.place).chat
            with best_effort("buttons were not taken away"):
                await self._bot.edit_message_reply_markup(chat_id=chat, message_id=message)
        if reception.notice and reception.notice != told:
            await self._tell(event, reception.notice)

    async def _tell(self, event: Event, notice: str) -> None:
        """Say something to one person; where others read along, so that only this person sees it, if possible."""
        address, answered = Address.of(event.inbound.place), message_of(event.inbound.event_id)
        piece = Piece((Part(notice),))
        with best_effort("a notice was not shown"):
            if address.is_private:
                await self._send(address, piece)
                return
            only = EphemeralMessageParameters(receiver_user_id=int(event.inbound.user), callback_query_id=event.query)
            with suppress(*REFUSALS):
                await self._send(address, piece, answered, ephemeral_message_parameters=only)
                return
            await self._send(address, piece, answered)

    async def _send_piece(self, address: Address, answered: int | None, number: int, piece: Piece) -> None:
        with sending():
            try:
                await self._send_marked(address, piece, answered if number == 0 else None)
            except ClientDecodeError as error:
                if taken(error) is None:
                    raise
                _log.warning("Telegram's word on what was sent is not understood: %s", type(error.original).__name__)

    async def _send_marked(self, address: Address, piece: Piece, answered: int | None) -> None:
        """Send one message; without its markup where that is refused, and to where a group has moved."""
        try:
            await self._send(address, piece, answered)
        except TelegramMigrateToChat as error:
            await self._send_marked(replace(address, chat=error.migrate_to_chat_id), piece, None)
        except TelegramBadRequest as error:
            said = error.message.lower()
            if answered is not None and "repl" in said and "entit" not in said:
                # What is answered is gone, and somehow that matters.
                await self._send_marked(address, piece, None)
                return
            if "entit" not in said:
                raise
            _log.warning("Telegram refused the markup of a reply, which goes as plain text: %s", reason_of(error))
            await self._send(address, piece, answered, plain=True)

    async def _send(
        self, address: Address, piece: Piece, answered: int | None = None, *, plain: bool = False, **more: Any
    ) -> None:
        """Send one message; ``more`` are further parameters of the call."""
        text, entities = rendered(piece.parts)
        marks = None if plain else entities or None
        more |= {**address.target, "reply_markup": keyboard(piece.buttons, address.topic)}
        if answered is not None:
            # It may have been deleted meanwhile.
            more["reply_parameters"] = ReplyParameters(message_id=answered, allow_sending_without_reply=True)
        if piece.file is None:
            await self._bot.send_message(text=text, entities=marks, link_preview_options=_BARE, **more)
        else:
            document = BufferedInputFile(piece.file.content, file_name(piece.file.name))
            await self._bot.send_document(document=document, caption=text or None, caption_entities=marks, **more)


def _cut(notice: str) -> str:
    """As much of a notice as an answer to a press may say."""
    whole = Part(notice)
    if units(whole) <= ANSWER.longest:
        return notice
    return plain(shorten((whole,), replace(ANSWER, longest=ANSWER.longest - 1))) + "…"
