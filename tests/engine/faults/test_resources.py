"""Room, permission, git and the clock give out: a clear sentence, nothing lost, and everything works again later."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.faults.resources import SCENES

ROOT = Path(__file__).resolve().parents[3]
PRIVATE_MOUNTS = (["unshare", "-m"], ["unshare", "-r", "-m"])  # as root, and for anybody where the kernel allows it


@pytest.fixture(scope="session")
def namespace() -> list[str]:
    """The command that runs another one where it may mount and nobody else sees it."""
    for command in PRIVATE_MOUNTS:
        if subprocess.run([*command, "true"], check=False, capture_output=True).returncode == 0:
            return command
    pytest.fail("a file system of a few kilobytes cannot be mounted: be root or allow user namespaces")


@pytest.mark.parametrize("scene", SCENES)
def test_what_gives_out_loses_nothing(scene: str, namespace: list[str], tmp_path: Path) -> None:
    for parent in (tmp_path, *tmp_path.parents):  # for the scenes that give root away
        if parent.stat().st_uid == os.geteuid() and parent != Path(parent.anchor):
            parent.chmod(parent.stat().st_mode | 0o055)

    done = subprocess.run(
        [*namespace, sys.executable, "-m", "tests.engine.faults.resources", scene, str(tmp_path)],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr
