"""Files and conversation together: what an undo moves, what a number means, and refusals that change nothing."""

import pytest

from tests.e2e.homes import refs, tables
from tests.e2e.program import Program
from tests.e2e.scene import Scene


def test_undone_turn_without_a_checkpoint_moves_only_the_conversation(scene: Scene, program: Program) -> None:
    scene.edit("a.py", "one\n")
    program.ask("/write a.py\ntwo\n")
    program.ask("/read a.py")
    before = scene.tree()

    undone = program.ask("/undo")

    assert scene.tree() == before
    assert undone.lines == [
        "✅ Took back the last turn: /read a.py",
        "Only the conversation moved: it has no checkpoint, and its files are as they are.",
        "↩ Undid 1 turn. /redo brings turns back.",
    ]
    assert program.ask("/status").line("Last turn:") == "#1 done: /write a.py two"
    assert program.ask("/redo").line("↪") == "Brought back 1 turn."
    assert program.ask("/status").line("Last turn:") == "#2 done: /read a.py"


def test_session_diff_of_the_second_session_shows_its_own_changes_also_after_a_prune(scene: Scene) -> None:
    scene.configure("checkpoints: {max_snapshots: 2}\n")
    scene.edit("a.py", "one\n")
    program = scene.start()
    program.ask("/write first.py\nfirst\n")
    assert program.ask("/new").text.startswith("✨ New session")
    for number in range(4):
        program.ask(f"/write second-{number}.py\nsecond\n")
    assert program.end() == 0
    pruned = scene.run("prune", "--yes")
    program = scene.start()

    shown = program.ask("/diff session")

    assert pruned.returncode == 0, pruned
    assert "first.py" not in shown.text
    assert shown.lines[0] == "Since this session began  (4 files, +4/-0)"
    assert [line for line in shown.lines if line.startswith("+++ ")] == [
        f"+++ b/second-{number}.py" for number in range(4)
    ]
    assert len(program.ask("/rollback").ids) == 2


def test_number_means_what_the_list_showed_however_often_it_is_used(scene: Scene, program: Program) -> None:
    for version in ("one", "two", "three"):
        program.ask(f"/write a.py\n{version}\n")
    listed = program.ask("/rollback")

    answers = [program.ask("/rollback 2") for _ in range(3)]

    assert all(answer.lines[0].startswith(f"✅ Restored to checkpoint {listed.ids[1]}") for answer in answers)
    assert all(answer.lines[0].endswith(": before write_file: a.py") for answer in answers)
    assert scene.read("a.py") == "one\n"
    assert "No file had to be changed." in answers[1].text
    assert len(program.ask("/rollback").ids) == 4


def test_number_means_the_list_of_its_own_chat(scene: Scene, program: Program) -> None:
    for version in ("one", "two"):
        program.ask(f"/write a.py\n{version}\n")
    shown = program.ask("/rollback").ids
    program.ask("/write a.py\nthree\n", chat="other")
    newer = program.ask("/rollback", chat="other").ids

    here, there = program.ask("/rollback diff 1"), program.ask("/rollback diff 1", chat="other")

    assert newer[1:] == shown
    assert f"checkpoint {shown[0]}" in here.lines[0]
    assert f"checkpoint {newer[0]}" in there.lines[0]


def test_number_outlives_a_restart(scene: Scene) -> None:
    program = scene.start()
    for version in ("one", "two"):
        program.ask(f"/write a.py\n{version}\n")
    shown = program.ask("/rollback").ids
    program.ask("/write a.py\nthree\n")
    program.end()

    restored = scene.start().ask("/rollback 1")

    assert restored.lines[0].startswith(f"✅ Restored to checkpoint {shown[0]}")
    assert scene.read("a.py") == "one\n"


def test_pruned_number_and_id_are_said_to_be_pruned(scene: Scene) -> None:
    scene.configure("checkpoints: {max_snapshots: 3}\n")
    program = scene.start()
    for version in range(3):
        program.ask(f"/write a.py\n{version}\n")
    shown = program.ask("/rollback").ids
    for version in range(2):
        program.ask(f"/write b.py\n{version}\n")
    before = scene.everything()

    for word, named in (("3", "Checkpoint 3 of the list"), ("2", "Checkpoint 2 of the list"), (shown[2], "Checkpoint")):
        for text in (f"/rollback {word}", f"/rollback diff {word}", f"/rollback {word} a.py"):
            refused = program.ask(text).text
            assert refused.startswith(named)
            assert "was pruned since. /rollback shows the list." in refused

    scene.assert_unchanged(before)
    assert program.ask("/rollback 1").lines[0].startswith(f"✅ Restored to checkpoint {shown[0]}")
    assert scene.read("a.py") == "1\n"


