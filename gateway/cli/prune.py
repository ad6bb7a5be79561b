"""``gateway prune``: drop old checkpoints by the rules, and reclaim their space."""

import math
import sys
from collections import Counter
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from gateway.cli import opening
from gateway.cli.exits import Exit, ending
from gateway.cli.humane import size
from gateway.cli.plain import print_json, printable
from gateway.cli.policy import prune_policy
from gateway.cli.progress import watched
from gateway.render import counted

if TYPE_CHECKING:
    from engine.api import Decision, OrphanPreview, PruneReport


class _Amount(click.FloatRange):
    """A number above nothing that is one; what is written as ``nan`` compares as if it were in every range."""

    def __init__(self) -> None:
        super().__init__(min=0, min_open=True, max=1_000_000_000)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse what is no number."""
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return number


AMOUNT = _Amount()


@click.command(
    name="prune",
    epilog=ending(
        "gateway prune --dry-run",
        "gateway prune --retention-days 30",
        "gateway prune --orphans --yes --json",
    ),
)
@click.option("--retention-days", type=AMOUNT, help="Instead of checkpoints.retention_days.")
@click.option("--max-size-mb", type=AMOUNT, help="Instead of checkpoints.max_total_size_mb.")
@click.option("--orphans", is_flag=True, help="Also drop workspaces whose deletion can be observed; shown first.")
@click.option("--yes", is_flag=True, help="Do not ask before dropping orphans.")
@click.option("--dry-run", is_flag=True, help="Only say what would be dropped.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
def command(
    retention_days: float | None,
    max_size_mb: float | None,
    *,
    orphans: bool,
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> Exit:
    """Drop old checkpoints and reclaim their space.

    Works at once, however long ago the last time was, and is safe while gateways run. Every workspace that is in use
    keeps its newest checkpoint. A workspace whose directory is not found is only dropped with --orphans, and only where
    the directory that held it proves that it was deleted; an unmounted disk proves nothing.
    """
    from gateway.app import make_engine

    configuration = opening.configuration()
    engine = make_engine(configuration)
    policy, unknown = prune_policy(
        configuration.settings, engine, retention_days=retention_days, max_size_mb=max_size_mb
    )
    if unknown is not None:
        click.echo(f"gateway: warning: {unknown}", err=True)
    if orphans:
        preview = engine.upkeep.orphans()
        # Scripts that read JSON get nothing else on stdout; whoever is asked sees what it is about all the same.
        if not as_json or not (yes or dry_run):
            _show_orphans(preview, apart=as_json)
        if preview.gone and not (yes or dry_run) and not _agreed(apart=as_json):
            click.echo("Nothing was dropped.", err=as_json)
            return Exit.ERROR
        policy = replace(policy, orphans=preview)
    with watched(shown=not as_json) as watch:
        report = engine.upkeep.prune(
            replace(policy, dry_run=dry_run), progress=watch.progress, cancelled=watch.cancelled
        )
    if as_json:
        print_json({"outcome": report.outcome.value, "freed_bytes": report.freed_bytes, **asdict(report)})
    else:
        click.echo(report_text(report))
    for error in report.errors:
        click.echo(f"gateway: {error}", err=True)
    if report.errors:
        return Exit.PARTLY if report.decisions or report.swept or report.freed_bytes else Exit.ERROR
    return Exit.INTERRUPTED if report.cancelled else Exit.OK


def _agreed(*, apart: bool) -> bool:
    shown = sys.stderr if apart else sys.stdout
    if not (sys.stdin.isatty() and shown.isatty()):
        raise click.UsageError("--yes is needed where nobody can be asked; --dry-run shows what would be dropped")
    return click.confirm("Drop these for good?", default=False, err=apart)


def _show_orphans(preview: "OrphanPreview", *, apart: bool) -> None:
    for orphan in preview.gone:
        click.echo(f"gone: {printable(orphan.workdir)} ({counted(len(orphan.checkpoints), 'checkpoint')})", err=apart)
    if not preview.gone:
        click.echo("No workspace is observably gone.", err=apart)


def report_text(report: "PruneReport") -> str:
    """What a prune did, or would do, for people; a dry run names every decision."""
    lines = []
    if report.dry_run:
        lines += [f"would drop {_named(decision)}: {decision.reason}" for decision in report.decisions]
    lines += [f"kept: {printable(kept.name)}: {kept.reason}" for kept in report.kept]
    lines += [f"note: {printable(note)}" for note in report.notes]
    counts = Counter(decision.target.value for decision in report.decisions)
    what = ", ".join(f"{count} {target}{'' if count == 1 else 's'}" for target, count in sorted(counts.items()))
    verb = "Would drop" if report.dry_run else "Dropped"
    freed = f"{'about ' if report.dry_run else ''}{size(report.freed_bytes)}"
    lines.append(f"{verb} {what or 'nothing'}; {freed} {'would be ' if report.dry_run else ''}freed.")
    if report.cancelled:
        lines.append("Stopped before the end; what was dropped by then is gone, the rest is whole.")
    return "\n".join(lines)


def _named(decision: "Decision") -> str:
    """``checkpoint 1bea715c of /home/you/code/app``; ids are cut to what people type, names are not."""
    name = decision.name[:8] if decision.name.isalnum() else decision.name
    return f"{decision.target.value} {name}" + (f" of {printable(decision.workdir)}" if decision.workdir else "")
