"""Updates that are delivered: only with the secret, and acknowledged only once they were received."""

import socket

import pytest
from aiohttp import ClientSession

from adapters.contract import ConnectionFailed, Inbound, Reception

URL = "https://bot.example/hooks/telegram"


@pytest.fixture
def webhook(api):
    from adapters.telegram.webhook import Webhook

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # What the reverse proxy does.
    api.routes[URL] = f"http://127.0.0.1:{port}/hooks/telegram"
    return Webhook(URL, "127.0.0.1", port)


async def test_updates_are_delivered_with_the_secret(api, connect, webhook):
    ann = api.world.person(42, "Ann")
    async with connect(webhook=webhook) as far:
        api.world.say(ann, "one")
        api.world.say(ann, "two")
        await far.heard(2)
        await api.until(lambda: not api.world.updates)

    assert [inbound.text for inbound in far.received] == ["one", "two"]
    assert api.deliveries == [200, 200]
    assert len(api.webhook["secret_token"]) >= 32
    assert api.webhook["allowed_updates"] == [
        *("message", "edited_message", "callback_query", "stopped_message_generation")
    ]


async def test_the_files_of_an_album_are_all_meant_for_the_bot(api, connect, webhook):
    ann, group = api.world.person(42, "Ann"), api.world.group(-100)
    async with connect(webhook=webhook) as far:
        api.world.send_file(ann, "a.txt", b"a", "@TakebackBot look", chat=group, media_group_id="77")
        api.world.send_file(ann, "b.txt", b"b", chat=group, media_group_id="77")
        api.world.send_file(ann, "c.txt", b"c", chat=group, media_group_id="78")
        await far.heard(3)

    assert [inbound.addressed for inbound in far.received] == [True, True, False]


async def test_what_was_not_received_is_delivered_again(api, connect, webhook):
    seen = []

    async def fail_once(inbound: Inbound) -> Reception:
        seen.append(inbound.event_id)
        if len(seen) == 1:
            raise OSError("disk full")
        return Reception()

    async with connect(webhook=webhook) as far:
        far.answer = fail_once
        api.world.say(api.world.person(42, "Ann"), "hello")
        await far.heard()
        await api.until(lambda: not api.world.updates)

    assert api.deliveries == [503, 200]
    assert seen[0] == seen[1]


@pytest.mark.parametrize(
    ("secret", "body", "status"),
    [(None, "{}", 401), ("wrong", "{}", 401), ("ä", "{}", 401), ("right", "no JSON", 400), ("right", "[7]", 200)],
)
async def test_only_telegram_gets_in(api, connect, webhook, secret, body, status):
    from dataclasses import replace

    headers = {} if secret is None else {"X-Telegram-Bot-Api-Secret-Token": secret}
    async with connect(webhook=replace(webhook, secret="right")) as far, ClientSession() as session:
        async with session.post(api.routes[URL], data=body, headers=headers) as answer:
            answered = answer.status
        async with session.post(api.routes[URL] + "/elsewhere", data=body, headers=headers) as answer:
            elsewhere = answer.status

    assert (answered, elsewhere) == (status, 404)
    assert far.received == []


async def test_a_port_that_is_taken_is_said(api, connect, webhook):
    with socket.socket() as taken:
        taken.bind((webhook.host, webhook.port))
        taken.listen()
        async with connect(webhook=webhook) as far:
            pass

    assert isinstance(far.ended, ConnectionFailed)
    assert far.ended.reason.startswith(f"cannot listen on 127.0.0.1:{webhook.port}")
    assert not far.ended.permanent


async def test_an_address_that_telegram_refuses_is_said(api, connect, webhook):
    from dataclasses import replace

    async with connect(webhook=replace(webhook, url="http://plain.example/x")) as far:
        pass

    assert "An HTTPS URL must be provided" in far.ended.reason
