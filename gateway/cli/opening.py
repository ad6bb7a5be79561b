"""What most commands begin with: the home, the configuration, the engine. The only reader of the environment."""

import os
from typing import TYPE_CHECKING, Any

import click

from gateway.home import Home

if TYPE_CHECKING:
    from engine.api import Engine, PrunePolicy, WorkspaceRule
    from gateway.config import Configuration, Settings


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


def engine() -> "Engine":
    """Make the engine over the home's store, without reading the configuration: for looking and tidying."""
    from engine.api import Engine

    place = home()
    return Engine(
        place.checkpoints,
        user_home=os.path.expanduser("~"),
        lock_path=place.lock,
        search_path=os.environ.get("PATH", os.defpath),
    )


def prune_policy(engine: "Engine", *, retention_days: float | None, max_size_mb: float | None) -> "PrunePolicy":
    """What the configuration says may be dropped, with the command line over it.

    Raises:
        ConfigInvalid: the configuration cannot be used.
    """
    from engine.api import PrunePolicy
    from gateway.config.settings import MIB

    settings = configuration().settings
    common = settings.checkpoints
    cap_mb = common.max_total_size_mb if max_size_mb is None else max_size_mb
    return PrunePolicy(
        retention_days=common.retention_days if retention_days is None else retention_days,
        max_snapshots=common.max_snapshots,
        max_size_bytes=int(cap_mb * MIB),
        rules=_rules(engine, settings, retention_days),
    )


def _rules(engine: "Engine", settings: "Settings", retention_days: float | None) -> "dict[str, WorkspaceRule]":
    """What single workspaces override; one whose directory is not there is left to the common rules."""
    from engine.api import WorkspaceRule
    from engine.errors import EngineError

    rules = {}
    for name, workspace in settings.workspaces.items():
        if workspace.backend.is_container or not workspace.checkpoints.model_fields_set:
            continue
        own = settings.checkpoints_of(name)
        try:
            opened = engine.open_workspace(workspace.path)
        except EngineError:
            continue
        days = own.retention_days if retention_days is None else retention_days
        rules[opened.hash] = WorkspaceRule(days, own.max_snapshots)
    return rules
