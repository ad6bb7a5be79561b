"""Nothing of a person's is lost when files go back, and what could not be covered is said where the person reads."""

import os
import shutil
from pathlib import Path

import pytest

from tests.e2e.homes import git_of, refs
from tests.e2e.program import Program
from tests.e2e.scene import Scene
from tests.e2e.trees import differing, photograph

MB = 1024 * 1024


def test_file_over_the_limit_stays_and_is_said_at_every_step(scene: Scene) -> None:
    scene.configure("checkpoints: {max_file_size_mb: 1}\n")
    scene.edit("data.csv", b"x" * 2 * MB)
    scene.edit("a.py", "one\n")
    program = scene.start()

    changed = program.ask("$ echo more >> data.csv; echo two > a.py")
    listed = program.ask("/rollback")
    previewed = program.ask("/rollback diff 1")
    restored = program.ask("/rollback 1")

    assert changed.line("⚠ not captured (too large):") == "data.csv (2.0 MB, the limit is 1.0 MB)"
    assert listed.entries == [
        "before terminal: echo more >> data.csv; echo two > a.py  (1 file, +1/-1) [not captured: data.csv (too large)]"
    ]
    assert previewed.line("not captured:") == "data.csv (too large: 2.0 MB, the limit is 1.0 MB)"
    assert restored.line("Restored:") == "a.py"
    assert restored.line("⚠ Not captured, left as it is:") == "data.csv (too large: 2.0 MB, the limit is 1.0 MB)"
    assert (scene.project / "data.csv").read_bytes() == b"x" * 2 * MB + b"more\n"
    assert scene.read("a.py") == "one\n"


def test_file_of_another_program_survives_and_is_named(scene: Scene, program: Program) -> None:
    scene.edit("a.py", "one\n")
    program.ask("/write a.py\ntwo\n")
    scene.edit("output/r.jsonl", '{"by": "another program"}\n')
    program.ask("/write a.py\nthree\n")
    program.ask("/rollback")

    restored = program.ask("/rollback 2")

    assert scene.read("a.py") == "one\n"
    assert scene.read("output/r.jsonl") == '{"by": "another program"}\n'
    assert restored.line("↷ Kept your hand-edits:") == "output/r.jsonl"


@pytest.mark.parametrize("moment", ["before the first checkpoint", "after it"])
def test_failed_capture_is_said_and_is_never_a_target(scene: Scene, moment: str) -> None:
    program = scene.start()
    for name in ("a.py", "b.py"):
        scene.edit(name, "one\n")
    if moment == "after it":
        program.ask("/write b.py\ntwo\n")
    for number in range(100):  # few files are written where they need no pack
        scene.edit(f"many/{number}", f"{number}\n")
    known = program.ask("/rollback").ids
    packs = scene.home / "checkpoints" / "store" / "objects" / "pack"
    packs.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(packs, ignore_errors=True)
    packs.touch()

    unguarded = program.ask("/write a.py\ntwo\n")
    packs.unlink()
    listed = program.ask("/rollback")
    guarded = program.ask("/write a.py\nthree\n")
    program.ask("/rollback")
    program.ask("/rollback 1")

    assert str(packs) in unguarded.line("⚠ no checkpoint was taken:")
    assert listed.ids == known
    assert "⚠" not in guarded.text
    assert scene.read("a.py") == "two\n"


def test_disk_that_takes_half_of_a_big_tree_is_left_with_nothing_of_it(scene: Scene) -> None:
    for number in range(300):
        scene.edit(f"data/{number}", os.urandom(20_000))
    scene.edit("a.py", "one\n")
    scene.launcher = ("sh", "-c", 'ulimit -f 4000; exec "$@"', "sh")  # blocks of 512 bytes
    program = scene.start()

    unguarded = program.ask("/write a.py\ntwo\n")
    listed = program.ask("/rollback")

    assert "File too large" in unguarded.line("⚠ no checkpoint was taken:")
    assert scene.read("a.py") == "two\n"
    assert listed.entries == []
    assert refs(scene.home) == {}
    assert list((scene.home / "checkpoints" / "store" / "objects" / "pack").iterdir()) == []
    program.end()
    scene.launcher = ()
    program = scene.start()
    program.ask("/write a.py\nthree\n")
    program.ask("/rollback 1")
    assert scene.read("a.py") == "two\n"


def test_new_file_goes_with_the_directory_it_came_in(scene: Scene, program: Program) -> None:
    scene.edit("a.py", "one\n")
    before = scene.tree()
    program.ask("/write pkg/deep/new.py\nnew\n")
    assert scene.exists("pkg/deep/new.py")

    restored = program.ask("/rollback 1")

    assert scene.tree() == before
    assert restored.line("Removed:") == "pkg/deep/new.py"


@pytest.mark.parametrize("command", ["/rollback undo", "/redo"])
def test_undone_rollback_leaves_exactly_what_was_there(scene: Scene, program: Program, command: str) -> None:
    scene.edit("a.py", "one\n")
    scene.edit("gone.py", "here\n", mode=0o750)
    scene.edit("notes.md", "one\n")
    program.ask("$ echo two > a.py; rm gone.py; mkdir new; ln -s ../a.py new/link")
    scene.edit("notes.md", "by hand\n")
    before = scene.tree()

    back = program.ask("/rollback 1")
    assert differing(before, scene.tree()) == {"a.py", "gone.py", "new", "new/link"}
    forth = program.ask(command)

    assert differing(before, scene.tree()) == set()
    assert back.line("↷ Kept your hand-edits:") == "notes.md"
    assert forth.line("↪") == "Brought back 1 turn."


