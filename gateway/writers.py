"""One writer at a time per workspace, also when several chats share it: a whole turn, or a restore.

The engine keeps single calls apart by itself; this keeps whole turns apart, so that nobody restores files in the
middle of another chat's turn. It is fair: who waits longer goes first.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio

SAID_AFTER_S = 1.0
"""A wait shorter than this is not worth a message."""


class WorkspaceBusy(Exception):
    """Another holder did not finish within the time given; nothing was begun."""

    def __init__(self, root: str, holder: str) -> None:
        self.root = root
        self.holder = holder
        super().__init__(f"busy: {holder} is at work in this workspace. /stop there first, or try again later.")


@dataclass(eq=False, slots=True)
class _Claim:
    root: str
    holder: str
    released: anyio.Event = field(default_factory=anyio.Event)


class Writers:
    """Who writes which workspace now, and who waits."""

    def __init__(self, *, said_after_s: float = SAID_AFTER_S) -> None:
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
        """
        claim = _Claim(root, holder)
        self._claims.append(claim)
        try:
            await self._wait(claim, wait_s, on_wait)
            yield
        finally:
            self._claims.remove(claim)
            claim.released.set()

    def holder(self, root: str) -> str | None:
        """Name who writes below ``root`` now, ``None`` when nobody does."""
        return next((claim.holder for claim in self._claims if _touch(claim.root, root)), None)

    async def _wait(
        self, claim: _Claim, wait_s: float | None, on_wait: Callable[[str], Awaitable[None]] | None
    ) -> None:
        with anyio.move_on_after(wait_s):
            with anyio.move_on_after(self._said_after_s):
                await self._granted(claim)
            blocker = self._blocker(claim)
            if blocker is not None and on_wait is not None:
                await on_wait(blocker.holder)
            await self._granted(claim)
        blocker = self._blocker(claim)
        if blocker is not None:
            raise WorkspaceBusy(claim.root, blocker.holder)

    async def _granted(self, claim: _Claim) -> None:
        while (blocker := self._blocker(claim)) is not None:
            await blocker.released.wait()

    def _blocker(self, claim: _Claim) -> _Claim | None:
        for other in self._claims:
            if other is claim:
                return None
            if _touch(other.root, claim.root):
                return other
        return None


def _touch(one: str, other: str) -> bool:
    """Whether two roots are the same directory or one lies in the other."""
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")
