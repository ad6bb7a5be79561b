"""What a turn's command leaves running: what it detached on purpose and says so, and nothing else."""

import os
import signal
from pathlib import Path

from tests.engine.lab import Lab


def runs(pid: int | str) -> bool:
    """Whether a process runs; one that has ended may stand there for ever where nobody reaps it."""
    state = Path(f"/proc/{int(pid)}/stat")
    return state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z"


def test_a_server_that_is_detached_lives_on_is_named_and_is_not_watched(lab: Lab) -> None:
    lab.edit("a", "1\n")

    result = lab.run("echo 2 > a; nohup sleep 6011 >/dev/null 2>&1 & sleep 6012 & echo $! > other; wait $!& true")
    pid = int(result.text.split("left running: pid ")[1].split()[0])
    try:
        assert result.ok
        assert f"[left running: pid {pid} sleep 6011]" in result.text
        assert any("count as edited by hand" in note for note in result.notes)
        assert runs(pid)
        assert not runs(lab.read("other"))
    finally:
        os.kill(pid, signal.SIGKILL)


def test_a_job_that_is_only_put_in_the_background_ends_with_its_turn(lab: Lab) -> None:
    result = lab.run("sleep 6021 & echo $! > pid")

    assert "left running" not in result.text
    assert not runs(lab.read("pid"))
