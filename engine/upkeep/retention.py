"""Deciding what a prune drops, with a reason for each decision, and what it keeps against a rule, with the reason too.

Pure functions of plain values: nothing is read, nothing is dropped. What is never dropped, whatever the policy says:
the checkpoints an interrupted restore names, anything of a workspace that is in use, anything of a workspace whose
directory is not found (but for what an explicit preview showed), the last checkpoint of a workspace that is over a
count or a size.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType

from engine.upkeep.facts import HeldRef, LegacyArchive, WorkspaceFacts
from engine.upkeep.figures import counted, sized
from engine.upkeep.orphans import Orphan, OrphanPreview, as_orphan
from engine.upkeep.projects import State

_DEFAULT_CAP_BYTES = 500 * 1024 * 1024
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class WorkspaceRule:
    """What one workspace overrides; ``None`` is no limit."""

    retention_days: float | None
    max_snapshots: int | None


@dataclass(frozen=True, slots=True)
class PrunePolicy:
    """What may be dropped; ``None`` is no limit.

    ``ended_sessions`` are the hashes of sessions that are over; their baselines go. Whatever else there is stays: a
    session that has begun since nobody knows yet.
    ``orphans`` is what a person was shown and agreed to. ``rules`` override by workspace hash. ``dry_run`` only plans.
    """

    retention_days: float | None = 7.0
    max_snapshots: int | None = 20
    max_size_bytes: int | None = _DEFAULT_CAP_BYTES
    ended_sessions: frozenset[str] = frozenset()
    orphans: OrphanPreview | None = None
    rules: Mapping[str, WorkspaceRule] = field(default_factory=lambda: MappingProxyType({}))
    dry_run: bool = False

    def rule_of(self, workspace_hash: str) -> WorkspaceRule:
        """Return what holds for one workspace."""
        return self.rules.get(workspace_hash) or WorkspaceRule(self.retention_days, self.max_snapshots)


class Rule(StrEnum):
    """Which rule a decision follows."""

    RETENTION = "retention"
    COUNT = "count"
    SIZE = "size"
    ORPHAN = "orphan"
    SESSION = "session"
    LEFTOVER = "leftover"


class Target(StrEnum):
    """What a decision drops."""

    CHECKPOINT = "checkpoint"
    WORKSPACE = "workspace"
    """All that the store knows of it; its checkpoints have decisions of their own."""
    BASELINE = "session baseline"
    AFTER = "state after a turn"
    ARCHIVE = "legacy archive"


@dataclass(frozen=True, slots=True)
class Decision:
    """One thing to drop and why.

    ``name`` is a checkpoint's id, a workspace's hash, a session's hash, a sequence number or an archive's name.
    """

    rule: Rule
    target: Target
    name: str
    reason: str
    workspace: str | None = None
    workdir: str | None = None
    sequence: int | None = None
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """Something that a rule would drop and that stays, and why."""

    name: str
    reason: str
    workspace: str | None = None


@dataclass(frozen=True, slots=True)
class PrunePlan:
    """What the rules other than the size cap drop, and what they leave although it is old."""

    decisions: tuple[Decision, ...] = ()
    kept: tuple[Kept, ...] = ()


def plan_prune(
    workspaces: Iterable[WorkspaceFacts], archives: Iterable[LegacyArchive], policy: PrunePolicy, now: datetime
) -> PrunePlan:
    """Plan by age, count, orphans, ended sessions and leftovers; the size cap is `size_order`'s."""
    decisions: list[Decision] = []
    kept: list[Kept] = []
    for facts in workspaces:
        _plan_workspace(facts, policy, now, decisions, kept)
    for archive in archives:
        _plan_archive(archive, policy, now, decisions, kept)
    return PrunePlan(tuple(decisions), tuple(kept))


def _plan_workspace(
    facts: WorkspaceFacts, policy: PrunePolicy, now: datetime, decisions: list[Decision], kept: list[Kept]
) -> None:
    rule = policy.rule_of(facts.hash)
    sessions = _plan_sessions(facts, policy)
    if facts.state is State.ORPHAN:
        _plan_orphan(facts, policy, now, decisions, kept)
        return
    expiry = _expiry(facts, rule, now)
    stays = _why_it_stays(facts)
    if expiry is not None and stays is not None:
        kept.append(Kept(_label(facts), f"{expiry}, but {stays}", facts.hash))
    if expiry is None or stays is not None:
        decisions += _plan_count(facts, rule)
        decisions += sessions
        decisions += _plan_leftovers(facts)
        return
    decisions += [_checkpoint(facts, item, Rule.RETENTION, expiry) for item in facts.checkpoints]
    decisions += sessions
    decisions += _plan_leftovers(facts)
    alive = len(facts.sessions) - len(sessions)
    if alive:
        kept.append(Kept(_label(facts), f"{expiry}, but {_sessions(alive)} still open", facts.hash))
    else:
        decisions.append(_workspace(facts, Rule.RETENTION, expiry))


def _sessions(count: int) -> str:
    return "one session is" if count == 1 else f"{count} sessions are"


def _plan_orphan(
    facts: WorkspaceFacts, policy: PrunePolicy, now: datetime, decisions: list[Decision], kept: list[Kept]
) -> None:
    """Delete an orphan only if it was shown, is the same still, and nothing speaks against it now."""
    project = facts.project
    if project is None:
        return
    if policy.orphans is None:
        expiry = _expiry(facts, policy.rule_of(facts.hash), now)
        if expiry is not None:
            why = "its directory is not found, which may be an unmounted disk"
            kept.append(Kept(project.workdir, f"{expiry}, but {why}", facts.hash))
        return
    doubt = facts.in_use or facts.doubt or _unshown(as_orphan(facts, project), policy.orphans)
    if doubt is not None:
        kept.append(Kept(project.workdir, doubt, facts.hash))
        return
    reason = "its directory was deleted"
    decisions += [_checkpoint(facts, item, Rule.ORPHAN, reason) for item in facts.checkpoints]
    decisions.append(_workspace(facts, Rule.ORPHAN, reason))


