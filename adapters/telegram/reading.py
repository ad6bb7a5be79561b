"""Turns Telegram's updates into messages of the contract, and leaves out what is none.

Left out are commands for other bots, what other bots say, and messages without text or file: people who come and go,
pinned messages, stickers. That a group has become a supergroup, and with that has another id, is handed on.
"""

import logging
import re
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from mimetypes import guess_extension
from typing import Any

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
    PhotoSize,
    Update,
    User,
    Video,
    Voice,
)
from aiohttp import ClientError
from pydantic import ValidationError

from adapters.contract import Inbound, Offered, SendFailed
from adapters.telegram.client import SEND_AGAIN_S, sending
from adapters.telegram.places import Address, event_id, read_button

TAKEN_IN = ["message", "edited_message", "callback_query", "stopped_message_generation"]
"""The kinds of updates that Telegram is asked for."""

MOST_ALBUMS = 100
"""Albums that are remembered to be meant for the bot: only one of their messages says so."""

BEGIN, BEGUN = "/start", "/help"
"""What Telegram's own Start button says, perhaps with a word of whoever made a link to it, and what it means here."""

_LOOKED_AT = frozenset(
    {
        *("message_id", "date", "edit_date", "chat", "from", "sender_chat", "message_thread_id", "is_topic_message"),
        *("text", "entities", "caption", "caption_entities", "media_group_id", "reply_to_message"),
        *("photo", "document", "animation", "video", "audio", "voice", "migrate_to_chat_id", "migrate_from_chat_id"),
        *("id", "message", "data", "chat_instance", "draft_id"),
    }
)
"""What is read of a message, a press, or a stop."""

_log = logging.getLogger(__name__)
_COMMAND = re.compile(r"\s*(?P<command>/[A-Za-z0-9_]+)(?:@(?P<bot>[A-Za-z0-9_]+))?(?=\s|\Z)")


@dataclass(frozen=True, slots=True)
class Event:
    """A message, or a press of a button, whose ``query`` has to be answered.

    Files that a person sends together are messages of one ``album``; one of them has the words.
    """

    inbound: Inbound
    query: str | None = None
    album: str | None = None


def together(parts: Sequence[Event]) -> Event:
    """Make one message of those of an album, under the name of the first."""
    every = [part.inbound for part in parts]
    text = "\n".join(inbound.text for inbound in every if inbound.text)
    offered = tuple(file for inbound in every for file in inbound.offered)
    addressed = any(inbound.addressed for inbound in every)
    return replace(parts[0], inbound=replace(every[0], text=text, offered=offered, addressed=addressed))


Raw = dict[str, Any]
"""An update as it came."""

Read = Callable[[Raw], Event | None]
Take = Callable[[Event], Awaitable[None]]


