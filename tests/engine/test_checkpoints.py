"""When a checkpoint is taken, what it holds, and what it says it does not."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from engine.errors import CaptureFailed, GitFailed, LargeCheckpointWarning, WorkspaceRefused
from engine.model import CheckpointKind, GapReason, Limits
from tests.engine.lab import Lab, paths, remove, snapshot


def test_one_checkpoint_a_turn(lab: Lab) -> None:
    lab.edit("a", "1\n")
    lab.write("a", "2\n")
    lab.write("a", "3\n", new_turn=False)
    lab.run("rm a", new_turn=False)

    assert len(lab.checkpoints()) == 1
    lab.rollback()
    assert lab.read("a") == "1\n"


def test_no_new_checkpoint_when_nothing_changed_since_the_last(lab: Lab) -> None:
    lab.edit("a", "1\n")
    lab.run("rm -f nothing")
    lab.run("rm -f nothing")
    lab.run("rm a")

    assert len(lab.checkpoints()) == 1


@pytest.mark.parametrize("command", ["cat a", "ls -la", "git status", "true", "grep x a | sort", "echo hi"])
def test_read_only_command_takes_no_checkpoint(lab: Lab, command: str) -> None:
    lab.edit("a", "1\n")
    lab.run(command)

    assert lab.checkpoints() == []


@pytest.mark.parametrize(
    "command",
    ["python3 - <<'EOF'\nopen('a','w').write('2')\nEOF", "python3 script.py", "sh ./change.sh"],
)
def test_command_that_is_not_understood_is_covered(lab: Lab, command: str) -> None:
    lab.edit("a", "1\n")
    lab.edit("b", "1\n")
    lab.edit("script.py", "import os\nopen('a','w').write('2')\nos.rename('b','renamed')\n")
    lab.edit("change.sh", "echo 2 > a; mv b renamed\n")
    before = snapshot(lab.root)

    result = lab.run(command)
    assert result.checkpoint is not None
    report = lab.rollback()

    assert snapshot(lab.root) == before
    assert report.kept == ()


def test_command_that_is_not_understood_and_changes_nothing_leaves_no_checkpoint(lab: Lab) -> None:
    lab.edit("a", "1\n")
    result = lab.run("python3 -c pass")

    assert lab.checkpoints() == []
    assert result.checkpoint is None


def test_failed_git_leaves_no_target_and_the_tool_goes_on(tmp_path: Path) -> None:
    def hang(_arguments: object) -> None:
        if armed:
            subprocess.run(["true"], check=True)
            raise OSError(28, "No space left on device")

    armed = [True]
    lab = Lab(tmp_path, before_git=hang)
    lab.edit("a", "1\n")
    result = lab.write("a", "2\n")

    assert result.ok
    assert lab.read("a") == "2\n"
    assert any("no checkpoint" in note for note in result.notes)
    assert lab.checkpoints() == []
    armed.clear()
    lab.write("a", "3\n")
    lab.rollback()
    assert lab.read("a") == "2\n"


def test_missing_git_is_said_and_the_tool_goes_on(tmp_path: Path) -> None:
    lab = Lab(tmp_path, git="/nowhere/git")
    lab.edit("a", "1\n")

    result = lab.write("a", "2\n")

    assert lab.read("a") == "2\n"
    assert "git" in (lab.engine.availability() or "")
    assert any("git" in note for note in result.notes)


def test_git_that_hangs_is_killed_with_its_group_and_said_once(tmp_path: Path) -> None:
    git = tmp_path / "git"
    pids = tmp_path / "pids"
    real = shutil.which("git")
    git.write_text(
        f"#!/bin/sh\nhang() {{ sleep 600 & echo $! >> {pids}; wait; }}\n"
        f"case $* in *version* | *update-ref*) [ ! -e {tmp_path}/hang ] || hang;; esac\n"
        f'exec {real} "$@"\n'
    )
    git.chmod(0o755)
    lab = Lab(tmp_path, git=str(git), git_timeout_s=0.5)
    lab.edit("a", "1\n")
    (tmp_path / "hang").touch()

    first, second = lab.write("a", "2\n"), lab.write("a", "3\n")
    (tmp_path / "hang").unlink()

    assert [len(first.notes), len(second.notes)] == [1, 0]
    assert "did nothing" in first.notes[0]
    assert lab.read("a") == "3\n"
    for pid in pids.read_text().split():
        state = Path(f"/proc/{pid}/stat")
        assert not state.exists() or state.read_text().split()[2] == "Z"
    lab.engine = lab.open_engine()
    lab.write("a", "4\n")
    lab.rollback()
    assert lab.read("a") == "3\n"


@pytest.mark.parametrize("hanging", ["*batch*", "*diff-tree*"])
def test_git_that_hangs_while_a_restore_is_planned_says_nothing_of_the_store(tmp_path: Path, hanging: str) -> None:
    git = tmp_path / "git"
    git.write_text(
        f"#!/bin/sh\ncase $* in {hanging}) [ ! -e {tmp_path}/hang ] || sleep 600;; esac\n"
        f'exec {shutil.which("git")} "$@"\n'
    )
    git.chmod(0o755)
    lab = Lab(tmp_path, git=str(git), git_timeout_s=0.5)
    lab.edit("a", "1\n")
    lab.run("echo 2 > a; mkdir b; echo 3 > b/c")
    (tmp_path / "hang").touch()
    lab.engine = lab.open_engine()

    with pytest.raises(GitFailed, match="did nothing for 0 s") as caught:
        lab.rollback()

    assert caught.value.timed_out
    (tmp_path / "hang").unlink()
    lab.rollback()
    assert lab.read("a") == "1\n"


def test_lock_that_a_killed_git_left_is_taken_away(lab: Lab) -> None:
    lab.edit("a", "1\n")
    lab.write("a", "2\n")
    base = lab.store / "refs" / "takeback" / lab.workspace.hash / "base.lock"
    base.touch()

    result = lab.write("a", "3\n")

    assert result.notes == ()
    assert len(lab.checkpoints()) == 2
    assert not base.exists()


def test_unreadable_file_is_a_gap_and_is_never_deleted(lab: Lab) -> None:
    if os.geteuid() == 0:
        _as_nobody(lab, "test_unreadable")
        return
    _unreadable_scene(lab)


def _unreadable_scene(lab: Lab) -> None:
    lab.edit("secret", "x\n")
    lab.edit("a", "1\n")
    (lab.root / "secret").chmod(0)
    result = lab.run("rm a")
    assert any("secret" in note and "unreadable" in note for note in result.notes)
    report = lab.rollback()
    assert lab.read("a") == "1\n"
    assert paths(report.not_captured) == ["secret"]
    assert lab.exists("secret")


def _as_nobody(lab: Lab, _name: str) -> None:
    """Root reads everything, so the scene runs in a child that gave root away."""
    # What is imported late is imported now: nobody may not be allowed to read where Python lies.
    warm = Lab(lab.home.parent / "warm")
    warm.edit("a", "1\n")
    warm.run("rm a")
    warm.rollback()
    for path in [lab.home, lab.root]:
        os.chown(path, 65534, 65534)
    for parent in lab.home.parents:
        if str(parent) != "/":
            os.chmod(parent, os.stat(parent).st_mode | 0o055)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            _unreadable_scene(lab)
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


def test_tracked_directory_that_looks_like_build_output_is_source(lab: Lab) -> None:
    lab.git("init", "-q")
    lab.edit("build/tool.py", "x\n")
    lab.git("add", "-f", ".")
    lab.git("commit", "-q", "-m", "one")

    lab.run("rm build/tool.py")
    lab.rollback()

    assert lab.read("build/tool.py") == "x\n"


@pytest.mark.parametrize(
    "path",
    [
        "node_modules/x.js", "a/b/node_modules/x.js", "a/__pycache__/x.pyc", ".venv/bin/python", "build/out.o",
        "a/dist/x", "target/x", "a/.git/config", ".mypy_cache/x", ".idea/x", "x.pyc", "deep/er/server.log",
        ".DS_Store", "env/pyvenv.cfg",
    ],
)  # fmt: skip
def test_what_is_no_source_is_not_captured_and_survives(lab: Lab, path: str) -> None:
    lab.edit("main.py", "1\n")
    lab.edit(path, "precious\n")
    lab.run("echo 2 > main.py")
    lab.edit(path, "newer\n")

    selection = ["main.py"] if ".git" in path else []
    lab.rollback(1, *selection)

    assert lab.read("main.py") == "1\n"
    assert lab.read(path) == "newer\n"
    listed = lab.engine.diff(lab.workspace, lab.checkpoints()[0].id).stat_text
    assert path not in listed


def test_standard_library_package_called_venv_is_source(lab: Lab) -> None:
    lab.edit("venv/__init__.py", "x\n")
    lab.run("rm -r venv")
    lab.rollback()

    assert lab.read("venv/__init__.py") == "x\n"


def test_file_a_tool_names_is_captured_though_ignored(lab: Lab) -> None:
    lab.edit(".gitignore", "*.csv\n")
    lab.edit("data.csv", "1\n")
    lab.write("data.csv", "2\n")
    lab.rollback()
    assert lab.read("data.csv") == "1\n"

    lab.run("rm data.csv")
    lab.rollback()
    assert lab.read("data.csv") == "1\n"


def test_new_file_in_an_ignored_directory_is_taken_back(lab: Lab) -> None:
    lab.edit(".gitignore", "out/\n")
    lab.edit("out/other", "x\n")
    lab.edit("a", "x\n")
    lab.write("out/new.txt", "2\n")

    lab.rollback()

    assert not lab.exists("out/new.txt")
    assert lab.read("out/other") == "x\n"


def test_ignored_secret_is_never_captured_and_that_is_said(lab: Lab) -> None:
    lab.edit(".gitignore", ".env\n")
    lab.edit(".env", "TOKEN=1\n")
    result = lab.write(".env", "TOKEN=2\n")

    assert any(".env" in note and "secret" in note for note in result.notes)
    assert GapReason.SECRET in {gap.reason for gap in lab.checkpoints()[0].gaps}
    found = subprocess.run(
        ["git", "--git-dir", lab.store, "grep", "-q", "TOKEN", *[c.id for c in lab.checkpoints()]],
        check=False,
        capture_output=True,
    )
    assert found.returncode == 1


def test_file_that_outgrew_the_limit_keeps_its_last_content_marked_as_older(lab: Lab) -> None:
    lab.limits = Limits(max_file_size_bytes=1000)
    lab.edit("data", "small\n")
    lab.run("echo > other")
    lab.edit("data", "x" * 2000)
    result = lab.run("echo more >> data; echo 2 > other")

    gaps = lab.checkpoints()[0].gaps
    assert [(gap.path, gap.reason, gap.older) for gap in gaps] == [("data", GapReason.TOO_LARGE, True)]
    assert any("older" in note for note in result.notes)
    report = lab.rollback()
    assert "data" in paths(report.not_captured)
    assert lab.read("data").startswith("x" * 2000)


def test_too_many_source_files_is_said_and_excluded_ones_do_not_count(lab: Lab) -> None:
    lab.limits = Limits(max_source_files=20)
    for number in range(30):
        lab.edit(f"node_modules/{number}.js", "x\n")
    lab.edit("a", "1\n")
    assert lab.run("rm a").checkpoint is not None

    for number in range(30):
        lab.edit(f"src/{number}.py", "x\n")
    result = lab.run("rm src/1.py")
    assert result.ok
    assert any("more than 20 source files" in note for note in result.notes)
    with pytest.raises(CaptureFailed):
        lab.engine.checkpoint(lab.workspace, "x")


def test_large_checkpoint_warns_with_a_class_of_its_own(lab: Lab) -> None:
    lab.limits = Limits(large_checkpoint_bytes=1000)
    lab.edit("small", "x\n")
    lab.edit("large.bin", os.urandom(3000))

    with pytest.warns(LargeCheckpointWarning, match=r"large\.bin"):
        result = lab.engine.checkpoint(lab.workspace, "x")

    assert any("large.bin" in note for note in result.notes)


@pytest.mark.parametrize(
    "where", ["/", "home", "above home", "home by a link", "missing", "a file", "Takeback's own", "in the store"]
)
def test_directories_that_are_never_a_workspace(lab: Lab, where: str) -> None:
    (lab.home / "file").write_text("x")
    (lab.home.parent / "way").symlink_to(lab.home)
    places = {
        "/": "/",
        "home": str(lab.home),
        "above home": str(lab.home.parent),
        "home by a link": str(lab.home.parent / "way"),
        "missing": str(lab.home / "nope"),
        "a file": str(lab.home / "file"),
        "Takeback's own": str(lab.home / ".takeback"),
        "in the store": str(lab.store / "refs"),
    }
    lab.engine.checkpoint(lab.workspace, "so that there is a store")

    with pytest.raises(WorkspaceRefused):
        lab.engine.open_workspace(places[where])


def test_directory_beside_the_store_may_be_a_workspace(lab: Lab) -> None:
    sample = lab.home / ".takeback" / "sample"
    sample.mkdir(parents=True)

    assert lab.engine.open_workspace(str(sample)).root == str(sample)


def test_home_reached_through_a_link_still_is_no_root(lab: Lab) -> None:
    (lab.home / ".git").mkdir()
    way = lab.home.parent / "way"
    way.symlink_to(lab.home)

    workspace = lab.engine.open_workspace(str(way / "ws"))

    assert workspace.root == str(lab.root)


@pytest.mark.parametrize("marker", [".git", "pyproject.toml", "Makefile", "go.mod"])
def test_root_is_the_nearest_project_above(lab: Lab, marker: str) -> None:
    lab.edit(marker, "x\n")
    lab.edit("pkg/deep/x", "x\n")

    workspace = lab.engine.open_workspace(str(lab.root / "pkg/deep"))

    assert (workspace.root, workspace.cwd) == (str(lab.root), str(lab.root / "pkg/deep"))


def test_root_is_the_nearest_directory_the_store_knows(lab: Lab) -> None:
    lab.edit("pkg/deep/x", "x\n")
    lab.run("rm -f nothing")

    assert lab.engine.open_workspace(str(lab.root / "pkg/deep")).root == str(lab.root)


def test_store_inside_the_workspace_is_left_out(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    base = lab.root / "inner" / "checkpoints"
    from engine import Engine

    lab.engine = Engine(str(base), user_home=str(lab.home), search_path=os.environ["PATH"])
    lab.edit("a", "1\n")
    lab.write("a", "2\n")

    held = lab.checkpoints()[0]
    assert [gap.reason for gap in held.gaps] == [GapReason.STORE]
    lab.rollback()
    assert lab.read("a") == "1\n"


def test_git_variables_of_the_caller_change_nothing(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.git("init", "-q")
    lab.edit("a", "1\n")
    lab.git("add", ".")
    lab.git("commit", "-q", "-m", "one")
    elsewhere = lab.home / "elsewhere"
    elsewhere.mkdir()
    repository = snapshot(lab.root / ".git")
    for name in (
        "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_CEILING_DIRECTORIES", "GIT_EXTERNAL_DIFF", "GIT_CONFIG_GLOBAL",
        "GIT_TEMPLATE_DIR", "GIT_TRACE",
    ):  # fmt: skip
        monkeypatch.setenv(name, str(elsewhere / "x"))

    lab.write("a", "2\n")
    lab.rollback()

    assert lab.read("a") == "1\n"
    assert snapshot(lab.root / ".git") == repository
    assert list(elsewhere.iterdir()) == []


def test_hostile_user_configuration_runs_nothing(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    marker = lab.home / "marker"
    script = lab.home / "script"
    script.write_text(f"#!/bin/sh\ntouch {marker}\n")
    script.chmod(0o755)
    (lab.home / ".gitconfig").write_text(
        f"[core]\nhooksPath={lab.home}\nfsmonitor={script}\npager={script}\n[commit]\ngpgsign=true\n"
        f"[gpg]\nprogram={script}\n[diff]\nexternal={script}\n[init]\ntemplateDir={lab.home}\n"
        f'[diff "x"]\ntextconv={script}\n'
    )
    monkeypatch.setenv("HOME", str(lab.home))
    lab.edit(".gitattributes", "* diff=x\n")
    lab.edit("a", "1\n")

    lab.write("a", "2\n")
    lab.engine.diff(lab.workspace, lab.checkpoints()[0].id)
    lab.rollback()

    assert not marker.exists()


@pytest.mark.parametrize("kind", ["linked worktree", "submodule", "no git"])
def test_every_kind_of_workspace_works(lab: Lab, kind: str) -> None:
    if kind == "linked worktree":
        other = lab.home / "main"
        remove(lab.root)
        lab.root.mkdir()
        lab.git("init", "-q")
        lab.edit("a", "1\n")
        lab.git("add", ".")
        lab.git("commit", "-q", "-m", "one")
        lab.root.rename(other)
        subprocess.run(["git", "worktree", "add", "-q", str(lab.root)], cwd=other, check=True, capture_output=True)
    elif kind == "submodule":
        (lab.home / "modules").mkdir()
        lab.git("init", "-q", "--separate-git-dir", str(lab.home / "modules/ws"))
        lab.edit("a", "1\n")
        lab.git("add", ".")
        lab.git("commit", "-q", "-m", "one")
    else:
        lab.edit("a", "1\n")

    lab.run("rm a")
    lab.rollback()

    assert lab.read("a") == "1\n"


def test_same_size_edit_within_one_clock_tick_is_seen(lab: Lab) -> None:
    for attempt in range(20):
        lab.edit("a", f"{attempt:04d}\n")
        lab.engine.checkpoint(lab.workspace, "x")
        stamp = os.stat(lab.root / "a")
        lab.edit("a", f"{attempt:03d}z\n")
        os.utime(lab.root / "a", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        diff = lab.engine.diff(lab.workspace, lab.checkpoints()[0].id)
        assert diff.stats.files == 1


def test_unchanged_workspace_is_not_read_again(lab: Lab) -> None:
    for number in range(50):
        lab.edit(f"{number}", f"{number}\n")
    old = os.stat(lab.root).st_mtime_ns
    for number in range(50):
        os.utime(lab.root / f"{number}", ns=(old - 10**9, old - 10**9))
    lab.engine.checkpoint(lab.workspace, "one")
    lab.engine.checkpoint(lab.workspace, "two")
    import time

    time.sleep(0.05)  # let the files' ctimes age beyond the tick in which a stamp proves nothing
    lab.engine.checkpoint(lab.workspace, "three")
    opened: list[str] = []
    import sys

    active = [True]

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        if active and event == "open" and isinstance(arguments[0], str) and arguments[0].isdigit():
            opened.append(arguments[0])

    sys.addaudithook(watch)
    lab.engine.checkpoint(lab.workspace, "four")
    active.clear()

    assert opened == []


def test_too_many_checkpoints_drop_the_oldest_and_keep_every_id(lab: Lab) -> None:
    lab.limits = Limits(max_snapshots=3)
    ids = []
    for number in range(6):
        lab.write("a", f"{number}\n")
        ids.append(lab.checkpoints()[0].id)

    assert [c.id for c in lab.checkpoints()] == ids[:2:-1]
    for number in (1, 2, 3):
        lab.engine.plan_restore(lab.workspace, ids[6 - number])


def test_safety_checkpoint_never_pushes_the_target_out(lab: Lab) -> None:
    lab.limits = Limits(max_snapshots=3)
    lab.edit("a", "0\n")
    for number in range(1, 4):
        lab.write("a", f"{number}\n")
    oldest = lab.checkpoints()[-1]

    report = lab.rollback(3)

    assert lab.read("a") == "0\n"
    assert oldest.id in [c.id for c in lab.checkpoints()]
    assert report.safety is not None
    assert report.safety.kind is CheckpointKind.SAFETY


TAKE = """
import sys
from pathlib import Path
from engine import Engine

