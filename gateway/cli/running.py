"""Runs the gateway for a command: configuration, log, event loop, and what its end means as an exit code."""

import signal

import anyio

from gateway.app import ConsoleWishes, console_service
from gateway.cli import opening
from gateway.cli.exits import Exit
from gateway.logs import logging_to
from gateway.service import serve


def run_gateway(wishes: ConsoleWishes, *, log_to_file: bool) -> Exit:
    """Run until the end of input or a signal."""
    configuration = opening.configuration()
    logs = configuration.settings.logs
    with logging_to(
        configuration.home.log if log_to_file else None,
        level=logs.level,
        as_json=logs.format == "json",
        secrets=configuration.settings.secrets(),
    ):
        stopped_by = anyio.run(serve, console_service(configuration, wishes))
    return Exit.INTERRUPTED if stopped_by is signal.SIGINT else Exit.OK