class Reader:
    """Reads updates as the bot that it is."""

    def __init__(self, bot: Bot, me: User) -> None:
        self._bot = bot
        self._me = me
        self._name = (me.username or "").casefold()
        self._addressed_albums: deque[str] = deque(maxlen=MOST_ALBUMS)

    def read(self, raw: Raw) -> Event | None:
        """Understand an update; ``None`` for one that is nothing to hand on, or that nobody understands."""
        try:
            return self._event(self._update(raw))
        except Exception as error:  # noqa: BLE001 - whatever is wrong with it would be wrong each time it comes
            _log.warning("an update was not understood and is passed over: %s", type(error).__name__)
            return None

    def _update(self, raw: Raw) -> Update:
        context = {"bot": self._bot}
        try:
            return Update.model_validate(raw, context=context)
        except ValidationError:
            # Something of a later Bot API: not worth a person's word where nothing of it is needed.
            return Update.model_validate(_bare(raw), context=context)

    def _event(self, update: Update) -> Event | None:
        match update.event:
            case CallbackQuery() as query:
                return self._pressed(update.update_id, query)
            case MessageGenerationStopped() as stopped:
                # The platform's own Stop, below what is being written in a private chat.
                address = Address(stopped.chat.id, stopped.message_thread_id)
                return Event(self._inbound(update.update_id, None, address, stopped.chat.id, "/stop"))
            case Message(migrate_to_chat_id=int(new), chat=old) as message:
                return self._moved(update.update_id, message, old.id, new)
            case Message(migrate_from_chat_id=int(old), chat=new) as message:
                return self._moved(update.update_id, message, old, new.id)
            case Message() as message:
                return self._said(update.update_id, message, edited=update.edited_message is not None)
            case _:
                return None

    def _pressed(self, update: int, query: CallbackQuery) -> Event:
        message = query.message
        token, topic = read_button(query.data or "")
        # Without a message it is of its presser's private chat, or none of this bot's; an answer is due all the same.
        chat, number = (message.chat.id, message.message_id) if message is not None else (query.from_user.id, None)
        address = Address(chat, _topic(message) if isinstance(message, Message) else topic)
        return Event(self._inbound(update, number, address, query.from_user.id, "", pressed=token), query.id)

    def _moved(self, update: int, message: Message, old: int, new: int) -> Event:
        """That a group has another id now, which is told both where it was and where it is."""
        user = _speaker(message) or old
        more = {"addressed": False, "continues": Address(old).place}
        return Event(self._inbound(update, message.message_id, Address(new), user, "", **more))

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
            if command["command"].casefold() == BEGIN:
                text = BEGUN
        address = Address(message.chat.id, _topic(message))
        addressed = address.is_private or bool(command) or named or self._answers_bot(message)
        album = None if edited else message.media_group_id
        if album is not None and addressed:
            self._addressed_albums.append(album)
        addressed = addressed or album in self._addressed_albums
        more = {"addressed": addressed, "edited": edited, "offered": offered}
        return Event(self._inbound(update, message.message_id, address, user, text, **more), album=album)

    def _inbound(
        self, update: int, message: int | None, address: Address, user: int, text: str, **more: Any
    ) -> Inbound:
        event = event_id(self._bot.id, update, message)
        circles = () if address.is_private else (str(address.chat),)
        return Inbound(address.place, str(user), event, text, circles=circles, private=address.is_private, **more)

    def _without_names(self, message: Message) -> tuple[str, bool]:
        """The text of a message, or below a file, without the names of the bot, and whether there were any."""
        text = message.text or message.caption or ""
        entities = message.entities or message.caption_entities or []
        names = [entity for entity in entities if self._names_bot(entity, text)]
        if not names or message.chat.type == ChatType.PRIVATE:
            return text, False
        # Offsets count UTF-16 units.
        data = text.encode("utf-16-le", "surrogatepass")
        names = sorted(names, key=lambda entity: entity.offset, reverse=True)
        for entity in names:
            data = data[: 2 * entity.offset] + data[2 * (entity.offset + entity.length) :]
        bare = data.decode("utf-16-le", "surrogatepass").strip()
        leads = not data[: 2 * names[-1].offset].decode("utf-16-le", "surrogatepass").strip()
        # What stands between a name and what is said to it, as in "@bot, do it", is no part of that.
        return bare.lstrip(",:").lstrip() if leads else bare, True

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
        photo = max(message.photo or (), key=lambda size: size.width * size.height, default=None)
        # An animation comes as a document too, for clients that know none.
        for file in (photo, message.document or message.animation, message.video, message.audio, message.voice):
            if file is not None:
                name = _file_name(file, message.message_id)
                yield Offered(name, file.file_size, partial(self._fetch, file.file_id, name))

    async def _fetch(self, file_id: str, name: str) -> bytes:
        content = BytesIO()
        try:
            with sending():
                await self._bot.download(file_id, content)
        except (ClientError, TimeoutError) as error:
            # Not chained: it names the address, which holds the token.
            lost = f"{name} was lost on its way from Telegram ({type(error).__name__})"
            raise SendFailed(lost, retry_after_s=SEND_AGAIN_S) from None
        return content.getvalue()


def _bare(raw: Raw) -> Raw:
    """An update with what is looked at here alone."""
    return {key: _bare_event(value) if isinstance(value, dict) else value for key, value in raw.items()}


def _bare_event(event: Raw) -> Raw:
    kept = {key: value for key, value in event.items() if key in _LOOKED_AT}
    for within in ("message", "reply_to_message"):
        if isinstance(kept.get(within), dict):
            kept[within] = _bare_event(kept[within])
    return kept


def _topic(message: Message) -> int | None:
    """The topic that a message lies in; elsewhere a thread is only a chain of replies."""
    return message.message_thread_id if message.is_topic_message else None


def _speaker(message: Message) -> int | None:
    """Who speaks. An anonymous administrator speaks as the group: the user named then is the same everywhere."""
    if message.sender_chat is not None:
        return message.sender_chat.id
    return None if message.from_user is None or message.from_user.is_bot else message.from_user.id


def _file_name(file: PhotoSize | Document | Animation | Video | Audio | Voice, message: int) -> str:
    """What a person calls a file, else what it is."""
    if isinstance(file, PhotoSize):
        return f"photo-{message}.jpg"
    named = None if isinstance(file, Voice) else file.file_name
    return named or f"{type(file).__name__.lower()}-{message}{guess_extension(file.mime_type or '') or ''}"
