"""Writes the first configuration: commented, valid, and never over one that is there."""

import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from gateway.config import load_configuration
from gateway.config.example import render
from gateway.config.settings import WORKSPACE_NAME
from gateway.home import Home
from gateway.installation.credentials import SLACK_MANIFEST

SLACK_STEPS = f"""\
For Slack: open https://api.slack.com/apps?new_app=1, choose "From a manifest", and paste {SLACK_MANIFEST}. Then
"Install App" gives the token xoxb-…, and "Basic Information", App-Level Tokens, one xapp-… with connections:write."""
"""How an app comes to be, for whoever is asked for its tokens."""


class AlreadyConfigured(Exception):
    """There is a configuration, and it was left as it is."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(
            f"{path} is there already and was left as it is. Edit it, or replace it with: gateway init --force"
        )


@dataclass(frozen=True, slots=True)
class TelegramChoice:
    """The bot to serve; ``admin`` is the id of the person who sets it up, if they know it."""

    token: str = field(repr=False)
    admin: int | None = None
    api_base: str | None = None


@dataclass(frozen=True, slots=True)
class SlackChoice:
    """The Slack app to serve; ``admin`` is the id of the person who sets it up, if they know it."""

    bot_token: str = field(repr=False)
    app_token: str = field(repr=False)
    admin: str | None = None
    api_base: str | None = None


@dataclass(frozen=True, slots=True)
class Choices:
    """What a person chose."""

    workspace: str
    name: str
    checkpoints: bool
    telegram: TelegramChoice | None = None
    slack: SlackChoice | None = None


def suggested_name(path: str) -> str:
    """A name for a workspace, from its directory's; ``app`` where that is no name."""
    name = os.path.basename(os.path.normpath(path))
    return name if WORKSPACE_NAME.fullmatch(name) else "app"


def write_configuration(home: Home, environment: Mapping[str, str], choices: Choices, *, force: bool) -> str | None:
    """Write the configuration and return where the one before it went, if there was one. Blocking.

    Raises:
        AlreadyConfigured: there is one, and ``force`` is not given.
        ConfigInvalid: what was chosen is not valid; nothing was written.
        HomeUnusable: there is no home to write to.
        OSError: it could not be written.
    """
    tree = _tree(choices)
    home.ensure()
    if os.path.lexists(home.config) and not force:
        raise AlreadyConfigured(home.config)
    _prove(tree, environment)
    set_aside = None
    if os.path.lexists(home.config):
        set_aside = f"{home.config}.before"
        os.replace(home.config, set_aside)
    _write(home, render(tree))
    return set_aside


def _tree(choices: Choices) -> dict[str, Any]:
    """What was chosen, shaped like the file."""
    tree: dict[str, Any] = {
        "checkpoints": {"enabled": choices.checkpoints},
        "default_workspace": choices.name,
        "workspaces": {choices.name: {"path": choices.workspace}},
    }
    for name, platform in (("telegram", choices.telegram), ("slack", choices.slack)):
        if platform is not None:
            chosen = {key: value for key, value in asdict(platform).items() if value is not None}
            admin = chosen.pop("admin", None)
            tree[name] = chosen | ({} if admin is None else {"admins": [admin]})
    return tree


def _prove(tree: Mapping[str, Any], environment: Mapping[str, str]) -> None:
    """Load what is about to be written, from a home of its own."""
    with tempfile.TemporaryDirectory() as scratch:
        elsewhere = Home(scratch)
        _write(elsewhere, render(tree))
        load_configuration(elsewhere, environment)


def _write(home: Home, text: str) -> None:
    """Put the file there whole, readable by its owner alone."""
    descriptor, temporary = tempfile.mkstemp(prefix=".config-", dir=home.path)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, home.config)
