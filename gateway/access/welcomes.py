"""Tells people that they were admitted, whoever did it: an admin in a chat, or ``gateway pair`` in its own process.

What is still to be told stands in the database, so it is told once, also after a restart.
"""

import logging
from collections.abc import Collection

import anyio

from gateway.delivery import Delivery
from gateway.state.access import Role
from gateway.state.errors import StateError
from gateway.state.memory import Memory

LOOKED_EVERY_S = 1.0
"""A person who has just been admitted waits for it; the look is one read of an index that is empty."""

_log = logging.getLogger(__name__)


class Welcomes:
    """Looks for people of some platforms who do not know yet that they are admitted."""

    def __init__(self, memory: Memory, delivery: Delivery, adapters: Collection[str]) -> None:
        self._memory = memory
        self._delivery = delivery
        self._adapters = adapters

    async def run(self) -> None:
        """Look until cancelled; ends at once where everybody is admitted anyway."""
        while self._adapters:
            try:
                await self.tell()
            except StateError as error:
                _log.warning("who was admitted is told later: %s", error)
            await anyio.sleep(LOOKED_EVERY_S)

    async def tell(self) -> None:
        """Look once."""
        owner = self._memory.instance.id
        for place in await self._memory.admissions.tell(self._adapters, welcome, owner=owner):
            self._delivery.wake(place)


def welcome(role: Role) -> str:
    """What an admitted person is told."""
    may = " As an admin you may admit others: /pair CODE." if role is Role.ADMIN else ""
    return f"✅ You are admitted.{may} Write to the agent; /help lists the commands."
