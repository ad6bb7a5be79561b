"""Several chats at once: in one workspace nobody's work is lost in silence, in different ones nobody waits."""

import pytest

from tests.e2e.program import Program
from tests.e2e.scene import Scene
from tests.e2e.trees import differing


def test_undo_in_one_chat_takes_back_its_own_file_alone(scene: Scene, program: Program) -> None:
    for name in ("foo", "bar", "notes.md"):
        scene.edit(name, "one\n")
    program.ask("/write foo\nby a\n", chat="a")
    program.ask("/write bar\nby b\n", chat="b")
    scene.edit("notes.md", "by hand\n")

    undone = program.ask("/undo", chat="a")

    assert [scene.read(name) for name in ("foo", "bar", "notes.md")] == ["one\n", "by b\n", "by hand\n"]
    assert undone.line("Restored:") == "foo"
    assert program.ask("/status", chat="b").line("Last turn:").endswith("done: /write bar by b")


def test_rollback_in_one_chat_keeps_and_names_the_others_work(scene: Scene, program: Program) -> None:
    for name in ("foo", "bar", "notes.md"):
        scene.edit(name, "one\n")
    program.ask("/write foo\nby a\n", chat="a")
    program.ask("/write bar\nby b\n", chat="b")
    scene.edit("notes.md", "by hand\n")
    program.ask("/rollback", chat="a")

    restored = program.ask("/rollback 2", chat="a")

    assert [scene.read(name) for name in ("foo", "bar", "notes.md")] == ["one\n", "by b\n", "by hand\n"]
    assert restored.line("↷ Kept your hand-edits:") == "notes.md"
    assert restored.line("↷ Kept other chats' changes:").startswith("bar (written by console:b")


def test_undo_leaves_the_line_of_the_other_chat_in_the_same_file(scene: Scene, program: Program) -> None:
    lines = [f"line {number}\n" for number in range(1, 100)]
    scene.edit("shared.txt", "".join(lines))
    program.ask("$ sed -i '1s/.*/by a/' shared.txt", chat="a")
    program.ask("$ sed -i '99s/.*/by b/' shared.txt", chat="b")

    undone = program.ask("/undo", chat="a")

    assert scene.read("shared.txt") == "".join([*lines[:98], "by b\n"])
    assert undone.line("Merged:").startswith("shared.txt (keeps what console:b")
    assert program.ask("/undo", chat="b").text.startswith("✅")
    assert scene.read("shared.txt") == "".join(lines)


def test_undo_of_lines_that_the_other_chat_changed_since_is_refused_with_the_reason(
    scene: Scene, program: Program
) -> None:
    scene.edit("shared.txt", "one\n")
    program.ask("/write shared.txt\nby a\n", chat="a")
    program.ask("/write shared.txt\nby a and b\n", chat="b")

    undone = program.ask("/undo", chat="a")

    assert scene.read("shared.txt") == "by a and b\n"
    assert undone.line("↷ Kept other chats' changes:").startswith("shared.txt (written by console:b")
    assert "the same lines were changed on both sides" in undone.text
    program.ask("/undo", chat="b")
    assert scene.read("shared.txt") == "by a\n"


@pytest.mark.parametrize(
    "command", ["/rollback 1", "/rollback 1 a.py", "/rollback undo", "/redo", "/undo", "/new", "/retry"]
)
def test_what_restores_is_busy_during_a_turn_and_changes_nothing(scene: Scene, program: Program, command: str) -> None:
    begun, gate = scene.waypoint("begun"), scene.waypoint("gate")
    scene.edit("a.py", "one\n")
    program.ask("/write a.py\ntwo\n")
    program.ask("/rollback")
    program.send(f"$ echo three > a.py; {begun.reach}; {gate.stop_here}; echo late > late.py")
    begun.wait()
    before = scene.everything()

    program.send(command)
    refused = program.hear()

    assert refused["text"] == "busy: a turn is running, /stop first"
    assert program.hear()["done"]
    scene.assert_unchanged(before)
    gate.let_pass()
    assert "late.py (new)" in program.hear()["text"]
    assert scene.read("late.py") == "late\n"


