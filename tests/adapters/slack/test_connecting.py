"""The connection to Slack: how it is made, lost and made again, and what is said when it cannot be."""

import json
import socket
import time
from urllib.parse import urlencode

import anyio
import pytest
from aiohttp import ClientError

from adapters.contract import ConnectionFailed, Inbound, Reception


@pytest.fixture
def impatient(monkeypatch):
    from adapters import link
    from adapters.slack import socket_mode

    monkeypatch.setattr(link, "DELAYS_S", (0.01, 0.02))
    monkeypatch.setattr(socket_mode, "AGAIN_S", (0.01, 0.02))


@pytest.fixture
def http(slack):
    """HTTP mode, and a way there as a reverse proxy makes it."""
    from adapters.slack.http_mode import PATH, HttpMode

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    slack.request_url = f"http://127.0.0.1:{port}{PATH}"
    return HttpMode(slack.secret, "127.0.0.1", port)


class TestSocketMode:
    """Connections that this process opens."""

    async def test_slack_may_ask_for_another_connection_without_losing_anything(self, slack, connect):
        held = anyio.Event()

        async def slowly(inbound: Inbound) -> Reception:
            if inbound.text == "before":
                await held.wait()
            return Reception()

        async with connect() as far:
            far.answer = slowly
            slack.world.say("U0ANN", "before")
            await slack.until(lambda: slack.deliveries)
            await slack.replace(after_s=0.5)
            await slack.until(lambda: slack.opened == 2)
            was_connected = far.adapter.connected
            held.set()
            slack.world.say("U0BEN", "after")
            await far.heard(2)
            await slack.until(lambda: not slack.unacknowledged() and len(slack.connections) == 1)
            await slack.until(lambda: far.adapter.connected)

        assert was_connected
        assert [delivery.attempts for delivery in slack.deliveries] == [1, 1]
        assert slack.wrong == []

    async def test_a_connection_that_slack_does_not_end_is_ended_here(self, slack, connect, monkeypatch):
        from adapters.slack import socket_mode

        monkeypatch.setattr(socket_mode, "GRACE_S", 0.1)
        async with connect():
            await slack.replace(after_s=60)
            await slack.until(lambda: slack.opened == 2 and len(slack.connections) == 1)

    @pytest.mark.usefixtures("impatient")
    async def test_a_dropped_connection_is_made_again(self, slack, connect):
        slack.ack_s = 0.3
        async with connect() as far:
            slack.drop()
            slack.world.say("U0ANN", "hello")
            await far.heard()
            await slack.until(lambda: not slack.unacknowledged())

        assert slack.opened == 2
        assert [inbound.text for inbound in far.events] == ["hello"]

    @pytest.mark.usefixtures("impatient")
    async def test_a_silently_dead_connection_is_found_out(self, slack, connect):
        slack.ack_s = 0.3
        async with connect(heartbeat_s=0.2) as far:
            slack.go_silent()
            slack.world.say("U0ANN", "hello")
            await far.heard()

        assert slack.opened >= 2
        assert [inbound.text for inbound in far.events] == ["hello"]

    @pytest.mark.usefixtures("impatient")
    async def test_connections_that_end_at_once_are_not_opened_for_ever(self, slack, connect):
        async with connect() as far:
            while far.ended is None:
                opened = slack.opened
                slack.drop()
                await slack.until(lambda opened=opened: slack.opened > opened or far.ended)

        assert (far.ended.reason, far.ended.permanent) == ("Slack ends every connection at once", False)
        assert not far.adapter.connected

    async def test_one_that_is_to_be_replaced_at_once_each_time_makes_no_storm(self, slack, connect, monkeypatch):
        from adapters.slack import socket_mode

        monkeypatch.setattr(socket_mode, "AGAIN_S", (0.0, 0.0, 0.0))
        monkeypatch.setattr(socket_mode, "GRACE_S", 0.0)
        async with connect() as far:
            while far.ended is None:
                opened = slack.opened
                await slack.replace(after_s=60)
                await slack.until(lambda opened=opened: slack.opened > opened or far.ended)

        assert (far.ended.reason, slack.opened) == ("Slack ends every connection at once", 4)

    @pytest.mark.usefixtures("impatient")
    async def test_an_outage_of_the_api_is_waited_for(self, slack, connect):
        slack.fail("auth.test")
        slack.fail("apps.connections.open", "internal_error", times=2)
        slack.fail("apps.connections.open", "ratelimited", retry_after=0)
        async with connect() as far:
            assert far.adapter.connected

    @pytest.mark.usefixtures("impatient")
    async def test_a_long_outage_is_said(self, slack, connect):
        slack.fail("apps.connections.open", "service_unavailable", times=9)
        async with connect() as far:
            pass

        assert (far.ended.reason, far.ended.permanent) == ("Slack cannot be reached: service_unavailable", False)

    async def test_where_nobody_answers_is_said(self):
        from adapters.slack.client import Client, diagnose

        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            port = silent.getsockname()[1]
            with pytest.raises(ClientError) as refused:
                await Client("xoxb-good", f"http://127.0.0.1:{port}/api").who()

        reason = diagnose(refused.value).failure.reason
        assert reason.startswith(f"Slack cannot be reached: no connection to 127.0.0.1:{port} (Connect call failed")

    @pytest.mark.parametrize("which", ["bot_token", "app_token"])
    async def test_a_refused_token_is_said_with_what_to_do(self, slack, connect, which):
        setattr(slack, which, "another")
        async with connect() as far:
            pass

        assert far.ended.permanent
        assert far.ended.reason.startswith(f"Slack refuses slack.{which} (invalid_auth). Copy it from the app's page")
        assert f"TAKEBACK_SLACK__{which.upper()}_FILE" in far.ended.reason
        assert "-good" not in far.ended.reason

    async def test_a_token_that_may_not_connect_names_what_it_lacks(self, slack, connect):
        from tests.adapters.slack.limits import Refusal

        slack.faults.append(_refusing("apps.connections.open", Refusal("missing_scope", needed="connections:write")))
        async with connect() as far:
            pass

        assert "(missing_scope, needed: connections:write)" in far.ended.reason


