"""Turns Telegram's updates into messages of the contract, and leaves out what is none.

Left out are commands for other bots, what other bots say, and messages without text or file: people who come and go,
pinned messages, stickers.
"""

import re
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from mimetypes import guess_extension

from aiogram import Bot
from aiogram.enums import ChatType, MessageEntityType
from aiogram.types import (
    Animation,
    Audio,
    CallbackQuery,
    Document,
    Message,
    MessageEntity,
    MessageGenerationStopped,
    Update,
    User,
    Video,
    Voice,
)
from aiohttp import ClientError

from adapters.contract import Inbound, Offered, SendFailed
from adapters.telegram.client import REFUSALS, SEND_AGAIN_S, send_failure
from adapters.telegram.places import Address, event_id

TAKEN_IN = ["message", "edited_message", "callback_query", "stopped_message_generation"]
"""The kinds of updates that Telegram is asked for."""

LARGEST_DOWNLOAD_BYTES = 20 * 1024 * 1024
"""What Telegram lets a bot download: core.telegram.org/bots/api#getfile."""

_COMMAND = re.compile(r"\s*(?P<command>/[A-Za-z0-9_]+)(?:@(?P<bot>[A-Za-z0-9_]+))?(?=\s|\Z)")


@dataclass(frozen=True, slots=True)
class Press:
    """A press of a button: what has to be answered, and the message that has the button."""

    query: str
    message: int | None


@dataclass(frozen=True, slots=True)
class Event:
    """A message or a press, and what is needed to show what became of it."""

    inbound: Inbound
    address: Address
    press: Press | None = None


