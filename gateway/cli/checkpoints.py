"""``gateway checkpoints``: the store, looked at and tidied."""

import os
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from gateway.cli import opening
from gateway.cli.accounting import accounting_lines, find_prunable
from gateway.cli.exits import Exit, ending
from gateway.cli.humane import age, size
from gateway.cli.imports import command as import_command
from gateway.cli.plain import print_json, printable
from gateway.cli.progress import watched
from gateway.cli.prune import command as prune_command
from gateway.render import counted

if TYPE_CHECKING:
    from engine.api import ClearPreview, ClearReport, ProjectStatus, StoreStatus, VerifyReport
    from engine.model import Checkpoint

WORKDIR_WIDTH = 35
_LOST_RESTORE = "without its checkpoints it cannot be finished."
_LOST_COMMAND = "what it changes could then not be taken back."
MARKS = {"error": "✗", "warning": "!", "info": "·"}

as_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")


@click.group(
    name="checkpoints",
    invoke_without_command=True,
    epilog=ending("gateway checkpoints", "gateway checkpoints list ~/code/app", "gateway checkpoints verify"),
)
@as_json_option
@click.pass_context
def command(ctx: click.Context, *, as_json: bool) -> Exit | None:
    """Look at the checkpoint store and tidy it.

    Without a subcommand, shows the status.
    """
    if ctx.invoked_subcommand is None:
        return show_status(as_json=as_json)
    if as_json:
        raise click.UsageError(f"--json belongs behind {ctx.invoked_subcommand}")
    return None


@command.command(epilog=ending("gateway checkpoints status", "gateway checkpoints status --json"))
@as_json_option
def status(*, as_json: bool) -> Exit:
    """Show how large the store is, what it holds, and where the space goes.

    What a workspace alone holds is what dropping all of its checkpoints would free. The largest files are named with
    the checkpoints that hold them.

    A workspace is an orphan when its directory is not found: it may be deleted, or on a disk that is not mounted.
    """
    return show_status(as_json=as_json)


def show_status(*, as_json: bool) -> Exit:
    """Print the status; a store that cannot be read is an error, shown after what can be said."""
    engine = opening.engine()
    found = engine.upkeep.status()
    accounting = engine.upkeep.account()
    prunable = find_prunable(engine) if found.exists else None
    if as_json:
        print_json({**asdict(found), "accounting": asdict(accounting), "prune": prunable})
    else:
        # Why neither can be read is said once, below.
        known = () if found.problem is not None else accounting_lines(accounting, prunable)
        click.echo("\n".join([status_text(found), *known]))
    if found.problem is not None:
        click.echo(f"gateway: {found.problem}", err=True)
        return Exit.ERROR
    return Exit.OK


def status_text(found: "StoreStatus") -> str:
    """The status for people."""
    lines = [
        f"Checkpoint base: {printable(found.base)}",
    ]
    if found.problem is not None and not found.exists:
        return lines[0]  # nothing of it is known
    lines += [
        f"Total size:      {size(found.total_bytes)}",
        f"  store/         {size(found.store_bytes)}",
        f"  legacy-*       {size(found.legacy_bytes)}",
        f"Projects:        {len(found.projects)}",
    ]
    if found.last_prune is not None:
        last = found.last_prune
        failed = f", {counted(last.errors, 'error')}" if last.errors else ""
        lines.append(
            f"Last prune:      {age(last.at)} ({last.dropped} dropped, {size(last.freed_bytes)} freed{failed})"
        )
    if found.quarantined:
        count = len(found.quarantined)
        what = "1 name leads" if count == 1 else f"{count} names lead"
        lines.append(f"Set aside:       {what} to nothing; see: gateway checkpoints verify")
    if found.projects:
        width = max(WORKDIR_WIDTH, *(len(_workdir(project)) for project in found.projects))
        lines += ["", f"  {'WORKDIR':<{width}}  COMMITS  LAST TOUCH  STATE"]
        lines += [
            f"  {_workdir(project):<{width}}  {project.checkpoints:>7}  {_touched(project):>10}  {project.state}"
            for project in found.projects
        ]
    if found.legacy:
        lines += ["", f"Legacy archives ({len(found.legacy)}):"]
        lines += [f"  {printable(archive.name)}   {size(archive.size_bytes)}" for archive in found.legacy]
        lines.append("Clear with: gateway checkpoints clear-legacy")
    return "\n".join(lines)


def _touched(project: "ProjectStatus") -> str:
    # The store notes it to the minute.
    return age(project.last_touch, exact_to_s=60)


def _workdir(project: "ProjectStatus") -> str:
    if project.workdir is None:
        return f"(unknown: {project.hash})"
    return printable(project.workdir)


@command.command(name="list", epilog=ending("gateway checkpoints list", "gateway checkpoints list ~/code/app --json"))
@click.argument("directory", required=False, type=click.Path(resolve_path=True))
@as_json_option
def list_checkpoints(directory: str | None, *, as_json: bool) -> Exit:
    """List the checkpoints of every workspace, or of the one at DIRECTORY, newest first."""
    from engine.errors import EngineError
    from engine.model import Workspace

    engine = opening.engine()
    boxed = _containers()
    projects = [project for project in engine.upkeep.projects() if directory in (None, project.workdir)]
    if directory is not None and not projects:
        click.echo(f"gateway: the store has no checkpoints of {directory}. See: gateway checkpoints", err=True)
        return Exit.ERROR
    failed = False
    trees = []
    for project in projects:
        root = project.workdir or ""
        try:
            held = engine.checkpoints(Workspace(root, root, project.hash))
        except EngineError as error:
            click.echo(f"gateway: {_workdir(project)}: {error}", err=True)
            failed = True
            continue
        containers = {name: kind for path, name, kind in boxed if root and f"{path}/".startswith(f"{root}/")}
        if as_json:
            listed = [{"number": number, **asdict(item)} for number, item in enumerate(held, 1)]
            trees.append(
                {"workdir": project.workdir, "hash": project.hash, "checkpoints": listed, "containers": containers}
            )
        else:
            click.echo(_listed(_workdir(project), held, containers))
    if as_json:
        print_json(trees)
    elif not projects:
        click.echo("There are no checkpoints yet.")
    return Exit.PARTLY if failed else Exit.OK


