"""Which names in the store, and which commits, a decision is about."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from engine.errors import StoreDamaged
from engine.store.layout import REF_ROOT
from engine.store.quarantine import Quarantined, workspace_of
from engine.store.refs import after_ref, base_ref, checkpoint_ref, session_ref
from engine.upkeep.facts import WorkspaceFacts
from engine.upkeep.retention import Decision, Target


def refs_of(decision: Decision, facts: WorkspaceFacts) -> list[str]:
    """Return the names that a decision deletes, those that exist."""
    name, sequence = facts.hash, decision.sequence
    if decision.target is Target.WORKSPACE:
        return [*_rest_of(facts)]
    if decision.target is Target.BASELINE:
        return [session_ref(name, decision.name)]
    if sequence is None:
        return []
    after = [after_ref(name, sequence)] if sequence in facts.after else []
    return after if decision.target is Target.AFTER else [checkpoint_ref(name, sequence), *after]


def _rest_of(facts: WorkspaceFacts) -> Iterable[str]:
    """Yield all names of a workspace but its checkpoints', which have decisions of their own."""
    if facts.base is not None:
        yield base_ref(facts.hash)
    yield from (after_ref(facts.hash, number) for number in facts.after)
    yield from (session_ref(facts.hash, name) for name in facts.sessions)
    yield from (f"{REF_ROOT}/{facts.hash}/{name}" for name in facts.others)


def split_commits(
    workspaces: Sequence[WorkspaceFacts], decisions: Sequence[Decision]
) -> tuple[list[str], list[list[str]]]:
    """Return the commits that stay and those of each decision."""
    by_hash = {facts.hash: facts for facts in workspaces}
    names = {facts.hash: commits_of(facts) for facts in workspaces}
    drops = []
    for item in decisions:
        facts = by_hash[item.workspace or ""]
        known = names[facts.hash]
        drops.append([known.pop(name) for name in refs_of(item, facts) if name in known])
    return [commit for known in names.values() for commit in known.values()], drops


def commits_of(facts: WorkspaceFacts) -> dict[str, str]:
    """Return all names of a workspace with their commits."""
    name = facts.hash
    commits = {checkpoint_ref(name, item.sequence): item.commit for item in facts.checkpoints}
    commits |= {after_ref(name, number): commit for number, commit in facts.after.items()}
    commits |= {session_ref(name, session): commit for session, commit in facts.sessions.items()}
    commits |= {f"{REF_ROOT}/{name}/{rest}": commit for rest, commit in facts.others.items()}
    if facts.base is not None:
        commits[base_ref(name)] = facts.base
    return commits


def lacking(facts: WorkspaceFacts, names: Collection[str]) -> WorkspaceFacts:
    """Return a workspace as it is once these names are gone."""
    own = facts.hash
    return replace(
        facts,
        checkpoints=tuple(item for item in facts.checkpoints if checkpoint_ref(own, item.sequence) not in names),
        after={number: commit for number, commit in facts.after.items() if after_ref(own, number) not in names},
        sessions={name: commit for name, commit in facts.sessions.items() if session_ref(own, name) not in names},
        others={name: commit for name, commit in facts.others.items() if f"{REF_ROOT}/{own}/{name}" not in names},
        base=None if base_ref(own) in names else facts.base,
    )


def split_nameless(
    workspaces: Iterable[WorkspaceFacts], pending: Collection[str], aside: Iterable[Quarantined]
) -> tuple[list[WorkspaceFacts], list[WorkspaceFacts]]:
    """Return the workspaces that have names, and those whose deletion was cut off before all of it was done.

    One whose names were all set aside is neither: what is known of it waits for them.

    Raises:
        StoreDamaged: a workspace has no names and no prune deleted them. Reclaiming space would now delete what
            they stood for.
    """
    named, nameless = [], []
    waiting = {workspace_of(entry.name) for entry in aside}
    for facts in workspaces:
        if not facts.nameless:
            named.append(facts)
        elif facts.hash not in waiting:
            nameless.append(facts)
    lost = [facts for facts in nameless if base_ref(facts.hash) not in pending]
    if lost:
        more = f" and of {len(lost) - 1} more" if lost[1:] else ""
        raise StoreDamaged(f"the names of {lost[0].workdir or lost[0].hash}{more} are lost")
    return named, nameless


def without(workspaces: Sequence[WorkspaceFacts], decisions: Sequence[Decision]) -> list[WorkspaceFacts]:
    """Return the workspaces as they are once these decisions have been carried out."""
    gone = {item.workspace for item in decisions if item.target is Target.WORKSPACE}
    dropped: dict[str | None, list[Decision]] = {}
    for item in decisions:
        dropped.setdefault(item.workspace, []).append(item)
    return [_left_of(facts, dropped.get(facts.hash, ())) for facts in workspaces if facts.hash not in gone]


def _left_of(facts: WorkspaceFacts, decisions: Iterable[Decision]) -> WorkspaceFacts:
    checkpoints, after, sessions = set(), set(), set()
    for item in decisions:
        if item.target is Target.BASELINE:
            sessions.add(item.name)
        else:
            after.add(item.sequence)
        if item.target is Target.CHECKPOINT:
            checkpoints.add(item.sequence)
    return replace(
        facts,
        checkpoints=tuple(held for held in facts.checkpoints if held.sequence not in checkpoints),
        after={number: commit for number, commit in facts.after.items() if number not in after},
        sessions={name: commit for name, commit in facts.sessions.items() if name not in sessions},
    )
