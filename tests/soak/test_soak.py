"""The short form of the soak; ``python -m tests.soak --minutes N --seed S`` is the long one."""

from pathlib import Path

from tests.soak.run import soak
from tests.soak.town import Town

SEED = 20260316


def test_store_that_four_processes_use_while_they_are_killed_loses_nothing(tmp_path: Path) -> None:
    town = Town(tmp_path.resolve(), 4)

    done = soak(town, SEED, 7, (1.0, 3.0))

    assert done.failures == [], str(done)
    assert done.acknowledged > 0, str(done)
