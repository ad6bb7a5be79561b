"""What most commands begin with: the home, the configuration, the engine. The only reader of the environment."""

import os
from typing import TYPE_CHECKING, Any

import click

from gateway.home import Home

if TYPE_CHECKING:
    from engine.api import Engine
    from gateway.config import Configuration, Settings
    from gateway.operation.supervisor import Supervisor


def home() -> Home:
    """The home that the environment names."""
    return Home.from_environment(os.environ)


def configuration(overrides: dict[str, Any] | None = None) -> "Configuration":
    """Load the configuration; what is odd about it is said on stderr.

    Raises:
        ConfigInvalid: it cannot be used.
        HomeUnusable: there is no home to read it from.
    """
    from gateway.config import load_configuration

    place = home()
    place.ensure()
    loaded = load_configuration(place, os.environ, overrides)
    for warning in loaded.warnings:
        click.echo(f"gateway: warning: {warning}", err=True)
    return loaded


def supervisor() -> "Supervisor":
    """Find who started this process and watches over it, if anybody does."""
    from gateway.operation.supervisor import Supervisor

    return Supervisor.from_environment(os.environ)


def conceal_secrets(configuration: "Configuration") -> None:
    """Keep the secrets that the environment held from the commands of agents; called once they have been read."""
    from gateway.operation.concealment import conceal

    secrets = configuration.secrets()
    held = [name for name, value in os.environ.items() if any(secret in value for secret in secrets if secret)]
    own = {name for name in held if name.startswith("TAKEBACK_") or name in configuration.model_keys}
    conceal(os.environ, drop=own, keep=[name for name in held if name not in own])


def find_settings() -> "Settings | None":
    """The settings, for those who can do without: ``None`` where they cannot be used. Nothing is made or said."""
    from gateway.config import ConfigInvalid, load_configuration

    try:
        return load_configuration(home(), os.environ).settings
    except ConfigInvalid:
        return None


def engine() -> "Engine":
    """Make the engine over the home's store, without reading the configuration: for looking and tidying."""
    from engine.api import Engine

    place = home()
    return Engine(
        place.checkpoints,
        user_home=os.path.expanduser("~"),
        search_path=os.environ.get("PATH", os.defpath),
    )
