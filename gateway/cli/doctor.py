"""``gateway doctor``."""

import json
import os
from dataclasses import asdict

import click

from gateway.cli import opening
from gateway.cli.exits import Exit, ending

MARKS = {"ok": "✓", "warning": "!", "problem": "✗"}


@click.command(epilog=ending("gateway doctor", "gateway doctor --json"))
@click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
def command(*, as_json: bool) -> Exit:
    """Check this installation and say what to do about what is wrong.

    Looks at Python, SQLite, git, the home, the configuration, the workspaces, the database, the store, the disk and the
    clock; asks the chat platforms whether the tokens are good, and a running service how it is; compares installed
    systemd units with those of this version. Repairs nothing. The exit code is 0 when there is no problem (warnings are
    none), else 1.
    """
    from gateway.installation.examination import examine
    from gateway.installation.findings import Level

    findings = examine(opening.home(), os.environ, opening.engine())
    healthy = not any(finding.level is Level.PROBLEM for finding in findings)
    if as_json:
        report = {"healthy": healthy, "findings": [asdict(finding) for finding in findings]}
        click.echo(json.dumps(report, indent=2))
        return Exit.OK if healthy else Exit.ERROR
    for finding in findings:
        click.echo(f"{MARKS[finding.level.value]} {finding.name}: {finding.detail}")
        if finding.remedy:
            click.echo(f"    → {finding.remedy}")
    click.echo("\nEverything is well." if healthy else "\nThere are problems; each says what to do.")
    return Exit.OK if healthy else Exit.ERROR
