"""Which processes count as alive."""

import os
import subprocess
from pathlib import Path

import pytest

from engine.upkeep.debris import sweep
from engine.upkeep.processes import is_alive
from tests.engine.upkeep.kit import Kit


def test_running_process_is_alive_and_a_number_nobody_has_is_not():
    assert is_alive(os.getpid())
    assert not is_alive(2**22 + 1)
    assert not is_alive(10**30)


def test_process_that_ended_and_was_not_waited_for_is_not_alive():
    process = subprocess.Popen(["/bin/sh", "-c", "exit 0"], stdout=subprocess.PIPE)
    with process:
        assert process.stdout is not None
        process.stdout.read()
        while Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
            pass

        assert not is_alive(process.pid)


def test_process_that_took_over_the_number_is_another_one():
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE) as process:
        while Path(f"/proc/{process.pid}/comm").read_text() != "cat\n":
            pass

        assert is_alive(process.pid, "cat")
        assert not is_alive(process.pid, "git")


@pytest.mark.parametrize(
    ("note", "swept"),
    [
        (f"{2**22 + 1} {os.uname().nodename}", True),
        (f"{os.getpid()} {os.uname().nodename}", True),
        (f"{2**22 + 1} another-host", False),
        ("", False),
        ("x y", False),
    ],
    ids=["ended", "not a gc", "another host", "empty", "no number"],
)
def test_note_of_a_gc_goes_at_once_when_its_process_ended_on_this_machine(kit: Kit, note: str, swept: bool):
    kit.turns(kit.workspace("app"), 1)
    path = Path(kit.store.layout.store, "gc.pid")
    path.write_text(note)

    assert sweep(kit.store.layout) == (["store/gc.pid"] if swept else [])
    assert path.exists() is not swept
