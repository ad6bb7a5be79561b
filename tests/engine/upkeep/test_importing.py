"""Taking over the history of stores that other software made, in the shapes that such stores have."""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from engine.errors import NestedRepositoryRefused
from engine.model import GapReason
from engine.upkeep.importing import ImportReport, import_store
from engine.upkeep.prune import prune
from engine.upkeep.retention import PrunePolicy
from engine.upkeep.status import read_projects
from engine.upkeep.verify import verify
from tests.engine.lab import Lab, snapshot
from tests.engine.upkeep.foreign_kit import BEGAN_S, MINUTE_S, Foreign
from tests.engine.upkeep.kit import Kit, no_fault

STEM = "a1b2c3d4e5f60718"
SUBJECTS = ["before write_file: app.py", "before terminal: make", "before patch: ünïcode.py"]


def states(count: int = 3) -> list[dict[str, bytes]]:
    """What the workspace held at each of the checkpoints."""
    return [
        {"app.py": b"%d\n" % number, "src/deep/é.txt": b"same\n", f"only-{number}": b"x" * 3000 + b"%d" % number}
        for number in range(count)
    ]


def make_chain(foreign: Foreign) -> None:
    """One name for the workspace; the parents are the older checkpoints."""
    parents: tuple[str, ...] = ()
    for minute, (state, subject) in enumerate(zip(states(), SUBJECTS, strict=True)):
        parents = (foreign.commit(foreign.tree(state), subject, minute, *parents),)
    foreign.name(f"refs/other/{STEM}", parents[0])


def make_names(foreign: Foreign) -> None:
    """A name for each checkpoint, whose order is not that of the names."""
    for minute, (state, subject) in enumerate(zip(states(), SUBJECTS, strict=True)):
        commit = foreign.commit(foreign.tree(state), subject, minute)
        foreign.name(f"refs/agent/{STEM}/snap-{9 - minute}", commit)


def make_packed(foreign: Foreign) -> None:
    """Packed objects and packed names, with a name of its own that is newer than the packed one."""
    make_chain(foreign)
    newest = foreign.git("rev-parse", f"refs/other/{STEM}")
    foreign.name(f"refs/other/{STEM}", foreign.git("rev-parse", f"{newest}~1"))
    foreign.name("refs/keep/this", newest)
    foreign.git("gc", "-q")
    foreign.git("update-ref", "-d", "refs/keep/this")
    foreign.name(f"refs/other/{STEM}", newest)


def make_same_layout(foreign: Foreign) -> None:
    """Checkpoints beside other names, as Takeback has them."""
    for number, (state, subject) in enumerate(zip(states(), SUBJECTS, strict=True)):
        commit = foreign.commit(foreign.tree(state), subject, number)
        foreign.name(f"refs/takeback/{STEM}/checkpoints/{number + 1:08d}", commit)
    foreign.name(f"refs/takeback/{STEM}/base", foreign.commit(foreign.tree({"app.py": b"base"}), "base", 9))


SHAPES = [make_chain, make_names, make_packed, make_same_layout]


@pytest.fixture
def foreign(tmp_path: Path) -> Foreign:
    return Foreign.made(tmp_path / "other" / "store")


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def imported(lab: Lab, foreign: Foreign) -> ImportReport:
    return lab.engine.upkeep.import_store(str(foreign.path))


@pytest.mark.parametrize("shape", SHAPES)
def test_history_is_listed_in_order_and_restores_byte_by_byte(
    lab: Lab, foreign: Foreign, shape: Callable[[Foreign], None]
):
    shape(foreign)
    foreign.project(STEM, str(lab.root))
    before = foreign.content()

    report = lab.engine.upkeep.import_store(str(foreign.path if shape is make_names else foreign.path.parent))

    assert (report.imported, report.complete) == (3, True)
    assert foreign.content() == before
    listed = list(reversed(lab.checkpoints()))
    assert [item.reason for item in listed] == SUBJECTS
    assert [item.taken_at for item in listed] == [
        datetime.fromtimestamp(BEGAN_S + minute * MINUTE_S, UTC) for minute in range(3)
    ]
    assert {item.imported_from for item in listed} == {str(foreign.path)}
    for checkpoint, state in zip(listed, states(), strict=True):
        lab.engine.apply_restore(lab.engine.plan_restore(lab.workspace, checkpoint.id, everything=True))
        files = {path: content[-1] for path, content in snapshot(lab.root).items() if content[0] == "file"}
        assert files == state
    assert lab.engine.upkeep.verify().findings == ()


