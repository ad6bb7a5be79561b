"""A process is alive exactly as long as it runs, however it ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from gateway.state.instances import hold_instance

HOLD = """
import anyio, sys
from gateway.state.instances import hold_instance
async def main():
    async with hold_instance(sys.argv[1]) as instance:
        print(instance.id, flush=True)
        await anyio.sleep_forever()
anyio.run(main)
"""


async def test_instances_see_each_other_while_they_live(tmp_path: Path):
    async with hold_instance(str(tmp_path)) as one:
        async with hold_instance(str(tmp_path)) as two:
            assert await one.living() == {one.id, two.id}
            assert await two.living() == {one.id, two.id}

        assert await one.living() == {one.id}
    assert os.listdir(tmp_path) == []


@pytest.fixture
def process(tmp_path: Path):
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


async def test_a_killed_process_is_dead_at_once(tmp_path: Path, process: subprocess.Popen):
    async with hold_instance(str(tmp_path)) as here:
        other = (await anyio.to_thread.run_sync(process.stdout.readline)).strip()
        assert await here.living() == {here.id, other}

        process.send_signal(signal.SIGKILL)
        await anyio.to_thread.run_sync(process.wait)

        assert await here.living() == {here.id}
        assert os.listdir(tmp_path) == [f"{here.id}.lock"], "what a dead one left is cleared away"


async def test_foreign_files_are_left_alone(tmp_path: Path):
    (tmp_path / "notes.txt").write_text("mine")

    async with hold_instance(str(tmp_path)) as here:
        assert await here.living() == {here.id}

    assert (tmp_path / "notes.txt").read_text() == "mine"