def _unshown(orphan: Orphan, shown: OrphanPreview) -> str | None:
    """Return why an orphan is not the one a person agreed to delete, ``None`` if it is."""
    if orphan in shown.gone:
        return None
    if any(known.hash == orphan.hash for known in shown.gone):
        return "it was used since it was shown"
    return "it was not shown"


def _expiry(facts: WorkspaceFacts, rule: WorkspaceRule, now: datetime) -> str | None:
    """Return why a workspace is too old to keep, ``None`` if it is not or if its age is not known."""
    touched = facts.project.last_touch if facts.project else None
    if rule.retention_days is None or touched is None:
        return None
    age = now - touched
    if age / _DAY <= rule.retention_days:
        return None
    return f"not used for {_days(age)}, kept for {rule.retention_days:g}"


def _days(age: timedelta) -> str:
    """Return an age in whole days, below one in hours."""
    if age < _DAY:
        return counted(int(age / timedelta(hours=1)), "hour")
    return counted(age.days, "day")


def _why_it_stays(facts: WorkspaceFacts) -> str | None:
    if facts.in_use is not None:
        return facts.in_use
    if facts.state is not State.LIVE:
        return "whether its directory is there cannot be told"
    return None


def _plan_count(facts: WorkspaceFacts, rule: WorkspaceRule) -> list[Decision]:
    if rule.max_snapshots is None or facts.state is not State.LIVE:
        return []
    most = max(rule.max_snapshots, 1)
    surplus = len(facts.checkpoints) - most
    reason = f"more than {counted(most, 'checkpoint')}"
    return [_checkpoint(facts, item, Rule.COUNT, reason) for item in droppable(facts)[: max(surplus, 0)]]


def droppable(facts: WorkspaceFacts) -> list[HeldRef]:
    """Return the checkpoints that may go one by one, oldest first; the newest is never among them."""
    return [item for item in facts.checkpoints[:-1] if item.commit not in facts.needed]


def _plan_sessions(facts: WorkspaceFacts, policy: PrunePolicy) -> list[Decision]:
    if facts.in_use is not None:
        return []
    ended = [name for name in facts.sessions if name in policy.ended_sessions]
    return [
        Decision(Rule.SESSION, Target.BASELINE, name, "its session has ended", facts.hash, facts.workdir)
        for name in ended
    ]


def _plan_leftovers(facts: WorkspaceFacts) -> list[Decision]:
    """Drop the states after turns whose checkpoint is gone."""
    known = {item.sequence for item in facts.checkpoints}
    return [
        Decision(Rule.LEFTOVER, Target.AFTER, str(number), "its checkpoint is gone", facts.hash, facts.workdir, number)
        for number in facts.after
        if number not in known
    ]


def _plan_archive(
    archive: LegacyArchive, policy: PrunePolicy, now: datetime, decisions: list[Decision], kept: list[Kept]
) -> None:
    if policy.retention_days is None:
        return
    if archive.archived_at is None:
        kept.append(Kept(archive.name, "its name does not say how old it is; see: gateway checkpoints clear-legacy"))
        return
    age = now - archive.archived_at
    if age / _DAY > policy.retention_days:
        reason = f"set aside {_days(age)} ago, kept for {policy.retention_days:g}"
        decisions.append(Decision(Rule.RETENTION, Target.ARCHIVE, archive.name, reason, size_bytes=archive.size_bytes))


def size_order(workspaces: Sequence[WorkspaceFacts], max_size_bytes: int) -> list[Decision]:
    """Return all that the size cap may drop, in the order in which it would: the oldest of each workspace in turn.

    The workspaces that were used longest ago come first in each round. How much of it is dropped is decided by what
    each drop frees.
    """
    reason = f"the store is over its cap of {sized(max_size_bytes)}"
    live = [facts for facts in workspaces if facts.state is State.LIVE]
    live.sort(key=lambda facts: (_touched(facts), facts.hash))
    queues = [(facts, droppable(facts)) for facts in live]
    rounds = max((len(queue) for _facts, queue in queues), default=0)
    return [
        _checkpoint(facts, queue[number], Rule.SIZE, reason)
        for number in range(rounds)
        for facts, queue in queues
        if number < len(queue)
    ]


def enough(freed: Sequence[int], excess_bytes: int) -> int:
    """Return how many of the first drops free ``excess_bytes``: all, if even they do not."""
    left = excess_bytes
    for number, size in enumerate(freed):
        if left <= 0:
            return number
        left -= size
    return len(freed)


def _touched(facts: WorkspaceFacts) -> float:
    touched = facts.project.last_touch if facts.project else None
    return touched.timestamp() if touched else 0.0


def _checkpoint(facts: WorkspaceFacts, item: HeldRef, rule: Rule, reason: str) -> Decision:
    return Decision(rule, Target.CHECKPOINT, item.commit, reason, facts.hash, facts.workdir, item.sequence)


def _workspace(facts: WorkspaceFacts, rule: Rule, reason: str) -> Decision:
    return Decision(rule, Target.WORKSPACE, facts.hash, reason, facts.hash, facts.workdir)


def _label(facts: WorkspaceFacts) -> str:
    return facts.workdir or facts.hash
