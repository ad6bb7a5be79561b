"""What no rule lets go, and how much of the store it takes: what a person is told when the cap cannot be reached."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from engine.host.git import Git
from engine.upkeep.drops import commits_of
from engine.upkeep.facts import WorkspaceFacts
from engine.upkeep.figures import counted, sized
from engine.upkeep.objects import freed_by
from engine.upkeep.projects import State


class Hold(StrEnum):
    """Why something stays although the store is over its cap."""

    NOT_FOUND = "not found"
    """All of a workspace whose directory is not found: it may be on a disk that is not mounted."""
    SESSION = "session"
    """Where an open session began."""
    UNDER_WAY = "under way"
    """What a restore or a command needs that is under way or was cut off."""
    NEWEST = "newest"
    """The newest checkpoint of a workspace, and the state it was captured in last."""
    RECORDS = "records"
    """Indexes, ledgers and names; it is no content."""


@dataclass(frozen=True, slots=True)
class Holding:
    """What is held for one reason: how many things that are, their bytes, and the workspace that most of them are of.

    What is held for several reasons counts for the one that is harder to give up, so each is what giving it up frees.
    """

    hold: Hold
    count: int
    size_bytes: int
    largest: str | None = None
    largest_bytes: int = 0


@dataclass(frozen=True, slots=True)
class OverCap:
    """A store that no rule brings under its cap, by how much, and what holds the space, largest first."""

    cap_bytes: int
    excess_bytes: int
    holdings: tuple[Holding, ...] = ()


@dataclass(frozen=True, slots=True)
class _Part:
    """What one workspace holds for one reason."""

    hold: Hold
    workdir: str
    commits: tuple[str, ...]


def find_over_cap(git: Git, workspaces: Sequence[WorkspaceFacts], store_bytes: int, cap_bytes: int) -> OverCap:
    """Return by how much a store of ``store_bytes`` is over its cap, and what holds its space. Walks every object.

    Args:
        git: the store.
        workspaces: what is left when all has been dropped that the cap may drop.
        store_bytes: what the store then takes.
        cap_bytes: what it should take at most.

    Raises:
        GitFailed: an object is missing or cannot be read.
    """
    parts = sorted(_parts(workspaces), key=lambda part: list(Hold).index(part.hold))
    sizes, _kept = freed_by(git, (), [part.commits for part in parts])
    found = [_holding(hold, parts, sizes) for hold in Hold]
    records = max(store_bytes - sum(sizes), 0)
    found.append(Holding(Hold.RECORDS, len(workspaces), records))
    held = sorted((item for item in found if item.size_bytes), key=lambda item: -item.size_bytes)
    return OverCap(cap_bytes, store_bytes - cap_bytes, tuple(held))


def _parts(workspaces: Sequence[WorkspaceFacts]) -> Iterator[_Part]:
    for facts in workspaces:
        where = facts.workdir or facts.hash
        everything = commits_of(facts).values()
        if facts.state is not State.LIVE:
            yield _Part(Hold.NOT_FOUND, where, tuple(everything))
            continue
        sessions = tuple(facts.sessions.values())
        newest = facts.checkpoints[-1].sequence if facts.checkpoints else None
        kept = {item.commit for item in facts.checkpoints[-1:]} | {facts.base or "", facts.after.get(newest or 0, "")}
        kept.discard("")
        rest = [commit for commit in everything if commit not in kept and commit not in sessions]
        yield _Part(Hold.SESSION, where, sessions)
        yield _Part(Hold.UNDER_WAY, where, tuple(rest))
        yield _Part(Hold.NEWEST, where, tuple(kept))


def _holding(hold: Hold, parts: Sequence[_Part], sizes: Sequence[int]) -> Holding:
    mine = [(size, part) for size, part in zip(sizes, parts, strict=True) if part.hold is hold and part.commits]
    most, largest = max(mine, key=lambda item: item[0], default=(0, None))
    count = sum(len(part.commits) if hold is Hold.SESSION else 1 for _size, part in mine)
    return Holding(hold, count, sum(size for size, _part in mine), largest.workdir if largest else None, most)


def over_cap_note(found: OverCap) -> str:
    """Return what to say of a store that no rule can bring under its cap: by how much, what holds it, what to do."""
    held = "; ".join(_said(item) for item in found.holdings)
    steps = [_STEPS[item.hold] for item in found.holdings if item.hold in _STEPS]
    return (
        f"the store stays {sized(found.excess_bytes)} over its cap of {sized(found.cap_bytes)}, and no rule "
        f"lets more go. It holds {held}. What helps: {'; '.join([*steps, _ALWAYS])}"
    )


_STEPS = {
    Hold.NOT_FOUND: "mount the disk that is missing, or drop what was deleted (gateway prune --orphans)",
    Hold.SESSION: "end sessions that are over (/new in their chats, or a lower session_idle_days)",
    Hold.UNDER_WAY: "let the gateway finish what was cut off (gateway run)",
    Hold.NEWEST: "see which files are large (gateway checkpoints status)",
}
_ALWAYS = "raise checkpoints.max_total_size_mb, or give up all history (gateway checkpoints clear)"


def _said(item: Holding) -> str:
    what = {
        Hold.NOT_FOUND: f"of {counted(item.count, 'workspace')} whose directory is not found",
        Hold.SESSION: f"of {counted(item.count, 'open session')}, the state each began with",
        Hold.UNDER_WAY: "that unfinished work needs",
        Hold.NEWEST: f"of {counted(item.count, 'workspace')}, one checkpoint each and the state captured last",
        Hold.RECORDS: "of indexes and other records",
    }[item.hold]
    most = "" if item.largest is None else f" (the most, {sized(item.largest_bytes)}, of {item.largest})"
    return f"{sized(item.size_bytes)} {what}{most}"
