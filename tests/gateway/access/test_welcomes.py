"""People whom another process admitted are told while the gateway runs; strangers are answered once in a while."""

import os
from pathlib import Path

import anyio
import pytest

from adapters.contract import Place
from gateway.access import allowance
from gateway.access.allowance import Allowance
from gateway.access.pairing import redeem
from gateway.access.welcomes import Welcomes
from gateway.delivery import Delivery
from gateway.state.access import Role
from gateway.state.memory import open_memory
from tests.gateway.platform_kit import Platform

ASKED = Place("telegram", "7")


async def test_a_running_gateway_tells_whom_another_process_has_admitted(tmp_path: Path):
    platform = Platform("telegram")
    async with open_memory(str(tmp_path)) as memory, anyio.create_task_group() as tasks:
        delivery = Delivery(memory.outbox, [platform])
        await tasks.start(delivery.run)
        tasks.start_soon(Welcomes(memory, delivery, ["telegram"]).run)
        code = await memory.admissions.issue(ASKED, "7")
        assert code is not None

        await redeem(os.path.join(str(tmp_path), "gateway.db"), code, Role.ADMIN)

        await platform.wait_for(
            lambda seen: any("As an admin you may admit others" in text for text in seen.sent(ASKED))
        )
        tasks.cancel_scope.cancel()


async def test_where_everybody_is_admitted_nobody_looks(tmp_path: Path):
    async with open_memory(str(tmp_path)) as memory:
        with anyio.fail_after(10):
            await Welcomes(memory, Delivery(memory.outbox, []), []).run()


def test_each_may_once_in_a_while():
    now = 0.0
    pace = Allowance(10.0, clock=lambda: now)
    assert [pace.allows(key) for key in ("a", "a", "b")] == [True, False, True]

    now = 9.9
    assert not pace.allows("a")
    now = 10.0
    assert pace.allows("a")


def test_no_more_are_remembered_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(allowance, "REMEMBERED", 2)
    pace = Allowance(10.0, clock=lambda: 0.0)

    assert [pace.allows(key) for key in ("a", "b", "c")] == [True, True, True]

    assert not pace.allows("c")
    assert pace.allows("a"), "whoever came longest ago is forgotten first"