@pytest.mark.parametrize("shape", [make_names, make_same_layout])
def test_second_import_takes_nothing_twice_and_a_later_one_what_is_new(
    lab: Lab, foreign: Foreign, shape: Callable[[Foreign], None]
):
    shape(foreign)
    foreign.project(STEM, str(lab.root))
    imported(lab, foreign)
    lab.write("app.py", "ours\n")
    ours, *before = lab.checkpoints()

    again = imported(lab, foreign)
    unchanged = lab.checkpoints()
    foreign.name(f"refs/agent/{STEM}/checkpoints/9", foreign.commit(foreign.tree({"late": b"1"}), "late", 1))
    foreign.name(f"refs/agent/{STEM}/late", foreign.commit(foreign.tree({"late": b"2"}), "late", 1))
    imported(lab, foreign)

    assert (again.imported, again.workspaces[0].known) == (0, 3)
    assert unchanged == [ours, *before]
    after = lab.checkpoints()
    assert after[0] == ours
    assert [item.id for item in after if item.reason != "late"] == [ours.id, *(item.id for item in before)]
    assert [item.reason for item in after].index("late") == 2
    assert [item.taken_at for item in after] == sorted((item.taken_at for item in after), reverse=True)
    assert lab.engine.upkeep.verify().findings == ()


def test_parents_say_the_order_where_dates_do_not(lab: Lab, foreign: Foreign):
    oldest = foreign.commit(foreign.tree({"a": b"1"}), "oldest", 9)
    foreign.name(f"refs/x/{STEM}", foreign.commit(foreign.tree({"a": b"2"}), "newest", 1, oldest))
    foreign.project(STEM, str(lab.root))

    imported(lab, foreign)

    assert [item.reason for item in lab.checkpoints()] == ["newest", "oldest"]


def test_what_was_taken_here_stays_newer_and_keeps_its_names_and_undo(lab: Lab, foreign: Foreign):
    lab.edit("app.py", "mine\n")
    lab.write("app.py", "agent\n")
    before = lab.checkpoints()
    make_chain(foreign)
    foreign.project(STEM, str(lab.root))

    imported(lab, foreign)
    lab.write("app.py", "again\n")
    report = lab.rollback(1)

    assert [item.id for item in lab.checkpoints() if item.imported_from is None][-1:] == [before[0].id]
    assert [item.sequence for item in lab.checkpoints()][-4:] == [1, -1, -2, -3]
    assert lab.read("app.py") == "agent\n"
    assert [note.path for note in report.restored] == ["app.py"]
    lab.rollback(len(lab.checkpoints()) - 3)
    assert lab.read("app.py") == "mine\n"


def test_files_that_were_in_no_imported_checkpoint_stay_and_modes_stay_as_they_are(lab: Lab, foreign: Foreign):
    make_chain(foreign)
    foreign.project(STEM, str(lab.root))
    lab.edit("app.py", "now\n")
    lab.edit("src/deep/é.txt", "now\n")
    lab.edit("src/own.txt", "never captured\n")
    (lab.root / "app.py").chmod(0o640)
    (lab.root / "src").chmod(0o700)
    imported(lab, foreign)
    lab.edit("made-later", "x\n")

    lab.rollback(1, everything=True)

    assert lab.read("src/own.txt") == "never captured\n"
    assert lab.read("app.py") == "2\n"
    assert (lab.root / "app.py").stat().st_mode & 0o7777 == 0o640
    assert (lab.root / "src").stat().st_mode & 0o7777 == 0o700
    assert not lab.exists("made-later")


