"""Whoever watches a service learns over HTTP whether it is alive, whether it is ready and why not, and its numbers."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
import anyio
import pytest
from prometheus_client.parser import text_string_to_metric_families

from gateway.operation.endpoints import Address, Endpoints, EndpointsUnusable, make_metrics
from gateway.operation.health import Health, Probe
from gateway.operation.measures import (
    AdapterFailed,
    Levels,
    LoopLag,
    Pruned,
    Refused,
    ReplyDelayed,
    ReplyLost,
    ReplySent,
    RowsExpired,
    StoreMeasured,
    Ticked,
    ToolGuarded,
    TurnEnded,
)
from gateway.operation.metrics import Metrics

LEVELS = Levels(turns_running=2, messages_waiting=3, replies_waiting=4, connected={"slack": True, "telegram": False})


def saying(reason: str | None) -> Probe:
    async def probe() -> str | None:
        return reason

    return probe


def numbers(text: bytes | str) -> dict[str, float]:
    """Every sample of ours by its name and labels, as Prometheus reads them."""
    return {
        sample.name + json.dumps(sample.labels, sort_keys=True): sample.value
        for family in text_string_to_metric_families(text if isinstance(text, str) else text.decode())
        for sample in family.samples
        if sample.name.startswith("takeback_")
    }


@dataclass
class Watched:
    """A running set of addresses, asked as Prometheus or a container platform asks."""

    base: str
    session: aiohttp.ClientSession
    metrics: Metrics

    async def get(self, path: str) -> tuple[int, str, str]:
        async with self.session.get(self.base + path) as answer:
            return answer.status, answer.content_type, await answer.text()

    async def ready(self) -> tuple[int, dict[str, str]]:
        status, _, text = await self.get("/readyz")
        return status, json.loads(text)["checks"]


@asynccontextmanager
async def watched(health: Health) -> AsyncIterator[Watched]:
    async def levels() -> Levels:
        return LEVELS

    metrics = make_metrics()
    async with anyio.create_task_group() as group, aiohttp.ClientSession() as session:
        taken = await group.start(Endpoints(Address("127.0.0.1", 0), health, metrics, levels).run)
        with anyio.fail_after(20):
            yield Watched(f"http://127.0.0.1:{taken.port}", session, metrics)
        group.cancel_scope.cancel()


async def test_who_answers_is_alive():
    async with watched(Health({"database": saying("the disk is full")})) as service:
        status, kind, text = await service.get("/healthz")

    assert (status, kind, json.loads(text)) == (200, "application/json", {"status": "alive"})


async def test_all_parts_well_is_ready():
    async with watched(Health({"database": saying(None), "store": saying(None)})) as service:
        assert await service.ready() == (200, {"database": "ok", "store": "ok"})


async def test_a_part_that_is_not_well_is_named_with_its_reason_and_without_secrets():
    health = Health(
        {"database": saying(None), "adapter telegram": saying("stopped: token 1:abc is refused")},
        hide=lambda text: text.replace("1:abc", "***"),
    )
    async with watched(health) as service:
        status, checks = await service.ready()

    assert status == 503
    assert checks == {"database": "ok", "adapter telegram": "stopped: token *** is refused"}


async def test_a_part_that_does_not_answer_or_breaks_is_not_well_and_hides_no_other(caplog):
    async def hangs() -> str | None:
        await anyio.sleep_forever()

    async def breaks() -> str | None:
        raise KeyError("what somebody wrote")

    probes: Mapping[str, Probe] = {"slow": hangs, "broken": breaks, "database": saying(None)}
    readiness = await Health(probes, patience_s=0.01).readiness()

    assert {check.part: check.reason for check in readiness.checks} == {
        "slow": "no answer within 0.01 s",
        "broken": "it could not be looked at (KeyError)",
        "database": None,
    }
    assert "what somebody wrote" not in caplog.text


async def test_many_who_ask_cost_no_more_than_one():
    looks = 0

    async def probe() -> str | None:
        nonlocal looks
        looks += 1
        await anyio.lowlevel.checkpoint()
        return None

    health = Health({"database": probe}, kept_s=60)
    async with anyio.create_task_group() as group:
        for _ in range(10):
            group.start_soon(health.readiness)

    assert looks == 1


async def test_a_stopping_service_is_not_ready():
    health = Health({"database": saying(None)})
    async with watched(health) as service:
        before = await service.ready()
        health.stopping()
        after = await service.ready()

    assert before[0] == 200
    assert after == (503, {"service": "it is stopping"})


async def test_a_taken_port_is_said_with_what_to_do():
    async def levels() -> Levels:
        return LEVELS

    async with watched(Health({})) as service:
        port = int(service.base.rpartition(":")[2])
        with pytest.raises(EndpointsUnusable, match=rf"127\.0\.0\.1 port {port} cannot .*Set http\.port"):
            await Endpoints(Address("127.0.0.1", port), Health({}), make_metrics(), levels).run()


async def test_the_numbers_are_what_was_measured():
    async with watched(Health({})) as service:
        for measure in (
            TurnEnded("done", 2.0),
            TurnEnded("failed", 0.2),
            ToolGuarded(0.03),
            ReplySent("telegram"),
            ReplySent("telegram"),
            ReplyDelayed("telegram"),
            ReplyLost("slack"),
            Refused("telegram"),
            AdapterFailed("slack", again=True),
            LoopLag(0.002),
            StoreMeasured(1000, 2, 7),
            Pruned("done", 5, 400, 0),
            RowsExpired("messages", 12),
            Ticked(1.5, 1),
        ):
            service.metrics.note(measure)
        status, kind, text = await service.get("/metrics")
    found = numbers(text)

    assert (status, kind) == (200, "text/plain")
    expected = {
        'takeback_turns_total{"state": "done"}': 1,
        'takeback_turns_total{"state": "failed"}': 1,
        "takeback_turn_seconds_sum{}": 2.2,
        "takeback_checkpoint_seconds_count{}": 1,
        'takeback_checkpoint_seconds_bucket{"le": "0.05"}': 1,
        'takeback_checkpoint_seconds_bucket{"le": "0.025"}': 0,
        'takeback_deliveries_total{"adapter": "telegram", "outcome": "sent"}': 2,
        'takeback_deliveries_total{"adapter": "slack", "outcome": "given up"}': 1,
        'takeback_delivery_retries_total{"adapter": "telegram"}': 1,
        'takeback_refusals_total{"adapter": "telegram"}': 1,
        'takeback_adapter_failures_total{"adapter": "slack", "again": "yes"}': 1,
        "takeback_event_loop_lag_seconds_sum{}": 0.002,
        "takeback_store_bytes{}": 1000,
        "takeback_store_workspaces{}": 2,
        "takeback_store_checkpoints{}": 7,
        'takeback_prunes_total{"outcome": "done"}': 1,
        "takeback_pruned_checkpoints_total{}": 5,
        "takeback_pruned_bytes_total{}": 400,
        "takeback_prune_errors_total{}": 0,
        'takeback_expired_rows_total{"kind": "messages"}': 12,
        "takeback_housekeeping_failures_total{}": 1,
        "takeback_turns_running{}": 2,
        "takeback_messages_waiting{}": 3,
        "takeback_replies_waiting{}": 4,
        'takeback_adapter_connected{"adapter": "slack"}': 1,
        'takeback_adapter_connected{"adapter": "telegram"}': 0,
    }
    assert {name: found.get(name) for name in expected} == expected