class TestHttpMode:
    """Deliveries that Slack signs."""

    async def test_everything_is_delivered_and_acknowledged(self, slack, connect, http):
        async with connect(mode=http) as far:
            slack.world.say("U0ANN", "hello <x>&")
            await far.heard(1)
            slack.world.command("U0ANN", "/rollback", "1")
            await far.heard(2)
            await far.send("D0ANN", "choose", buttons=(_button(),))
            slack.world.press("U0ANN", "Diff")
            await far.heard(3)
            await slack.until(lambda: not slack.unacknowledged())

        assert [(inbound.text, inbound.pressed) for inbound in far.events] == [
            *(("hello <x>&", None), ("/rollback 1", None), ("", "t1"))
        ]
        assert set(slack.statuses) == {200}

    async def test_what_was_not_received_is_delivered_again(self, slack, connect, http):
        seen = []

        async def fail_once(inbound: Inbound) -> Reception:
            seen.append(inbound.event_id)
            if len(seen) == 1:
                raise OSError("disk full")
            return Reception()

        async with connect(mode=http) as far:
            far.answer = fail_once
            slack.world.say("U0ANN", "hello")
            await far.heard()
            await slack.until(lambda: not slack.unacknowledged())

        assert slack.statuses == [503, 200]
        assert seen[0] == seen[1]

    @pytest.mark.parametrize(
        ("wrong", "said"),
        [
            ("secret", ["a delivery was refused that is not signed with slack.signing_secret"]),
            ("body", ["a delivery was refused that is not signed with slack.signing_secret"]),
            ("time", ["a delivery was refused: its time and this machine's clock are"]),
            ("word for a time", []),
            ("endless time", []),
            ("nothing", []),
        ],
    )
    async def test_what_slack_did_not_sign_is_refused(self, slack, connect, http, wrong, said, caplog):
        slack.world.dm("U0ANN")
        event = {"type": "message", "channel": "D0ANN", "user": "U0ANN", "text": "hello", "ts": "1.1"}
        body = json.dumps({"type": "event_callback", "team_id": "T0TEAM", "event_id": "Ev1", "event": event})
        if wrong == "secret":
            slack.secret = "another"
        headers = slack.signed(body, at=time.time() - 600 if wrong == "time" else None)
        times = {"word for a time": "soon", "endless time": "9" * 5000}
        headers["X-Slack-Request-Timestamp"] = times.get(wrong, headers["X-Slack-Request-Timestamp"])
        sent = body.replace("hello", "h3llo") if wrong == "body" else body
        async with connect(mode=http) as far:
            given = {"Content-Type": "application/json", **({} if wrong == "nothing" else headers)}
            status, _ = await slack.post(sent, given)
            again, _ = await slack.post(sent, given)

        assert (status, again) == (401, 401)
        assert far.received == []
        told = [record.message for record in caplog.records if record.name == "adapters.slack.http_mode"]
        assert [words[: len(begun)] for words, begun in zip(told, said, strict=True)] == said

    async def test_the_address_proves_itself_to_slack(self, slack, connect, http):
        body = json.dumps({"type": "url_verification", "challenge": "abc", "token": "x"})
        async with connect(mode=http):
            answered = await slack.post(body, {"Content-Type": "application/json", **slack.signed(body)})

        assert answered[0] == 200
        assert "abc" in answered[1]

    async def test_what_is_no_delivery_harms_nothing(self, slack, connect, http):
        form = urlencode({"payload": json.dumps({"type": "view_closed", "user": {"id": "U0ANN"}, "view": {}})})
        async with connect(mode=http) as far:
            for body, kind in (
                ("{", "application/json"),
                ("[]", "application/json"),
                (form, "application/x-www-form-urlencoded"),
            ):
                await slack.post(body, {"Content-Type": kind, **slack.signed(body)})
            slack.world.say("U0ANN", "hello")
            await far.heard()

        assert [inbound.text for inbound in far.events] == ["hello"]

    async def test_a_port_that_is_taken_is_said(self, connect, http):
        with socket.socket() as taken:
            taken.bind((http.host, http.port))
            taken.listen()
            async with connect(mode=http) as far:
                pass

        assert isinstance(far.ended, ConnectionFailed)
        assert f"cannot listen on 127.0.0.1:{http.port} for Slack's deliveries" in far.ended.reason
        assert not far.ended.permanent


def _button():
    from adapters.contract import Button

    return Button("Diff", "/diff", "t1")


def _refusing(method, refusal):
    from tests.adapters.slack.server import Fault

    return Fault(method, refusal)
