"""``gateway init`` writes a configuration that holds, and never over one that is there."""

import os
import re
import stat

import pytest
import yaml

from gateway.cli.exits import Exit
from gateway.config import keys, load_configuration
from gateway.config.backend import OPTIONS_OF
from gateway.config.example import render
from gateway.home import Home
from tests.gateway.cli.platform_server import SLACK_APP, SLACK_BOT, TELEGRAM
from tests.gateway.cli.screens import Screen

EXAMPLE = os.path.join(os.path.dirname(__file__), "..", "..", "..", "deploy", "config.example.yaml")


def uncommented(text: str) -> str:
    """The file with every default made live."""
    return re.sub(r"^( *)#(?=[^ #\n])", r"\1", text, flags=re.MULTILINE)


def test_what_is_written_is_valid_commented_and_private(gateway, workspace):
    result = gateway("init", "--workspace", str(workspace), "--checkpoints")

    assert (result.returncode, result.stderr) == (Exit.OK, "")
    path = os.path.join(gateway.home, "config.yaml")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    settings = load_configuration(Home(gateway.home), {}).settings
    assert settings.default_workspace == "project"
    assert settings.workspaces["project"].path == str(workspace)
    assert settings.checkpoints.enabled is True
    with open(path) as file:
        assert "# Checkpoints kept per workspace" in file.read()


def test_a_configuration_that_is_there_stays(gateway, workspace):
    os.makedirs(gateway.home)
    path = os.path.join(gateway.home, "config.yaml")
    with open(path, "w") as file:
        file.write("approvals: all\n")

    refused = gateway("init", "--workspace", str(workspace))
    with open(path) as file:
        assert file.read() == "approvals: all\n"
    forced = gateway("init", "--workspace", str(workspace), "--force", "--name", "mine", "--no-checkpoints")

    assert refused.returncode == Exit.ERROR
    assert "is there already and was left as it is" in refused.stderr
    assert forced.returncode == Exit.OK
    with open(f"{path}.before") as file:
        assert file.read() == "approvals: all\n"
    settings = load_configuration(Home(gateway.home), {}).settings
    assert (settings.default_workspace, settings.checkpoints.enabled) == ("mine", False)


def test_a_choice_that_is_not_valid_writes_nothing(gateway, workspace):
    result = gateway("init", "--workspace", str(workspace), "--name", "a/b")

    assert result.returncode == Exit.USAGE
    assert "is no name for a workspace" in result.stderr
    assert not os.path.exists(os.path.join(gateway.home, "config.yaml"))


def test_in_a_terminal_it_asks_for_what_is_not_given(gateway, workspace):
    screen = Screen(gateway.line("init"), env=gateway.environment, cwd=str(workspace))
    screen.shows(f"Directory that chats work in [{workspace}]:")
    screen.press("\r")
    screen.shows("Its name [project]:")
    screen.press("mine\r")
    screen.shows("Take checkpoints")
    screen.press("n\r")
    screen.shows("Telegram bot's token")
    screen.press("\r")
    screen.shows("paste deploy/slack/manifest.yaml")
    screen.shows("Slack app's token")
    screen.press("\r")

    assert screen.ends() == Exit.OK
    settings = load_configuration(Home(gateway.home), {}).settings
    assert settings.workspaces["mine"].path == str(workspace)
    assert settings.checkpoints.enabled is False


def test_in_a_terminal_a_refused_token_is_asked_for_again_and_a_good_one_sets_up_the_bot(gateway, workspace, platforms):
    arguments = ("--telegram-api-base", platforms.address, "--slack-api-base", platforms.address)
    screen = Screen(gateway.line("init", *arguments), env=gateway.environment, cwd=str(workspace))
    for _ in range(3):
        screen.press("\r")
    screen.shows("Telegram bot's token")
    screen.press("1:wrong\r")
    screen.shows("Telegram refuses the token: Unauthorized. Get the bot's token from @BotFather")
    screen.shows("Telegram bot's token", times=2)
    screen.press(f"{TELEGRAM}\r")
    screen.shows("telegram: @some_bot")
    screen.press("12345\r")
    screen.shows("Slack app's token")
    screen.press("\r")

    assert screen.ends() == Exit.OK
    telegram = load_configuration(Home(gateway.home), {}).settings.telegram
    assert (telegram.token.get_secret_value(), telegram.admins) == (TELEGRAM, (12345,))


def write_tokens(directory, **tokens: str) -> list[str]:
    """Token files, as options."""
    options = []
    for name, token in tokens.items():
        (directory / name).write_text(f"{token}\n")
        options += [f"--{name.replace('_', '-')}-token-file", str(directory / name)]
    return options


