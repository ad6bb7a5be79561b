"""One writer at a time per workspace, also when several chats share it: a whole turn, or a restore.

The engine keeps single calls apart by itself; this keeps whole turns apart, so that nobody restores files in the
middle of another chat's turn, in whatever process that runs. Inside one process it is fair: who waits longer goes
first. Between processes the first to ask once it is free goes on.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

import anyio

from adapters.contract import Place

SAID_AFTER_S = 1.0
"""A wait shorter than this is not worth a message."""

ASKED_EVERY_S = 0.1
"""How often a process that waits for another one's turn asks whether it has ended."""


ANOTHER = "another chat"
"""Who is in the way where that one is gone again by the time it is said."""


class WorkspaceBusy(Exception):
    """Another holder did not finish within the time given; nothing was begun."""

    def __init__(self, root: str, holder: str) -> None:
        self.root = root
        self.holder = holder
        super().__init__(f"busy: {holder} is at work in this workspace. /stop there first, or try again later.")


class Claim(Protocol):
    """The wish to write below a root, between processes; it holds nothing until it is taken."""

    async def take(self) -> str | None:
        """Take it without waiting; return who is in the way, ``None`` when it is taken."""
        ...

    async def give_back(self) -> None:
        """Let the next process write; without effect where it was not taken."""
        ...


@dataclass(eq=False, slots=True)
class _Claim:
    """A claim inside this process, and with it the one between processes; ``other`` is who is in that one's way."""

    root: str
    holder: str
    outer: Claim | None
    released: anyio.Event = field(default_factory=anyio.Event)
    granted: bool = False
    other: str = ""


class Writers:
    """Who writes which workspace now, and who waits.

    ``claim`` makes the claim between processes for a root and a holder; without it there is only this one.
    """

    def __init__(self, claim: Callable[[str, str], Claim] | None = None, *, said_after_s: float = SAID_AFTER_S) -> None:
        self._claim = claim
        self._said_after_s = said_after_s
        # In order of arrival; a claim is granted when none before it touches the same directories.
        self._claims: list[_Claim] = []

    @asynccontextmanager
    async def hold(
        self,
        root: str,
        holder: str,
        *,
        wait_s: float | None = None,
        on_wait: Callable[[str], Awaitable[None]] | None = None,
    ) -> AsyncIterator[None]:
        """Be the only writer below ``root`` until the block ends.

        ``holder`` is how others are told who it is. ``wait_s`` bounds the wait, ``None`` waits as long as it takes;
        ``on_wait`` is called once, with the name of who is in the way, when the wait is worth a word.

        Raises:
            WorkspaceBusy: the bound passed.
            EngineError: the claim between processes cannot be made.
        """
        claim = _Claim(root, holder, self._claim(root, holder) if self._claim is not None else None)
        self._claims.append(claim)
        try:
            await self._wait(claim, wait_s, on_wait)
            yield
        finally:
            try:
                if claim.outer is not None:
                    with anyio.CancelScope(shield=True):
                        await claim.outer.give_back()
            finally:
                self._claims.remove(claim)
                claim.released.set()

    def holder(self, root: str) -> str | None:
        """Name who writes below ``root`` now, ``None`` when nobody does."""
        return next((claim.holder for claim in self._claims if overlap(claim.root, root)), None)

    async def _wait(
        self, claim: _Claim, wait_s: float | None, on_wait: Callable[[str], Awaitable[None]] | None
    ) -> None:
        with anyio.move_on_after(wait_s):
            with anyio.move_on_after(self._said_after_s):
                await self._granted(claim)
            if not claim.granted and on_wait is not None:
                await on_wait(self._in_the_way(claim))
            await self._granted(claim)
        if not claim.granted:
            raise WorkspaceBusy(claim.root, self._in_the_way(claim))

    async def _granted(self, claim: _Claim) -> None:
        while (blocker := self._blocker(claim)) is not None:
            await blocker.released.wait()
        while not claim.granted:
            # Shielded: what was taken is known to be taken.
            with anyio.CancelScope(shield=True):
                other = await claim.outer.take() if claim.outer is not None else None
            claim.granted, claim.other = other is None, other or ""
            if not claim.granted:
                await anyio.sleep(ASKED_EVERY_S)

    def _in_the_way(self, claim: _Claim) -> str:
        blocker = self._blocker(claim)
        return blocker.holder if blocker is not None else claim.other or ANOTHER

    def _blocker(self, claim: _Claim) -> _Claim | None:
        for other in self._claims:
            if other is claim:
                return None
            if overlap(other.root, claim.root):
                return other
        return None


def chat_name(place: Place) -> str:
    """How a chat is named where it is in another's way."""
    return f"the {place.adapter} chat {place.chat}"


def overlap(one: str, other: str) -> bool:
    """Whether two roots are the same directory or one lies in the other."""
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")