base, home, root, search_path, name = sys.argv[1:]
engine = Engine(base, user_home=home, search_path=search_path)
workspace = engine.open_workspace(root)
print("ready", flush=True)
input()
for number in range(5):
    Path(root, name).write_text(str(number))
    print(engine.checkpoint(workspace, f"{name}{number}").checkpoint.id)
"""


def test_two_processes_take_checkpoints_at_once_and_all_exist_in_order(lab: Lab) -> None:
    lab.edit("a", "0\n")
    arguments = [str(lab.store.parent), str(lab.home), str(lab.root), os.environ["PATH"]]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", TAKE, *arguments, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for name in ("x", "y")
    ]

    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    taken = [process.communicate(timeout=120)[0].split() for process in processes]

    assert [process.returncode for process in processes] == [0, 0]
    listed = {checkpoint.id: checkpoint.sequence for checkpoint in lab.checkpoints()}
    assert list(listed.values()) == list(range(len(listed), 0, -1))
    for ids in taken:
        sequences = [listed[found] for found in ids]
        assert len(sequences) == 5
        assert sequences == sorted(sequences)
    assert set(listed) == {found for ids in taken for found in ids}
    for found in listed:
        lab.engine.plan_restore(lab.workspace, found)


def test_session_diff_shows_only_what_came_since_the_session_began(lab: Lab) -> None:
    lab.edit("a", "0\n")
    lab.engine.begin_session(lab.workspace, "first")
    lab.write("a", "1\n")
    lab.engine.begin_session(lab.workspace, "second")
    lab.write("b", "2\n")
    lab.engine.begin_session(lab.workspace, "second")

    first = lab.engine.session_diff(lab.workspace, "first")
    second = lab.engine.session_diff(lab.workspace, "second")

    assert first is not None
    assert second is not None
    assert first.stats.files == 2
    assert "b/a" not in second.patch
    assert second.stats.files == 1
    assert lab.engine.session_diff(lab.workspace, "unknown") is None


def test_turn_diff_shows_what_the_turn_changed_and_not_the_hand_edits(lab: Lab) -> None:
    lab.edit("a", "0\n")
    lab.edit("b", "0\n")
    lab.run("echo 1 > a")
    lab.edit("b", "by hand\n")
    lab.run("echo 2 >> a; python3 -c \"open('c','w').write('x')\"", new_turn=False)

    diff = lab.engine.turn_diff(lab.workspace, str(lab.turn))

    assert diff is not None
    assert diff.stats.files == 2
    assert "by hand" not in diff.patch


def test_list_shows_what_each_turn_changed(lab: Lab) -> None:
    lab.edit("config.py", "old\nx\n")
    lab.run("sed -i s/old/new/ config.py")
    lab.write("app.py", "one\n")

    newest, oldest = lab.checkpoints()

    assert newest.stats is not None
    assert oldest.stats is not None
    assert (newest.reason, newest.stats.files, newest.stats.insertions) == ("before write_file: app.py", 1, 1)
    assert oldest.reason == "before terminal: sed -i s/old/new/ config.py"
    assert (oldest.stats.files, oldest.stats.insertions, oldest.stats.deletions) == (1, 1, 1)


def test_restart_between_any_two_steps_loses_nothing(lab: Lab) -> None:
    lab.edit("a", "0\n")
    lab.engine = lab.open_engine()
    lab.write("a", "1\n")
    lab.engine = lab.open_engine()
    lab.edit("notes", "by hand\n")
    lab.engine = lab.open_engine()
    report = lab.rollback()
    assert (lab.read("a"), lab.read("notes")) == ("0\n", "by hand\n")
    lab.engine = lab.open_engine()
    lab.undo_restore(report)
    assert lab.read("a") == "1\n"


def test_store_is_private_and_plain_git_reads_it(lab: Lab) -> None:
    lab.write("a", "1\n")
    for directory, names, files in os.walk(lab.home / ".takeback"):
        for name in [*names, *files]:
            assert os.stat(os.path.join(directory, name)).st_mode & 0o077 == 0, name
    assert os.stat(lab.store).st_mode & 0o077 == 0
    subprocess.run(["git", "--git-dir", lab.store, "fsck", "--strict"], check=True, capture_output=True)
