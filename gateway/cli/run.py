"""``gateway run``."""

import sys

import click

from gateway.cli.exits import Exit, ending

NOTHING_CONFIGURED = """\
gateway: no chat platform is configured, so only this console is served, one message a line.
gateway: to talk to the agent in a terminal, use: gateway chat. To write a configuration: gateway init."""


@click.command(epilog=ending("gateway run", "TAKEBACK_LOGS__FORMAT=json gateway run"))
def command() -> Exit:
    """Run the service with every configured chat platform.

    This version has the console alone: messages come from standard input, one a line, and the service stays up when
    the input ends. SIGTERM or Ctrl-C stops it: running turns are stored as interrupted, and the exit code is 0 after
    SIGTERM. The log goes to stderr.
    """
    from gateway.app import ConsoleWishes, FrontEnd
    from gateway.cli.running import run_gateway

    click.echo(NOTHING_CONFIGURED, err=True)
    sys.stderr.flush()
    return run_gateway(ConsoleWishes(FrontEnd.LINES, stays=True), log_to_file=False)
