"""``quarantine.json``: names that led to nothing, moved out of ``refs/`` so that space can be reclaimed.

Nothing is given up by that: the file says which name stood for which commit, and when the commit is back, so is the
name. Only upkeep writes it, with the store to itself.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from engine.host import durable
from engine.store.layout import REF_ROOT, Layout


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A name and the commit it stood for; ``None`` where the name itself was torn, ``content`` is what was left."""

    name: str
    commit: str | None
    since: datetime
    content: str = ""


def read_quarantine(layout: Layout) -> tuple[Quarantined, ...]:
    """Return the names set aside, none where there is no such file.

    Raises:
        ValueError: the file is not what is written there.
    """
    value: Any = durable.read_json(layout.quarantine)
    try:
        return tuple(_parse(item) for item in value or ())
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{layout.quarantine} is damaged ({error})") from error


def _parse(item: Any) -> Quarantined:
    since = datetime.fromisoformat(item["since"])
    return Quarantined(
        str(item["name"]),
        item["commit"],
        since if since.tzinfo else since.replace(tzinfo=UTC),
        str(item.get("content", "")),
    )


def write_quarantine(layout: Layout, entries: Iterable[Quarantined]) -> None:
    """Note which names are set aside; without any there is no file."""
    value = [
        {
            "name": entry.name,
            "commit": entry.commit,
            "since": entry.since.isoformat(timespec="seconds"),
            "content": entry.content,
        }
        for entry in entries
    ]
    if value:
        durable.write_json(layout.quarantine, value)
    elif os.path.exists(layout.quarantine):
        durable.remove(layout.quarantine)


def workspace_of(name: str) -> str:
    """Return the hash of the workspace that a name belongs to."""
    return name.removeprefix(f"{REF_ROOT}/").partition("/")[0]


def names_below(layout: Layout, prefix: str) -> Sequence[str]:
    """Return the names set aside below a prefix, none where the file is missing or damaged; `verify` says that."""
    try:
        return [entry.name for entry in read_quarantine(layout) if entry.name.startswith(f"{prefix}/")]
    except ValueError:
        return []
