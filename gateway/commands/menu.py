"""The commands as platforms' menus show them."""

from collections.abc import Sequence

from adapters.contract import MenuEntry
from gateway.commands.base import Command
from gateway.commands.table import COMMANDS


def menu(commands: Sequence[Command] = COMMANDS) -> tuple[MenuEntry, ...]:
    """Every command once, in the order of the table."""
    return tuple(MenuEntry(command.name, command.summary, command.admin_only) for command in commands)