def test_no_safety_checkpoint_means_no_restore(scene: Scene, program: Program) -> None:
    scene.edit("a.py", "one\n")
    program.ask("/write a.py\ntwo\n")
    program.ask("/rollback")
    (first,) = (scene.home / "checkpoints" / "store" / "refs" / "takeback").glob("*/checkpoints/*1")
    in_the_way = first.with_name(first.name[:-1] + "2.lock")
    in_the_way.mkdir()
    before = scene.everything()

    refused = program.ask("/rollback 1")

    assert refused.text.startswith("Nothing was restored: the safety checkpoint that makes it undoable")
    scene.assert_unchanged(before)
    in_the_way.rmdir()
    assert program.ask("/rollback 1").text.startswith("✅ Restored to checkpoint ")
    assert scene.read("a.py") == "one\n"


def test_deleted_store_is_said_and_no_file_counts_as_absent(scene: Scene, program: Program) -> None:
    scene.edit("a.py", "one\n")
    program.ask("/write a.py\ntwo\n")
    program.ask("/write new.py\nnew\n")
    listed = program.ask("/rollback")
    shutil.rmtree(scene.home / "checkpoints" / "store")
    before = scene.tree()

    for text in ("/rollback 2", "/rollback 2 a.py", "/rollback 2 --all", f"/rollback {listed.ids[1]}"):
        assert "the store holds no checkpoint of this workspace any more" in program.ask(text).text

    assert scene.tree() == before
    program.ask("/write a.py\nthree\n")
    program.ask("/rollback")
    program.ask("/rollback 1")
    assert scene.read("a.py") == "two\n"


def test_missing_object_is_damage_and_no_file_counts_as_absent(scene: Scene, program: Program) -> None:
    scene.edit("a.py", "one\n")
    scene.edit("b.py", "bee\n")
    program.ask("$ echo two > a.py; rm b.py")
    program.ask("/rollback")
    lose_object(scene.home, "b.py")
    before = scene.everything()

    refused = program.ask("/rollback 1 b.py")
    assert refused.text.startswith("The checkpoint store is damaged: ")
    assert refused.text.endswith("Nothing was changed. Run on the gateway's machine: gateway checkpoints verify")
    scene.assert_unchanged(before)

    restored = program.ask("/rollback 1")
    assert restored.line("⚠ Not captured").endswith("b.py (the store has lost what it held then)")
    assert scene.read("a.py") == "one\n"
    assert program.ask("/rollback 1 --all").text.startswith("The checkpoint store is damaged: ")


def lose_object(home: Path, path: str) -> None:
    """Delete the newest checkpoint's content of a file from the store."""
    [ref] = [name for name in refs(home) if "/checkpoints/" in name]
    oid = git_of(home, "rev-parse", f"{ref}:{path}")[0]
    store = home / "checkpoints" / "store"
    (store / "objects" / oid[:2] / oid[2:]).unlink()


def test_commits_of_the_person_are_none_of_a_rollbacks_business(scene: Scene, program: Program) -> None:
    scene.edit("a.py", "one\n")
    scene.repository()
    program.ask("/write a.py\ntwo\n")
    scene.git("commit", "-q", "-a", "-m", "two")
    scene.edit("a.py", "staged\n")
    scene.git("add", "a.py")
    scene.edit("a.py", "two\n")
    state = scene.git("log", "--format=%H %s"), scene.git("status", "--porcelain")
    repository = photograph(scene.project / ".git")

    program.ask("/rollback")
    program.ask("/rollback diff 1")
    program.ask("/rollback 1")

    assert scene.read("a.py") == "one\n"
    assert photograph(scene.project / ".git") == repository
    assert scene.git("log", "--format=%H %s") == state[0]
    assert program.ask("/redo").text.startswith("✅")
    assert scene.git("status", "--porcelain") == state[1]


def test_undone_turn_that_changed_nothing_writes_no_file(scene: Scene, program: Program) -> None:
    scene.edit("a.py", "one\n")
    program.ask("/write a.py\ntwo\n")
    program.ask("$ rm -f nothing-here; sed -i s/absent/x/ b.py")
    before = scene.tree()

    undone = program.ask("/undo")

    assert scene.tree() == before
    assert undone.text.startswith("✅ Took back the last turn: $ rm -f nothing-here")
    assert undone.line("↩").startswith("Undid 1 turn.")


def test_file_the_person_makes_after_the_agent_missed_it_stays(scene: Scene, program: Program) -> None:
    scene.edit("a.py", "one\n")
    program.ask("/write a.py\ntwo\n")
    missed = program.ask("/read todo.md")
    scene.edit("todo.md", "mine\n")

    program.ask("/undo")
    again = program.ask("/undo")

    assert missed.text.startswith("read_file: todo.md: there is no such file")
    assert scene.read("a.py") == "one\n"
    assert scene.read("todo.md") == "mine\n"
    assert "todo.md" not in again.line("Restored:")
