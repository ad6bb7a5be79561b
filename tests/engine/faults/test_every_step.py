"""Killed at every step, and failing at every step, each operation loses nothing, blocks nobody and can be repeated."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.engine.faults.operations import OPERATIONS

ROOT = Path(__file__).resolve().parents[3]
MEMORY = "/dev/shm"


@pytest.fixture
def directory() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="takeback-", dir=MEMORY if os.access(MEMORY, os.W_OK) else None))
    yield path
    shutil.rmtree(path)


@pytest.mark.parametrize("kind", ["kill", "fail"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_nothing_is_lost_at_any_step(
    name: str, kind: str, directory: Path, record_property: Callable[[str, object], None]
) -> None:
    operation = OPERATIONS[name]

    done = subprocess.run(
        [sys.executable, "-m", "tests.engine.faults.driver", name, kind, str(directory)],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert not found["problems"], "\n\n".join(found["problems"])
    steps = len(found["points"])
    if kind == "kill":
        told = f"{name}: {steps} steps to be killed at; killed for each of the {found['done']} disks they find"
        assert steps >= operation.least_kills, told
    else:
        told = f"{name}: {found['faults']} failures at its {steps} steps, each of them met"
        assert found["faults"] >= operation.least_failures, told
    record_property("told", told)
