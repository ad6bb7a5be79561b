"""The whole service: what a bad adapter does to the others, what is shown of it, what stops in which order."""

import json
import logging
import os
import select
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from sqlite3 import connect

import aiohttp
import anyio
import pytest

from adapters.contract import ConnectionFailed, Place, SendFailed
from gateway.access.admission import OWNED
from gateway.logs import logging_to
from gateway.operation.endpoints import Address, EndpointsUnusable
from gateway.service import serve
from gateway.state.database import open_database
from gateway.state.errors import DatabaseUnusable
from tests.gateway.operation.test_health import numbers
from tests.gateway.service_kit import Phone, make_service, serving

ANY_PORT = Address("127.0.0.1", 0)
SECRET = "123456:the-bots-own-token"
WORDS = "what-somebody-wrote"


@pytest.fixture
def shown(caplog):
    """Asks the addresses that the running service has said in its log."""
    caplog.set_level(logging.INFO)

    @asynccontextmanager
    async def session() -> AsyncIterator[aiohttp.ClientSession]:
        base = next(record.address for record in caplog.records if hasattr(record, "address"))
        async with aiohttp.ClientSession(base) as asking:
            yield asking

    return session


async def test_a_service_shows_that_it_is_ready_and_counts_what_it_does(tmp_path, shown):
    phone = Phone("telegram")
    service = await make_service(tmp_path, phone, http=ANY_PORT)

    async with serving(service):
        await phone.ask("$ echo one > file")
        async with shown() as asking:
            ready = await asking.get("/readyz")
            checks = json.loads(await ready.text())["checks"]
            found = numbers(await (await asking.get("/metrics")).text())

    assert ready.status == 200
    assert checks == {"database": "ok", "store": "ok", "adapter telegram": "ok"}
    assert found['takeback_turns_total{"state": "done"}'] == 1
    assert found["takeback_checkpoint_seconds_count{}"] == 1
    assert found['takeback_deliveries_total{"adapter": "telegram", "outcome": "sent"}'] >= 1
    assert found['takeback_adapter_connected{"adapter": "telegram"}'] == 1
    assert (found["takeback_turns_running{}"], found["takeback_messages_waiting{}"]) == (0, 0)


async def test_a_refused_platform_is_shown_with_its_remedy_and_the_others_are_served(tmp_path, shown):
    refused = ConnectionFailed(f"the token {SECRET} is refused; ask for a new one", permanent=True)
    phone, refused_phone = Phone("slack"), Phone("telegram", ends=[refused])
    service = await make_service(tmp_path, refused_phone, phone, http=ANY_PORT, secrets=(SECRET,))

    async with serving(service):
        answer = await phone.ask("$ echo one")
        async with shown() as asking:
            ready = await asking.get("/readyz")
            checks = json.loads(await ready.text())["checks"]

    assert answer == ["one\n"]
    assert ready.status == 503
    assert checks["adapter telegram"] == "stopped: the token *** is refused; ask for a new one"
    assert checks["adapter slack"] == "ok"


async def test_who_is_not_admitted_is_counted_and_not_heard(tmp_path, shown):
    phone = Phone("telegram")
    service = await make_service(tmp_path, phone, http=ANY_PORT, rules={})

    async with serving(service):
        for _ in range(3):
            await phone.write("/status")
        async with shown() as asking:
            found = numbers(await (await asking.get("/metrics")).text())

    assert found['takeback_refusals_total{"adapter": "telegram"}'] == 3
    assert phone.sent() == []


async def test_a_platform_that_comes_back_is_served_again(tmp_path):
    lost = ConnectionFailed("the network is down", permanent=False)
    phone = Phone("telegram", ends=[lost, ValueError("a defect"), lost])

    async with serving(await make_service(tmp_path, phone)):
        answer = await phone.ask("$ echo one")

    assert answer == ["one\n"]


async def test_a_stop_takes_in_nothing_more_then_ends_turns_then_says_so(tmp_path):
    first, second = Phone("telegram"), Phone("slack")
    service = await make_service(tmp_path, first, second)

    async with serving(service):
        await second.write("$ sleep 1000")
        await second.wait_for(lambda phone: any(what == "progress" and text for what, _, text in phone.seen))
        began = anyio.current_time()
    took_s = anyio.current_time() - began

    said = [what for what, _, text in second.seen if what == "disconnected" or "shut down during this turn" in text]
    assert said == ["disconnected", "sent"]
    assert took_s < 10
    async with open_database(f"{service.home}/gateway.db") as database:
        assert [row["state"] for row in await database.fetch_all("SELECT state FROM turns")] == ["interrupted"]
        assert await database.fetch_all("SELECT 1 FROM inbox WHERE state <> 'done'") == []


async def test_while_it_stops_it_is_shown_as_not_ready(tmp_path, shown):
    class Curious(Phone):
        """Looks at what is shown when it is told to stop."""

        async def run(self, receive) -> None:
            try:
                await super().run(receive)
            finally:
                with anyio.CancelScope(shield=True):
                    async with shown() as asking:
                        self.seen.append(("shown", Place(self.name, ""), await (await asking.get("/readyz")).text()))

    phone = Curious("telegram")

    async with serving(await make_service(tmp_path, phone, http=ANY_PORT)):
        await phone.ask("/status")

    (seen,) = [json.loads(text) for what, _, text in phone.seen if what == "shown"]
    assert seen == {"status": "not ready", "checks": {"service": "it is stopping"}}


