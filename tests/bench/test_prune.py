"""How long a prune takes beside one ``git gc --prune=now`` on a copy of the same store, in the same run.

``sh deploy/test -m bench -n 0 -s -o faulthandler_timeout=0 tests/bench/test_prune.py`` prints it for 1 GB;
``BENCH_STORE_MB=200`` before it makes the store smaller. Only ratios are judged: of the time, with one gc before and
one after the prune so that a machine that others use, too, is not taken for a slow prune, and of the processor's time.
"""

import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine.checkpoints.capture import encode_message
from engine.checkpoints.manifest import MODES_PATH, encode_modes
from engine.host.git import Git
from engine.store.layout import Layout, workspace_hash
from engine.store.objects import CommitContent, ObjectWriter, open_writer
from engine.store.opened import Store
from engine.store.refs import base_ref, checkpoint_ref
from engine.upkeep.facts import tree_bytes
from engine.upkeep.prune import Outcome, prune
from engine.upkeep.retention import PrunePolicy
from tests.engine.upkeep.kit import NOW, SEARCH_PATH

STORE_MB = int(os.environ.get("BENCH_STORE_MB", "1000"))
WORKSPACES = 200
PACKS = 20
CHECKPOINTS = 10
SMALL_FILES = 20
MOST_OF_ONE_GC = 1.5
MB = 1_000_000


def fill(store: Store, code: Path, size_bytes: int) -> None:
    """Give each workspace its checkpoints: one large file that is new each time, and small ones, one of them new."""
    store.ensure()
    noise = size_bytes // (WORKSPACES * CHECKPOINTS)
    for start in range(0, WORKSPACES, WORKSPACES // PACKS):
        with open_writer(store.git) as writer:
            for number in range(start, start + WORKSPACES // PACKS):
                root = code / f"w{number:03d}"
                root.mkdir(parents=True)
                name = workspace_hash(str(root))
                project = {"workdir": str(root), "created_at": NOW.isoformat(), "last_touch": NOW.isoformat()}
                Path(store.layout.project(name)).write_text(json.dumps(project))
                fill_one(writer, name, number, noise)


def fill_one(writer: ObjectWriter, name: str, number: int, noise: int) -> None:
    modes = encode_modes({})
    files = {MODES_PATH: ("100644", writer.blob(len(modes), [modes]) or "")}
    for sequence in range(1, CHECKPOINTS + 1):
        for small in range(SMALL_FILES if sequence == 1 else 1):
            text = b"value = %d of %d in %d\n" % (sequence, small, number) * 40
            files[f"src/part-{small}.py"] = ("100644", writer.blob(len(text), [text]) or "")
        files["data.bin"] = ("100644", writer.blob(noise, [os.urandom(noise)]) or "")
        message = encode_message("before a benchmark", {"reason": "before a benchmark", "sequence": sequence})
        refs = [checkpoint_ref(name, sequence), base_ref(name)]
        writer.commit(refs[: 2 if sequence == CHECKPOINTS else 1], message, 0, CommitContent(None, [], files))


@dataclass(frozen=True)
class Took:
    """How long work took, and how long processors worked for it, ours and those of the git it ran."""

    seconds: float
    processor_s: float

    def __str__(self) -> str:
        return f"{self.seconds:8.2f} s, processor {self.processor_s:8.2f} s"


def timed(work: Callable[[], object]) -> Took:
    began, used = time.perf_counter(), sum(os.times()[:4])
    work()
    return Took(time.perf_counter() - began, sum(os.times()[:4]) - used)


def one_gc(store: Store, copy: str) -> None:
    """What a prune is compared with: git alone, on a copy, as the store's git is run."""
    store.git.at(copy).run(["gc", "--prune=now", "--quiet"], timeout_s=3600)


@pytest.mark.bench
def test_prune_takes_hardly_longer_than_one_gc(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    layout = Layout(str((tmp_path / "checkpoints").resolve()))
    store = Store(layout, Git(layout.store, search_path=SEARCH_PATH), str(tmp_path / ".checkpoints.lock"))
    hasty = tmp_path / "git"  # what is made for a benchmark need not outlive a power cut
    hasty.write_text('#!/bin/sh\nGIT_TEST_FSYNC=0 exec git "$@"\n')
    hasty.chmod(0o755)
    filler = Store(layout, Git(layout.store, executable=str(hasty), search_path=SEARCH_PATH), store.lock_path)
    filling = timed(lambda: fill(filler, (tmp_path / "code").resolve(), STORE_MB * MB))
    before = tree_bytes(layout.base)
    copies = [str(tmp_path / "copy-before"), str(tmp_path / "copy-after")]
    for copy in copies:
        shutil.copytree(layout.store, copy)
    os.sync()

    # The rule drops one checkpoint of each workspace, so that the gc has nearly as much to pack as the others.
    policy = PrunePolicy(retention_days=None, max_snapshots=CHECKPOINTS - 1, max_size_bytes=None)
    reports = []
    first = timed(lambda: one_gc(store, copies[0]))
    pruned = timed(lambda: reports.append(prune(store, policy, now=NOW)))
    second = timed(lambda: one_gc(store, copies[1]))
    again = timed(lambda: reports.append(prune(store, policy, now=NOW)))
    capped = PrunePolicy(retention_days=None, max_snapshots=None, max_size_bytes=int(tree_bytes(layout.store) * 0.8))
    by_size = timed(lambda: reports.append(prune(store, capped, now=NOW)))

    gc = Took(max(first.seconds, second.seconds), max(first.processor_s, second.processor_s))
    with capfd.disabled():
        print(f"\nstore of {before / MB:.0f} MB, {WORKSPACES} workspaces, filled in {filling.seconds:.0f} s")  # noqa: T201
        for what, took in (
            ("git gc --prune=now before it", first),
            ("git gc --prune=now after it", second),
            ("prune by number", pruned),
            ("prune with nothing to do", again),
            ("prune by size, a fifth of it", by_size),
        ):
            ratios = f"{took.seconds / gc.seconds:6.2f} x, processor {took.processor_s / gc.processor_s:6.2f} x"
            print(f"{what:30} {took} {ratios}")  # noqa: T201
    assert [report.outcome for report in reports] == [Outcome.DONE] * 3
    assert len(reports[0].decisions) == WORKSPACES
    assert reports[1].decisions == ()
    assert len(reports[2].decisions) > WORKSPACES
    assert tree_bytes(layout.store) <= (capped.max_size_bytes or 0)
    assert pruned.processor_s < MOST_OF_ONE_GC * gc.processor_s
    assert pruned.seconds < MOST_OF_ONE_GC * gc.seconds
