"""A gc that takes long: nothing waits for it longer than the bound, and what could not be covered is said."""

import re
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine import Engine
from engine.upkeep.report import Outcome, PruneReport
from engine.upkeep.retention import PrunePolicy
from tests.e2e.waypoints import Waypoint
from tests.engine.lab import Lab

BOUND_S = 0.3
_SCRIPT = """\
#!/bin/sh
for word; do if [ "$word" = gc ]; then {begun}; {gate}; fi; done
exec {git} "$@"
"""


@contextmanager
def gc_under_way(lab: Lab, directory: Path) -> Iterator[list[PruneReport]]:
    """A prune whose gc stands at a gate until the block ends; what it reported then."""
    begun, gate = Waypoint(directory / "begun"), Waypoint(directory / "gate")
    script = directory / "git"
    script.write_text(_SCRIPT.format(begun=begun.reach, gate=gate.stop_here, git=shutil.which("git")))
    script.chmod(0o755)
    base = str(lab.home / ".takeback" / "checkpoints")
    reports: list[PruneReport] = []
    engine = Engine(base, user_home=str(lab.home), git=str(script), search_path="/usr/bin:/bin")
    thread = threading.Thread(target=lambda: reports.append(engine.upkeep.prune(PrunePolicy())))
    thread.start()
    begun.wait()
    try:
        yield reports
    finally:
        gate.let_pass()
        thread.join()
        begun.close()
        gate.close()


def test_tool_goes_on_after_the_bound_and_says_who_held_the_store(tmp_path: Path) -> None:
    lab = Lab(tmp_path, lock_wait_s=BOUND_S)
    lab.write("a.txt", "one\n")

    with gc_under_way(lab, tmp_path) as reports:
        began = time.monotonic()
        result = lab.write("a.txt", "two\n")
        took_s = time.monotonic() - began
        listed = lab.checkpoints()
    after = lab.write("a.txt", "three\n")

    assert result.ok
    assert result.checkpoint is None
    assert len(result.notes) == 1
    assert re.match(r"no checkpoint was taken: busy: .* is held by process \d+ \(a prune, since \S+\)", result.notes[0])
    assert took_s < 20 * BOUND_S
    assert (lab.read("a.txt"), len(listed)) == ("three\n", 1)
    assert after.checkpoint is not None
    assert after.notes == ()
    assert [report.outcome for report in reports] == [Outcome.DONE]
    lab.rollback(1)
    assert lab.read("a.txt") == "two\n"