def test_stopped_turn_writes_nothing_more_and_leaves_no_process(scene: Scene, program: Program) -> None:
    begun = scene.waypoint("begun")
    scene.edit("a.py", "one\n")
    program.send(
        f"$ trap '' TERM HUP INT; (setsid sh -c 'sleep 600; echo late > late1') & echo two > a.py; {begun.reach}; "
        "for i in $(seq 6000); do sleep 0.1; echo late > late2; done"
    )
    begun.wait()

    program.send("/stop")
    turn, stop = program.answer(), program.answer()

    assert turn.text.startswith("⏹ Stopped.")
    assert stop.text == ""
    assert [line for pid, line in scene.living().items() if pid != program.process.pid] == []
    before = scene.tree()
    assert "a.py" in program.ask("/diff").text
    assert scene.tree() == before
    assert program.ask("/undo").line("✅").startswith("Took back the last turn: ")
    assert differing({}, scene.tree()) == {".", "a.py"}
    assert scene.read("a.py") == "one\n"


def test_stop_stops_the_turn_of_its_own_chat_alone(scene: Scene, program: Program) -> None:
    begun, gate = scene.waypoint("begun"), scene.waypoint("gate")
    program.send(f"$ {begun.reach}; {gate.stop_here}; echo a > a.py", chat="a")
    begun.wait()

    assert program.ask("/stop", chat="b").text == "Nothing is running."

    gate.let_pass()
    assert "a.py (new)" in program.answer("a").text


def test_restore_beside_another_chats_turn_in_the_same_workspace_is_busy(scene: Scene, program: Program) -> None:
    begun, gate = scene.waypoint("begun"), scene.waypoint("gate")
    scene.edit("a.py", "one\n")
    program.ask("/write a.py\ntwo\n", chat="b")
    program.ask("/rollback", chat="b")
    program.send(f"$ {begun.reach}; {gate.stop_here}; echo c > c.py", chat="a")
    begun.wait()
    before = scene.everything()

    refused = program.ask("/rollback 1", chat="b")

    assert refused.text.startswith("busy: the console chat a")
    assert refused.text.endswith(" is at work in this workspace. /stop there first, or try again later.")
    scene.assert_unchanged(before)
    gate.let_pass()
    assert "c.py (new)" in program.answer("a").text
    assert program.ask("/rollback 1", chat="b").text.startswith("✅")
    assert (scene.read("a.py"), scene.read("c.py")) == ("one\n", "c\n")


def test_chats_do_not_wait_for_each_other(scene: Scene, program: Program) -> None:
    begun, gate = scene.waypoint("begun"), scene.waypoint("gate")
    program.send(f"$ {begun.reach}; {gate.stop_here}; echo finished | tr a-z A-Z", chat="slow")
    begun.wait()

    for text in ("/status", "/help", "/whoami", "/rollback", "/checkpoints", "/workspace"):
        assert program.ask(text, chat="quick").text
    assert all(said["chat"] == "quick" for said in program.heard)
    gate.let_pass()

    assert "FINISHED" in program.answer("slow").text


def test_messages_of_one_chat_are_dealt_with_in_order(scene: Scene, program: Program) -> None:
    for number in range(10):
        program.send(f"$ echo {number} >> log.txt", chat="a")
        program.send(f"/write of-b-{number}\n{number}", chat="b")
    for chat in ("a", "b"):
        for _ in range(10):
            program.answer(chat)

    assert scene.read("log.txt").split() == [str(number) for number in range(10)]
    assert [scene.read(f"of-b-{number}") for number in range(10)] == [str(number) for number in range(10)]
    listed = program.ask("/rollback", chat="a").entries
    assert len(listed) == 20
