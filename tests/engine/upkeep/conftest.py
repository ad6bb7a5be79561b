"""Fixtures of the upkeep tests."""

from pathlib import Path

import pytest

from tests.engine.upkeep.kit import Kit


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    """An empty store that is made when first used."""
    return Kit.in_directory(tmp_path)
