"""What a restore brings back, keeps, and refuses."""

import os
import stat
from pathlib import Path

import pytest

from engine.errors import (
    BadSelection,
    NestedRepositoryRefused,
    RestoreRefused,
    SafetyFailed,
    StoreDamaged,
    UnknownCheckpoint,
)
from engine.model import Action, CheckpointKind, GapReason, Limits, PathNote
from engine.store.refs import checkpoint_ref
from tests.engine.lab import Lab, actions, paths, remove, snapshot


def test_file_too_large_to_capture_stays_and_is_named(lab: Lab) -> None:
    lab.limits = Limits(max_file_size_bytes=1024 * 1024)
    lab.edit("data.csv", b"x" * 2 * 1024 * 1024)
    lab.edit("app.py", "a\n")

    result = lab.run("echo more >> data.csv; echo b >> app.py")
    report = lab.rollback()

    assert any("data.csv" in note and "too large" in note for note in result.notes)
    assert len((lab.root / "data.csv").read_bytes()) == 2 * 1024 * 1024 + 5
    assert paths(report.not_captured) == ["data.csv"]
    assert paths(report.restored) == ["app.py"]


def test_file_of_another_process_survives(lab: Lab) -> None:
    lab.edit("a.py", "one\n")
    lab.write("a.py", "two\n")
    lab.edit("output/r.jsonl", "{}\n")

    report = lab.rollback()

    assert lab.read("a.py") == "one\n"
    assert lab.read("output/r.jsonl") == "{}\n"
    assert "output/r.jsonl" in paths(report.kept)


def test_agents_new_file_and_its_directory_go(lab: Lab) -> None:
    lab.edit("a.py", "one\n")
    lab.write("pkg/sub/new.py", "new\n")

    lab.rollback()

    assert not lab.exists("pkg")


def test_directory_that_was_empty_stays(lab: Lab) -> None:
    (lab.root / "pkg").mkdir(mode=0o750)
    lab.write("pkg/new.py", "new\n")

    lab.rollback()

    assert stat.S_IMODE((lab.root / "pkg").stat().st_mode) == 0o750
    assert not lab.exists("pkg/new.py")


def test_undoing_a_restore_gives_exactly_the_state_before(lab: Lab) -> None:
    lab.edit("a.py", "one\n")
    lab.edit("notes.md", "n0\n")
    lab.write("a.py", "two\n")
    lab.run("mkdir -p deep/er; touch deep/er/x; chmod 600 a.py; ln -s a.py link; mkdir hollow")
    lab.edit("notes.md", "by hand\n")
    before = snapshot(lab.root)

    report = lab.rollback(2, everything=True)
    assert lab.read("notes.md") == "n0\n"
    lab.undo_restore(report)

    assert snapshot(lab.root) == before


def test_ownership_comes_back_with_an_undone_restore(lab: Lab) -> None:
    lab.edit("a.py", "one\n")
    lab.edit("notes.md", "n0\n")
    lab.write("a.py", "two\n")
    lab.edit("notes.md", "by hand\n")

    report = lab.rollback(1, everything=True)
    lab.undo_restore(report)
    oldest = len(lab.checkpoints())
    report = lab.rollback(oldest)

    assert lab.read("a.py") == "one\n"
    assert lab.read("notes.md") == "by hand\n"
    assert paths(report.kept) == ["notes.md"]


def test_no_restore_without_a_safety_checkpoint(lab: Lab) -> None:
    lab.edit("a.py", "one\n")
    lab.write("a.py", "two\n")
    plan = lab.plan()
    # Nobody's lock can be a directory, so it is not swept, and the next name cannot be given.
    (lab.store / f"{checkpoint_ref(lab.workspace.hash, plan.target.sequence + 1)}.lock").mkdir()

    with pytest.raises(SafetyFailed):
        lab.engine.apply_restore(plan)

    assert lab.read("a.py") == "two\n"


def test_deleted_store_is_an_error_not_an_absent_file(lab: Lab) -> None:
    lab.edit("a.py", "one\n")
    lab.write("a.py", "two\n")
    known = lab.checkpoints()[0]
    remove(lab.store)

    with pytest.raises((StoreDamaged, UnknownCheckpoint)):
        lab.engine.plan_restore(lab.workspace, known.id)

    assert lab.read("a.py") == "two\n"


