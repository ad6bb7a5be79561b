"""The same program for people: lines through a pipe, and a prompt on a real terminal."""

import os

from tests.e2e.scene import Scene
from tests.e2e.trees import differing
from tests.gateway.cli.screens import Screen


def test_pipe_takes_a_message_a_line_and_answers_in_order(scene: Scene) -> None:
    scene.edit("a.py", "one\n")
    arguments = ("chat", "--workspace", str(scene.project), "--checkpoints")

    done = scene.run(*arguments, stdin=b"$ echo two > a.py\n\n/rollback\r\n/rollback diff 1\n/rollback 1\n/redo")
    said = done.stdout.decode()

    assert (done.returncode, done.stderr) == (0, b"")
    order = ("✎ 1 file", "📸 Checkpoints", "-one", "+two", "✅ Restored to", "↩ Undid 1 turn", "↪ Brought back")
    places = [said.index(words) for words in order]
    assert places == sorted(places)
    assert scene.read("a.py") == "two\n"


def test_pipe_shows_no_control_sequence_and_saves_what_is_long(scene: Scene) -> None:
    arguments = ("chat", "--workspace", str(scene.project))

    done = scene.run(*arguments, stdin=b"$ printf '\\033]0;title\\007\\033[31mred\\n'; seq 3000\n")
    said = done.stdout.decode()

    assert "\x1b" not in said
    assert "\x07" not in said
    [line] = [line for line in said.splitlines() if " is saved as " in line]
    path = line.partition(" is saved as ")[2]
    with open(path, encoding="utf-8") as file:
        assert file.read().endswith("2999\n3000\n")


def test_pipe_that_nobody_reads_ends_quietly(scene: Scene) -> None:
    scene.log_may_hold = "a reply was given up"
    reading, writing = os.pipe()
    os.close(reading)
    program = scene.start_plain(stdout=writing)
    os.close(writing)

    _, complaint = program.communicate(b"$ ls | cat\n$ ls | cat\n", timeout=60)

    assert (program.returncode, complaint) == (0, b"")


def test_person_at_a_terminal_changes_looks_and_takes_back(scene: Scene) -> None:
    scene.edit("a.py", "one\n")
    before = scene.tree()
    screen = Screen(
        scene.line("chat", "--workspace", str(scene.project), "--checkpoints"),
        env={**scene.environment, "TERM": "xterm"},
        cwd=scene.user_home,
    )
    screen.shows("checkpoints on")

    screen.press("$ echo two > a.py\r")
    screen.shows("1 file, +1/-1: a.py")
    screen.press("/write b.py\x1b\rnew\r")
    screen.shows("b.py (new)")
    screen.press("/rollback\r")
    screen.shows("before write_file: b.py")
    screen.press("/rollback 2\r")
    screen.shows("Undid 2 turns")
    assert differing(before, scene.tree()) == set()
    screen.press("/redo\r")
    screen.shows("Brought back 2 turns")
    screen.press("\x04")

    assert screen.ends() == 0
    assert scene.read("a.py") == "two\n"
    assert scene.read("b.py") == "new"


def test_interrupt_key_stops_the_turn_and_what_it_wrote_can_be_undone(scene: Scene) -> None:
    begun = scene.waypoint("begun")
    scene.edit("a.py", "one\n")
    screen = Screen(
        scene.line("chat", "--workspace", str(scene.project), "--checkpoints"),
        env={**scene.environment, "TERM": "xterm"},
        cwd=scene.user_home,
    )
    screen.shows("checkpoints on")
    screen.press(f"$ echo two > a.py; {begun.reach}; sleep 600; echo late > late.py\r")
    begun.wait()

    screen.press("\x03")
    screen.shows("Stopped")
    screen.press("/undo\r")
    screen.shows("Took back the last turn")
    screen.press("\x04")

    assert screen.ends() == 0
    assert scene.read("a.py") == "one\n"
    assert not scene.exists("late.py")
    assert scene.living() == {}
