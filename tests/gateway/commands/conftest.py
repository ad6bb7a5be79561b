"""A workspace, and a chat in a running gateway that works in it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.gateway.commands.kit import Chat, Gateway, running_gateway, settings_for


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "takeback"


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """A workspace with two files."""
    root = tmp_path / "app"
    root.mkdir()
    (root / "app.py").write_text("one\ntwo\n")
    (root / "notes.md").write_text("mine\n")
    return root


@pytest.fixture
async def gateway(home: Path, app: Path) -> AsyncIterator[Gateway]:
    async with running_gateway(home, settings_for(app)) as gateway:
        yield gateway


@pytest.fixture
async def chat(gateway: Gateway) -> Chat:
    return gateway.chat()
