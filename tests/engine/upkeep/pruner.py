"""A process that prunes a store and can be killed: ``python -m tests.engine.upkeep.pruner BASE LOCK GIT DIES_AT``.

``DIES_AT`` is the number of the git command before which it kills itself, 0 for never; it prints how many there were.
"""

import os
import signal
import sys
from collections.abc import Sequence

from engine.host.git import Git
from engine.store.layout import Layout
from engine.store.opened import Store
from engine.upkeep.prune import prune
from engine.upkeep.retention import PrunePolicy
from tests.engine.upkeep.kit import NOW, SEARCH_PATH

POLICY = PrunePolicy(max_snapshots=6, max_size_bytes=150_000)


def main(base: str, lock: str, git: str, dies_at: int) -> None:
    commands = 0

    def before(_arguments: Sequence[str]) -> None:
        nonlocal commands
        commands += 1
        if commands == dies_at:
            os.kill(os.getpid(), signal.SIGKILL)

    layout = Layout(base)
    runner = Git(layout.store, executable=git, search_path=SEARCH_PATH, before=before)
    report = prune(Store(layout, runner, lock), POLICY, now=NOW)
    sys.stdout.write(f"{commands} {report.outcome.value} {len(report.decisions)}\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
