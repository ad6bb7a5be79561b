"""How the real program bears 200 chats at once, each figure beside that of one chat alone in the same run.

``sh deploy/test -m bench -n 0 -s tests/bench/test_load.py`` prints the table. Only ratios are judged, which hold on any
machine.
"""

import os
import re
import statistics
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.program import Program
from tests.gateway.operation.test_health import numbers

CHATS = 200
ROUNDS = 5
SESSIONS = 1000
MOST_MEMORY_PER_1000_SESSIONS = 30e6
"""Bytes; a session that nobody speaks in keeps nothing but its name."""


@dataclass(frozen=True)
class Timed:
    """How long answers took, in seconds, sorted."""

    took_s: Sequence[float]

    def quantile(self, part: float) -> float:
        return statistics.quantiles(self.took_s, n=100)[round(part * 100) - 1]


@dataclass
class Served:
    """The program, and the address of its numbers."""

    program: Program
    address: str

    def numbers(self) -> dict[str, float]:
        with urllib.request.urlopen(f"{self.address}/metrics") as answer:
            text = answer.read().decode()
        resident = re.search(r"^process_resident_memory_bytes (\S+)$", text, re.MULTILINE)
        assert resident is not None
        return numbers(text) | {"resident": float(resident[1])}

    def ask_all(self, text: str, chats: Sequence[str]) -> Timed:
        """Send a message in every chat at once; how long each took to be dealt with."""
        began = {}
        for chat in chats:
            began[chat] = time.monotonic()
            self.program.send(text, chat)
        took = []
        while began:
            said = self.program.hear()
            if said.get("done"):
                took.append(time.monotonic() - began.pop(said["chat"]))
        self.forget()
        return Timed(sorted(took))

    def ask_beside(self, text: str, chats: Sequence[str], question: str) -> float:
        """Send a message in every chat, and at once a question in another; how long that took to be answered."""
        for chat in chats:
            self.program.send(text, chat)
        began = time.monotonic()
        self.program.ask(question, "first")
        took_s = time.monotonic() - began
        for chat in chats:
            self.program.answer(chat)
        self.forget()
        return took_s

    def forget(self) -> None:
        """Drop what has been heard and not been asked for."""
        self.program.heard.clear()
        self.program._by_chat.clear()


@contextmanager
def served(directory: Path) -> Iterator[Served]:
    project = directory / "project"
    project.mkdir()
    root = Path(__file__).parent.parent.parent
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(directory),
        "TAKEBACK_HOME": str(directory / "home"),
        "TAKEBACK_HTTP__PORT": "0",
        "PYTHONPATH": str(root),
    }
    log, errors = str(directory / "log"), str(directory / "errors")
    line = [sys.executable, str(Path(__file__).with_name("served.py")), str(project)]
    program = Program(line, cwd=str(directory), env=environment, log=log, errors=errors)
    try:
        program.ask("/status", "first")
        found = re.search(r"address=(\S+)", Path(errors).read_text())
        assert found is not None
        yield Served(program, found[1])
        program.process.terminate()
        program.wait()
    finally:
        program.close()


def measured(service: Served, text: str, chats: Sequence[str]) -> Timed:
    return Timed(sorted(took for _ in range(ROUNDS) for took in service.ask_all(text, chats).took_s))


def alone(service: Served, text: str) -> Timed:
    return Timed(sorted(service.ask_all(text, ["first"]).took_s[0] for _ in range(20 * ROUNDS)))


@pytest.mark.bench
def test_two_hundred_chats_are_borne_by_the_real_program(tmp_path, capfd):
    chats = [f"chat-{number}" for number in range(CHATS)]
    with served(tmp_path) as service:
        one = {text: alone(service, text) for text in ("/status", "$ true")}
        service.ask_all("/status", chats)
        quiet = service.numbers()["resident"]
        for start in range(0, SESSIONS, CHATS):
            service.ask_all("/status", [f"new-{start + number}" for number in range(CHATS)])
        before = service.numbers()
        grown = before["resident"] - quiet
        many = {text: measured(service, text, chats) for text in ("/status", "$ true")}
        lag = service.numbers()
        beside = service.ask_beside("$ true", chats, "/status")

    name = "takeback_event_loop_lag_seconds"
    beats = lag[f"{name}_count{{}}"] - before[f"{name}_count{{}}"]
    mean_lag_s = (lag[f"{name}_sum{{}}"] - before[f"{name}_sum{{}}"]) / beats
    idle_lag_s = before[f"{name}_sum{{}}"] / before[f"{name}_count{{}}"]
    rows = [
        (f"{text}, {label}", one[text].quantile(part), many[text].quantile(part))
        for text in one
        for label, part in (("p50", 0.5), ("p99", 0.99))
    ]
    rows.append(("/status beside turns", one["/status"].quantile(0.5), beside))
    rows.append(("event loop lag, mean", idle_lag_s, mean_lag_s))
    with capfd.disabled():
        print(f"\n{'':24}{'one chat':>12}{f'{CHATS} at once':>14}{'ratio':>8}{'per chat':>10}")  # noqa: T201
        for what, single, together in rows:
            ratio = together / single
            print(f"{what:24}{single * 1e3:9.1f} ms{together * 1e3:11.1f} ms{ratio:8.1f}{ratio / CHATS:10.2f}")  # noqa: T201
        print(f"memory of {SESSIONS} more sessions: {grown / 1e6:.1f} MB, on {quiet / 1e6:.0f} MB")  # noqa: T201

    # 200 at once share what one has alone; more than their sum would mean that they hold each other up.
    for what, single, together in rows[:4]:
        assert together < 2 * CHATS * single, what
    # A person who only asks does not wait for everybody else's turns.
    assert beside < many["$ true"].quantile(0.5)
    assert grown < MOST_MEMORY_PER_1000_SESSIONS
