"""Shows what is going on: that the bot is typing, and after a moment the latest word on it.

In a private chat that word is a draft, which goes by itself when the reply comes or this process dies; elsewhere one
message that is edited and, in the end, deleted.
"""

import logging
import secrets
from contextlib import suppress
from dataclasses import dataclass, field

import anyio
from aiogram import Bot
from aiogram.exceptions import TelegramBadRequest, TelegramNotFound, TelegramRetryAfter
from anyio.abc import TaskGroup, TaskStatus

from adapters.contract import Part, Place, Style
from adapters.pages import Page, apart, divide
from adapters.telegram.client import REFUSALS
from adapters.telegram.places import Address
from adapters.telegram.rendering import LIMITS, rendered

EVERY_S = 1.0
EVERY_IN_GROUP_S = 3.0
"""The least time between two shows: Telegram takes about one message a second in a chat, twenty a minute in a group."""

AGAIN_S = 4.5
"""Telegram shows for five seconds that a bot is typing, and a draft for thirty."""

LONGEST = 1000
"""Characters of progress, the newest ones."""

ANSWER_S = 10
"""How long a call may take that nobody misses."""

_log = logging.getLogger(__name__)


@dataclass(eq=False, slots=True)
class _Show:
    """What one chat is shown: the latest word, and what it stands in."""

    wanted: str
    message: int | None = None
    draft: int = field(default_factory=lambda: secrets.randbelow(2**31 - 1) + 1)
    changed: anyio.Event = field(default_factory=anyio.Event)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    ended: anyio.Event = field(default_factory=anyio.Event)


class Progress:
    """The progress of every chat in which something goes on."""

    def __init__(self, bot: Bot) -> None:
        self._bot = bot
        self._tasks: TaskGroup | None = None
        self._shows: dict[Place, _Show] = {}
        self._drafts = True

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Show what is wanted until cancelled."""
        try:
            async with anyio.create_task_group() as self._tasks:
                task_status.started()
                await anyio.sleep_forever()
        finally:
            self._tasks = None
            self._shows.clear()

    async def show(self, place: Place, text: str) -> None:
        """Show a text soon; an empty one ends it."""
        show = self._shows.get(place)
        if not text:
            if show is not None:
                await self._end(place, show)
        elif show is not None:
            show.wanted = text
            show.changed.set()
        elif self._tasks is not None:
            show = self._shows[place] = _Show(text)
            self._tasks.start_soon(self._keep, Address.of(place), show)

    async def _end(self, place: Place, show: _Show) -> None:
        del self._shows[place]
        show.scope.cancel()
        await show.ended.wait()
        if show.message is not None and self._tasks is not None:
            self._tasks.start_soon(self._remove, Address.of(place), show.message)

    async def _keep(self, address: Address, show: _Show) -> None:
        """Show one chat's progress at its pace until it is over."""
        every_s = EVERY_S if address.is_private else EVERY_IN_GROUP_S
        shown = ""
        try:
            with show.scope:
                while True:
                    show.changed = anyio.Event()
                    pause_s = every_s
                    try:
                        await self._bot.send_chat_action(
                            address.chat, "typing", message_thread_id=address.topic, request_timeout=ANSWER_S
                        )
                        # What takes less than a moment is not worth a message.
                        await anyio.sleep(every_s)
                        if show.wanted != shown or self._is_draft(address):
                            shown = show.wanted
                            # Not cut short: a message that has arrived has to be known, to be deleted again.
                            with anyio.CancelScope(shield=True):
                                await self._display(address, show)
                    except TelegramRetryAfter as error:
                        pause_s = max(pause_s, error.retry_after)
                    except REFUSALS as error:
                        _log.debug("progress was not shown: %s", type(error).__name__)
                    await anyio.sleep(pause_s)
                    with anyio.move_on_after(AGAIN_S - 2 * every_s):
                        await show.changed.wait()
        finally:
            show.ended.set()

    async def _display(self, address: Address, show: _Show) -> None:
        text, entities = rendered(_words(show.wanted))
        if self._is_draft(address):
            try:
                await self._bot.send_message_draft(
                    address.chat,
                    show.draft,
                    text=text,
                    message_thread_id=address.topic,
                    entities=entities,
                    can_stop=True,
                    request_timeout=ANSWER_S,
                )
            except (TelegramBadRequest, TelegramNotFound):
                # A server of an older Bot API.
                self._drafts = False
            else:
                return
        if show.message is None:
            sent = await self._bot.send_message(
                address.chat,
                text,
                message_thread_id=address.topic,
                entities=entities,
                disable_notification=True,
                request_timeout=ANSWER_S,
            )
            show.message = sent.message_id
            return
        try:
            await self._bot.edit_message_text(
                text, chat_id=address.chat, message_id=show.message, entities=entities, request_timeout=ANSWER_S
            )
        except TelegramBadRequest as error:
            # That it is the same already is as good; a message that somebody deleted is not sent again.
            _log.debug("progress was not edited: %s", error.message)

    async def _remove(self, address: Address, message: int) -> None:
        with suppress(*REFUSALS):
            try:
                await self._bot.delete_message(address.chat, message, request_timeout=ANSWER_S)
            except TelegramRetryAfter as error:
                await anyio.sleep(error.retry_after)
                await self._bot.delete_message(address.chat, message, request_timeout=ANSWER_S)

    def _is_draft(self, address: Address) -> bool:
        return address.is_private and self._drafts


def _words(text: str) -> Page:
    """What is being done, and below it the newest of what came of it."""
    title, _, rest = text.partition("\n")
    said = divide(apart([Part(title[:LONGEST]), Part(rest[-LONGEST:], Style.BLOCK)]), LIMITS.text)
    return said[0] if said else (Part("…"),)
