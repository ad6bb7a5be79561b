"""``gateway checkpoints import``: take over the history of a store that other software made."""

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from gateway.cli import opening
from gateway.cli.exits import Exit, ending
from gateway.cli.plain import print_json, printable
from gateway.cli.progress import watched

if TYPE_CHECKING:
    from engine.api import ImportReport


@click.command(
    name="import",
    epilog=ending(
        "gateway checkpoints import ~/.other/checkpoints --dry-run", "gateway checkpoints import ~/.other/checkpoints"
    ),
)
@click.argument("directory", type=click.Path(exists=True, file_okay=False))
@click.option("--dry-run", is_flag=True, help="Only say what would be imported.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
def command(directory: str, *, dry_run: bool, as_json: bool) -> Exit:
    """Take over the checkpoints of a store that other software made.

    DIRECTORY is a bare git repository with projects/*.json in it, or holds one as store/. Nothing in it is changed, and
    no program it names is run. What was imported before is not imported twice. What cannot be trusted is left out and
    named.

    Imported checkpoints come before all that were taken here and obey the same rules: the next prune keeps
    checkpoints.max_snapshots of each workspace, so raise that first to keep more.
    """
    with watched(shown=not as_json) as watch:
        report = opening.engine().upkeep.import_store(
            directory, dry_run=dry_run, progress=watch.progress, cancelled=watch.cancelled
        )
    if as_json:
        print_json({"imported": report.imported, "complete": report.complete, **asdict(report)})
    else:
        click.echo(report_text(report))
    for workspace in report.workspaces:
        if workspace.error is not None:
            click.echo(f"gateway: {printable(workspace.workdir)}: {workspace.error}", err=True)
    if report.cancelled:
        return Exit.INTERRUPTED
    return Exit.OK if report.complete else Exit.PARTLY


def report_text(report: "ImportReport") -> str:
    """What an import took over, or would, for people."""
    lines = []
    for workspace in report.workspaces:
        where = printable(workspace.workdir)
        if workspace.error is None:
            was = "was" if workspace.known == 1 else "were"
            known = f" ({workspace.known} {was} imported before)" if workspace.known else ""
            lines.append(f"{where}: {_count(workspace.imported)}{known}")
        lines += [f"  left out: {item.what}: {item.why}" for item in workspace.left_out]
    lines += [f"left out: {item.what}: {item.why}" for item in report.left_out]
    verb = "Would import" if report.dry_run else "Imported"
    lines.append(f"{verb} {_count(report.imported)} from {printable(report.source)}.")
    if report.cancelled:
        lines.append("Stopped before the end; import again to go on.")
    return "\n".join(lines)


def _count(number: int) -> str:
    return "1 checkpoint" if number == 1 else f"{number} checkpoints"