def test_object_that_goes_missing_after_the_plan_costs_its_own_file_alone(lab: Lab) -> None:
    lab.edit("a.py", "one\n")
    lab.edit("b.py", "bee\n")
    lab.run("echo two > a.py; rm b.py")
    plan = lab.plan()
    for directory, _names, files in os.walk(lab.store / "objects"):
        for name in files:
            oid = os.path.basename(directory) + name
            if oid == next(i.target.oid for i in plan.items if i.path == "b.py" and i.target):
                os.unlink(os.path.join(directory, name))
    before = snapshot(lab.root)

    report = lab.engine.apply_restore(plan)

    assert report.not_captured == (PathNote("b.py", "the store has lost what it held then"),)
    assert report.replanned == ("b.py",)
    assert lab.read("a.py") == "one\n"
    lab.undo_restore(report)
    assert snapshot(lab.root) == before


def test_users_repository_is_byte_identical(lab: Lab) -> None:
    lab.git("init", "-q")
    lab.edit("a.py", "one\n")
    lab.git("add", ".")
    lab.git("commit", "-q", "-m", "first")
    lab.write("a.py", "two\n")
    lab.git("add", ".")
    lab.git("commit", "-q", "-m", "second")
    repository = snapshot(lab.root / ".git")

    lab.run("rm a.py")
    lab.engine.diff(lab.workspace, lab.checkpoints()[0].id)
    lab.rollback(2)

    assert lab.read("a.py") == "one\n"
    assert snapshot(lab.root / ".git") == repository


def test_undoing_a_turn_that_changed_nothing_writes_no_file(lab: Lab) -> None:
    lab.edit("a.py", "one\n")
    result = lab.run("rm -f nothing-here")
    assert result.checkpoint is not None
    lab.edit("a.py", "by hand\n")
    before = os.stat(lab.root / "a.py").st_mtime_ns

    report = lab.undo_turn(lab.turn, result.checkpoint)

    assert (report.restored, report.deleted, report.safety) == ((), (), None)
    assert os.stat(lab.root / "a.py").st_mtime_ns == before


def test_file_the_user_creates_after_the_agent_missed_it_stays(lab: Lab) -> None:
    lab.edit("a.py", "one\n")
    lab.write("a.py", "two\n")
    assert not lab.engine.read_file(lab.call(), "todo.md").ok
    lab.edit("todo.md", "mine\n")

    lab.rollback()

    assert lab.read("todo.md") == "mine\n"