def test_nested_repositories_are_gaps_and_a_full_restore_refuses(lab: Lab, foreign: Foreign):
    tree = foreign.tree({"a": b"1", "tool": b"1" * 40}, {"tool": "160000"})
    foreign.name(f"refs/x/{STEM}", foreign.commit(tree, "nested", 1))
    foreign.project(STEM, str(lab.root))
    imported(lab, foreign)

    with pytest.raises(NestedRepositoryRefused):
        lab.plan(1)

    [checkpoint] = lab.checkpoints()
    assert [(gap.path, gap.reason) for gap in checkpoint.gaps] == [("tool", GapReason.NESTED_REPOSITORY)]


def test_links_and_executables_come_back_as_they_were(lab: Lab, foreign: Foreign):
    modes = {"run": "100755", "link": "120000"}
    foreign.name(f"refs/x/{STEM}", foreign.commit(foreign.tree({"run": b"#!", "link": b"run"}, modes), "s", 1))
    foreign.project(STEM, str(lab.root))
    imported(lab, foreign)

    lab.rollback(1)

    assert os.readlink(lab.root / "link") == "run"
    assert (lab.root / "run").stat().st_mode & 0o7777 == 0o755


def test_bits_that_run_a_program_as_somebody_else_are_not_taken_over(lab: Lab, foreign: Foreign):
    noted = b'{"usual": {"100644": 420, "100755": 493, "040000": 493}, "modes": {"run": 3565}, "empty": ["none"]}'
    tree = foreign.tree({"run": b"#!", ".takeback/modes": noted}, {"run": "100755"})
    foreign.name(f"refs/x/{STEM}", foreign.commit(tree, "s", 1))
    foreign.project(STEM, str(lab.root))
    imported(lab, foreign)

    lab.rollback(1)

    assert (lab.root / "run").stat().st_mode & 0o7777 == 0o755
    assert (lab.root / "none").is_dir()
    assert not lab.exists(".takeback")


def test_workspace_whose_directory_is_not_here_waits_for_it(kit: Kit, foreign: Foreign):
    make_chain(foreign)
    foreign.project(STEM, "/nonexistent/elsewhere")

    report = import_store(kit.store, str(foreign.path))
    pruned = prune(kit.store, PrunePolicy())

    [project] = read_projects(kit.store)
    assert report.imported == 3
    assert (project.workdir, project.checkpoints) == ("/nonexistent/elsewhere", 3)
    assert project.created_at == datetime.fromtimestamp(BEGAN_S, UTC)
    assert (pruned.errors, pruned.decisions) == ((), ())


def test_dry_run_says_the_same_and_changes_nothing(lab: Lab, foreign: Foreign):
    make_names(foreign)
    foreign.project(STEM, str(lab.root))
    lab.write("app.py", "ours\n")
    before = snapshot(lab.home / ".takeback")

    report = lab.engine.upkeep.import_store(str(foreign.path), dry_run=True)

    assert (report.dry_run, report.imported) == (True, 3)
    assert snapshot(lab.home / ".takeback") == before


def test_import_that_is_killed_before_any_git_command_changes_nothing_or_all(lab: Lab, foreign: Foreign, kit: Kit):
    make_names(foreign)
    foreign.project(STEM, str(kit.workspace("app").root))
    workspace = kit.workspace("app")
    commands = 0

    class Killed(BaseException):
        """The process ends here."""

    def die(_arguments: tuple[str, ...]) -> None:
        nonlocal commands
        commands += 1
        if commands == len(outcomes) + 1:
            raise Killed

    kit.fault = die
    outcomes: list[int] = []
    while len(outcomes) < 40:
        commands = 0
        try:
            import_store(kit.store, str(foreign.path))
        except Killed:
            outcomes.append(len(kit.ids(workspace)))
            kit.fault = no_fault
            report = prune(kit.store, PrunePolicy())
            assert report.errors == ()
            assert verify(kit.store).healthy
            kit.fault = die
        else:
            break

    assert set(outcomes) == {0}
    assert len(outcomes) > 5
    kit.fault = no_fault
    assert len(kit.ids(workspace)) == 3
    assert not [name for name in os.listdir(kit.store.layout.base) if name.startswith(".rehearsal")]
