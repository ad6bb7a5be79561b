"""Whether the running gateway can do its work now, and where it cannot, why.

Alive is who answers at all. Ready is who can take in a message, store it and act on it: the database can be written,
the store can be read, every adapter is connected.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

import anyio

PATIENCE_S = 5.0
"""A part that does not answer for so long is not well."""

KEPT_S = 1.0
"""For so long an answer holds, so that many who ask cost no more than one."""

Probe = Callable[[], Awaitable[str | None]]
"""Looks at one part of the gateway: the reason why it is not well, ``None`` where it is."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Check:
    """One part and the reason why it is not well, ``None`` where it is."""

    part: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class Readiness:
    """Every part that was looked at."""

    checks: tuple[Check, ...]

    @property
    def ready(self) -> bool:
        """Whether all are well."""
        return all(check.reason is None for check in self.checks)


class Health:
    """Looks at the parts of one run; ``probes`` by the name of the part, ``hide`` takes secrets out of a reason."""

    def __init__(
        self,
        probes: Mapping[str, Probe],
        *,
        hide: Callable[[str], str] = str,
        patience_s: float = PATIENCE_S,
        kept_s: float = KEPT_S,
    ) -> None:
        self._probes = dict(probes)
        self._hide = hide
        self._patience_s = patience_s
        self._kept_s = kept_s
        self._stopping = False
        self._lock = anyio.Lock()
        self._known: tuple[float, Readiness] | None = None

    def stopping(self) -> None:
        """From now on nothing is ready: what runs is brought to its end and nothing new is begun."""
        self._stopping = True

    async def readiness(self) -> Readiness:
        """Look at every part, all at the same time."""
        if self._stopping:
            return Readiness((Check("service", "it is stopping"),))
        async with self._lock:
            if self._known is None or anyio.current_time() - self._known[0] > self._kept_s:
                self._known = (anyio.current_time(), await self._look())
            return self._known[1]

    async def _look(self) -> Readiness:
        found: dict[str, str | None] = {}

        async def look(part: str, probe: Probe) -> None:
            found[part] = await self._answer(part, probe)

        async with anyio.create_task_group() as group:
            for part, probe in self._probes.items():
                group.start_soon(look, part, probe)
        return Readiness(tuple(Check(part, found[part]) for part in self._probes))

    async def _answer(self, part: str, probe: Probe) -> str | None:
        try:
            with anyio.fail_after(self._patience_s):
                reason = await probe()
                return None if reason is None else self._hide(reason)
        except TimeoutError:
            return f"no answer within {self._patience_s:g} s"
        except Exception as error:  # noqa: BLE001 - a part that cannot be looked at is not well; the others may be
            _log.warning("%s could not be looked at: %s", part, type(error).__name__)
            return f"it could not be looked at ({type(error).__name__})"