def _listed(workdir: str, held: "list[Checkpoint]", containers: dict[str, str]) -> str:
    from gateway.commands.failures import container_reason
    from gateway.listing import entry

    lines = [entry(number, checkpoint) for number, checkpoint in enumerate(held, 1)]
    reasons = [f"  In the workspace {name}: {container_reason(kind)}" for name, kind in containers.items()]
    return "\n".join([f"{workdir}:", *(lines or ["  none"]), *reasons, ""])


def _containers() -> list[tuple[str, str, str]]:
    """The workspaces whose commands run in a container: real path, name and kind of each."""
    settings = opening.find_settings()
    if settings is None:
        return []
    return [
        (os.path.realpath(workspace.path), name, workspace.backend.kind)
        for name, workspace in settings.workspaces.items()
        if workspace.backend.is_container
    ]


@command.command(epilog=ending("gateway checkpoints clear", "gateway checkpoints clear -f"))
@click.option("-f", "--force", is_flag=True, help="Do not ask, and give up restores that a crash cut off.")
@as_json_option
def clear(*, force: bool, as_json: bool) -> Exit:
    """Delete every checkpoint of every workspace.

    Says what would be lost and asks. Files in workspaces are never touched.
    """
    upkeep = opening.engine().upkeep
    if not force:
        if not (sys.stdin.isatty() and (sys.stderr if as_json else sys.stdout).isatty()):
            raise click.UsageError("-f is needed where nobody can be asked")
        click.echo(_would_clear(upkeep.preview_clear()), err=as_json)
        if not click.confirm("Delete them?", default=False, err=as_json):
            click.echo("Nothing was deleted.", err=as_json)
            return Exit.ERROR
    return _cleared(upkeep.clear(give_up_interrupted=force), as_json=as_json)


def _would_clear(preview: "ClearPreview") -> str:
    count = counted(preview.checkpoints, "checkpoint")
    archives = counted(len(preview.legacy), "legacy archive")
    what = f"{count} of {counted(len(preview.workspaces), 'workspace')} and {archives}"
    if preview.problem is not None:
        what = f"every checkpoint (how many cannot be read: {printable(preview.problem)}) and {archives}"
    return "\n".join(
        [
            f"This deletes {what} ({size(preview.size_bytes)}) for good.",
            *(f"A restore of {printable(where)} was cut off; {_LOST_RESTORE}" for where in preview.interrupted),
            *(f"A command is under way in {printable(where)}; {_LOST_COMMAND}" for where in preview.under_way),
        ]
    )


@command.command(name="clear-legacy", epilog=ending("gateway checkpoints clear-legacy"))
@as_json_option
def clear_legacy(*, as_json: bool) -> Exit:
    """Delete the archives of the older layout."""
    return _cleared(opening.engine().upkeep.clear_archives(), as_json=as_json)


def _cleared(report: "ClearReport", *, as_json: bool) -> Exit:
    if as_json:
        print_json(report)
    else:
        for name in report.deleted:
            click.echo(f"Deleted {printable(name)}")
        nothing = "There was nothing to delete." if report.complete else "Nothing was deleted."
        click.echo(f"{size(report.freed_bytes)} freed." if report.deleted else nothing)
    for error in report.errors:
        click.echo(f"gateway: {error}", err=True)
    if report.complete:
        return Exit.OK
    return Exit.PARTLY if report.deleted else Exit.ERROR


@command.command(epilog=ending("gateway checkpoints verify", "gateway checkpoints verify --json"))
@as_json_option
def verify(*, as_json: bool) -> Exit:
    """Prove that everything listed can be restored.

    Reads every object, and rehearses a restore of each newest checkpoint into a scratch directory. The exit code is 0
    when the store is healthy, 1 when it is not.
    """
    with watched(shown=not as_json) as watch:
        report = opening.engine().upkeep.verify(progress=watch.progress, cancelled=watch.cancelled)
    if as_json:
        print_json({"healthy": report.healthy, **asdict(report)})
    else:
        click.echo(_verified(report))
    if report.cancelled:
        return Exit.INTERRUPTED
    return Exit.OK if report.healthy else Exit.ERROR


def _verified(report: "VerifyReport") -> str:
    lines = []
    for finding in report.findings:
        lines += [f"{MARKS[finding.severity.value]} {printable(finding.what)}", f"    → {printable(finding.next_step)}"]
    lines.append(
        f"{counted(report.checkpoints, 'checkpoint')} of {counted(report.workspaces, 'workspace')} proved, "
        f"{counted(report.objects, 'object')} ({size(report.size_bytes)}) read, "
        f"{counted(report.rehearsed, 'restore')} rehearsed."
    )
    if report.cancelled:
        lines.append("Stopped before the end: nothing is proved of the rest.")
    else:
        lines.append("The store is healthy." if report.healthy else "The store is NOT healthy; see above what to do.")
    return "\n".join(lines)


command.add_command(prune_command, name="prune")
command.add_command(import_command)
