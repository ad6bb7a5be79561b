"""``gateway version``."""

import click

from gateway.cli.exits import ending


def version_line() -> str:
    """The name and version of the installed distribution."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"takeback {version('takeback')}"
    except PackageNotFoundError:
        return "takeback (not installed: run from its source)"


@click.command(epilog=ending("gateway version"))
def command() -> None:
    """Show the version."""
    click.echo(version_line())
