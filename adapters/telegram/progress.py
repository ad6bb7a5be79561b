"""Shows in a chat what goes on: that the bot is typing, and after a moment the latest word on it.

In a private chat that word is a draft, which goes by itself when the reply comes or this process dies; elsewhere one
message that is edited and, in the end, deleted. Should this process be killed it stays: it is short, and ends like
something that goes on.
"""

import logging
import secrets
from typing import Any

from aiogram import Bot
from aiogram.exceptions import ClientDecodeError, TelegramBadRequest, TelegramNotFound

from adapters.contract import Part, Place
from adapters.pacing import Stopwatch, parts_of
from adapters.pages import Room, apart, divide
from adapters.telegram.client import reason_of, sending, taken
from adapters.telegram.places import Address
from adapters.telegram.rendering import LIMITS, rendered, units

EVERY_S = 1.0
EVERY_IN_GROUP_S = 3.0
"""The least time between two shows: Telegram takes about one message a second in a chat, twenty a minute in a group."""

AGAIN_S = 4.5
"""Telegram shows for five seconds that a bot is typing, and a draft for thirty."""

LONGEST_DRAFT = 1000
LONGEST_MESSAGE = 300
"""Characters of what came of it that are shown, the newest ones."""

ANSWER = Room(3000, units)
"""How much is shown of an answer that is being written, the newest of it."""

ANSWER_S = 10
"""How long a call may take that nobody misses."""

_log = logging.getLogger(__name__)


class Screens:
    """Makes the screens of one bot, and knows whether its server has drafts."""

    def __init__(self, bot: Bot) -> None:
        self.bot = bot
        self.has_drafts = True

    def of(self, place: Place) -> "Screen":
        """A new screen."""
        return Screen(self, Address.of(place))


class Screen:
    """Shows one chat what goes on, once; see `adapters.pacing.Screen`."""

    def __init__(self, screens: Screens, address: Address) -> None:
        self.every_s = EVERY_S if address.is_private else EVERY_IN_GROUP_S
        self.again_s = AGAIN_S
        self._screens = screens
        self._bot = screens.bot
        self._address = address
        self._takes_drafts = address.is_private
        self._there = {**address.target, "request_timeout": ANSWER_S}
        self._draft = secrets.randbelow(2**31 - 1) + 1
        self._message: int | None = None
        self._shown: list[Part] = []
        self._watch = Stopwatch()

    async def hint(self) -> None:
        """Let the bot be typing."""
        with sending():
            await self._bot.send_chat_action(action="typing", **self._there)

    async def show(self, text: str) -> None:
        """Show a text as a draft, else in a message."""
        with sending():
            if self._takes_drafts and self._screens.has_drafts:
                try:
                    await self._show_draft(text)
                except TelegramNotFound:
                    # A server of an older Bot API.
                    self._screens.has_drafts = False
                except TelegramBadRequest as error:
                    _log.info("no draft is shown, but a message: %s", reason_of(error))
                    self._takes_drafts = False
                else:
                    return
            parts = parts_of(text, self._watch, most_output=LONGEST_MESSAGE, answer=ANSWER)
            if parts != self._shown:
                self._shown = parts
                await self._show_message(parts)

    async def clear(self) -> None:
        """Delete the message, if there is one."""
        if self._message is not None:
            with sending():
                await self._bot.delete_message(self._address.chat, self._message, request_timeout=ANSWER_S)

    async def _show_draft(self, text: str) -> None:
        said = _said(parts_of(text, self._watch, most_output=LONGEST_DRAFT, answer=ANSWER))
        await self._bot.send_message_draft(draft_id=self._draft, can_stop=True, **said, **self._there)

    async def _show_message(self, parts: list[Part]) -> None:
        said = _said(parts, Part("\n…"))
        if self._message is None:
            self._message = await self._post(said)
            return
        try:
            await self._bot.edit_message_text(
                chat_id=self._address.chat, message_id=self._message, **said, request_timeout=ANSWER_S
            )
        except TelegramBadRequest as error:
            # That it is the same already is as good; a message that somebody deleted is not sent again.
            _log.debug("progress was not edited: %s", error.message)

    async def _post(self, said: dict[str, Any]) -> int | None:
        try:
            return (await self._bot.send_message(disable_notification=True, **said, **self._there)).message_id
        except ClientDecodeError as error:
            if (message := taken(error)) is None:
                raise
            return int(message["message_id"])


def _said(parts: list[Part], *end: Part) -> dict[str, Any]:
    pages = divide(apart(parts), LIMITS.text)
    words, entities = rendered((*(pages[0] if pages else ()), *end))
    return {"text": words or "…", "entities": entities}
