"""Whom the gateway listens to: people and groups that the configuration admits, and people admitted by pairing.

Fail-closed: a platform without rules, or with empty ones, admits nobody. Ids are the platforms' stable ones; names do
not count.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from adapters.contract import Inbound
from gateway.config.settings import MIB, Settings, Slack, Telegram
from gateway.state.access import Admissions, Role

CONSOLE = "console"
"""Whoever can use the terminal, or write to the program, owns what it does already."""

QUICK_S = 2.0
"""Slack has to be answered within three seconds."""

PATIENT_S = 10.0
"""Telegram repeats nothing while it is not asked; its other messages wait meanwhile."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What the configuration says of one platform.

    ``circles`` are groups in which everybody is admitted; ``owned`` makes everybody an admin. Files are taken up to
    ``largest_file_bytes``, and fetched within ``fetch_limit_s`` in all.
    """

    people: frozenset[str] = frozenset()
    admins: frozenset[str] = frozenset()
    circles: frozenset[str] = frozenset()
    owned: bool = False
    answers_everything: bool = False
    largest_file_bytes: int = 0
    fetch_limit_s: float = PATIENT_S


OWNED = Rules(owned=True)
"""The rules of a platform that nobody but its owner can reach."""


def rules_of(settings: Settings) -> dict[str, Rules]:
    """The rules of every platform, by the names of their adapters."""
    rules = {CONSOLE: OWNED}
    if settings.telegram is not None:
        rules["telegram"] = _rules(settings.telegram, fetch_limit_s=PATIENT_S)
    if settings.slack is not None:
        rules["slack"] = _rules(settings.slack, fetch_limit_s=QUICK_S)
    return rules


def _rules(section: Telegram | Slack, *, fetch_limit_s: float) -> Rules:
    return Rules(
        people=_texts(section.allow),
        admins=_texts(section.admins),
        circles=_texts(section.allow_groups),
        answers_everything=section.groups == "all",
        largest_file_bytes=int(section.max_attachment_mb * MIB),
        fetch_limit_s=fetch_limit_s,
    )


def _texts(ids: Collection[int | str]) -> frozenset[str]:
    return frozenset(str(one) for one in ids)


class Access:
    """The one check that everything a person sends passes, when it arrives and again when it is handled."""

    def __init__(self, admissions: Admissions, rules: Mapping[str, Rules]) -> None:
        self._admissions = admissions
        self._rules = rules

    def rules(self, adapter: str) -> Rules:
        """The rules of a platform; one that nothing is said of admits nobody."""
        return self._rules.get(adapter, Rules())

    async def role(self, inbound: Inbound) -> Role | None:
        """What a message's sender is admitted as now, ``None`` when they are not.

        Raises:
            StateError: who was admitted by pairing cannot be read.
        """
        rules = self.rules(inbound.place.adapter)
        if rules.owned or inbound.user in rules.admins:
            return Role.ADMIN
        paired = await self._admissions.role(inbound.place.adapter, inbound.user)
        if paired is None and (inbound.user in rules.people or not rules.circles.isdisjoint(inbound.circles)):
            return Role.USER
        return paired
