"""Killed at every step from arrival to answer: handled once, answered at least once, never run again."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gateway.mortal import read_lines

ROOT = Path(__file__).parents[2]
MANY = 1000


class Gateway:
    """Starts gateways in one directory, through a process that forks them."""

    def __init__(self, directory: Path, updates: list[str], *, checkpoints: bool) -> None:
        self.directory = directory
        self.updates = updates
        self.checkpoints = checkpoints
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

    def run(self, *, kill_at: int | None = None, updates: int | None = None) -> int:
        """Run until everything is dealt with, or killed at a step; the exit code."""
        job = {
            "directory": str(self.directory),
            "updates": self.updates[:updates],
            "checkpoints": self.checkpoints,
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

    def open_one(*updates: str, checkpoints: bool = False) -> Gateway:
        opened.append(Gateway(tmp_path / "run", list(updates), checkpoints=checkpoints))
        return opened[-1]

    yield open_one
    for gateway in opened:
        gateway.close()


def assert_settled(gateway: Gateway, note: str) -> None:
    """What holds after every run that came to its end, whatever happened before."""
    assert gateway.rows("SELECT text FROM inbox WHERE state <> 'done'") == [], note
    assert gateway.rows("SELECT payload FROM outbox WHERE state <> 'sent'") == [], note
    assert gateway.rows("SELECT id FROM turns WHERE state = 'running'") == [], note
    assert gateway.rows("SELECT id FROM restores WHERE state = 'planned'") == [], note
    assert gateway.rows("SELECT inbox_id FROM turns GROUP BY inbox_id HAVING count(*) > 1") == [], note
    assert gateway.rows("PRAGMA integrity_check") == [("ok",)], note
    assert gateway.rows("PRAGMA foreign_key_check") == [], note
    assert os.listdir(gateway.directory / "home" / "instances") == [], note
    for number in range(len(gateway.updates)):
        answers = gateway.answers(f"e{number}")
        assert 1 <= len(answers) <= 2, f"{note}: message {number} was answered {answers}"


def test_a_message_is_handled_once_and_answered_wherever_the_process_dies(open_gateway, record_testsuite_property):
    gateway = open_gateway("$ echo ran >> log.txt; echo out", "/status", "/write b.txt\nB")
    kill_at = 0
    for kill_at in range(1, MANY):
        gateway.fresh()
        if gateway.run(kill_at=kill_at) == 0:
            break
        note = f"killed at step {kill_at}, {gateway.steps()[-1]!r}"

        assert gateway.run() == 0, note

        assert_settled(gateway, note)
        states = [state for (state,) in gateway.rows("SELECT state FROM turns ORDER BY id")]
        assert len(states) == 2, note
        assert set(states) <= {"done", "interrupted"}, note
        assert states.count("interrupted") <= 1, note
        assert gateway.lines("log.txt") <= 1, note
        assert states[0] == "interrupted" or gateway.lines("log.txt") == 1, note
        assert states[1] == "interrupted" or gateway.exists("b.txt"), note
    record_testsuite_property("kills in a turn", kill_at - 1)
    assert 60 < kill_at < MANY


def test_an_undo_is_carried_out_once_and_whole_wherever_the_process_dies(open_gateway, record_testsuite_property):
    gateway = open_gateway("/write a.txt\nA", "/write b.txt\nB", "/undo", checkpoints=True)
    assert gateway.run(updates=2) == 0
    before = gateway.directory.with_name("before")
    shutil.copytree(gateway.directory, before)
    kill_at = 0
    for kill_at in range(1, MANY):
        shutil.rmtree(gateway.directory)
        shutil.copytree(before, gateway.directory)
        if gateway.run(kill_at=kill_at) == 0:
            break
        note = f"killed at step {kill_at}, {gateway.steps()[-1]!r}"

        assert gateway.run() == 0, note

        assert_settled(gateway, note)
        ((head,),) = gateway.rows("SELECT head_turn_id FROM sessions")
        assert gateway.exists("a.txt"), f"{note}: one turn was to be taken back, not two"
        assert (head, gateway.exists("b.txt")) in [(1, False), (2, True)], f"{note}: files and conversation go together"
        assert head == 1 or "ask again" in gateway.answers("e2")[0], note
    record_testsuite_property("kills in an undo", kill_at - 1)
    assert 15 < kill_at < MANY


def test_a_command_that_kills_the_gateway_is_not_run_again(open_gateway):
    gateway = open_gateway("$ echo ran >> log.txt; kill -9 $PPID", "/write b.txt\nB")
    assert gateway.run() == -signal.SIGKILL

    assert gateway.run() == 0

    assert_settled(gateway, "killed by a command")
    assert gateway.lines("log.txt") == 1
    assert gateway.exists("b.txt")
    assert [state for (state,) in gateway.rows("SELECT state FROM turns ORDER BY id")] == ["interrupted", "done"]
    assert "/retry runs it anew" in gateway.answers("e0")[0]