class Reader:
    """Reads updates as the bot that it is."""

    def __init__(self, bot: Bot, me: User) -> None:
        self._bot = bot
        self._me = me
        self._name = (me.username or "").casefold()

    def read(self, update: Update) -> Event | None:
        """Understand an update; ``None`` for one that is nothing to hand on."""
        if update.callback_query is not None:
            return self._pressed(update.update_id, update.callback_query)
        if update.stopped_message_generation is not None:
            return self._stopped(update.update_id, update.stopped_message_generation)
        if update.edited_message is not None:
            return self._said(update.update_id, update.edited_message, edited=True)
        return self._said(update.update_id, update.message, edited=False) if update.message is not None else None

    def _pressed(self, update: int, query: CallbackQuery) -> Event | None:
        if query.message is None or not query.data:
            return None  # a button of a message that was sent on behalf of a person; this bot makes none
        address = Address(query.message.chat.id, _topic(query.message))
        event = event_id(self._bot.id, update, query.message.message_id)
        inbound = self._inbound(address, str(query.from_user.id), event, text="", pressed=query.data)
        return Event(inbound, address, Press(query.id, query.message.message_id))

    def _stopped(self, update: int, stopped: MessageGenerationStopped) -> Event:
        """The platform's own Stop, below what is being written in a private chat."""
        address = Address(stopped.chat.id, stopped.message_thread_id)
        event = event_id(self._bot.id, update, None)
        return Event(self._inbound(address, str(stopped.chat.id), event, text="/stop"), address)

    def _said(self, update: int, message: Message, *, edited: bool) -> Event | None:
        user = _speaker(message)
        offered = tuple(self._files(message))
        text, named = self._without_names(message)
        if user is None or not (text or offered) or message.chat.type == ChatType.CHANNEL:
            return None
        command = _COMMAND.match(text)
        if command is not None:
            if command["bot"] and command["bot"].casefold() != self._name:
                return None
            text = command["command"] + text[command.end() :]
        address = Address(message.chat.id, _topic(message))
        event = event_id(self._bot.id, update, message.message_id)
        addressed = address.is_private or bool(command) or named or self._answers_bot(message)
        inbound = self._inbound(address, user, event, text, addressed=addressed, edited=edited, offered=offered)
        return Event(inbound, address)

    def _inbound(
        self,
        address: Address,
        user: str,
        event: str,
        text: str,
        *,
        addressed: bool = True,
        edited: bool = False,
        offered: tuple[Offered, ...] = (),
        pressed: str | None = None,
    ) -> Inbound:
        return Inbound(
            place=address.place,
            user=user,
            event_id=event,
            text=text,
            edited=edited,
            offered=offered,
            circles=() if address.is_private else (str(address.chat),),
            addressed=addressed,
            pressed=pressed,
            private=address.is_private,
        )

    def _without_names(self, message: Message) -> tuple[str, bool]:
        """The text of a message, or below a file, without the names of the bot, and whether there were any."""
        text = message.text or message.caption or ""
        entities = message.entities or message.caption_entities or []
        names = [entity for entity in entities if self._names_bot(entity, text)]
        if not names or message.chat.type == ChatType.PRIVATE:
            return text, False
        # Offsets count UTF-16 units.
        data = text.encode("utf-16-le", "surrogatepass")
        for entity in sorted(names, key=lambda entity: entity.offset, reverse=True):
            data = data[: 2 * entity.offset] + data[2 * (entity.offset + entity.length) :]
        return data.decode("utf-16-le", "surrogatepass").strip(), True

    def _names_bot(self, entity: MessageEntity, text: str) -> bool:
        if entity.type == MessageEntityType.TEXT_MENTION:
            return entity.user is not None and entity.user.id == self._me.id
        return entity.type == MessageEntityType.MENTION and entity.extract_from(text).casefold() == f"@{self._name}"

    def _answers_bot(self, message: Message) -> bool:
        """Whether a message is a reply to the bot; in a topic everything is a reply to the topic's first message."""
        answered = message.reply_to_message
        if answered is None or answered.from_user is None or answered.from_user.id != self._me.id:
            return False
        return answered.message_id != _topic(message)

    def _files(self, message: Message) -> Iterator[Offered]:
        if message.photo:
            largest = max(message.photo, key=lambda size: size.width * size.height)
            yield self._offered(largest.file_id, f"photo-{message.message_id}.jpg", largest.file_size)
        # An animation comes as a document too, for clients that know none.
        for file in (message.document or message.animation, message.video, message.audio, message.voice):
            if file is not None:
                yield self._offered(file.file_id, _file_name(file, message.message_id), file.file_size)

    def _offered(self, file_id: str, name: str, size_bytes: int | None) -> Offered:
        return Offered(name, size_bytes, partial(self._fetch, file_id, name))

    async def _fetch(self, file_id: str, name: str) -> bytes:
        content = bytearray()
        try:
            path = (await self._bot.get_file(file_id)).file_path
            if path is None:
                raise SendFailed(f"Telegram does not give {name} away", retry_after_s=None)
            url = self._bot.session.api.file_url(self._bot.token, path)
            async with aclosing(self._bot.session.stream_content(url)) as chunks:
                async for chunk in chunks:
                    content += chunk
                    if len(content) > LARGEST_DOWNLOAD_BYTES:
                        raise SendFailed(f"{name} is larger than Telegram said", retry_after_s=None)
        except REFUSALS as error:
            raise send_failure(error) from None
        except (ClientError, TimeoutError) as error:
            # Not chained: it names the address, which holds the token.
            lost = f"{name} was lost on its way from Telegram ({type(error).__name__})"
            raise SendFailed(lost, retry_after_s=SEND_AGAIN_S) from None
        return bytes(content)


def _topic(message: object) -> int | None:
    """The topic that a message lies in; elsewhere a thread is only a chain of replies."""
    return message.message_thread_id if isinstance(message, Message) and message.is_topic_message else None


def _speaker(message: Message) -> str | None:
    """Who speaks. An anonymous administrator speaks as the group: the user named then is the same everywhere."""
    if message.sender_chat is not None:
        return str(message.sender_chat.id)
    if message.from_user is None or message.from_user.is_bot:
        return None
    return str(message.from_user.id)


def _file_name(file: Document | Animation | Video | Audio | Voice, message: int) -> str:
    named = None if isinstance(file, Voice) else file.file_name
    return named or f"{type(file).__name__.lower()}-{message}{guess_extension(file.mime_type or '') or ''}"
