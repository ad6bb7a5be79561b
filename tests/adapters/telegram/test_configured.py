"""The adapter as the configuration makes it."""

import socket
from functools import partial

import anyio

from adapters.contract import Inbound, Reception
from gateway.config import Configuration, load_configuration
from gateway.home import Home
from tests.adapters.telegram.bot_api import TOKEN, BotApi

URL = "https://bot.example.org/telegram"


def configured(path: str, **keys: str) -> Configuration:
    given = {"TOKEN": TOKEN, **keys}
    return load_configuration(Home(path), {f"TAKEBACK_TELEGRAM__{key}": value for key, value in given.items()})


async def test_one_token_in_the_environment_is_all_it_needs(tmp_path):
    from gateway.app import platforms

    configuration = configured(str(tmp_path))

    adapters = await anyio.to_thread.run_sync(partial(platforms, configuration))

    assert [(adapter.name, adapter.has_buttons, adapter.connected) for adapter in adapters] == [
        ("telegram", True, False)
    ]
    assert configuration.settings.telegram.api_base == "https://api.telegram.org"


async def test_without_a_token_there_is_no_telegram(tmp_path):
    from gateway.app import platforms

    assert platforms(load_configuration(Home(str(tmp_path)), {})) == ()


async def test_updates_are_delivered_where_the_configuration_says(api: BotApi, tmp_path):
    from gateway.app import platforms

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    api.routes[URL] = f"http://127.0.0.1:{port}/telegram"
    keys = {"MODE": "webhook", "WEBHOOK_URL": URL, "WEBHOOK_PORT": str(port), "WEBHOOK_SECRET": "abc-123"}
    configuration = configured(str(tmp_path), API_BASE=api.base, ADMINS="7", **keys)
    (adapter,) = await anyio.to_thread.run_sync(partial(platforms, configuration))
    api.world.private(api.world.person(7, "Ada"))
    received: list[str] = []

    async def receive(inbound: Inbound) -> Reception:
        received.append(inbound.text)
        return Reception()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(adapter.run, receive)
        api.world.say(api.world.person(42, "Ann"), "hello")
        await api.until(lambda: api.deliveries == [200] and "chat 7" in api.world.commands)
        tasks.cancel_scope.cancel()

    assert received == ["hello"]
    assert api.webhook["secret_token"] == "abc-123"
    names = {scope: {command["command"] for command in commands} for scope, commands in api.world.commands.items()}
    assert names["chat 7"] - names["all_private_chats"] == {"pair"}
