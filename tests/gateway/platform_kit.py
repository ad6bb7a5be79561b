"""A chat platform for tests: it records what reaches it, fails when it is told to, and lets a test wait for things."""

from collections.abc import Callable
from dataclasses import dataclass, field

import anyio

from adapters.contract import Inbound, Outbound, Place, Receive
from gateway.access.admission import OWNED, Access
from gateway.access.door import Door
from gateway.state.memory import Memory

HERE = Place("console", "here")
THERE = Place("console", "there")


def message(text: str, event_id: str, place: Place = HERE) -> Inbound:
    return Inbound(place, "u1", event_id, text)


def open_door(memory: Memory, *adapters: str) -> Door:
    """A door that lets everybody in from the console, or from the adapters named."""
    access = Access(memory.admissions, dict.fromkeys(adapters or ("console",), OWNED))
    return Door(access, memory.admissions, memory.buttons, memory.moves)


@dataclass
class Platform:
    """An adapter whose platform is a list. ``failures`` are raised one by one before messages arrive again."""

    name: str = "console"
    seen: list[tuple[str, Place, str]] = field(default_factory=list)
    failures: list[Exception] = field(default_factory=list)
    attempts: int = 0
    blocked: dict[Place, anyio.Event] = field(default_factory=dict)
    _changed: anyio.Event = field(default_factory=anyio.Event)

    async def run(self, receive: Receive) -> None:
        del receive  # tests hand messages to the hub themselves
        await anyio.sleep_forever()

    async def send(self, message: Outbound) -> None:
        self.attempts += 1
        if message.place in self.blocked:
            self._note("blocked", message.place, message.plain_text)
            await self.blocked[message.place].wait()
        if self.failures:
            self._note("failed", message.place, message.plain_text)
            raise self.failures.pop(0)
        self._note("sent", message.place, message.plain_text)

    async def progress(self, place: Place, text: str) -> None:
        self._note("progress", place, text)

    async def finished(self, place: Place, event_id: str) -> None:
        self._note("finished", place, event_id)

    def sent(self, place: Place = HERE) -> list[str]:
        return [text for what, where, text in self.seen if what == "sent" and where == place]

    async def wait_for(self, holds: Callable[["Platform"], bool]) -> None:
        """Wait until something holds of what was seen."""
        with anyio.fail_after(30):
            while not holds(self):
                await self._changed.wait()

    async def wait_sent(self, *texts: str, place: Place = HERE) -> None:
        await self.wait_for(lambda platform: set(texts) <= set(platform.sent(place)))

    async def wait_finished(self, event_id: str) -> None:
        await self.wait_for(
            lambda platform: any(what == "finished" and text == event_id for what, _, text in platform.seen)
        )

    def _note(self, what: str, place: Place, text: str) -> None:
        self.seen.append((what, place, text))
        self._changed.set()
        self._changed = anyio.Event()
