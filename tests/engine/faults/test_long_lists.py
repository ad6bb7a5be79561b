"""A turn that changes a megabyte of paths: it is compared, taken back and brought again like any other."""

import os
import resource
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.errors import BadSelection
from engine.model import Limits
from tests.engine.lab import Lab

MEMORY = "/dev/shm"
LONG = "/".join(letter * 240 for letter in "abc")
NAMES = [f"{LONG}/{number:04}{'x' * 230}" for number in range(1100)]


@pytest.fixture
def roomy() -> Iterator[Lab]:
    """A workspace in memory, and the shortest command line that systems allow."""
    directory = Path(tempfile.mkdtemp(prefix="takeback-", dir=MEMORY if os.access(MEMORY, os.W_OK) else None))
    before = resource.getrlimit(resource.RLIMIT_STACK)
    resource.setrlimit(resource.RLIMIT_STACK, (1024 * 1024, before[1]))
    lab = Lab(directory)
    lab.limits = Limits(max_snapshots=100)
    yield lab
    resource.setrlimit(resource.RLIMIT_STACK, before)
    shutil.rmtree(directory)


def test_megabyte_of_paths_is_compared_and_taken_back(roomy: Lab) -> None:
    assert sum(map(len, NAMES)) > 1024 * 1024
    roomy.edit("a", "one\n")
    for name in NAMES:
        roomy.edit(name, "one\n")

    result = roomy.run("find a?* -type f -delete; echo two > a")
    shown = roomy.engine.turn_diff(roomy.workspace, "1")

    assert result.notes == ()
    assert shown is not None
    assert (shown.stats.files, shown.stats.insertions, shown.stats.deletions) == (1101, 1, 1101)
    assert shown.stat_text.endswith("\n 1101 files changed, 1 insertions(+), 1101 deletions(-)")
    assert len(shown.stat_text.splitlines()) == 1102
    assert shown.patch.count("\n-one\n") == 1101
    with pytest.raises(BadSelection, match="longer than a command line may be"):
        roomy.plan(1, *NAMES)
    back = roomy.rollback()
    assert back.complete
    assert len(back.restored) == 1101
    assert all(roomy.read(name) == "one\n" for name in NAMES)
