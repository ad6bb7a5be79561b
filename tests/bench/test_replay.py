"""A day's work of many chats, replayed at speed, leaves no stuck queue, no growing memory and a sound database.

Short in every run; whole, with its figures, in some minutes:
``sh deploy/test -m bench -n 0 -s -o faulthandler_timeout=0 tests/bench/test_replay.py``.
"""

import gc
import json
import logging
import os
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import aiohttp
import anyio
import pytest

from engine.api import PrunePolicy
from gateway.config.settings import Checkpoints, Settings, Workspace
from gateway.operation.endpoints import Address
from gateway.operation.housekeeping import Tidying
from gateway.service import Service
from gateway.state.database import open_database
from gateway.workspaces import Workspaces
from tests.bench.town import Sun, Town, speech
from tests.gateway.operation.test_health import numbers
from tests.gateway.service_kit import make_service, serving

PARTS = 3
AT_ONCE = 40
SEED = 20260316
MOST_GROWTH = 1.05
"""Of what lives in memory, from the end of one part of the day to the next, in which the same chats say as much."""


@dataclass(frozen=True)
class Day:
    """What a replayed day left behind."""

    messages: int
    replies: int
    seconds: float
    unanswered: int
    dealt_with_again: int
    broken: list[str]
    objects: list[int]
    resident_bytes: list[int]
    levels: dict[str, float]
    unsound: list[str]
    rows: dict[str, int]


async def replay(directory: Path, chats: int, records: list[logging.LogRecord]) -> Day:
    """Let a town of chats have its day, over few shared workspaces, some of them guarded, while the service tidies."""
    town, sun = Town(), Sun()
    service = await town_service(directory, town, sun, chats)
    objects, resident, messages = [], [], 0
    began = time.monotonic()
    async with serving(service, limit_s=900):
        for part in range(PARTS):
            messages += await pass_part(town, sun, chats, part)
            objects.append(live_objects())
            resident.append(resident_bytes())
        base = next(record.address for record in records if hasattr(record, "address"))
        async with aiohttp.ClientSession(base) as asking:
            levels = numbers(await (await asking.get("/metrics")).text())
            ready = json.loads(await (await asking.get("/readyz")).text())
    assert ready["status"] == "ready", ready
    seconds = time.monotonic() - began
    async with open_database(f"{service.home}/gateway.db") as database:
        unsound = await database.check()
        counts = await database.fetch_all(
            "SELECT (SELECT count(*) FROM inbox WHERE state <> 'done') AS open_messages,"
            " (SELECT count(*) FROM outbox WHERE state <> 'sent') AS open_replies,"
            " (SELECT count(*) FROM turns WHERE state = 'running') AS running_turns,"
            " (SELECT count(*) FROM restores WHERE state = 'planned') AS planned_restores,"
            " (SELECT count(*) FROM chats) AS chats, (SELECT count(*) FROM turns) AS turns"
        )
    return Day(
        messages=messages,
        replies=town.replies,
        seconds=seconds,
        unanswered=len(town.unanswered),
        dealt_with_again=town.again,
        broken=town.broken,
        objects=objects,
        resident_bytes=resident,
        levels=levels,
        unsound=unsound,
        rows=dict(counts[0]),
    )


async def town_service(directory: Path, town: Town, sun: Sun, chats: int) -> Service:
    """A workspace for six chats; checkpoints in every eighth."""
    names = [f"w{number}" for number in range(workspaces_for(chats))]
    for name in names:
        await anyio.Path(directory / name).mkdir()
    settings = Settings(
        workspaces={
            name: Workspace(path=str(directory / name), checkpoints=Checkpoints(enabled=number % 8 == 0))
            for number, name in enumerate(names)
        }
    )
    tidying = Tidying(timedelta(days=30), PrunePolicy(), min_interval_hours=24, first_s=0.2, tick_s=2.0)
    return await make_service(
        directory,
        town,
        clock=sun,
        http=Address("127.0.0.1", 0),
        housekeeping=tidying,
        open_workspaces=lambda offload: Workspaces(settings, offload, names[0]),
    )


def workspaces_for(chats: int) -> int:
    return max(4, chats // 6)


async def pass_part(town: Town, sun: Sun, chats: int, part: int) -> int:
    """Let every chat say its part of the day, so many at the same time; how many messages that was."""
    limiter = anyio.CapacityLimiter(AT_ONCE)
    messages = done = 0

    async def say(chat: int) -> None:
        nonlocal messages, done
        async with limiter:
            if part == 0:
                await (
                    await town.write(f"c{chat}", f"{chat}-0-0-1", f"/workspace w{chat % workspaces_for(chats)}")
                ).wait()
                messages += 1
            for number, burst in enumerate(speech(chat, part, SEED)):
                waits = [
                    await town.write(f"c{chat}", f"{chat}-{part}-{number}-{index + 2}", text)
                    for index, text in enumerate(burst)
                ]
                messages += len(burst)
                for wait in waits:
                    await wait.wait()
        done += 1
        sun.part = (part + done / chats) / PARTS

    async with anyio.create_task_group() as group:
        for chat in range(chats):
            group.start_soon(say, chat)
    return messages


def live_objects() -> int:
    gc.collect()
    return len(gc.get_objects())


def resident_bytes() -> int:
    descriptor = os.open("/proc/self/statm", os.O_RDONLY)
    try:
        return int(os.read(descriptor, 100).split()[1]) * os.sysconf("SC_PAGE_SIZE")
    finally:
        os.close(descriptor)


def assert_well(day: Day, chats: int) -> None:
    assert day.broken == []
    assert (day.unanswered, day.dealt_with_again) == (0, 0)
    assert day.unsound == []
    assert day.rows["chats"] == chats
    assert {name: day.rows[name] for name in day.rows if name not in {"chats", "turns"}} == {
        "open_messages": 0,
        "open_replies": 0,
        "running_turns": 0,
        "planned_restores": 0,
    }
    for name in ("turns_running", "messages_waiting", "replies_waiting"):
        assert day.levels[f"takeback_{name}{{}}"] == 0
    assert day.levels["takeback_housekeeping_failures_total{}"] == 0
    assert day.objects[-1] < day.objects[-2] * MOST_GROWTH, day.objects


async def test_a_day_of_twenty_chats_leaves_nothing_stuck_growing_or_unsound(tmp_path, caplog):
    caplog.set_level(logging.INFO, "gateway.operation.endpoints")

    day = await replay(tmp_path, 20, caplog.records)

    assert_well(day, 20)


@pytest.mark.bench
async def test_a_day_of_a_thousand_chats_leaves_nothing_stuck_growing_or_unsound(tmp_path, caplog, capsys):
    caplog.set_level(logging.INFO, "gateway.operation.endpoints")

    day = await replay(tmp_path, 1000, caplog.records)

    with capsys.disabled():
        megabytes = ", ".join(f"{size / 1e6:.0f} MB" for size in day.resident_bytes)
        print(  # noqa: T201 - the figures are what this is run for
            f"\n1000 chats, {day.messages} messages, {day.replies} replies, {day.rows['turns']} turns in"
            f" {day.seconds:.0f} s; live objects after each part {day.objects}, resident {megabytes}"
        )
    assert_well(day, 1000)