REFUSED = (
    ("/rollback 9", "There is no checkpoint 9: the list has 2 entries. /rollback shows it."),
    ("/rollback 0", "The list starts at 1."),
    ("/rollback abc", "abc is too short for an id: give 4 characters or more."),
    ("/rollback ffffffff", "No checkpoint is numbered ffffffff or has an id that begins so."),
    ("/rollback diff 9", "There is no checkpoint 9"),
    ("/rollback diff", "Which checkpoint?"),
    ("/rollback -1", "/rollback does not know -1."),
    ("/rollback --hard 1", "/rollback does not know --hard."),
    ("/rollback 1 --al", "Did you mean --all?"),
    ("/rollback yesterday", "yesterday is neither a number from the list nor the beginning of an id."),
    ("/rollback lsit", "Did you mean /rollback list?"),
    ("/rollback 1 ../other", "leads out of the directory"),
    ("/rollback 1 a/../../x", "leads out of the directory"),
    ("/rollback 1 /etc/passwd", "is absolute"),
    ("/rollback 1 .git", "belongs to git"),
    ("/rollback 1 sub/.GIT/config", "belongs to git"),
    ("/rollback 1 'a\0b'", "NUL"),
    ("/rollback 1 nothing.py", "matches no file in the checkpoint or now"),
    ("/rollback 1 '*.rs'", "matches no file in the checkpoint or now"),
    ("/rollback 1 ':(bogus)x'", "bogus"),
    ("/rollback 1 ''", ""),
    ("/rollback 1 'open", "a quote or backslash is left open"),
    ("/rollback 1 -- -x", "matches no file"),
    ("/undo now", "/undo takes back the last turn and takes nothing after it."),
    ("/undo #1", "Turn #1 is not the last one"),
    ("/redo", "There is nothing to redo"),
    ("/rollback undo", "There is nothing to redo"),
    ("/diff sesion", "Did you mean /diff session?"),
    ("/checkpoints maybe", "/checkpoints takes on, off or nothing"),
    ("/workspace ../other", "A chat cannot name a path"),
    ("/workspace othr", "There is no workspace othr."),
    ("/rolback 1", "Did you mean /rollback?"),
    ("/new now", "/new takes nothing after it."),
)


def test_whatever_is_refused_changes_nothing_and_says_what_to_do(scene: Scene, program: Program) -> None:
    scene.edit("a.py", "one\n")
    program.ask("/write a.py\ntwo\n")
    program.ask("/write b.py\nnew\n")
    scene.edit("a.py", "by hand\n")
    program.ask("/rollback")
    before = scene.everything()

    for text, says in REFUSED:
        refused = program.ask(text).text
        assert says in refused, text
        assert "✅" not in refused, text
        assert refused, text

    scene.assert_unchanged(before)


def test_single_file_goes_back_and_the_conversation_stays(scene: Scene, program: Program) -> None:
    for name in ("a.py", "b.txt", "c.txt"):
        scene.edit(name, "one\n")
    program.ask("$ for f in *; do echo two > $f; done")
    program.ask("/rollback")

    one = program.ask("/rollback 1 a.py")
    many = program.ask("/rollback 1 '*.txt' ':(exclude)c.txt'")

    assert one.line("Restored:") == "a.py"
    assert many.line("Restored:") == "b.txt"
    assert "The conversation stays as it is; the agent is told. /redo undoes this." in one.text
    assert [scene.read(name) for name in ("a.py", "b.txt", "c.txt")] == ["one\n", "one\n", "two\n"]
    assert program.ask("/status").line("Last turn:").startswith("#1 done: ")
    notes = [row for row in tables(scene.home)["messages"] if "note" in row]
    assert len(notes) == 2
    program.ask("/redo")
    program.ask("/redo")
    assert [scene.read(name) for name in ("a.py", "b.txt", "c.txt")] == ["two\n"] * 3


def test_redo_after_new_work_is_refused_and_names_the_way_back(scene: Scene, program: Program) -> None:
    scene.edit("a.py", "one\n")
    program.ask("/write a.py\ntwo\n")
    program.ask("/undo")
    program.ask("/write b.py\nnew\n")
    before = scene.everything()

    refused = program.ask("/redo")

    scene.assert_unchanged(before)
    command = refused.text.partition("The files as they were before it: ")[2]
    assert command.startswith("/rollback ")
    assert program.ask(command).text.startswith("✅")
    assert scene.read("a.py") == "two\n"


@pytest.mark.parametrize("restart", [False, True])
def test_walk_back_and_forth_ends_where_it_began(scene: Scene, restart: bool) -> None:
    program = scene.start()
    trees = [scene.tree()]
    for number in range(4):
        program.ask(f"$ mkdir -p d{number}; echo {number} > d{number}/f; echo {number} > a.py")
        trees.append(scene.tree())

    for expected in reversed(trees[:-1]):
        if restart:
            program.end()
            program = scene.start()
        assert program.ask("/undo").text.startswith("✅ Took back the last turn")
        assert {p: s.content for p, s in scene.tree().items()} == {p: s.content for p, s in expected.items()}
    assert "There is nothing to undo" in program.ask("/undo").text
    for expected in trees[1:]:
        assert program.ask("/redo").text.startswith("✅")
        assert {p: s.content for p, s in scene.tree().items()} == {p: s.content for p, s in expected.items()}
    assert "There is nothing to redo" in program.ask("/redo").text
    assert program.ask("/status").line("Last turn:").startswith("#4 done")
    assert len([name for name in refs(scene.home) if "/checkpoints/" in name]) == len(program.ask("/rollback").ids)
