"""Who speaks at the console, and which messages have not been dealt with yet."""

import itertools
import os
import secrets
from dataclasses import dataclass

import anyio

from adapters.contract import Place

NAME = "console"
"""The adapter's name, whichever front end it has."""


@dataclass(frozen=True, slots=True)
class Speaker:
    """The chat and the person that a message belongs to when it names none.

    ``scope`` is part of every chat's name towards the gateway and of none towards people: consoles with different
    scopes never share a chat, though all call theirs the same.
    """

    chat: str = "local"
    user: str = "local"
    scope: str = ""

    def place(self, chat: str | None = None) -> Place:
        """The place of a chat by the name that people use."""
        return Place(NAME, (self.chat if chat is None else chat) + self.scope)

    def shown(self, place: Place) -> str:
        """The name of a chat as people know it."""
        return place.chat.removesuffix(self.scope)


class Pending:
    """Names each message of this run, and tells when it, or everything, is done."""

    def __init__(self) -> None:
        self._run = f"{os.getpid()}-{secrets.token_hex(8)}"
        self._numbers = itertools.count(1)
        self._open: dict[str, anyio.Event] = {}

    def __len__(self) -> int:
        return len(self._open)

    def __contains__(self, event_id: str) -> bool:
        return event_id in self._open

    def begin(self) -> str:
        """Take note of a new message; returns an id that no other message ever had."""
        event_id = f"{self._run}-{next(self._numbers)}"
        self._open[event_id] = anyio.Event()
        return event_id

    def end(self, event_id: str) -> bool:
        """Take note that a message is done; false for one that is not of this run, or was done before."""
        event = self._open.pop(event_id, None)
        if event is None:
            return False
        event.set()
        return True

    async def wait(self, event_id: str) -> None:
        """Return once a message is done."""
        event = self._open.get(event_id)
        if event is not None:
            await event.wait()

    async def wait_all(self) -> None:
        """Return once nothing is open."""
        while self._open:
            await next(iter(self._open.values())).wait()