async def test_an_address_that_is_taken_ends_the_start_before_anything_is_taken_in(tmp_path):
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as taken:
        port = taken.extra(anyio.abc.SocketAttribute.local_port)
        phone = Phone("telegram")

        with pytest.RaisesGroup(EndpointsUnusable, flatten_subgroups=True):
            await serve(await make_service(tmp_path, phone, http=Address("127.0.0.1", port)))

    assert phone.seen == []


def test_nothing_that_a_whole_service_logs_holds_content_or_a_secret(tmp_path):
    """Every way in which words get into a service: turns, commands, files, failures of agent, platform and adapter."""
    path = tmp_path / "log"

    with logging_to(str(path), level="debug", as_json=True, secrets=(SECRET,)):
        anyio.run(converse, tmp_path)

    log = path.read_text().splitlines()
    lines = [json.loads(line) for line in log]
    ended = [line for line in lines if line["event"] == "a turn ended"]
    assert [line for line in log if WORDS in line or SECRET in line] == []
    assert {line["state"] for line in ended} == {"done", "failed", "interrupted"}
    assert {(line["adapter"], line["chat"]) for line in ended} == {("telegram", "here")}
    assert all(line["session"].startswith("s-") and line["turn"] > 0 for line in ended)
    assert any("has no route" in line["event"] for line in lines)


async def converse(directory: Path) -> None:
    """Say the words in every way to a service with a weak platform, and once as somebody who is not admitted."""
    phone = Phone("telegram", ends=[ConnectionFailed(f"{SECRET} has no route", permanent=False)])
    phone.failures = [SendFailed(WORDS, retry_after_s=0.0), ValueError(WORDS), SendFailed(WORDS, retry_after_s=None)]
    stranger = Phone("slack")
    rules = {"telegram": OWNED}
    service = await make_service(directory, phone, stranger, http=ANY_PORT, secrets=(SECRET,), rules=rules)
    async with serving(service):
        for text in SPEECH:
            await phone.ask(text)
        await stranger.write(WORDS)
        await phone.write(f"$ echo {WORDS}; sleep 1000")
        await phone.wait_for(lambda seen: any(what == "progress" and "sleep" in text for what, _, text in seen.seen))


SPEECH = (
    f"$ echo {WORDS}",
    f"/write notes.md\n{WORDS}",
    f"/patch\n{WORDS}",
    f"$ cat {WORDS}",
    WORDS,
    f"/{WORDS}",
    "/diff",
    "/rollback",
    f"/rollback diff {WORDS}",
    "/undo",
    "/retry",
    f"/workspace {WORDS}",
)


async def test_what_a_terminal_says_while_nothing_can_be_stored_is_answered_and_ends_nothing(tmp_path, monkeypatch):
    """A platform would deliver it again; at a terminal the person does. The turn in another chat goes on."""
    monkeypatch.setattr("gateway.state.database.BUSY_TIMEOUT_S", 0.01)
    phone = Phone("console")
    service = await make_service(tmp_path, phone, checkpoints=False, stays=False)

    async with serving(service):
        await phone.ask("$ echo before")
        running = await phone.write("$ echo up; while [ ! -e go ]; do sleep 0.02; done; echo after", "there")
        await phone.wait_for(lambda _: any(what == "progress" and "\nup" in text for what, _, text in phone.seen))
        other = await anyio.to_thread.run_sync(
            lambda: connect(tmp_path / "home" / "gateway.db", isolation_level=None, check_same_thread=False)
        )
        await anyio.to_thread.run_sync(other.execute, "BEGIN IMMEDIATE")
        await phone.write("$ echo lost")
        await anyio.to_thread.run_sync(other.close)
        await anyio.Path(tmp_path / "project" / "go").touch()
        await phone.wait_finished(running)

    (notice,) = [text for what, _, text in phone.seen if what == "notice"]
    assert notice.startswith("✖ This was not taken in: the database ")
    assert "after" in phone.sent(Place("console", "there"))[-1]
    assert not any("lost" in text for text in phone.sent(Place("console", "here")))


async def test_a_turn_is_stopped_also_while_nothing_can_be_stored(tmp_path, monkeypatch):
    """What is to be stopped may be what fills the disk."""
    monkeypatch.setattr("gateway.state.database.BUSY_TIMEOUT_S", 0.01)
    phone = Phone("telegram")
    service = await make_service(tmp_path, phone, checkpoints=False)

    async with serving(service):
        running = await phone.write("$ echo $$ > pid; echo up; sleep 60")
        await phone.wait_for(lambda _: any(what == "progress" and "\nup" in text for what, _, text in phone.seen))
        other = await anyio.to_thread.run_sync(
            lambda: connect(tmp_path / "home" / "gateway.db", isolation_level=None, check_same_thread=False)
        )
        await anyio.to_thread.run_sync(other.execute, "BEGIN IMMEDIATE")
        await phone.write("/stop")
        command = int(await anyio.Path(tmp_path / "project" / "pid").read_text())
        await anyio.to_thread.run_sync(until_gone, command)
        with pytest.raises(DatabaseUnusable):
            await phone.write("/stop there is nothing of that form")
        await anyio.to_thread.run_sync(other.close)
        await phone.wait_finished(running)

    (notice,) = [text for what, _, text in phone.seen if what == "notice"]
    assert notice.startswith("⏹ Stopping, although this could not be noted: the database ")
    (said,) = phone.sent(Place("telegram", "here"))
    assert said.startswith("⏹ Stopped.")


def until_gone(process: int) -> None:
    """Wait until a process has ended."""
    with suppress(ProcessLookupError):
        handle = os.pidfd_open(process)
        try:
            assert select.select([handle], [], [], 30)[0], "it still runs"
        finally:
            os.close(handle)
