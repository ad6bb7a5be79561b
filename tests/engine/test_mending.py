"""Objects that a power loss or a broken disk spoiled, written anew while the workspace still has the content."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.checkpoints.manifest import MODES_PATH
from engine.checkpoints.reading import blob_oid
from engine.model import Action, PathNote
from engine.store.refs import base_ref
from tests.engine.lab import Lab, actions, snapshot

SPOILED: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _whole: b"",
    "garbage": lambda _whole: b"garbage",
    "cut": lambda whole: whole[: len(whole) // 2],
}
PRECIOUS = "".join(f"line {number} of what matters\n" for number in range(50))


def object_path(lab: Lab, oid: str) -> Path:
    return lab.store / "objects" / oid[:2] / oid[2:]


def spoil(path: Path, how: str) -> None:
    content = path.read_bytes()
    path.chmod(0o600)
    path.write_bytes(SPOILED[how](content))


def spoil_content(lab: Lab, content: str, how: str = "empty") -> None:
    spoil(object_path(lab, blob_oid(content.encode())), how)


def git(lab: Lab, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "--git-dir", str(lab.store), *arguments],
        check=True,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"]},
    )
    return done.stdout.strip()


def trees_of(lab: Lab, commit: str) -> list[str]:
    below = git(lab, "ls-tree", "-r", "-d", "--object-only", commit).split()
    return [git(lab, "rev-parse", f"{commit}^{{tree}}"), *below]


@pytest.mark.parametrize("how", SPOILED)
def test_content_that_a_broken_object_stood_for_is_written_anew(lab: Lab, how: str) -> None:
    lab.edit("x", PRECIOUS)
    lab.run("echo changed > x")
    spoil_content(lab, PRECIOUS, how)
    lab.edit("x2", PRECIOUS)

    result = lab.run("echo Q > x2")
    lab.rollback()

    assert result.notes == ()
    assert lab.read("x2") == PRECIOUS


def test_safety_checkpoint_holds_what_a_broken_object_stood_for(lab: Lab) -> None:
    lab.edit("x", "AAA\n")
    lab.edit("h", PRECIOUS)
    lab.run("echo BBB > x; cat h >> x")
    spoil_content(lab, PRECIOUS)
    os.replace(lab.root / "h", lab.root / "x")
    before = snapshot(lab.root)

    report = lab.rollback(1, everything=True)
    lab.undo_restore(report)

    assert snapshot(lab.root) == before


def test_broken_object_in_a_pack_is_written_anew_beside_it(lab: Lab) -> None:
    lab.edit("x", PRECIOUS)
    lab.run("echo changed > x")
    git(lab, "gc", "--quiet", "--prune=now")
    [pack] = (lab.store / "objects" / "pack").glob("*.pack")
    spoil(pack, "cut")
    lab.edit("x2", PRECIOUS)
    lab.engine = lab.open_engine()

    result = lab.run("echo Q > x2")
    lab.rollback()

    assert not [note for note in result.notes if "no checkpoint" in note]
    assert lab.read("x2") == PRECIOUS


def test_unchanged_file_whose_object_broke_is_read_again_by_the_next_process(lab: Lab) -> None:
    lab.edit("d/x", PRECIOUS)
    lab.edit("a", "one\n")
    lab.write("a", "two\n")
    spoil_content(lab, PRECIOUS)
    lab.engine = lab.open_engine()

    lab.run("rm -r d")
    lab.rollback()

    assert lab.read("d/x") == PRECIOUS


def test_broken_directories_are_written_anew(lab: Lab) -> None:
    lab.edit("d/e/x", PRECIOUS)
    lab.edit("a", "one\n")
    first = lab.write("a", "two\n").checkpoint
    assert first is not None
    lab.rollback()
    base = git(lab, "rev-parse", base_ref(lab.workspace.hash))
    for tree in trees_of(lab, first.id):
        spoil(object_path(lab, tree), "empty")
    with pytest.raises(subprocess.CalledProcessError):
        git(lab, "ls-tree", "-r", base)
    lab.engine = lab.open_engine()

    lab.run("rm -r d; echo three > a")
    lab.rollback()

    assert (lab.read("d/e/x"), lab.read("a")) == (PRECIOUS, "one\n")


def test_content_that_is_nowhere_any_more_is_not_claimed(lab: Lab) -> None:
    lab.edit("x", PRECIOUS)
    lab.edit("a", "one\n")
    lab.write("a", "two\n")
    spoil_content(lab, PRECIOUS)
    (lab.root / "x").unlink()
    lab.engine = lab.open_engine()

    result = lab.write("a", "three\n")
    lab.rollback()

    assert result.notes == ()
    assert not lab.exists("x")
    assert lab.read("a") == "two\n"


@pytest.mark.parametrize("what", ["directories", "modes"])
def test_what_a_restore_takes_away_comes_back_although_the_base_broke_under_it(lab: Lab, what: str) -> None:
    lab.edit("d/e/x", PRECIOUS)
    lab.edit("d/e/mode", "runs\n")
    (lab.root / "d/e/mode").chmod(0o751)
    lab.write("d/e/x", "changed\n")
    plan = lab.plan(everything=True)
    base = git(lab, "rev-parse", base_ref(lab.workspace.hash))
    broken = trees_of(lab, base) if what == "directories" else [git(lab, "rev-parse", f"{base}:{MODES_PATH}")]
    for oid in broken:
        spoil(object_path(lab, oid), "empty")
    before = snapshot(lab.root)

    report = lab.engine.apply_restore(plan)
    assert lab.read("d/e/x") == PRECIOUS
    lab.undo_restore(report)

    assert snapshot(lab.root) == before


@pytest.mark.parametrize("how", SPOILED)
def test_content_that_broke_since_it_was_captured_comes_back_after_a_restore(lab: Lab, how: str) -> None:
    lab.edit("x", "one\n")
    lab.write("x", PRECIOUS)
    spoil_content(lab, PRECIOUS, how)

    report = lab.rollback()
    lab.undo_restore(report)

    assert lab.read("x") == PRECIOUS


def test_plan_is_made_although_the_base_broke_under_it(lab: Lab) -> None:
    lab.edit("d/x", PRECIOUS)
    lab.write("d/x", "changed\n")
    for oid in trees_of(lab, git(lab, "rev-parse", base_ref(lab.workspace.hash))):
        spoil(object_path(lab, oid), "cut")

    lab.rollback()

    assert lab.read("d/x") == PRECIOUS


def test_broken_file_that_a_restore_does_not_touch_does_not_stop_it(lab: Lab) -> None:
    lab.edit("other/y", PRECIOUS)
    lab.edit("x", "one\n")
    lab.write("x", "two\n")
    spoil_content(lab, PRECIOUS)

    report = lab.rollback()
    lab.undo_restore(report)

    assert lab.read("x") == "two\n"
    assert lab.read("other/y") == PRECIOUS


BROKEN: dict[str, Callable[[Path], None]] = {
    "gone": Path.unlink,
    "empty": lambda path: spoil(path, "empty"),
    "garbage": lambda path: spoil(path, "garbage"),
    "flipped": lambda path: flip(path),  # noqa: PLW0108 - defined below
}


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.chmod(0o600)
    path.write_bytes(content)


@pytest.fixture
def warm(lab: Lab) -> Lab:
    """A workspace that this process has captured several times."""
    lab.edit("p", PRECIOUS)
    lab.edit("d/other", "another one\n")
    for number in range(3):
        lab.write("warm", f"{number}\n")
    return lab


@pytest.mark.parametrize("command", ["rm p", "rm *", "true; find . -name p -delete"])
@pytest.mark.parametrize("how", BROKEN)
def test_object_that_breaks_beside_a_running_process_is_mended_before_a_command(
    warm: Lab, how: str, command: str
) -> None:
    BROKEN[how](object_path(warm, blob_oid(PRECIOUS.encode())))

    result = warm.run(command)
    warm.undo_turn(warm.turn, warm.checkpoints()[0])

    assert result.notes == ()
    assert warm.read("p") == PRECIOUS


@pytest.mark.parametrize("how", BROKEN)
def test_pack_that_breaks_beside_a_running_process_is_mended_before_a_command(warm: Lab, how: str) -> None:
    git(warm, "gc", "--quiet", "--prune=now")
    warm.write("warm", "again\n")
    [pack] = (warm.store / "objects" / "pack").glob("*.pack")
    BROKEN[how](pack)

    result = warm.run("rm -r p d")
    warm.undo_turn(warm.turn, warm.checkpoints()[0])

    assert result.checkpoint is not None
    assert warm.read("p") == PRECIOUS
    assert warm.read("d/other") == "another one\n"


@pytest.mark.parametrize("what", ["base", "base^{tree}", "base:d"])
def test_directory_or_capture_that_goes_beside_a_running_process_is_made_anew(warm: Lab, what: str) -> None:
    base = base_ref(warm.workspace.hash)
    object_path(warm, git(warm, "rev-parse", what.replace("base", base, 1))).unlink()

    warm.run("rm -r p d")
    warm.undo_turn(warm.turn, warm.checkpoints()[0])

    assert warm.read("p") == PRECIOUS
    assert warm.read("d/other") == "another one\n"


def test_object_that_was_only_touched_costs_no_proof_of_everything(tmp_path: Path) -> None:
    calls: list[str] = []
    lab = Lab(tmp_path, before_git=lambda arguments: calls.append(arguments[0]))
    lab.edit("p", PRECIOUS)
    lab.write("warm", "1\n")
    os.utime(object_path(lab, blob_oid(PRECIOUS.encode())), (1, 1))
    calls.clear()

    lab.write("warm", "2\n")

    assert "ls-tree" not in calls


@pytest.mark.parametrize("how", ["rm -f", "truncate -s 0", "cp --remove-destination script"])
def test_content_that_goes_during_the_command_that_removes_it_is_said_and_costs_nothing_else(
    warm: Lab, how: str, tmp_path: Path
) -> None:
    path = object_path(warm, blob_oid(PRECIOUS.encode()))
    (tmp_path / "script").write_text(f"cd {tmp_path}; {how} {path}; cd {warm.root}; rm -r p d; echo new > warm")

    result = warm.run(f"sh {tmp_path}/script")
    report = warm.undo_turn(warm.turn, warm.checkpoints()[0])

    assert result.notes == ("the store has lost the content of p as it was before: it cannot be taken back",)
    assert [change.path for change in result.changes] == ["d", "d/other", "p", "warm"]
    assert report.complete
    assert report.not_captured == (PathNote("p", "the store has lost what it held then"),)
    assert (warm.read("d/other"), warm.read("warm")) == ("another one\n", "2\n")
    assert not warm.exists("p")


@pytest.mark.parametrize("everything", [False, True])
def test_restore_names_a_content_that_is_lost_and_brings_back_the_rest(warm: Lab, *, everything: bool) -> None:
    warm.run("rm -r p d")
    before = snapshot(warm.root)
    object_path(warm, blob_oid(PRECIOUS.encode())).unlink()

    plan = warm.plan(everything=everything)
    report = warm.engine.apply_restore(plan)

    assert actions(plan)["p"] is Action.NOT_CAPTURED
    assert report.not_captured == (PathNote("p", "the store has lost what it held then"),)
    assert report.replanned == ()
    assert warm.read("d/other") == "another one\n"
    warm.undo_restore(report)
    assert snapshot(warm.root) == before


def test_uncaptured_directory_that_a_command_removes_is_named_once(lab: Lab) -> None:
    lab.edit("build/out", "x\n")

    result = lab.run("rm -r build")

    assert result.notes == ("not captured (excluded): build (and gone now)",)
