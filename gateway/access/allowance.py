"""Lets something happen only so often for each of many, in bounded memory."""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable

REMEMBERED = 10_000
"""Those that are remembered; past it the one who came longest ago is forgotten, and may come again at once."""


class Allowance:
    """Allows each key once in ``every_s``. What a restart forgets is no more than one allowance early."""

    def __init__(self, every_s: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._every_s = every_s
        self._clock = clock
        self._last: OrderedDict[Hashable, float] = OrderedDict()

    def allows(self, key: Hashable) -> bool:
        """Whether it is time again; if so, the time counts from now."""
        now = self._clock()
        last = self._last.get(key)
        if last is not None and now - last < self._every_s:
            return False
        self._last[key] = now
        self._last.move_to_end(key)
        if len(self._last) > REMEMBERED:
            self._last.popitem(last=False)
        return True
