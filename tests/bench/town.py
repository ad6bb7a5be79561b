"""A town of chats in front of a whole service, and a day of what its people write, the same for the same seed.

Nothing is kept of what was said but counts, so that memory that grows is the service's.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import anyio

from adapters.contract import Inbound, Outbound, Place, Receive

DAWN = datetime(2026, 3, 16, 6, tzinfo=UTC)
BROKEN = ("went wrong", "agent failed")
"""What a reply says when something of ours broke."""


class Sun:
    """The town's clock: the day passes as its work is done."""

    def __init__(self) -> None:
        self.part = 0.0

    def __call__(self) -> datetime:
        return DAWN + timedelta(days=self.part)


@dataclass
class Town:
    """An adapter whose people are scripted; ``dealt_with`` and ``answered`` hold events still waited for."""

    name: str = "town"
    has_buttons: bool = False
    connected: bool = False
    replies: int = 0
    broken: list[str] = field(default_factory=list)
    unanswered: set[str] = field(default_factory=set)
    again: int = 0
    _waiting: dict[str, anyio.Event] = field(default_factory=dict)
    _receive: Receive | None = None
    _open: anyio.Event = field(default_factory=anyio.Event)

    async def run(self, receive: Receive) -> None:
        self._receive, self.connected = receive, True
        self._open.set()
        await anyio.sleep_forever()

    async def send(self, message: Outbound) -> None:
        self.replies += 1
        self.unanswered.discard(message.reply_to or "")
        if any(words in message.plain_text for words in BROKEN):
            self.broken.append(message.plain_text)

    async def progress(self, place: Place, text: str) -> None:
        pass

    async def finished(self, place: Place, event_id: str) -> None:  # noqa: ARG002 - the contract's arguments
        waiting = self._waiting.pop(event_id, None)
        if waiting is None:
            self.again += 1
        else:
            waiting.set()

    async def write(self, chat: str, event_id: str, text: str) -> anyio.Event:
        """Hand a message over, every third of them twice; what is returned is set once it is dealt with."""
        await self._open.wait()
        assert self._receive is not None
        inbound = Inbound(Place(self.name, chat), "someone", event_id, text)
        waiting = self._waiting[event_id] = anyio.Event()
        self.unanswered.add(event_id)
        await self._receive(inbound)
        if int(event_id.rpartition("-")[2]) % 3 == 0:
            await self._receive(inbound)
        return waiting


def speech(chat: int, part: int, seed: int) -> Iterator[list[str]]:
    """What a chat says in one part of the day: now and then several messages at once, before any is answered."""
    chance = random.Random(f"{seed}/{chat}/{part}")
    for _ in range(2):
        yield [_message(chat, chance) for _ in range(chance.choice((1, 1, 1, 2)))]


def _message(chat: int, chance: random.Random) -> str:
    words = "".join(chance.choices("abcdefgh \n", k=200))
    return chance.choice(
        (
            *(f"/write notes/{chat}.md\n{words}", f"$ echo {chance.random()} >> log-{chat}.txt", "/status", "/status"),
            *(f"/read notes/{chat}.md", "/undo", "/undo", "/redo", "/retry", "/rollback", "/rollback 1", "/diff"),
            *("/new", "/checkpoints", "/whoami", "/help undo", "no command at all"),
        )
    )
