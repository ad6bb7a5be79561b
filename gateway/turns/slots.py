"""A turn's place among those that run at once, which it does not keep while it waits for a person."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self

import anyio


class Slot:
    """One of a limiter's places, taken for the block; cancelled or not, it is given back once."""

    def __init__(self, limiter: anyio.CapacityLimiter) -> None:
        self._limiter = limiter
        self._held = False
        self._lent = 0
        # A limiter knows its borrower by identity, and must be asked by one task at a time.
        self._taking = anyio.Lock()

    async def __aenter__(self) -> Self:
        await self._take()
        return self

    async def __aexit__(self, *exception: object) -> None:
        self._give()

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[None]:
        """Wait without it; several tools of one turn may do so at once."""
        self._lent += 1
        self._give()
        try:
            yield
        finally:
            self._lent -= 1
        if not self._lent:
            await self._take()

    async def _take(self) -> None:
        async with self._taking:
            if not self._held:
                await self._limiter.acquire_on_behalf_of(self)
                self._held = True
        if self._lent:
            # Another tool has begun to wait meanwhile.
            self._give()

    def _give(self) -> None:
        if self._held:
            self._held = False
            self._limiter.release_on_behalf_of(self)
