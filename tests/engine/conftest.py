"""What every test of the engine starts from."""

from pathlib import Path

import pytest

from tests.engine.desk import FILE, Desk, text
from tests.engine.lab import Lab


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """A fresh workspace with an engine."""
    return Lab(tmp_path)


@pytest.fixture
def desk(lab: Lab) -> Desk:
    """A file with many lines, for two chats and a person."""
    lab.edit(FILE, "".join(text()))
    return Desk(lab)
