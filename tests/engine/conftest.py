"""What every test of the engine starts from."""

from pathlib import Path

import pytest

from tests.engine.lab import Lab


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """A fresh workspace with an engine."""
    return Lab(tmp_path)
