"""Asking a database that cannot answer just now (a full disk, say) until it can."""

import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from gateway.state.errors import DatabaseUnusable

T = TypeVar("T")

FIRST_DELAY_S = 0.5
LONGEST_DELAY_S = 30.0

_log = logging.getLogger(__name__)


async def until_stored(call: Callable[[], Awaitable[T]], *, first_delay_s: float = FIRST_DELAY_S) -> T:
    """Repeat one call to the memory while it is unusable.

    For what has happened already and has to be written down, such as a reply that was sent: forgetting it would repeat
    it.
    """
    delay_s = first_delay_s
    while True:
        try:
            return await call()
        except DatabaseUnusable as error:
            _log.error("%s", error)
            await anyio.sleep(delay_s)
            delay_s = min(2 * delay_s, LONGEST_DELAY_S)
