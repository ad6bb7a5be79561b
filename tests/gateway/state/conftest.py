"""A memory on disk with one session in it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.state.memory import Memory, open_memory
from gateway.state.sessions import Session
from tests.gateway.state.kit import HERE, MovedClock


@pytest.fixture
def clock() -> MovedClock:
    return MovedClock()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "takeback"


@pytest.fixture
async def memory(home: Path, clock: MovedClock) -> AsyncIterator[Memory]:
    async with open_memory(str(home), clock=clock) as memory:
        yield memory


@pytest.fixture
async def session(memory: Memory) -> Session:
    return await memory.sessions.start(HERE, workspace="app", root="/w/app")
