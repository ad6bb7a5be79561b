"""What a prune drops and why, decided on values alone."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.upkeep.facts import HeldRef, LegacyArchive, WorkspaceFacts
from engine.upkeep.orphans import Orphan, OrphanPreview, preview_orphans
from engine.upkeep.projects import Project, State
from engine.upkeep.retention import (
    Decision,
    PrunePolicy,
    Rule,
    Target,
    WorkspaceRule,
    enough,
    plan_prune,
    size_order,
)

NOW = datetime(2026, 3, 16, 12, 0, tzinfo=UTC)
MB = 1024 * 1024


def workspace(name: str = "app", *, days: float = 0, checkpoints: int = 3) -> WorkspaceFacts:
    project = Project(f"/code/{name}", NOW - timedelta(days=100), NOW - timedelta(days=days), (1, 2))
    held = tuple(HeldRef(number, f"{name}{number}") for number in range(1, checkpoints + 1))
    return WorkspaceFacts(name, project, State.LIVE, held, base="base")


def dropped(*workspaces: WorkspaceFacts, policy: PrunePolicy = PrunePolicy()) -> list[tuple[Rule, Target, str]]:  # noqa: B008 - a frozen value
    plan = plan_prune(workspaces, (), policy, NOW)
    return [(item.rule, item.target, item.name) for item in plan.decisions]


def kept(*workspaces: WorkspaceFacts, policy: PrunePolicy = PrunePolicy()) -> list[tuple[str, str]]:  # noqa: B008
    return [(item.name, item.reason) for item in plan_prune(workspaces, (), policy, NOW).kept]


def names(order: list[Decision]) -> list[str]:
    return [item.name for item in order]


def test_workspace_in_use_keeps_everything():
    assert dropped(workspace(days=7)) == []


def test_workspace_not_used_for_longer_goes_with_all_its_checkpoints():
    assert dropped(workspace(days=7.01, checkpoints=2)) == [
        (Rule.RETENTION, Target.CHECKPOINT, "app1"),
        (Rule.RETENTION, Target.CHECKPOINT, "app2"),
        (Rule.RETENTION, Target.WORKSPACE, "app"),
    ]


@pytest.mark.parametrize(
    ("days", "limit", "reason"),
    [
        (1.5, 1, "not used for 1 day, kept for 1"),
        (2.5, 1, "not used for 2 days, kept for 1"),
        (0.05, 0.04, "not used for 1 hour, kept for 0.04"),
    ],
)
def test_age_is_said_in_the_number_it_is(days: float, limit: float, reason: str):
    plan = plan_prune([workspace(days=days)], (), PrunePolicy(retention_days=limit, max_snapshots=1), NOW)

    assert {item.reason for item in plan.decisions} == {reason}


def test_one_snapshot_is_one():
    plan = plan_prune([workspace()], (), PrunePolicy(max_snapshots=1), NOW)

    assert plan.decisions[0].reason == "more than 1 checkpoint"


@pytest.mark.parametrize("days", [1e9, 1e300, float("inf")])
def test_no_retention_is_too_long(days: float):
    archive = LegacyArchive("legacy-20200101-000000", 5, NOW - timedelta(days=2000))

    assert plan_prune([workspace(days=3000)], [archive], PrunePolicy(retention_days=days), NOW).decisions == ()


def test_reason_names_age_and_limit():
    plan = plan_prune([workspace(days=9)], (), PrunePolicy(), NOW)

    assert {item.reason for item in plan.decisions} == {"not used for 9 days, kept for 7"}


@pytest.mark.parametrize("touched", [None, NOW + timedelta(days=400)])
def test_unknown_or_future_age_is_not_old(touched: datetime | None):
    facts = workspace()
    assert facts.project is not None
    facts = replace(facts, project=replace(facts.project, last_touch=touched))

    assert dropped(facts) == []


def test_no_retention_keeps_the_oldest():
    assert dropped(workspace(days=10_000), policy=PrunePolicy(retention_days=None)) == []


@pytest.mark.parametrize("state", [State.ORPHAN, State.UNKNOWN])
def test_sweep_keeps_a_workspace_whose_directory_is_not_surely_there(state: State):
    facts = replace(workspace(days=400, checkpoints=50), state=state)

    assert dropped(facts) == []
    assert size_order([facts], 0) == []
    assert "400 days" in kept(facts)[0][1]


def test_workspace_without_a_project_file_stays():
    facts = replace(workspace(checkpoints=50), project=None, state=State.UNKNOWN)

    assert dropped(facts) == []


def test_interrupted_restore_keeps_an_old_workspace_and_says_so():
    facts = replace(workspace(days=30), in_use="a restore was interrupted")

    assert dropped(facts) == []
    assert kept(facts) == [("/code/app", "not used for 30 days, kept for 7, but a restore was interrupted")]


def test_count_drops_the_oldest_beyond_the_limit():
    assert dropped(workspace(checkpoints=7), policy=PrunePolicy(max_snapshots=5)) == [
        (Rule.COUNT, Target.CHECKPOINT, "app1"),
        (Rule.COUNT, Target.CHECKPOINT, "app2"),
    ]


def test_count_passes_over_what_an_interrupted_restore_needs():
    facts = replace(workspace(checkpoints=6), needed=frozenset({"app1", "app6"}), in_use="a restore was interrupted")

    assert [name for _rule, _target, name in dropped(facts, policy=PrunePolicy(max_snapshots=4))] == ["app2", "app3"]


def test_count_of_nothing_keeps_the_newest():
    found = dropped(workspace(checkpoints=3), policy=PrunePolicy(max_snapshots=0))

    assert [name for _rule, _target, name in found] == ["app1", "app2"]


def test_workspace_may_override_the_rules():
    policy = PrunePolicy(max_snapshots=1, rules={"app": WorkspaceRule(retention_days=90, max_snapshots=None)})

    assert dropped(workspace(days=80, checkpoints=50), policy=policy) == []
    assert dropped(workspace("other", days=80), policy=policy)


def test_ended_session_loses_its_baseline_and_a_live_one_does_not():
    facts = replace(workspace(), sessions={"s1": "c1", "s2": "c2"})

    policy = PrunePolicy(ended_sessions=frozenset({"s1"}))

    assert dropped(facts, policy=policy) == [(Rule.SESSION, Target.BASELINE, "s1")]
    assert dropped(facts) == []


def test_old_workspace_with_a_live_session_loses_its_checkpoints_only():
    facts = replace(workspace(days=30, checkpoints=1), sessions={"s1": "c1", "s2": "c2"})

    policy = PrunePolicy(ended_sessions=frozenset({"s1"}))

    assert dropped(facts, policy=policy) == [
        (Rule.RETENTION, Target.CHECKPOINT, "app1"),
        (Rule.SESSION, Target.BASELINE, "s1"),
    ]
    assert kept(facts, policy=policy) == [
        ("/code/app", "not used for 30 days, kept for 7, but one session is still open")
    ]


def test_state_after_a_turn_goes_once_its_checkpoint_is_gone():
    facts = replace(workspace(checkpoints=2), after={1: "x", 2: "y", 9: "z"})

    assert dropped(facts) == [(Rule.LEFTOVER, Target.AFTER, "9")]


def test_archive_goes_when_it_is_old_and_stays_when_its_age_is_unknown():
    archives = [
        LegacyArchive("legacy-20260301-000000", 10, NOW - timedelta(days=15)),
        LegacyArchive("legacy-20260315-000000", 20, NOW - timedelta(days=1)),
        LegacyArchive("legacy-mine", 30),
    ]

    plan = plan_prune((), archives, PrunePolicy(), NOW)

    assert [(item.name, item.reason, item.size_bytes) for item in plan.decisions] == [
        ("legacy-20260301-000000", "set aside 15 days ago, kept for 7", 10)
    ]
    assert [item.name for item in plan.kept] == ["legacy-mine"]


def orphan(name: str = "app", **changes: object) -> WorkspaceFacts:
    return replace(workspace(name, days=1), state=State.ORPHAN, **changes)  # type: ignore[arg-type]


def test_orphan_that_was_shown_goes():
    facts = orphan()

    policy = PrunePolicy(orphans=preview_orphans([facts]))

    assert dropped(facts, policy=policy)[-1] == (Rule.ORPHAN, Target.WORKSPACE, "app")


def test_orphan_that_was_not_shown_stays():
    policy = PrunePolicy(orphans=preview_orphans([orphan("other")]))

    assert dropped(orphan(), policy=policy) == []
    assert kept(orphan(), policy=policy) == [("/code/app", "it was not shown")]


@pytest.mark.parametrize(
    "now_known",
    [
        orphan(doubt="its disk may not be mounted"),
        orphan(in_use="a command is under way there"),
        orphan(checkpoints=(HeldRef(1, "app1"),)),
        replace(workspace(days=1)),
    ],
)
def test_orphan_that_changed_after_it_was_shown_stays(now_known: WorkspaceFacts):
    policy = PrunePolicy(orphans=preview_orphans([orphan()]))

    assert dropped(now_known, policy=policy) == []


def test_orphan_in_doubt_is_shown_as_kept():
    found = preview_orphans([orphan(), orphan("b", doubt="the disk"), workspace("c")])

    assert found == OrphanPreview(
        (Orphan("app", "/code/app", NOW - timedelta(days=1), ("app1", "app2", "app3")),), (("/code/b", "the disk"),)
    )


def test_size_takes_the_oldest_of_each_workspace_in_turn_and_leaves_one():
    order = size_order([workspace("a", days=1, checkpoints=4), workspace("b", days=2, checkpoints=2)], MB)

    assert names(order) == ["b1", "a1", "a2", "a3"]


def test_size_passes_over_what_an_interrupted_restore_needs():
    facts = replace(workspace(checkpoints=4), needed=frozenset({"app1"}))

    assert names(size_order([facts], MB)) == ["app2", "app3"]


@pytest.mark.parametrize(
    ("freed", "excess", "count"),
    [([5, 5, 5], 0, 0), ([5, 5, 5], 5, 1), ([5, 5, 5], 6, 2), ([5, 5, 5], 99, 3), ([], 1, 0), ([0, 5], 1, 2)],
)
def test_no_more_is_dropped_than_frees_the_excess(freed: list[int], excess: int, count: int):
    assert enough(freed, excess) == count


facts_of_any_kind = st.builds(
    lambda name, days, checkpoints, state, needed, in_use, doubt, sessions: replace(
        workspace(name, days=days, checkpoints=checkpoints),
        state=state,
        needed=frozenset(f"{name}{number}" for number in needed),
        in_use=in_use or ("a restore was interrupted" if needed else None),
        doubt=doubt,
        sessions=dict.fromkeys(sessions, "c"),
    ),
    st.sampled_from(["a", "b", "c"]),
    st.integers(-10, 30),
    st.integers(0, 8),
    st.sampled_from(State),
    st.sets(st.integers(1, 8), max_size=2),
    st.sampled_from([None, "a command is under way"]),
    st.sampled_from([None, "the disk"]),
    st.sets(st.sampled_from(["s1", "s2"])),
)


@given(
    workspaces=st.lists(facts_of_any_kind, max_size=3, unique_by=lambda facts: facts.hash),
    most=st.integers(0, 5),
    ended=st.sampled_from([frozenset[str](), frozenset({"s1"}), frozenset({"s1", "s2"})]),
)
def test_no_policy_ever_drops_what_must_stay(workspaces: list[WorkspaceFacts], most: int, ended: frozenset[str]):
    policy = PrunePolicy(max_snapshots=most, ended_sessions=ended)

    plan = plan_prune(workspaces, (), policy, NOW)
    order = size_order(workspaces, 0)

    by_hash = {facts.hash: facts for facts in workspaces}
    for item in (*plan.decisions, *order):
        facts = by_hash[item.workspace or ""]
        assert item.name not in facts.needed
        if item.target in {Target.WORKSPACE, Target.CHECKPOINT}:
            assert facts.state is State.LIVE
        if item.target is Target.WORKSPACE:
            assert facts.in_use is None
            assert not facts.sessions.keys() - ended
        if item.target is Target.BASELINE:
            assert item.name in ended
    for facts in workspaces:
        by_size = [item for item in order if item.workspace == facts.hash]
        assert not facts.checkpoints or len(by_size) < len(facts.checkpoints)
