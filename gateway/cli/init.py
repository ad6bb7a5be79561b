"""``gateway init``."""

import os
import sys

import click

from gateway.cli import opening
from gateway.cli.exits import Exit, ending


@click.command(
    epilog=ending(
        "gateway init",
        "gateway init --workspace ~/code/app --checkpoints",
        "gateway init --workspace /srv/app --name app --no-checkpoints --force",
    )
)
@click.option(
    "--workspace",
    type=click.Path(exists=True, file_okay=False, resolve_path=True),
    help="The directory that chats work in.",
)
@click.option("--name", help="The workspace's name; its directory's unless given.")
@click.option("--checkpoints/--no-checkpoints", default=None, help="Whether checkpoints are taken (default: they are).")
@click.option("--force", is_flag=True, help="Replace a configuration that is there; it is kept as config.yaml.before.")
def command(workspace: str | None, name: str | None, *, checkpoints: bool | None, force: bool) -> Exit:
    """Write a commented configuration.

    In a terminal, asks for what is not given as an option. Without one, --workspace is needed and nothing is asked.
    """
    from gateway.setup import AlreadyConfigured, Choices, suggested_name, write_configuration

    asks = sys.stdin.isatty() and sys.stdout.isatty()
    if workspace is None:
        if not asks:
            raise click.UsageError("--workspace is needed where nobody can be asked")
        kind = click.Path(exists=True, file_okay=False, resolve_path=True)
        workspace = str(click.prompt("Directory that chats work in", default=os.getcwd(), type=kind))
        if name is None:
            name = click.prompt("Its name", default=suggested_name(workspace))
        if checkpoints is None:
            checkpoints = click.confirm("Take checkpoints, so that every change can be taken back?", default=True)
    home = opening.home()
    choices = Choices(workspace, name or suggested_name(workspace), checkpoints is not False)
    try:
        before = write_configuration(home, os.environ, choices, force=force)
    except AlreadyConfigured as error:
        click.echo(f"gateway: {error}", err=True)
        return Exit.ERROR
    except OSError as error:
        click.echo(f"gateway: {home.config} could not be written: {error.strerror}", err=True)
        return Exit.ERROR
    if before is not None:
        click.echo(f"The configuration that was there is kept as {before}.")
    click.echo(f"Written: {home.config}\nStart talking with: gateway chat")
    return Exit.OK
