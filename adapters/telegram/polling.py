"""Long polling: an update is confirmed, by the next question's offset, only after it has been handed on.

Chats do not wait for each other: while one is still busy handing on, for a large file, Telegram is asked again from the
oldest unconfirmed update on, and what is known already is passed over. The files of an album, each an update of its
own, are handed on as one message once a question brings no more of them.
"""

import logging
from dataclasses import dataclass, field
from functools import partial

import anyio
from aiogram import Bot
from aiogram.methods import TelegramMethod
from anyio.abc import TaskGroup

from adapters.contract import Place
from adapters.lanes import Lanes
from adapters.link import Link
from adapters.telegram.reading import TAKEN_IN, Event, Raw, Read, Take, together

LONG_POLL_S = 25
ANSWER_S = 15
"""How much longer than it was asked to wait Telegram may take to answer."""

BUSY_S = 1.0
"""How long handing on may take before Telegram is asked again beside it."""

ALBUM_S = 0.3
"""How long after the first files of an album Telegram is asked for more of them."""

_log = logging.getLogger(__name__)


class RawUpdates(TelegramMethod[list[Raw]]):
    """``getUpdates``, with each update as it came: one that nobody understands must not cost the others."""

    __returning__ = list[Raw]
    __api_method__ = "getUpdates"

    offset: int | None
    timeout: int
    allowed_updates: list[str]


async def poll(bot: Bot, read: Read, take: Take, link: Link) -> None:
    """Take in updates until cancelled; ``take`` returns once an update may be confirmed.

    Raises:
        ConnectionFailed: Telegram gives none.
    """
    # Telegram gives nothing while it has an address to deliver to.
    await link.patiently(bot.delete_webhook)
    async with anyio.create_task_group() as tasks:
        intake = _Intake(tasks, read, take)
        while True:
            # The first question, and the first after a break, is answered at once: then it is known that all is well.
            timeout_s = LONG_POLL_S if link.up and not intake.busy else 0
            question = RawUpdates(offset=intake.offset, timeout=timeout_s, allowed_updates=TAKEN_IN)
            for update in await link.patiently(partial(bot, question, timeout_s + ANSWER_S)):
                intake.add(update)
            link.up = True
            await intake.settle()


@dataclass(eq=False, slots=True)
class _Entry:
    """What is handed on as one message: an update or, once it is ``whole``, all those of an album."""

    parts: dict[int, Event]
    grew: bool = True
    whole: anyio.Event = field(default_factory=anyio.Event)


class _Intake:
    """The updates that are known, and those of them that are still being handed on: in order within a chat."""

    def __init__(self, tasks: TaskGroup, read: Read, take: Take) -> None:
        self._tasks = tasks
        self._read = read
        self._take = take
        self._lanes = Lanes()
        self._next: int | None = None
        self._known: set[int] = set()
        self._open: set[int] = set()
        self._albums: dict[tuple[Place, str], _Entry] = {}
        self._idle = anyio.Event()

    @property
    def busy(self) -> bool:
        """Whether anything is still being handed on."""
        return bool(self._open)

    @property
    def offset(self) -> int | None:
        """The oldest update that must not be confirmed yet."""
        return min(self._open, default=self._next)

    def add(self, update: Raw) -> None:
        """Have an update handed on after those of its chat that came before it."""
        number = int(update["update_id"])
        self._next = number + 1
        if number in self._known:
            return
        self._known.add(number)
        event = self._read(update)
        if event is not None:
            self._open.add(number)
            self._enter(number, event)

    def _enter(self, number: int, event: Event) -> None:
        entry = _Entry({number: event})
        if event.album is None:
            entry.whole.set()
        else:
            begun = self._albums.setdefault((event.inbound.place, event.album), entry)
            if begun is not entry:
                begun.parts[number], begun.grew = event, True
                return
        self._tasks.start_soon(self._hand_on, entry)

    async def settle(self) -> None:
        """Wait until everything is handed on, at most a moment, and forget what cannot come again."""
        for key, album in [*self._albums.items()]:
            if not album.grew:
                del self._albums[key]
                album.whole.set()
            album.grew = False
        if self._albums:
            await anyio.sleep(ALBUM_S)
        elif self._open:
            self._idle = anyio.Event()
            with anyio.move_on_after(BUSY_S):
                await self._idle.wait()
        oldest = self.offset or 0
        self._known = {number for number in self._known if number >= oldest}

    async def _hand_on(self, entry: _Entry) -> None:
        first = next(iter(entry.parts.values()))
        try:
            async with self._lanes.turn(first.inbound.place):
                await entry.whole.wait()
                await self._take(together([*entry.parts.values()]))
        except Exception:  # noqa: BLE001 - whatever kept it from being stored may pass
            # Still open, so never confirmed; no longer known, so taken when it comes again, and in its order.
            _log.exception("an update was not taken in, and is asked for again")
            self._known -= entry.parts.keys()
            self._albums = {key: album for key, album in self._albums.items() if album is not entry}
            return
        self._open -= entry.parts.keys()
        if not self._open:
            self._idle.set()