def test_good_tokens_are_written_with_the_platforms_and_the_way_to_be_admitted(gateway, workspace, platforms, tmp_path):
    tokens = write_tokens(tmp_path, telegram=TELEGRAM, slack_bot=SLACK_BOT, slack_app=SLACK_APP)
    bases = ["--telegram-api-base", platforms.address, "--slack-api-base", platforms.address]

    result = gateway("init", "--workspace", str(workspace), *tokens, *bases, "--slack-admin", "U1")

    assert (result.returncode, result.stderr) == (Exit.OK, "")
    assert "telegram: @some_bot" in result.stdout
    assert "slack: takeback in Some Team" in result.stdout
    assert "Then write to @some_bot: it gives you a code. Admit yourself with: gateway pair CODE --role admin" in (
        result.stdout
    )
    assert "Then write to takeback in Some Team: you are its admin." in result.stdout
    settings = load_configuration(Home(gateway.home), {}).settings
    assert settings.telegram.api_base == settings.slack.api_base == platforms.address
    assert (settings.telegram.admins, settings.slack.admins) == ((), ("U1",))
    assert settings.slack.app_token.get_secret_value() == SLACK_APP
    assert not any(token in result.stdout for token in (TELEGRAM, SLACK_BOT, SLACK_APP))


def test_a_refused_token_writes_nothing_and_is_not_shown(gateway, workspace, platforms, tmp_path):
    tokens = write_tokens(tmp_path, telegram="123:not-the-one")

    result = gateway("init", "--workspace", str(workspace), *tokens, "--telegram-api-base", platforms.address)

    assert result.returncode == Exit.ERROR
    assert "Telegram refuses the token: Unauthorized. Nothing was written. Get the bot's token" in result.stderr
    assert "not-the-one" not in result.stdout + result.stderr
    assert not os.path.exists(os.path.join(gateway.home, "config.yaml"))


def test_a_platform_that_cannot_be_reached_is_said_and_the_token_taken(gateway, workspace, tmp_path):
    tokens = write_tokens(tmp_path, telegram=TELEGRAM)

    result = gateway("init", "--workspace", str(workspace), *tokens, "--telegram-api-base", "http://127.0.0.1:1")

    assert result.returncode == Exit.OK
    assert "warning: Telegram cannot be asked at http://127.0.0.1:1: ClientConnectorError" in result.stderr
    assert load_configuration(Home(gateway.home), {}).settings.telegram.token.get_secret_value() == TELEGRAM


def test_half_of_slack_is_a_wrong_command_line(gateway, workspace, tmp_path):
    tokens = write_tokens(tmp_path, slack_bot=SLACK_BOT)

    result = gateway("init", "--workspace", str(workspace), *tokens, "--no-check")

    assert result.returncode == Exit.USAGE
    assert "Slack needs both tokens" in result.stderr


def test_without_a_terminal_the_workspace_has_to_be_given(gateway):
    result = gateway("init")

    assert result.returncode == Exit.USAGE
    assert "--workspace is needed where nobody can be asked" in result.stderr


def test_the_example_in_deploy_is_what_the_settings_say():
    with open(EXAMPLE, encoding="utf-8") as file:
        assert file.read() == render()


@pytest.mark.parametrize("backend", [None, *OPTIONS_OF])
def test_the_example_is_valid_as_it_is_and_with_every_key_live(tmp_path, monkeypatch, backend):
    monkeypatch.setenv("HOME", str(tmp_path))
    home = Home(str(tmp_path / "home"))
    home.ensure()
    with open(home.config, "w", encoding="utf-8") as file:
        file.write(render() if backend is None else every_key_live(backend))

    assert load_configuration(home, {}).warnings == ()


def every_key_live(backend):
    """The example with all of its keys; those of a backend are never all for one kind."""
    tree = yaml.safe_load(uncommented(render()))
    section = tree["workspaces"]["app"]["backend"]
    tree["workspaces"]["app"]["backend"] = {name: section[name] for name in OPTIONS_OF[backend]} | {"kind": backend}
    return yaml.safe_dump(tree)


def test_the_example_shows_every_key():
    tree = yaml.safe_load(uncommented(render()))

    missing = [keys.dotted(path) for path in keys.all_paths() if not _shown(tree, path)]

    # A workspace's own sections take the keys of the common ones, which are shown in full.
    assert [path for path in missing if not path.startswith(("workspaces.*.checkpoints.", "workspaces.*.agent."))] == []


def _shown(tree: object, path: tuple[str, ...]) -> bool:
    for name in path:
        if not isinstance(tree, dict):
            return False
        name = next(iter(tree)) if name == "*" else name  # noqa: PLW2901
        if name not in tree:
            return False
        tree = tree[name]
    return True
