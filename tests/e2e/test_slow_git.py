"""A git that takes its time in one chat keeps no other chat waiting."""

import os
import shutil
import statistics
import time
from pathlib import Path

import pytest

from tests.e2e.scene import Scene

_SCRIPT = """\
#!/bin/sh
if test -e '{slow}'; then
    {begun}
    {gate}
fi
exec '{real}' "$@"
"""


@pytest.mark.parametrize("command", ["/write a.py\ntwo\n", "/rollback 1"])
def test_status_is_answered_within_a_second_beside_a_git_that_takes_long(
    scene: Scene, tmp_path: Path, command: str
) -> None:
    begun, gate = scene.waypoint("begun"), scene.waypoint("gate")
    slow = tmp_path / "slow"
    script = tmp_path / "bin" / "git"
    script.parent.mkdir()
    script.write_text(_SCRIPT.format(slow=slow, begun=begun.reach, gate=gate.stop_here, real=shutil.which("git")))
    script.chmod(0o755)
    scene.edit("a.py", "one\n")
    program = scene.start(PATH=f"{script.parent}:{os.environ['PATH']}")
    program.ask("/write a.py\nagent\n", chat="slow")
    slow.touch()
    program.send(command, chat="slow")
    begun.wait()

    took = []
    for chat in ("quick", "quick", "other", "quick", "slow"):
        asked_at = time.monotonic()
        program.send("/status", chat=chat)
        said = program.hear()
        took.append(time.monotonic() - asked_at)
        assert said["text"].startswith("Session: s-")
        assert program.hear()["done"]

    assert statistics.median(took) < 1
    slow.unlink()
    gate.let_pass()
    assert program.answer("slow").text
