"""Whatever goes wrong in a capture, the tool runs, and what could not be covered is said."""

import re
import sqlite3
from typing import Any, NoReturn

import pytest

from engine.checkpoints.capture import Captured, capture
from tests.engine.lab import Lab

UNFORESEEN = [RecursionError("too deep"), re.error("bad"), sqlite3.OperationalError("locked"), MemoryError()]


@pytest.mark.parametrize("error", UNFORESEEN, ids=lambda error: type(error).__name__)
def test_a_capture_before_a_tool_that_fails_in_an_unforeseen_way_does_not_stop_it(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    def fail(*_arguments: Any, **_named: Any) -> NoReturn:
        raise error

    monkeypatch.setattr("engine.guard.capture", fail)

    result = lab.run("echo done > made")

    assert result.ok
    assert lab.read("made") == "done\n"
    reason = f"an error inside Takeback ({type(error).__name__}); the log has it"
    assert result.notes == (f"no checkpoint was taken: {reason}",)
    assert caplog.records[0].exc_info


def test_a_capture_after_a_tool_that_fails_in_an_unforeseen_way_does_not_lose_its_answer(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0

    def fail_later(*arguments: Any, **named: Any) -> Captured:
        nonlocal calls
        calls += 1
        if calls > 1:
            raise RecursionError
        return capture(*arguments, **named)

    lab.edit("kept", "mine\n")
    monkeypatch.setattr("engine.guard.capture", fail_later)
    result = lab.run("echo done; python3 -c 'import os; os.remove(\"kept\")'")
    monkeypatch.undo()

    assert result.ok
    assert "done" in result.text
    assert "counts as edited by hand: an error inside Takeback (RecursionError)" in result.notes[-1]
    lab.engine.settle(lab.workspace)
    lab.rollback(everything=True)
    assert lab.read("kept") == "mine\n"
