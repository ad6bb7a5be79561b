"""The product, as people use it: messages in, and the word that each is done."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench.speed.peers import disk_bytes
from tests.bench.speed.work import Taken, Work
from tests.e2e.program import Answer, Program

LISTED = 20
ROOT = Path(__file__).parent.parent.parent.parent


class Product:
    """A running ``gateway chat --jsonl`` on one tree; ``home`` is its directory."""

    def __init__(self, program: Program, home: Path, counter: Path) -> None:
        self.program = program
        self.home = home
        self._counter = counter

    def do(self, taken: Taken | None, work: Work, text: str) -> Answer:
        """Send a message and wait until it is dealt with; noted unless ``taken`` is ``None``."""
        started, began = self.git_processes(), time.perf_counter()
        answer = self.program.ask(text)
        seconds = time.perf_counter() - began
        if taken is not None:
            taken.add(work, seconds)
            if self._counter.exists():
                taken.processes[work] = self.git_processes() - started
        return answer

    def git_processes(self) -> int:
        """Count the git processes started so far, where they are counted."""
        return self._counter.read_bytes().count(b"\n") if self._counter.exists() else 0

    @property
    def store(self) -> Path:
        """The store's directory."""
        return self.home / "checkpoints" / "store"


@contextmanager
def running(directory: Path, workspace: Path, *, counted: bool = False) -> Iterator[Product]:
    """Start the product on a tree; ``counted`` has its git processes counted, which makes each a little slower."""
    directory.mkdir(parents=True)
    counter = directory / "git-processes"
    path = os.environ["PATH"]
    if counted:
        counter.touch()
        path = f"{_counting_git(directory / 'bin', counter)}:{path}"
    environment = {
        "PATH": path,
        "HOME": str(directory),
        "TAKEBACK_HOME": str(directory / "home"),
        "TAKEBACK_CHECKPOINTS__MAX_SOURCE_FILES": "1000000",
        "PYTHONPATH": str(ROOT),
    }
    line = [sys.executable, "-m", "gateway", "chat", "--jsonl", "--checkpoints", "--workspace", str(workspace)]
    log, errors = str(directory / "log"), str(directory / "errors")
    program = Program(line, cwd=str(directory), env=environment, log=log, errors=errors)
    try:
        program.ask("/status")
        yield Product(program, directory / "home", counter)
        program.end()
    finally:
        program.close()


def measure(product: Product, edited: str, churn: str | None, runs: int) -> Taken:
    """Do every piece of work, so many times each."""
    taken = Taken()
    product.do(taken, Work.FIRST, f"/write {edited}\nthe first\n")
    taken.store_bytes = disk_bytes(product.store)
    for number in range(max(runs, LISTED)):
        product.do(taken if number < runs else None, Work.TURN, f"/write {edited}\nturn {number}\n")
    for _ in range(runs):
        product.do(taken, Work.NOTHING, "$ rm -f nothing-of-that-name")
    for number in range(runs):
        listed = product.do(taken, Work.LIST, "/rollback")
        if len(listed.entries) < LISTED:
            raise AssertionError(f"{len(listed.entries)} checkpoints are listed:\n{listed.text}")
        product.do(None, Work.TURN, f"/write {edited}\nagain {number}\n")
        newest = product.do(None, Work.LIST, "/rollback").ids[0]
        product.do(taken, Work.DIFF, f"/rollback diff {newest}")
        restored = product.do(taken, Work.RESTORE, f"/rollback {newest}")
        if "Restored to checkpoint" not in restored.text:
            raise AssertionError(restored.text)
    if churn is not None:
        for _ in range(max(1, runs // 4)):
            product.do(taken, Work.CHURN, f"$ {churn}")
    return taken


def _counting_git(directory: Path, counter: Path) -> Path:
    """Make a git that notes each of its starts, and return its directory."""
    directory.mkdir()
    script = directory / "git"
    script.write_text(f'#!/bin/sh\necho git >> "{counter}"\nexec "{_git()}" "$@"\n')
    script.chmod(0o755)
    return directory


def _git() -> str:
    found = [os.path.join(place, "git") for place in os.environ["PATH"].split(":")]
    return next(path for path in found if os.access(path, os.X_OK))
