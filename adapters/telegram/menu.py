"""What people see before they type: the menu of commands, and the bot's word about itself."""

import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

import anyio
from aiogram import Bot
from aiogram.exceptions import TelegramRetryAfter
from aiogram.types import (
    BotCommand,
    BotCommandScopeAllGroupChats,
    BotCommandScopeAllPrivateChats,
    BotCommandScopeChat,
    BotCommandScopeUnion,
)

from adapters.contract import MenuEntry
from adapters.telegram.client import best_effort

DESCRIPTION = (
    "A coding agent whose every change can be taken back. Send it a task; /rollback brings files and conversation back"
    " together, and keeps what you edited yourself."
)
SHORT_DESCRIPTION = "A coding agent whose every change can be taken back."

T = TypeVar("T")

_NAME = re.compile(r"[a-z0-9_]{1,32}")
LONGEST_SUMMARY = 256
"""What Telegram takes as a command: core.telegram.org/bots/api#botcommand."""


async def publish(bot: Bot, menu: Sequence[MenuEntry], admins: Sequence[int]) -> None:
    """Set the menus of private chats, groups and each administrator; describe a bot that has no description yet.

    Best effort: everything can be typed without a menu.
    """
    everybody = [entry for entry in menu if not entry.admin_only]
    await _set(bot, everybody, BotCommandScopeAllPrivateChats())
    await _set(bot, everybody, BotCommandScopeAllGroupChats())
    if len(everybody) < len(menu):
        for admin in admins:
            # Refused until this person has begun a chat with the bot.
            await _set(bot, menu, BotCommandScopeChat(chat_id=admin))
    with best_effort("the bot's description was not set"):
        if not (await _in_time(bot.get_my_description)).description:
            await _in_time(partial(bot.set_my_description, DESCRIPTION))
            await _in_time(partial(bot.set_my_short_description, SHORT_DESCRIPTION))


async def _set(bot: Bot, menu: Sequence[MenuEntry], scope: BotCommandScopeUnion) -> None:
    commands = [
        BotCommand(command=entry.name, description=entry.summary[:LONGEST_SUMMARY])
        for entry in menu
        if _NAME.fullmatch(entry.name)
    ]
    with best_effort(f"the menu for {scope.type} was not set"):
        await _in_time(partial(bot.set_my_commands, commands, scope))


async def _in_time(call: Callable[[], Awaitable[T]]) -> T:
    """Call when Telegram wants to be called: nobody waits for it, and it sets a menu only so often."""
    while True:
        try:
            return await call()
        except TelegramRetryAfter as error:
            await anyio.sleep(error.retry_after)
