"""What a tool call shows while it runs."""

from collections.abc import AsyncIterator
from pathlib import Path

import anyio.lowlevel
import anyio.to_thread
import pytest

from engine.checkpoints.bulk import LEAST_FILES
from gateway.turns import showing
from gateway.turns.showing import Latest, Reading
from tests.gateway.gateway_kit import Office, open_office


class Slowed:
    """A clock on which each look takes a second."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        self.now_s += 1.0
        return self.now_s


@pytest.fixture
async def office(clean_home: Path) -> AsyncIterator[Office]:
    async with open_office(clean_home) as office:
        yield office


async def test_a_checkpoint_that_takes_long_says_how_far_it_is() -> None:
    shown: list[str] = []
    reading = Reading(Latest(shown.append, "write_file: a"), Slowed())

    for done in (0, 10_000, 20_000, 40_000):
        await anyio.to_thread.run_sync(reading.hear, done, 40_000)
        await anyio.lowlevel.checkpoint()

    assert shown == [
        "write_file: a\ntaking a checkpoint: 10,000 of 40,000 files read, 2 s",
        "write_file: a\ntaking a checkpoint: 20,000 of 40,000 files read, 3 s",
        "write_file: a\ntaking a checkpoint: 40,000 of 40,000 files read, 4 s",
    ]


@pytest.mark.parametrize("slow_s", [0.0, 3600.0])
async def test_the_chat_sees_how_far_a_first_checkpoint_is_when_it_is_slow(
    office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slow_s: float
) -> None:
    monkeypatch.setattr(showing, "SLOW_S", slow_s)
    project = tmp_path / "project"
    project.mkdir()
    for number in range(LEAST_FILES):
        (project / f"file{number}").write_text(f"{number}\n")

    await office.runner.run(await office.request("$ echo new > file1", project))
    await office.delivery.idle()

    shown = [text for what, _, text in office.platform.seen if what == "progress"]
    assert any("files read" in text for text in shown) == (slow_s == 0.0)
    assert shown[-1] == ""
