"""Handles every chat's messages: one at a time and in order, chats beside each other.

A message is stored before `Hub.receive` returns. A chat with something to do has a worker, which ends when nothing is left.
What a message is, is decided once, when it arrives:

- ``IMMEDIATE`` is handled at once, beside everything else;
- ``BESIDE`` waits a moment for the turn that runs in its chat, then is handled beside it;
- ``ALONE`` waits a moment for it, then is refused as busy;
- ``TURN`` waits for it as long as it takes, and says so once.
"""

import logging
import math
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

import anyio
from anyio.abc import TaskGroup, TaskStatus

from adapters.contract import Inbound, Outbound, Part, Place
from gateway.delivery import Delivery
from gateway.state.inbox import Inbox, Received

MOMENT_S = 2.0
"""How long a command waits for a running turn."""

SAID_AFTER_S = 1.0
"""A wait shorter than this is not worth a message."""

BUSY = "busy: a turn is running, /stop first"

_log = logging.getLogger(__name__)


class Manner(StrEnum):
    """How a message stands to the turn that runs in its chat."""

    IMMEDIATE = "immediate"
    BESIDE = "beside"
    ALONE = "alone"
    TURN = "turn"


Turn = Callable[[], Awaitable[None]]
"""Runs a turn to its end. It stores the turn's end, its replies and that its message is dealt with by itself."""


@dataclass(frozen=True, slots=True)
class Handled:
    """What came of a message: replies, and the turn that is to be run for it, if any."""

    replies: tuple[Outbound, ...] = ()
    turn: Turn | None = None


class Handler(Protocol):
    """What decides about and answers messages; given by the composition root."""

    async def manner(self, inbound: Inbound) -> Manner:
        """How a message is to be ordered; called once, when it arrives. Must not change anything."""
        ...

    async def handle(self, received: Received) -> Handled:
        """Do what a message asks for and give what is to be said; a turn is given back, not run.

        A command that restores passes ``received.id`` as ``inbox_id`` to `Restores.plan`; a turn passes it to
        `Turns.begin`. What has neither may be handled again after a crash.
        """
        ...