@pytest.mark.parametrize("change", ["size", "bytes", "mode", "kind"])
def test_hand_edit_is_kept_unless_everything_is_asked_for(lab: Lab, change: str) -> None:
    lab.edit("a.py", "one\n")
    lab.write("a.py", "two\n")
    target = lab.root / "a.py"
    if change == "size":
        target.write_text("by hand\n")
    elif change == "bytes":
        stamp = target.stat()
        target.write_text("owt\n")
        os.utime(target, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    elif change == "mode":
        target.chmod(0o640)
    else:
        target.unlink()
        target.symlink_to("elsewhere")
    before = snapshot(lab.root)

    report = lab.rollback()
    assert snapshot(lab.root) == before
    assert paths(report.kept) == ["a.py"]

    lab.rollback(1, everything=True)
    assert lab.read("a.py") == "one\n"


def test_hand_edit_between_two_commands_of_a_turn_is_kept(lab: Lab) -> None:
    lab.edit("a.py", "one\n")
    lab.edit("b.py", "bee\n")
    lab.run("echo two > a.py")
    lab.edit("b.py", "by hand\n")
    lab.run("python3 -c \"open('c.py','w').write('sea')\"", new_turn=False)

    report = lab.rollback()

    assert (lab.read("a.py"), lab.read("b.py")) == ("one\n", "by hand\n")
    assert not lab.exists("c.py")
    assert paths(report.kept) == ["b.py"]
    assert len([c for c in lab.checkpoints() if c.kind is CheckpointKind.TURN]) == 1


def test_going_back_step_by_step_and_forward_again(lab: Lab) -> None:
    lab.edit("a.py", "0\n")
    for version in "123":
        lab.write("a.py", f"{version}\n")
    third, second, first = lab.checkpoints()

    def go(checkpoint_id: str) -> str:
        lab.engine.apply_restore(lab.engine.plan_restore(lab.workspace, checkpoint_id))
        return lab.read("a.py")

    assert [go(third.id), go(second.id), go(first.id), go(third.id)] == ["2\n", "1\n", "0\n", "2\n"]


def test_edit_by_hand_before_a_later_turn_is_kept_on_the_way_further_back(lab: Lab) -> None:
    lab.edit("notes.md", "n0\n")
    lab.write("a.py", "one\n")
    lab.edit("notes.md", "by hand\n")
    lab.write("notes.md", "agent\n")

    lab.rollback(1)
    assert lab.read("notes.md") == "by hand\n"
    report = lab.rollback(3)

    assert lab.read("notes.md") == "by hand\n"
    assert "notes.md" in paths(report.kept)


def test_empty_ledger_means_a_full_restore_and_says_so(lab: Lab) -> None:
    lab.edit("a.py", "one\n")
    lab.engine.checkpoint(lab.workspace, "by hand")
    lab.edit("a.py", "two\n")

    report = lab.rollback()

    assert lab.read("a.py") == "one\n"
    assert report.ledger_empty


def test_ledger_is_not_empty_after_everything_was_taken_back(lab: Lab) -> None:
    lab.edit("a.py", "one\n")
    lab.write("a.py", "two\n")
    report = lab.rollback()
    lab.edit("a.py", "by hand\n")

    again = lab.undo_restore(report)

    assert not again.ledger_empty
    assert lab.read("a.py") == "by hand\n"
    assert paths(again.kept) == ["a.py"]


def test_restored_bytes_ignore_every_attribute_and_filter(lab: Lab) -> None:
    lab.git("init", "-q")
    marker = lab.home / "marker"
    lab.edit(
        ".gitattributes", "* text=auto\n*.bat eol=crlf\n*.c ident\n*.txt working-tree-encoding=UTF-16\n*.bin filter=f\n"
    )
    lab.git("config", "filter.f.clean", f"touch {marker}")
    lab.git("config", "filter.f.smudge", f"touch {marker}")
    lab.git("config", "filter.f.required", "true")
    lab.git("config", "core.autocrlf", "true")
    contents = {
        "a.bat": b"one\r\ntwo\nthree\r\n",
        "id.c": b"/* $Id$ */\n",
        "u.txt": "\ufeffwide\n".encode("utf-16"),
        "raw.bin": bytes(range(256)),
    }
    for name, content in contents.items():
        lab.edit(name, content)
    lab.run("rm a.bat id.c u.txt raw.bin")

    lab.rollback()

    assert {name: (lab.root / name).read_bytes() for name in contents} == contents
    assert not marker.exists()


@pytest.mark.parametrize("mode", [0o644, 0o755, 0o600, 0o640, 0o666, 0o444, 0o777, 0o4755, 0o000])
def test_every_permission_bit_comes_back(lab: Lab, mode: int) -> None:
    lab.edit("a.sh", "x\n")
    lab.edit("other", "x\n")
    (lab.root / "a.sh").chmod(mode)

    lab.run("rm -f a.sh")
    lab.rollback()

    assert stat.S_IMODE((lab.root / "a.sh").stat().st_mode) == mode


def test_directory_modes_links_and_empty_directories_come_back(lab: Lab) -> None:
    lab.edit("locked/file", "x\n")
    (lab.root / "hollow/inner").mkdir(parents=True)
    (lab.root / "hollow").chmod(0o710)
    (lab.root / "locked").chmod(0o500)
    os.symlink("../outside", lab.root / "dangling")
    before = snapshot(lab.root)

    lab.run("chmod 700 locked; rm -rf locked hollow dangling")
    assert snapshot(lab.root) == {}
    lab.rollback()

    assert snapshot(lab.root) == before


NAMES = [
    "new\nline",
    "ta\tb",
    'qu"ote',
    "trailing ",
    "-dash",
    ":colon",
    "[1].py",
    "back\\slash",
    "漢字",
    "\udcff\udcfe",
    "a'b",
]


@pytest.mark.parametrize("name", NAMES)
def test_names_of_any_bytes_come_back(lab: Lab, name: str) -> None:
    path = os.fsencode(lab.root / "dir") + b"/" + os.fsencode(name)
    os.mkdir(os.path.dirname(path))
    Path(os.fsdecode(path)).write_text("x\n")

    lab.run("rm -rf dir")
    report = lab.rollback()

    assert Path(os.fsdecode(path)).read_text() == "x\n"
    assert f"dir/{name}" in paths(report.restored)


@pytest.mark.parametrize("name", NAMES)
def test_one_file_of_any_name_can_be_selected(lab: Lab, name: str) -> None:
    path = Path(os.fsdecode(os.fsencode(lab.root) + b"/" + os.fsencode(name)))
    path.write_text("x\n")
    lab.edit("other", "x\n")
    lab.engine.begin_session(lab.workspace, "s")
    lab.run("find . -type f -delete")

    lab.rollback(1, name)

    assert path.read_text() == "x\n"
    assert not lab.exists("other")


KINDS = ["file", "directory", "link", "nothing"]


def make(path: Path, kind: str, text: str) -> None:
    if kind == "file":
        path.write_text(text)
    elif kind == "directory":
        path.mkdir()
        (path / text).write_text(text)
    elif kind == "link":
        path.symlink_to(text)


@pytest.mark.parametrize("old", KINDS)
@pytest.mark.parametrize("new", KINDS)
def test_any_kind_comes_back_in_place_of_any_other(lab: Lab, old: str, new: str) -> None:
    lab.edit("other", "x\n")
    make(lab.root / "it", old, "old")
    before = snapshot(lab.root)
    commands = {
        "file": "rm -rf it; echo new > it",
        "directory": "rm -rf it; mkdir it; echo new > it/new",
        "link": "rm -rf it; ln -s new it",
        "nothing": "rm -rf it; echo > other",
    }

    lab.run(commands[new])
    report = lab.rollback()

    assert report.complete
    assert snapshot(lab.root) == before


def test_unchanged_files_keep_their_mtime(lab: Lab) -> None:
    lab.edit("same", "same\n")
    lab.edit("a", "one\n")
    os.utime(lab.root / "same", ns=(1, 1))
    lab.write("a", "two\n")

    lab.rollback()

    assert os.stat(lab.root / "same").st_mtime_ns == 1


def test_excluded_content_survives_a_directory_that_should_become_a_file(lab: Lab) -> None:
    lab.edit("it", "a file\n")
    lab.run("rm it; mkdir it; echo x > it/x")
    lab.edit("it/node_modules/y", "precious\n")

    report = lab.rollback()

    assert lab.read("it/node_modules/y") == "precious\n"
    assert "it" in paths(report.not_captured)


def test_ignored_file_that_came_back_to_an_agents_path_is_not_overwritten(lab: Lab) -> None:
    lab.edit(".gitignore", "")
    lab.edit("data.csv", "agent's\n")
    lab.run("rm data.csv; echo data.csv > .gitignore")
    lab.edit("data.csv", "mine\n")

    report = lab.rollback()

    assert lab.read("data.csv") == "mine\n"
    assert "data.csv" in paths(report.not_captured)


def test_file_hidden_when_the_checkpoint_was_taken_is_never_deleted(lab: Lab) -> None:
    lab.edit(".gitignore", "data.csv\n")
    lab.edit("data.csv", "precious\n")
    lab.edit("a", "x\n")
    lab.run("echo > .gitignore; echo more >> a")

    report = lab.rollback()

    assert lab.read("data.csv") == "precious\n"
    assert "data.csv" in paths(report.not_captured)


# --- nested repositories


def test_full_restore_over_a_nested_repository_is_refused_with_nothing_changed(lab: Lab) -> None:
    lab.edit("a.py", "one\n")
    lab.nested("tool")
    lab.write("a.py", "two\n")
    before, store = snapshot(lab.root), snapshot(lab.store)

    for everything in (False, True):
        with pytest.raises(NestedRepositoryRefused, match="tool"):
            lab.plan(1, everything=everything)

    assert snapshot(lab.root) == before
    assert snapshot(lab.store) == store


@pytest.mark.parametrize(
    "selection",
    [
        ["libs/tool"], ["libs/tool/"], ["./libs/tool"], ["libs//tool"], ["libs/tool/inner.txt"], ["libs/tool/deep/x"],
        ["libs"], ["."], ["*"], ["libs/*"], ["lib*/tool"], ["libs/t*l/inner.txt"], [":(top)libs/tool"], [":/libs/tool"],
        [":(icase)LIBS/TOOL"], [":(icase)LIBS/TOOL/x"], [":(glob)libs/**"], [":(literal)libs/tool"],
        ["a.py", "libs/tool"],
    ],
)  # fmt: skip
def test_selection_that_reaches_a_nested_repository_is_refused(lab: Lab, selection: list[str]) -> None:
    lab.edit("a.py", "one\n")
    lab.nested("libs/tool")
    lab.write("a.py", "two\n")
    before, store = snapshot(lab.root), snapshot(lab.store)

    with pytest.raises(NestedRepositoryRefused, match="libs/tool"):
        lab.plan(1, *selection)

    assert snapshot(lab.root) == before
    assert snapshot(lab.store) == store


@pytest.mark.parametrize(
    "selection",
    [["a.py"], ["*.py"], [":(glob)**/*.py"], [":(exclude)libs/tool"], [".", ":(exclude)libs/tool"], [":!libs"]],
)
def test_selection_beside_a_nested_repository_restores(lab: Lab, selection: list[str]) -> None:
    lab.edit("a.py", "one\n")
    lab.nested("libs/tool")
    lab.write("a.py", "two\n")

    lab.rollback(1, *selection)

    assert lab.read("a.py") == "one\n"


def test_guard_uses_what_the_checkpoint_recorded_not_what_is_there_now(lab: Lab) -> None:
    lab.edit("a.py", "one\n")
    lab.nested("tool")
    lab.write("a.py", "two\n")
    remove(lab.root / "tool" / ".git")

    with pytest.raises(NestedRepositoryRefused):
        lab.plan()


@pytest.mark.parametrize("kind", ["commits", "no commit", "a .git file", "a bare .git directory"])
def test_nested_repository_is_a_gap_and_the_rest_is_captured(lab: Lab, kind: str) -> None:
    lab.edit("a.py", "one\n")
    if kind == "a .git file":
        lab.edit("tool/.git", "gitdir: ../elsewhere\n")
        lab.edit("tool/x", "x\n")
    elif kind == "a bare .git directory":
        lab.edit("tool/.git/HEAD", "ref: refs/heads/main\n")
    else:
        lab.nested("tool", commit=kind == "commits")
    inside = snapshot(lab.root / "tool")

    result = lab.run("rm a.py")
    checkpoint = lab.checkpoints()[0]

    assert [(gap.path, gap.reason) for gap in checkpoint.gaps] == [("tool", GapReason.NESTED_REPOSITORY)]
    assert any("tool" in note for note in result.notes)
    lab.rollback(1, "a.py")
    assert lab.read("a.py") == "one\n"
    assert snapshot(lab.root / "tool") == inside


@pytest.mark.parametrize("program", ["fsmonitor", "filter", "hook"])
def test_no_program_of_a_nested_repository_runs(lab: Lab, program: str) -> None:
    marker = lab.home / "marker"
    script = lab.home / "script"
    script.write_text(f"#!/bin/sh\ntouch {marker}\n")
    script.chmod(0o755)
    lab.edit("a.py", "one\n")
    lab.nested("tool")
    if program == "fsmonitor":
        lab.git("config", "core.fsmonitor", str(script), at="tool")
    elif program == "filter":
        lab.edit("tool/.gitattributes", "* filter=f\n")
        lab.git("config", "filter.f.clean", str(script), at="tool")
    else:
        for name in ("reference-transaction", "post-index-change", "post-checkout"):
            hook = lab.root / "tool/.git/hooks" / name
            hook.parent.mkdir(exist_ok=True)
            hook.write_bytes(script.read_bytes())
            hook.chmod(0o755)

    lab.write("a.py", "two\n")
    lab.write("a.py", "three\n")
    lab.engine.diff(lab.workspace, lab.checkpoints()[0].id)
    lab.rollback(1, "a.py")

    assert not marker.exists()


# --- selections


@pytest.mark.parametrize(
    "selection",
    [
        "../x",
        "a/../../x",
        "/etc/passwd",
        "a\0b",
        ".git/config",
        "sub/.GIT/x",
        "missing.py",
        "*.nothing",
        ":(attr:x)a",
        "",
    ],
)
def test_selection_that_cannot_be_used_changes_nothing(lab: Lab, selection: str) -> None:
    lab.edit("a.py", "one\n")
    lab.write("a.py", "two\n")
    before, store = snapshot(lab.root), snapshot(lab.store)

    with pytest.raises(BadSelection):
        lab.plan(1, selection)

    assert snapshot(lab.root) == before
    assert snapshot(lab.store) == store


@pytest.mark.parametrize("wanted", ["-x", "--all", "abc", "zzzz", "HEAD", "", "0000000", "refs/takeback"])
def test_id_that_names_no_checkpoint_is_refused(lab: Lab, wanted: str) -> None:
    lab.write("a.py", "two\n")

    with pytest.raises(UnknownCheckpoint):
        lab.engine.plan_restore(lab.workspace, wanted)


def test_selection_restores_only_what_it_names(lab: Lab) -> None:
    for name in ("a.txt", "b.txt", "sub/c.txt", "d.py"):
        lab.edit(name, "one\n")
    lab.run("for f in a.txt b.txt sub/c.txt d.py; do echo two > $f; done; echo new > sub/new.txt")

    report = lab.rollback(1, "*.txt")

    assert [lab.read(n) for n in ("a.txt", "b.txt", "sub/c.txt", "d.py")] == ["one\n", "one\n", "one\n", "two\n"]
    assert not lab.exists("sub/new.txt")
    assert paths(report.deleted) == ["sub/new.txt"]


def test_selecting_a_directory_takes_what_was_made_in_it_too(lab: Lab) -> None:
    lab.edit("sub/c.txt", "one\n")
    lab.run("rm -r sub; mkdir -p sub/made; echo x > sub/made/y; echo z > other")

    lab.rollback(1, "sub")

    assert snapshot(lab.root / "sub").keys() == {"c.txt"}
    assert lab.read("other") == "z\n"


# --- plan and apply


def test_apply_plans_anew_what_changed_since_the_plan_was_shown(lab: Lab) -> None:
    lab.edit("a.py", "one\n")
    lab.edit("b.py", "one\n")
    lab.run("echo two > a.py; echo two > b.py")
    plan = lab.plan()
    assert set(actions(plan).values()) == {Action.RESTORE}
    lab.edit("b.py", "by hand\n")

    report = lab.engine.apply_restore(plan)

    assert (lab.read("a.py"), lab.read("b.py")) == ("one\n", "by hand\n")
    assert report.replanned == ("b.py",)
    assert paths(report.kept) == ["b.py"]


def test_refusal_is_one_kind_of_error() -> None:
    assert issubclass(NestedRepositoryRefused, RestoreRefused)
    assert issubclass(BadSelection, RestoreRefused)


def test_change_of_another_chat_stays(lab: Lab) -> None:
    for name in ("foo", "bar", "notes.md"):
        lab.edit(name, "one\n")
    first = lab.write("foo", "A\n", chat="A").checkpoint
    turn = lab.turn
    lab.write("bar", "B\n", chat="B")
    lab.edit("notes.md", "by hand\n")
    assert first is not None

    report = lab.rollback(2, chat="A")
    assert (lab.read("foo"), lab.read("bar"), lab.read("notes.md")) == ("one\n", "B\n", "by hand\n")
    assert paths(report.other_chats) == ["bar"]

    lab.undo_restore(report)
    lab.undo_turn(turn, first, chat="A")
    assert (lab.read("foo"), lab.read("bar"), lab.read("notes.md")) == ("one\n", "B\n", "by hand\n")


def test_transaction_restores_everything_when_its_block_raises(lab: Lab) -> None:
    lab.edit("a.py", "one\n")
    before = snapshot(lab.root)

    def fail_half_way() -> None:
        with lab.engine.transaction(lab.workspace, "try something"):
            lab.edit("a.py", "two\n")
            lab.edit("new/b.py", "new\n")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_half_way()

    assert snapshot(lab.root) == before


def test_transaction_keeps_what_its_block_moved_and_no_checkpoint_holds(lab: Lab) -> None:
    for path, text in {".gitignore": ".env\nign/\n", ".env": "secret\n", "ign/a": "ignored\n", "file": "one\n"}.items():
        lab.edit(path, text)

    def move_and_fail() -> None:
        with lab.engine.transaction(lab.workspace, "try something"):
            lab.edit("file", "two\n")
            lab.edit("made", "made\n")
            (lab.root / ".env").rename(lab.root / "env2")
            (lab.root / "ign").rename(lab.root / "ign2")
            raise KeyError

    with pytest.raises(KeyError) as caught:
        move_and_fail()

    assert lab.read("file") == "one\n"
    assert not lab.exists("made")
    assert (lab.read("env2"), lab.read("ign2/a")) == ("secret\n", "ignored\n")
    notes = "\n".join(caught.value.__notes__)
    assert "not captured (excluded): .env (and gone now), ign (and gone now)" in notes
    assert "Not restored: env2 (moved here from what no checkpoint holds; name it to remove it)" in notes
    assert lab.engine.settle(lab.workspace) == ()


def test_transaction_keeps_what_its_block_did(lab: Lab) -> None:
    lab.edit("a.py", "one\n")

    with lab.engine.transaction(lab.workspace, "try something"):
        lab.edit("a.py", "two\n")

    assert lab.read("a.py") == "two\n"
