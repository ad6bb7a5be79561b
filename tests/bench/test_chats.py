"""How many turns a second many chats get, and how soon a question is answered beside the heaviest work.

``sh deploy/test -m bench -n 0 -s -o faulthandler_timeout=0 tests/bench/test_chats.py`` prints both;
``BENCH_FILES=40000`` before it sets the size of the workspace that is worked on. Only ratios are judged.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import pytest
import yaml

from tests.bench.speed.__main__ import churn_command
from tests.bench.speed.trees import plain
from tests.e2e.program import Program

CHATS = 50
WORKSPACES = 10
ROUNDS = 6
FILES = int(os.environ.get("BENCH_FILES", "10000"))
LONGEST_BESIDE = 25.0
"""Of the usual time of a question, so many times at most while the heaviest work goes on."""

ROOT = Path(__file__).parent.parent.parent


@contextmanager
def serving(directory: Path, workspaces: dict[str, Path]) -> Iterator[tuple[Program, dict[str, str]]]:
    """Run the program with several workspaces, all of them guarded."""
    home = directory / "home"
    home.mkdir()
    configuration = {
        "checkpoints": {"enabled": True},
        "default_workspace": next(iter(workspaces)),
        "workspaces": {name: {"path": str(path)} for name, path in workspaces.items()},
    }
    (home / "config.yaml").write_text(yaml.safe_dump(configuration))
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(directory),
        "TAKEBACK_HOME": str(home),
        "PYTHONPATH": str(ROOT),
    }
    line = [sys.executable, "-m", "gateway", "chat", "--jsonl"]
    log, errors = str(directory / "log"), str(directory / "errors")
    program = Program(line, cwd=str(directory), env=environment, log=log, errors=errors)
    try:
        program.ask("/status", "asks")
        yield program, environment
        program.end()
    finally:
        program.close()


def asked(program: Program) -> float:
    """Ask a question in a chat of its own; how long the answer took."""
    began = time.perf_counter()
    program.ask("/status", "asks")
    return time.perf_counter() - began


def asked_while(program: Program, going_on: Callable[[], bool]) -> list[float]:
    """Ask again and again while something goes on, at least once."""
    took = [asked(program)]
    while going_on():
        time.sleep(0.05)  # a person who asks all the time would be the load
        took.append(asked(program))
    return sorted(took)


@pytest.mark.bench
def test_fifty_chats_on_ten_workspaces_get_more_turns_a_second_than_one(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    workspaces = {f"w{number}": tmp_path / f"w{number}" for number in range(WORKSPACES)}
    for path in workspaces.values():
        plain(100).build(path)
    with serving(tmp_path, workspaces) as (program, _environment):
        chats = {f"chat-{number}": f"w{number % WORKSPACES}" for number in range(CHATS)}
        for chat, workspace in chats.items():
            program.ask(f"/workspace {workspace}", chat)
        began = time.perf_counter()
        for number in range(CHATS):
            program.ask(f"/write alone.txt\n{number}\n", "chat-0")
        alone_s = time.perf_counter() - began
        began = time.perf_counter()
        for number in range(ROUNDS):
            for chat in chats:
                program.send(f"/write {chat}.txt\n{number}\n", chat)
            for chat in chats:
                assert "✎ 1 file" in program.answer(chat).text
        together_s = time.perf_counter() - began
    alone, together = CHATS / alone_s, CHATS * ROUNDS / together_s
    with capfd.disabled():
        print(f"\none chat: {alone:.1f} turns/s; {CHATS} chats on {WORKSPACES} workspaces: {together:.1f} turns/s")  # noqa: T201
    assert together > 0.8 * alone


@pytest.mark.bench
def test_a_question_is_answered_at_once_beside_a_first_checkpoint_a_gc_and_a_restore(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    big, small = tmp_path / "big", tmp_path / "small"
    plain(FILES).build(big)
    plain(12).build(small)
    found: dict[str, list[float]] = {}
    with serving(tmp_path, {"small": small, "big": big}) as (program, environment):
        program.ask("/workspace big", "works")
        found["alone"] = sorted(asked(program) for _ in range(40))

        def works() -> bool:
            return not any(said.get("done") for said in program._by_chat["works"])

        program.send("/write first.txt\n", "works")
        found["a first checkpoint"] = asked_while(program, works)
        program.answer("works")
        program.ask(f"$ {churn_command(3)}", "works")
        command = [sys.executable, "-m", "gateway", "prune"]
        prune = subprocess.Popen(
            command, env=environment, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        found["a prune with its gc"] = asked_while(program, lambda: prune.poll() is None)
        assert prune.wait() == 0
        program.ask("/rollback", "works")
        program.send("/rollback 1", "works")
        found["a restore of a tenth"] = asked_while(program, works)
        assert "Restored to checkpoint" in program.answer("works").text
    usual = median(found["alone"])
    with capfd.disabled():
        print(f"\n/status in a second chat, {FILES:,} files")  # noqa: T201
        for what, took in found.items():
            times = f"median {median(took) * 1e3:6.0f} ms, longest {took[-1] * 1e3:6.0f} ms of {len(took)}"
            print(f"beside {what:22} {times}")  # noqa: T201
    assert all(median(took) < LONGEST_BESIDE * usual for took in found.values())
