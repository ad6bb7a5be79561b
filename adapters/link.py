"""The way to a platform: whether it answered last, and patience over short troubles of the network."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import anyio

from adapters.contract import ConnectionFailed

DELAYS_S = (0.5, 1.0, 2.0, 4.0, 8.0)
"""How long a lost connection is waited for between attempts, before whoever started the adapter hears of it."""

_log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Trouble:
    """What a failed call means: what to say of it in the end, and whether it may succeed when it is made again.

    ``wait_s`` is the platform's own word on when; such a wait is none of the attempts.
    """

    failure: ConnectionFailed
    passing: bool = False
    wait_s: float | None = None


class Link:
    """One platform's. ``refusals`` are the errors that its calls end with, which ``diagnose`` understands.

    ``up`` is set by whoever takes messages in, and taken back by a call that fails.
    """

    def __init__(self, refusals: tuple[type[Exception], ...], diagnose: Callable[[Exception], Trouble]) -> None:
        self.up = False
        self._refusals = refusals
        self._diagnose = diagnose

    async def patiently(self, call: Callable[[], Awaitable[T]]) -> T:
        """Call until it succeeds.

        Raises:
            ConnectionFailed: it stays in vain, or trying again is of no use.
        """
        delays = iter(DELAYS_S)
        while True:
            try:
                return await call()
            except self._refusals as error:
                self.up = False
                trouble = self._diagnose(error)
                delay_s = trouble.wait_s if trouble.wait_s is not None else next(delays, None)
                if delay_s is None or not (trouble.passing or trouble.wait_s is not None):
                    # Not chained: an address that was called may hold a secret.
                    raise trouble.failure from None
                _log.info("%s; trying again in %.1f s", trouble.failure.reason, delay_s)
                await anyio.sleep(delay_s)
