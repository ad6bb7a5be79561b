"""``gateway sessions``: conversations, as the database holds them."""

import json
import os
from typing import TYPE_CHECKING, Any

import click

from gateway.cli import opening
from gateway.cli.exits import Exit, ending

if TYPE_CHECKING:
    from gateway.turns.transcripts import Transcript


@click.group(name="sessions", epilog=ending("gateway sessions list", "gateway sessions show s-1a2b3c4d5e"))
def command() -> None:
    """Look at conversations and export them."""


@command.command(name="list", epilog=ending("gateway sessions list", "gateway sessions list --limit 5 --json"))
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many, newest first.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
def list_sessions(limit: int, *, as_json: bool) -> Exit:
    """List sessions, newest first."""
    import anyio

    from gateway.render import counted, name
    from gateway.turns.transcripts import read_sessions

    path = opening.home().database
    sessions = anyio.run(read_sessions, path, limit) if os.path.exists(path) else []
    if as_json:
        click.echo(json.dumps(sessions, indent=2))
        return Exit.OK
    if not sessions:
        click.echo("There are no sessions yet. Begin one with: gateway chat")
    for session in sessions:
        state = "ended" if session["ended_at"] else "current"
        click.echo(
            f"{session['id']}  {session['started_at'][:16].replace('T', ' ')}  {state:<7}  "
            f"{name(session['adapter'])}:{name(session['chat'])}  {name(session['workspace'])}  "
            f"{counted(session['turns'], 'turn')}"
        )
    return Exit.OK


@command.command(name="show", epilog=ending("gateway sessions show s-1a2b3c4d5e"))
@click.argument("session")
def show(session: str) -> Exit:
    """Show a conversation, taken-back turns included."""
    from gateway.render import name

    transcript = _transcript(session)
    head = transcript["session"]
    where = f"{name(head['workspace'])} ({name(head['root'])})"
    click.echo(f"Session {head['id']} in {where}, begun {head['started_at'][:16].replace('T', ' ')}")
    for turn in transcript["turns"]:
        taken_back = "" if turn["active"] else ", taken back"
        click.echo(f"\nTurn {turn['id']} ({turn['state']}{taken_back})")
        for message in turn["messages"]:
            tool = f" {message['tool_name']}" if message["tool_name"] else ""
            click.echo(f"  {message['role']}{tool}:")
            click.echo("\n".join(f"    {line}" for line in _printable(message["content"]).splitlines()))
    return Exit.OK


@command.command(name="export", epilog=ending("gateway sessions export s-1a2b3c4d5e > session.json"))
@click.argument("session")
def export(session: str) -> Exit:
    """Print a whole session as JSON: its turns, their messages and tool calls, its restores."""
    click.echo(json.dumps(_transcript(session), indent=2))
    return Exit.OK


def _transcript(session: str) -> "Transcript":
    import anyio

    from gateway.state.errors import UnknownSession
    from gateway.turns.transcripts import read_transcript

    path = opening.home().database
    if not os.path.exists(path):
        raise UnknownSession(session)
    return anyio.run(read_transcript, path, session)


def _printable(text: Any) -> str:
    return "".join(mark if mark.isprintable() or mark in "\n\t" else repr(mark)[1:-1] for mark in str(text))
