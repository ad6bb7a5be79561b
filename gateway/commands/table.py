"""The one table of chat commands, in the order in which people meet them."""

from gateway.commands.approve import APPROVE, DENY
from gateway.commands.base import Command
from gateway.commands.checkpoints import CHECKPOINTS
from gateway.commands.compact import COMPACT
from gateway.commands.diff import DIFF
from gateway.commands.help import help_command
from gateway.commands.model import MODEL
from gateway.commands.pair import PAIR
from gateway.commands.redo import REDO
from gateway.commands.rollback import ROLLBACK
from gateway.commands.session import NEW, STATUS, STOP
from gateway.commands.undo import RETRY, UNDO
from gateway.commands.whoami import WHOAMI
from gateway.commands.workspace import WORKSPACE

COMMANDS: tuple[Command, ...] = (
    ROLLBACK,
    UNDO,
    REDO,
    DIFF,
    CHECKPOINTS,
    NEW,
    STOP,
    APPROVE,
    DENY,
    RETRY,
    STATUS,
    WORKSPACE,
    MODEL,
    COMPACT,
    help_command(lambda: COMMANDS),
    WHOAMI,
    PAIR,
)
"""Every command; names are unique."""
