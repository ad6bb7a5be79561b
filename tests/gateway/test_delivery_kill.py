"""Killed at every step from arrival to answer: handled once, answered at least once, never run again."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.gateway.mortal import read_lines

ROOT = Path(__file__).parents[2]
MANY = 1000


class Gateway:
    """Starts gateways in one directory, through a process that forks them."""

    def __init__(self, directory: Path, updates: list[str], *, checkpoints: bool, asks: bool) -> None:
        self.directory = directory
        self.updates = updates
        self.checkpoints = checkpoints
        self.asks = asks
        self.nursery = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "tests.gateway.mortal"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.fresh()

    def fresh(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)
        (self.directory / "project").mkdir(parents=True)
        (self.directory / "project" / "Makefile").touch()
        (self.directory / "outside.txt").touch()

    def run(self, *, kill_at: int | None = None, updates: int | None = None) -> int:
        """Run until everything is dealt with, or killed at a step; the exit code."""
        job = {
            "directory": str(self.directory),
            "updates": self.updates[:updates],
            "checkpoints": self.checkpoints,
            "asks": self.asks,
            "kill_at": kill_at,
        }
        assert self.nursery.stdin is not None
        assert self.nursery.stdout is not None
        self.nursery.stdin.write(json.dumps(job) + "\n")
        self.nursery.stdin.flush()
        return int(self.nursery.stdout.readline())

    def close(self) -> None:
        self.nursery.communicate()

    def steps(self) -> list[str]:
        return read_lines(str(self.directory / "trace"))

    def exists(self, name: str) -> bool:
        return (self.directory / "project" / name).exists()

    def lines(self, name: str) -> int:
        return len(read_lines(str(self.directory / "project" / name)))

    def answers(self, event_id: str) -> list[str]:
        found = [json.loads(line) for line in read_lines(str(self.directory / "delivered"))]
        return [text for reply_to, text in found if reply_to == event_id]

    def rows(self, query: str) -> list[tuple]:
        with sqlite3.connect(self.directory / "home" / "gateway.db") as connection:
            rows = connection.execute(query).fetchall()
        connection.close()
        return rows


@pytest.fixture
def open_gateway(tmp_path: Path) -> Iterator:
    opened = []

    def open_one(*updates: str, checkpoints: bool = False, asks: bool = False) -> Gateway:
        opened.append(Gateway(tmp_path / "run", list(updates), checkpoints=checkpoints, asks=asks))
        return opened[-1]

    yield open_one
    for gateway in opened:
        gateway.close()


def assert_settled(gateway: Gateway, note: str, *, most: int = 2) -> None:
    """What holds after every run that came to its end, whatever happened before; ``most`` answers to one message."""
    assert gateway.rows("SELECT text FROM inbox WHERE state <> 'done'") == [], note
    assert gateway.rows("SELECT payload FROM outbox WHERE state <> 'sent'") == [], note
    assert gateway.rows("SELECT id FROM turns WHERE state = 'running'") == [], note
    assert gateway.rows("SELECT id FROM restores WHERE state = 'planned'") == [], note
    assert gateway.rows("SELECT id FROM approvals WHERE state = 'pending'") == [], note
    assert gateway.rows("SELECT inbox_id FROM turns GROUP BY inbox_id HAVING count(*) > 1") == [], note
    assert gateway.rows("PRAGMA integrity_check") == [("ok",)], note
    assert gateway.rows("PRAGMA foreign_key_check") == [], note
    assert os.listdir(gateway.directory / "home" / "instances") == [], note
    for number in range(len(gateway.updates)):
        answers = gateway.answers(f"e{number}")
        assert 1 <= len(answers) <= most, f"{note}: message {number} was answered {answers}"


def kills(gateway: Gateway, *, prepared: int = 0) -> Iterator[str]:
    """Kill a gateway at every step of dealing with its updates but the ``prepared`` first, and let another settle it.

    Yields what happened after each time, for the caller to look at what is there.
    """
    before = gateway.directory.with_name("before")
    if prepared:
        assert gateway.run(updates=prepared) == 0
        shutil.copytree(gateway.directory, before)
    for kill_at in range(1, MANY):
        if prepared:
            shutil.rmtree(gateway.directory)
            shutil.copytree(before, gateway.directory)
        else:
            gateway.fresh()
        if gateway.run(kill_at=kill_at) == 0:
            return
        note = f"killed at step {kill_at}, {gateway.steps()[-1]!r}"
        assert gateway.run() == 0, note
        yield note
    raise AssertionError("it never comes to its end")


@pytest.fixture
def count(record_property: Callable[[str, object], None]) -> Callable:
    """Tell of how many kills a test consists, in a line of the summary."""

    def tell(what: str, notes: list[str], *, at_least: int) -> None:
        record_property("told", f"killed at {len(notes)} steps of {what}")
        assert len(notes) >= at_least

    return tell


def test_a_message_is_handled_once_and_answered_wherever_the_process_dies(open_gateway, count):
    gateway = open_gateway("$ echo ran >> log.txt; echo out", "/status", "/write b.txt\nB")
    notes = []
    for note in kills(gateway):
        notes.append(note)

        assert_settled(gateway, note)
        states = [state for (state,) in gateway.rows("SELECT state FROM turns ORDER BY id")]
        assert len(states) == 2, note
        assert set(states) <= {"done", "interrupted"}, note
        assert states.count("interrupted") <= 1, note
        assert gateway.lines("log.txt") <= 1, note
        assert states[0] == "interrupted" or gateway.lines("log.txt") == 1, note
        assert states[1] == "interrupted" or gateway.exists("b.txt"), note
    count("three messages", notes, at_least=35)


@pytest.mark.parametrize(
    ("command", "prepared", "before", "after"),
    [
        ("/undo", (), (2, "a.txt b.txt"), (1, "a.txt")),
        ("/rollback 2", ("/rollback",), (2, "a.txt b.txt"), (None, "")),
        ("/redo", ("/undo",), (1, "a.txt"), (2, "a.txt b.txt")),
    ],
)
def test_files_and_conversation_move_once_and_together_wherever_the_process_dies(
    open_gateway, count, command, prepared, before, after
):
    gateway = open_gateway("/write a.txt\nA", "/write b.txt\nB", *prepared, command, checkpoints=True)
    asked = len(prepared) + 2
    notes = []
    for note in kills(gateway, prepared=asked):
        notes.append(note)

        assert_settled(gateway, note)
        ((head,),) = gateway.rows("SELECT head_turn_id FROM sessions")
        files = " ".join(name for name in ("a.txt", "b.txt") if gateway.exists(name))
        assert (head, files) in [before, after], f"{note}: files and conversation go together"
        assert (head, files) == after or "ask again" in gateway.answers(f"e{asked}")[0], note
    count(command, notes, at_least=10)


def test_a_retried_message_runs_once_wherever_the_process_dies(open_gateway, count):
    gateway = open_gateway("$ echo ran >> log.txt", "/retry", checkpoints=True)
    notes = []
    for note in kills(gateway, prepared=1):
        notes.append(note)

        # Said twice when it dies between sending and noting it: taken back, that it goes on, and how it ended.
        assert_settled(gateway, note, most=4)
        turns = gateway.rows("SELECT state, parent_id, text FROM turns ORDER BY id")
        assert len(turns) == 2, f"{note}: it is neither lost nor run twice"
        assert turns[1][0] in {"done", "interrupted"}, note
        assert turns[1][1:] == (None, "$ echo ran >> log.txt"), note
        assert gateway.rows("SELECT head_turn_id FROM sessions") == [(2,)], note
        assert gateway.lines("log.txt") == 1 or (turns[1][0], gateway.lines("log.txt")) == ("interrupted", 0), note
    count("/retry", notes, at_least=20)


def test_a_new_session_begins_once_wherever_the_process_dies(open_gateway, count):
    gateway = open_gateway("/write a.txt\nA", "/new")
    notes = []
    for note in kills(gateway, prepared=1):
        notes.append(note)

        assert_settled(gateway, note)
        assert len(gateway.rows("SELECT id FROM sessions")) == 2, note
        assert gateway.rows("SELECT count(*) FROM sessions WHERE ended_at IS NULL") == [(1,)], note
    count("/new", notes, at_least=5)


def test_nothing_runs_unasked_wherever_the_process_dies(open_gateway, count, tmp_path):
    outside = tmp_path / "run" / "outside.txt"
    gateway = open_gateway("rm ../outside.txt", "/approve", asks=True)
    notes, outcomes = [], set()
    for note in kills(gateway):
        notes.append(note)

        assert_settled(gateway, note, most=3)
        ((turn,),) = gateway.rows("SELECT state FROM turns")
        approvals = gateway.rows("SELECT state, answered_by FROM approvals")
        outcomes.add((turn, *approvals))
        assert outside.exists() or approvals == [("approved", "u1")], note
        assert not outside.exists() or turn == "interrupted", note
    count("a question", notes, at_least=20)
    assert outcomes == {
        ("interrupted",),
        ("interrupted", ("closed", None)),
        ("interrupted", ("approved", "u1")),
        ("done", ("approved", "u1")),
    }


def test_a_command_that_kills_the_gateway_is_not_run_again(open_gateway):
    gateway = open_gateway("$ echo ran >> log.txt; kill -9 $PPID", "/write b.txt\nB")
    assert gateway.run() == -signal.SIGKILL

    assert gateway.run() == 0

    assert_settled(gateway, "killed by a command")
    assert gateway.lines("log.txt") == 1
    assert gateway.exists("b.txt")
    assert [state for (state,) in gateway.rows("SELECT state FROM turns ORDER BY id")] == ["interrupted", "done"]
    assert "/retry runs it anew" in gateway.answers("e0")[0]
