"""Everything the gateway remembers, opened and closed together."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

from gateway.state.access import Admissions
from gateway.state.approvals import Approvals
from gateway.state.buttons import KEPT, Buttons
from gateway.state.clock import Clock, utc_now
from gateway.state.compactions import Compactions
from gateway.state.database import Database, open_database
from gateway.state.inbox import Inbox
from gateway.state.instances import Instance, hold_instance
from gateway.state.messages import Messages
from gateway.state.moves import Moves
from gateway.state.outbox import Outbox
from gateway.state.restores import Restores
from gateway.state.sent import Sent
from gateway.state.sessions import Sessions
from gateway.state.shown import ShownLists
from gateway.state.takeover import Takeover
from gateway.state.turns import Turns


@dataclass(frozen=True, slots=True)
class Memory:
    """The parts of the gateway's memory, all over one database."""

    database: Database
    instance: Instance
    clock: Clock
    sessions: Sessions
    moves: Moves
    turns: Turns
    messages: Messages
    sent: Sent
    compactions: Compactions
    restores: Restores
    approvals: Approvals
    shown: ShownLists
    inbox: Inbox
    outbox: Outbox
    takeover: Takeover
    admissions: Admissions
    buttons: Buttons


@asynccontextmanager
async def open_memory(home: str, *, clock: Clock = utc_now, buttons_kept: timedelta = KEPT) -> AsyncIterator[Memory]:
    """Open ``<home>/gateway.db`` as a live gateway process; close everything when the block ends.

    ``buttons_kept`` is how long a button can be pressed.

    Raises:
        DatabaseUnusable, DatabaseDamaged, DatabaseTooNew: see `open_database`.
    """
    async with (
        open_database(os.path.join(home, "gateway.db")) as database,
        hold_instance(os.path.join(home, "instances")) as instance,
    ):
        yield Memory(
            database=database,
            instance=instance,
            clock=clock,
            sessions=Sessions(database, clock),
            moves=Moves(database, clock),
            turns=Turns(database, instance, clock),
            messages=Messages(database, clock),
            sent=Sent(database, clock),
            compactions=Compactions(database, clock),
            restores=Restores(database, instance, clock),
            approvals=Approvals(database, clock),
            shown=ShownLists(database, clock),
            inbox=Inbox(database, instance, clock),
            outbox=Outbox(database, instance, clock),
            takeover=Takeover(database, instance, clock),
            admissions=Admissions(database, clock),
            buttons=Buttons(database, clock, buttons_kept),
        )
