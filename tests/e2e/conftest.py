"""What the tests of the whole program start from."""

import shutil
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.program import Program
from tests.e2e.scene import Scene

NO_SOURCE = ("site-packages", "dist-packages", "__pycache__", "config-*", "lib-dynload")
"""What stands beside the library's source: installed packages, compiled files, the interpreter's own objects."""


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    """A fresh machine. At the end nothing runs any more, and the program has complained of nothing."""
    made = Scene(tmp_path)
    try:
        yield made
    finally:
        made.close()
    assert made.complaints() == []


@pytest.fixture
def program(scene: Scene) -> Program:
    """The program in the project, with checkpoints; it starts while the test goes on preparing."""
    return scene.start()


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source tree of Python's own standard library: real files, thousands of them. Not to be changed."""
    target = tmp_path_factory.mktemp("library") / "lib"
    shutil.copytree(sysconfig.get_path("stdlib"), target, symlinks=True, ignore=shutil.ignore_patterns(*NO_SOURCE))
    return target
