"""The adapter as the configuration makes it, and the app as its manifest makes it."""

import socket
from functools import partial
from pathlib import Path

import anyio
import pytest
import yaml

from adapters.contract import Inbound, Reception
from gateway.commands.menu import menu
from gateway.config import Configuration, load_configuration
from gateway.home import Home
from gateway.installation.credentials import SLACK_MANIFEST, SLACK_SCOPES
from tests.adapters.slack.server import APP_TOKEN, BOT_TOKEN, SECRET, SlackServer

KEPT_BY_SLACK = {"status", "help"}


def configured(path: str, **keys: str) -> Configuration:
    given = {"BOT_TOKEN": BOT_TOKEN, **keys}
    return load_configuration(Home(path), {f"TAKEBACK_SLACK__{key}": value for key, value in given.items()})


async def test_two_tokens_in_the_environment_are_all_it_needs(tmp_path):
    from gateway.app import platforms

    configuration = configured(str(tmp_path), APP_TOKEN=APP_TOKEN)

    adapters = await anyio.to_thread.run_sync(partial(platforms, configuration))

    assert [(adapter.name, adapter.has_buttons, adapter.connected) for adapter in adapters] == [("slack", True, False)]
    assert configuration.settings.slack.api_base == "https://slack.com/api"


@pytest.mark.parametrize("mode", ["socket", "http"])
async def test_deliveries_are_taken_in_as_the_configuration_says(slack: SlackServer, tmp_path, mode):
    from gateway.app import platforms

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    keys = {"APP_TOKEN": APP_TOKEN}
    if mode == "http":
        slack.request_url = f"http://127.0.0.1:{port}/slack/events"
        keys = {"SIGNING_SECRET": SECRET, "HTTP_PORT": str(port)}
    configuration = configured(str(tmp_path), MODE=mode, API_BASE=slack.api_base, **keys)
    (adapter,) = await anyio.to_thread.run_sync(partial(platforms, configuration))
    general = slack.world.channel("C0GEN", "U0ANN")
    received: list[str] = []

    async def receive(inbound: Inbound) -> Reception:
        received.append(inbound.text)
        return Reception()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(adapter.run, receive)
        await slack.until(lambda: adapter.connected)
        for text in ("rollback 1", "undo", "undo the last change", "help me fix it", "diff session", "status quo"):
            slack.world.say("U0ANN", f"<@U0BOT> {text}", channel=general)
            await slack.until(lambda: not slack.unacknowledged())
        tasks.cancel_scope.cancel()

    # A word that begins a command may also begin a sentence.
    assert received[::2] == received[1::2]
    assert received[::2] == [
        *("/rollback 1", "/undo", "undo the last change", "help me fix it", "/diff session", "status quo")
    ]


def test_the_manifest_makes_an_app_that_can_do_all_of_it():
    manifest = yaml.safe_load((Path(__file__).parents[3] / SLACK_MANIFEST).read_text(encoding="utf-8"))

    commands = {command["command"]: command for command in manifest["features"]["slash_commands"]}
    assert commands.keys() == {"/takeback", *(f"/{entry.name}" for entry in menu() if entry.name not in KEPT_BY_SLACK)}
    assert {entry.summary for entry in menu() if entry.name not in KEPT_BY_SLACK} < {
        command["description"] for command in commands.values()
    }
    assert all(len(command["command"]) <= 32 and not command["should_escape"] for command in commands.values())
    assert commands["/rollback"]["usage_hint"]
    assert set(manifest["oauth_config"]["scopes"]["bot"]) == SLACK_SCOPES
    assert set(manifest["settings"]["event_subscriptions"]["bot_events"]) == {
        *("app_home_opened", "app_mention"),
        *(f"message.{kind}" for kind in ("channels", "groups", "im", "mpim")),
    }
    assert manifest["settings"]["interactivity"]["is_enabled"]
    assert manifest["settings"]["socket_mode_enabled"]
    assert manifest["features"]["app_home"]["home_tab_enabled"]
    assert not manifest["features"]["app_home"]["messages_tab_read_only_enabled"]
