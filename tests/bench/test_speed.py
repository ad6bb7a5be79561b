"""Guards the speed: git processes for each piece of work in every run, ratios to the peers by its own command.

``sh deploy/test -m bench -n 0 -s -o faulthandler_timeout=0 tests/bench/test_speed.py`` judges the ratios on 10,000
files. Seconds are never judged. The whole table is printed by ``python -m tests.bench.speed``.
"""

import random
import sys
import zlib
from pathlib import Path

import pytest

from tests.bench.speed import product
from tests.bench.speed.__main__ import churn_command, measure
from tests.bench.speed.report import table
from tests.bench.speed.text import LIKE_REAL, source
from tests.bench.speed.trees import FILE_BYTES, plain
from tests.bench.speed.work import Work, ratios

MOST_PROCESSES = {
    Work.FIRST: 5,
    Work.TURN: 2,
    Work.NOTHING: 1,
    Work.CHURN: 5,
    Work.LIST: 0,
    Work.DIFF: 2,
    Work.RESTORE: 3,
}
"""Git processes for one piece of work, whatever the machine and the size of the tree; one of them drops the oldest."""

UNHEARD = 0 if sys.platform == "linux" else 2
"""More of them where the system tells of no changes, so that git compares stat data before and after a tool."""

MOST_OF_PLAIN_GIT = {Work.FIRST: 0.6, Work.NOTHING: 1.0, Work.LIST: 0.3, Work.DIFF: 1.0}
MOST_OF_USUAL = {Work.TURN: 0.3, Work.NOTHING: 0.3, Work.DIFF: 0.3, Work.RESTORE: 0.4}
"""Our time by a peer's, with room for what else a machine does."""


def test_no_work_starts_more_git_processes_than_it_needs(tmp_path: Path) -> None:
    edited = plain(800).build(tmp_path / "tree")

    with product.running(tmp_path / "product", tmp_path / "tree", counted=True) as service:
        counted = product.measure(service, edited, churn_command(3), 1).processes

    assert {work: count for work, count in counted.items() if count > MOST_PROCESSES[work] + UNHEARD} == {}
    assert counted.keys() == MOST_PROCESSES.keys()


@pytest.mark.parametrize("level", LIKE_REAL)
def test_what_is_measured_on_compresses_as_real_code_does_and_no_better(level: int) -> None:
    numbers = random.Random(level)
    texts = [source(numbers, FILE_BYTES) for _number in range(400)]

    left = sum(len(zlib.compress(text, level)) for text in texts) / sum(map(len, texts))

    assert LIKE_REAL[level] <= left <= LIKE_REAL[level] + 0.01


@pytest.mark.bench
def test_work_takes_no_more_of_the_peers_time_than_it_did(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    found = measure(plain(10_000), tmp_path / "measured", 5)

    with capfd.disabled():
        print(table([found]))  # noqa: T201
    plain_git, usual = (ratios(found.product, taken) for taken in found.peers.values())
    assert {work: plain_git[work] for work, most in MOST_OF_PLAIN_GIT.items() if plain_git[work] > most} == {}
    assert {work: usual[work] for work, most in MOST_OF_USUAL.items() if usual[work] > most} == {}
