"""``gateway run``."""

import click

from gateway.cli.exits import Exit, ending


@click.command(epilog=ending("gateway run", "TAKEBACK_LOGS__FORMAT=json gateway run"))
def command() -> Exit:
    """Run the service with every configured chat platform.

    Telegram is served once telegram.token is set, Slack once slack.bot_token and slack.app_token are (with mode http,
    slack.signing_secret instead of the latter). Whoever writes to a bot is told how to be admitted. This console is
    served too: messages come from standard input, one a line, and the service stays up when the input ends. SIGTERM or
    Ctrl-C stops it: running turns are stored as interrupted, and the exit code is 0 after SIGTERM. The log goes to
    stderr.
    """
    from gateway.app import ConsoleWishes, FrontEnd
    from gateway.cli.running import run_gateway

    return run_gateway(ConsoleWishes(FrontEnd.LINES, stays=True), log_to_file=False)
