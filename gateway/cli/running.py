"""Runs the gateway for a command: configuration, log, event loop, and what its end means as an exit code."""

import signal
from dataclasses import replace

import anyio
import click

from gateway.app import ConsoleWishes, console_service
from gateway.cli import opening
from gateway.cli.exits import Exit
from gateway.config import Settings
from gateway.logs import logging_to
from gateway.service import serve

NOTHING_CONFIGURED = """\
gateway: no chat platform is configured, so only this console is served, one message a line.
gateway: to talk to the agent in a terminal, use: gateway chat. To write a configuration: gateway init."""

NO_WORKSPACE = """\
gateway: no workspace is configured, so chats work in a small sample. To name yours: gateway init."""


def say_unconfigured(settings: Settings) -> None:
    """Say it where no platform is configured, or none of the directories that its chats are for."""
    if settings.telegram is None and settings.slack is None:
        click.echo(NOTHING_CONFIGURED, err=True)
    elif not settings.workspaces:
        click.echo(NO_WORKSPACE, err=True)


def run_gateway(wishes: ConsoleWishes, *, log_to_file: bool) -> Exit:
    """Run until the end of input or a signal."""
    configuration = opening.configuration()
    opening.conceal_secrets(configuration)
    if wishes.stays:
        say_unconfigured(configuration.settings)
    logs = configuration.settings.logs
    with logging_to(
        configuration.home.log if log_to_file else None,
        level=logs.level,
        as_json=logs.format == "json",
        secrets=configuration.secrets(),
    ):
        service = console_service(configuration, wishes)
        if service.stays:
            service = replace(service, supervisor=opening.supervisor())
        stopped_by = anyio.run(serve, service)
    return Exit.INTERRUPTED if stopped_by is signal.SIGINT else Exit.OK
