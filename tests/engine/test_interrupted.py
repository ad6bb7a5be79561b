"""What the next start makes of a tool or a restore that a kill cut off."""

import os
import signal
from collections.abc import Callable

import pytest

from engine.model import CheckpointKind, Limits
from tests.engine.lab import Lab, paths, snapshot


def killed(lab: Lab, work: Callable[[], object], at: Callable[[str, str], bool]) -> None:
    """Run work in a child process that is killed at a file operation."""

    def fault(operation: str, path: str) -> None:
        if at(operation, path):
            os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if child == 0:
        try:
            # A process of its own, not a copy of this one: what it writes down carries its own name.
            import engine.guard
            import engine.store.journal

            engine.guard.INSTANCE = engine.store.journal.INSTANCE = f"child-{os.getpid()}"
            lab.settings = {"file_fault": fault}
            lab.engine = lab.open_engine()
            work()
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    lab.engine = lab.open_engine()


def test_write_that_was_killed_after_it_was_made_is_still_the_agents(lab: Lab) -> None:
    lab.edit("other", "x\n")
    lab.next_turn()
    killed(
        lab,
        lambda: lab.write("pkg/new.py", "agent\n", new_turn=False),
        lambda operation, path: operation == "sync-directory" and path == "pkg/new.py",
    )
    assert lab.read("pkg/new.py") == "agent\n"

    report = lab.rollback()

    assert paths(report.kept) == []
    assert not lab.exists("pkg")


def test_write_that_was_killed_half_way_leaves_no_trace(lab: Lab) -> None:
    lab.edit("a", "one\n")
    killed(lab, lambda: lab.write("a", "two\n"), lambda operation, _path: operation == "install")
    assert lab.read("a") == "one\n"

    lab.write("b", "bee\n")

    assert sorted(snapshot(lab.root)) == ["a", "b"]


def test_persons_edit_after_a_killed_write_stays_theirs(lab: Lab) -> None:
    lab.edit("a", "one\n")
    lab.next_turn()
    killed(lab, lambda: lab.write("a", "two\n", new_turn=False), lambda operation, _path: operation == "sync-directory")
    lab.edit("a", "by hand\n")

    lab.write("b", "bee\n")
    report = lab.rollback(2)

    assert lab.read("a") == "by hand\n"
    assert "a" in paths(report.kept)


def test_state_before_a_killed_command_is_a_checkpoint(lab: Lab) -> None:
    lab.edit("a", "one\n")
    child = os.fork()
    if child == 0:
        import engine.guard
        import engine.store.journal

        engine.guard.INSTANCE = engine.store.journal.INSTANCE = "child"
        lab.engine = lab.open_engine()
        lab.run(f"python3 -c \"open('a','w').write('two')\"; kill -9 {os.getpid()}")
        os._exit(1)
    os.waitpid(child, 0)
    lab.engine = lab.open_engine()
    assert lab.read("a") == "two"

    result = lab.write("b", "bee\n")
    first = lab.checkpoints()[-1]

    assert any("ended during a tool" in note for note in result.notes)
    assert first.kind is CheckpointKind.TURN
    lab.rollback(len(lab.checkpoints()), everything=True)
    assert lab.read("a") == "one\n"


@pytest.mark.parametrize("point", range(1, 32))
def test_killed_restore_is_finished_by_the_next_start(lab: Lab, point: int) -> None:
    for name in "abcdef":
        lab.edit(f"dir/{name}", f"{name} one\n")
    lab.edit("hand", "one\n")
    before = snapshot(lab.root)
    lab.run(
        "rm dir/a; echo two > dir/b; chmod 600 dir/c; rm dir/d; mkdir dir/d; echo x > dir/d/x; ln -sf q dir/e; echo > n"
    )
    lab.edit("hand", "by hand\n")
    plan = lab.plan()
    seen = [0]

    def reached(_operation: str, _path: str) -> bool:
        seen[0] += 1
        return seen[0] == point

    killed(lab, lambda: lab.engine.apply_restore(plan), reached)
    reports = lab.engine.resume_restores(lab.workspace)

    assert [report.resumed for report in reports] == [True]
    assert reports[0].failed == ()
    now = snapshot(lab.root)
    assert now.pop("hand") == ("file", 0o644, b"by hand\n")
    before.pop("hand")
    assert now == before
    assert lab.engine.resume_restores(lab.workspace) == []
    outcome = lab.engine.restore_outcome(lab.workspace, plan.token)
    assert outcome is not None
    assert outcome.safety is not None
    lab.undo_restore(outcome)
    assert lab.read("dir/b") == "two\n"


def test_checkpoint_of_what_was_before_a_killed_command_names_the_gaps_of_then(lab: Lab) -> None:
    lab.limits = Limits(max_file_size_bytes=1000)
    lab.edit("a", "one\n")
    lab.edit("big", "x" * 2000)
    killed(
        lab,
        lambda: lab.run(f"python3 -c \"import os; open('a', 'w').write('two'); os.kill({os.getpid()}, 9)\""),
        lambda _operation, _path: False,
    )
    (lab.root / "big").unlink()

    lab.write("b", "bee\n")

    [then] = [taken for taken in lab.checkpoints() if "python3" in taken.reason]
    assert [gap.path for gap in then.gaps] == ["big"]
