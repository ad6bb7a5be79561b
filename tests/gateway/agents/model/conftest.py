"""A model's server, and a gateway whose agent asks it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.gateway.agents.model.server import ModelServer, model_server


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """A workspace with a few files."""
    path = tmp_path / "app"
    (path / "src").mkdir(parents=True)
    (path / "src" / "a.py").write_text("a = 1\n")
    (path / "src" / "b.py").write_text("b = 1\n")
    (path / "src" / "c.py").write_text("c = 1\n")
    return path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    path = tmp_path / "home"
    path.mkdir()
    return path


@pytest.fixture(params=["openai", "anthropic"])
async def server(request: pytest.FixtureRequest) -> AsyncIterator[ModelServer]:
    """One of either kind, test by test."""
    async with model_server(request.param) as server:
        yield server


@pytest.fixture
async def openai() -> AsyncIterator[ModelServer]:
    """One that speaks OpenAI's API, for what does not depend on it."""
    async with model_server("openai") as server:
        yield server
