"""Several tools at work in one workspace at once, by several chats and processes."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from engine.model import Limits
from engine.store.layout import Layout
from tests.engine.lab import Lab, paths

A, B = "console:a", "console:b"


@pytest.fixture
def gates(tmp_path: Path) -> tuple[Path, Path]:
    """Pipes on which a command says that it began, and waits to go on."""
    begun, go_on = tmp_path / "begun", tmp_path / "go-on"
    os.mkfifo(begun)
    os.mkfifo(go_on)
    return begun, go_on


def wait_for(gate: Path) -> None:
    with open(gate) as pipe:
        pipe.read()


def open_gate(gate: Path) -> None:
    with open(gate, "w") as pipe:
        pipe.write("now\n")


def notes(lab: Lab) -> list[str]:
    return sorted(name for name in os.listdir(lab.store / "journal") if ".running" in name)


def dead_process() -> int:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def test_command_is_not_charged_with_what_another_chat_wrote_meanwhile(lab: Lab, gates: tuple[Path, Path]) -> None:
    begun, go_on = gates
    lab.edit("a.txt", "one\n")
    lab.edit("b.txt", "one\n")
    lab.next_turn()
    call = lab.call(A)
    command = f"echo > {begun}; read x < {go_on}; echo a > a.txt"
    running = threading.Thread(target=lambda: lab.engine.terminal(call, command, timeout_s=60))
    running.start()
    wait_for(begun)

    lab.write("b.txt", "b\n", chat=B)
    lab.write("new.txt", "b\n", chat=B)
    open_gate(go_on)
    running.join()
    ours = [change for change in lab.checkpoints() if change.turn and change.turn.chat == A]
    plan = lab.engine.plan_restore(lab.workspace, ours[0].id, turns=[call.turn.turn], chat=A)
    report = lab.engine.apply_restore(plan)

    assert paths(report.restored) == ["a.txt"]
    assert (lab.read("a.txt"), lab.read("b.txt"), lab.read("new.txt")) == ("one\n", "b\n", "b\n")
    assert notes(lab) == []


def test_file_tool_is_not_charged_with_what_others_changed_meanwhile(tmp_path: Path) -> None:
    def meanwhile(operation: str, path: str) -> None:
        if (operation, path) == ("install", "large.txt"):
            lab.edit("a.txt", "by hand\n")

    lab = Lab(tmp_path, file_fault=meanwhile)
    lab.limits = Limits(max_file_size_bytes=20)  # what is larger has to be looked for in a whole capture
    lab.edit("a.txt", "one\n")
    lab.write("b.txt", "bee\n")

    written = lab.write("large.txt", "larger than allowed\n" * 2)

    assert written.changes == ()
    lab.write("a.txt", "agent\n")
    lab.rollback()
    assert lab.read("a.txt") == "by hand\n"


def test_each_killed_tool_of_several_processes_is_settled_by_itself(lab: Lab, gates: tuple[Path, Path]) -> None:
    begun, go_on = gates
    lab.edit("a.txt", "one\n")
    killed = []
    for turn, chat in enumerate((A, B), start=1):
        lab.edit("a.txt", f"before turn {turn}\n")
        killed.append(in_a_process(lab, turn, chat, f"echo half > {turn}.txt; echo > {begun}; read x < {go_on}"))
        wait_for(begun)
    assert len(notes(lab)) == 2
    for child in killed:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)

    said = lab.write("c.txt", "sea\n").notes

    assert sum("the service ended during a tool" in note for note in said) == 2
    assert notes(lab) == []
    taken = {c.turn.chat: c.id for c in reversed(lab.checkpoints()) if c.turn}
    for chat, content in ((A, "before turn 1\n"), (B, "before turn 2\n")):
        lab.engine.apply_restore(lab.engine.plan_restore(lab.workspace, taken[chat], everything=True))
        assert lab.read("a.txt") == content


def in_a_process(lab: Lab, turn: int, chat: str, command: str) -> int:
    """Run a command in a process of its own, and return the process."""
    child = os.fork()
    if child == 0:
        try:
            # Not a copy of this one: what it writes down carries its own name.
            import engine.guard
            import engine.store.journal

            engine.guard.INSTANCE = engine.store.journal.INSTANCE = f"child-{os.getpid()}"
            lab.engine = lab.open_engine()
            lab.turn = turn
            lab.run(command, chat=chat, new_turn=False)
        finally:
            os._exit(1)
    return child


def test_note_in_the_older_place_is_still_settled(lab: Lab) -> None:
    lab.edit("a.txt", "one\n")
    lab.write("b.txt", "b\n")
    commit = lab.checkpoints()[0].id
    lab.edit("a.txt", "two\n")
    note = {"turn": [A, "session", "7"], "reason": "before terminal: make", "pid": dead_process(), "instance": "older"}
    older = Layout(str(lab.store.parent)).running(lab.workspace.hash)
    Path(older).write_text(json.dumps({**note, "commit": commit, "writes": {}}))

    said = lab.write("c.txt", "sea\n").notes

    assert any("the state before terminal: make is checkpoint" in text for text in said)
    assert not os.path.exists(older)


def test_note_of_a_living_process_stays_until_its_tool_ends(lab: Lab) -> None:
    lab.edit("a.txt", "one\n")
    lab.write("b.txt", "b\n")
    commit = lab.checkpoints()[0].id
    alive = Path(Layout(str(lab.store.parent)).running(lab.workspace.hash, "0123456789abcdef"))
    note = {"turn": [B, "session", "7"], "reason": "before terminal: make", "pid": os.getppid(), "instance": "other"}
    alive.write_text(json.dumps({**note, "commit": commit, "writes": {}}))

    said = lab.write("c.txt", "sea\n").notes

    assert said == ()
    assert notes(lab) == [alive.name]
