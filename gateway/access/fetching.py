"""Files that admitted people send: fetched within a size and a time, under names that are safe to use.

What could not be taken is said; the message that it came with is handled all the same.
"""

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, field

import anyio

from adapters.contract import Attachment, Offered, SendFailed
from gateway.config.settings import MIB
from gateway.render import name, one_line

MOST_FILES = 10
"""Files of one message; platforms allow no more in one go."""

NAME_CHARACTERS = 100
NAME_BYTES = 200
"""How long a name may be; file systems take 255 bytes, and it is kept with a number before it."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Fetched:
    """What came of it: files by their position, and a sentence for each that was not taken."""

    files: dict[int, Attachment] = field(default_factory=dict)
    missing: dict[int, str] = field(default_factory=dict)

    @property
    def in_order(self) -> tuple[Attachment, ...]:
        """The files in the order in which they were sent, no two of one name."""
        return tuple(self.files[position] for position in sorted(self.files))

    @property
    def said(self) -> str:
        """The sentences; empty when nothing is missing."""
        return "\n".join(self.missing[position] for position in sorted(self.missing))


async def fetch(offered: Sequence[Offered], *, largest_bytes: int, limit_s: float) -> Fetched:
    """Fetch what a person sent, all at once, each up to a size and all within a time."""
    fetched = Fetched()
    for position, file in enumerate(offered):
        if position >= MOST_FILES:
            fetched.missing[position] = _not_taken(file, f"a message may bring {MOST_FILES} files")
        elif file.size_bytes is not None and file.size_bytes > largest_bytes:
            fetched.missing[position] = _not_taken(file, _too_large(file.size_bytes, largest_bytes))
    wanted = [position for position in range(len(offered)) if position not in fetched.missing]
    with anyio.move_on_after(limit_s):
        async with anyio.create_task_group() as tasks:
            for position in wanted:
                tasks.start_soon(_fetch_one, fetched, position, offered[position], largest_bytes)
    for position in wanted:
        if position not in fetched.files and position not in fetched.missing:
            fetched.missing[position] = _not_taken(offered[position], f"it did not arrive within {limit_s:g} s")
    return fetched


async def _fetch_one(fetched: Fetched, position: int, file: Offered, largest_bytes: int) -> None:
    try:
        content = await file.fetch()
    except SendFailed as error:
        fetched.missing[position] = _not_taken(file, one_line(error.reason, 200))
    except Exception as error:  # noqa: BLE001 - an adapter's mistake must not cost the message
        _log.warning("a file was not fetched: %s", type(error).__name__)
        fetched.missing[position] = _not_taken(file, "it could not be fetched")
    else:
        if len(content) > largest_bytes:
            fetched.missing[position] = _not_taken(file, _too_large(len(content), largest_bytes))
        else:
            fetched.files[position] = Attachment(file.name, content)


def safe_names(files: Sequence[Attachment]) -> tuple[Attachment, ...]:
    """Give files names that are one component of a path each, printable, not hidden, and no two the same."""
    taken: set[str] = set()
    safe = []
    for file in files:
        stem, suffix = os.path.splitext(_safe_name(file.name))
        unique, number = stem + suffix, 2
        while unique.casefold() in taken:
            unique, number = f"{stem}-{number}{suffix}", number + 1
        taken.add(unique.casefold())
        safe.append(Attachment(unique, file.content))
    return tuple(safe)


def _safe_name(given: str) -> str:
    last = given.replace("\\", "/").rstrip("/").rpartition("/")[2]
    kept = "".join(mark if mark.isprintable() else "_" for mark in last).strip().lstrip(".-~").strip()
    if len(kept) > NAME_CHARACTERS or len(kept.encode()) > NAME_BYTES:
        stem, suffix = os.path.splitext(kept)
        suffix = suffix[-20:]
        room = NAME_BYTES - len(suffix.encode())
        # What is half of a character at the cut goes, too.
        kept = stem[: NAME_CHARACTERS - len(suffix)].encode()[:room].decode(errors="ignore") + suffix
    return kept or "file"


def _not_taken(file: Offered, why: str) -> str:
    return f"⚠ {name(file.name)} was not taken: {why}."


def _too_large(size_bytes: int, largest_bytes: int) -> str:
    return f"it has {size_bytes / MIB:.1f} MB, and the limit is {largest_bytes / MIB:g} MB"
