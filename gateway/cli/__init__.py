"""The command ``gateway``: finds the command asked for, and turns what goes wrong into a sentence and an exit code.

Commands are imported when they are run, so that help and version answer at once.
"""

import difflib
import importlib
import io
import os
import shlex
import sys
from typing import NoReturn

import click

from gateway.cli.exits import Exit, cause_of, code_of, ending, sentence_of

COMMANDS = {
    "chat": "Talk to the agent in this terminal.",
    "run": "Run the service with every configured chat platform.",
    "checkpoints": "Look at the checkpoint store and tidy it.",
    "prune": "Drop old checkpoints and reclaim their space.",
    "sessions": "Look at conversations and export them.",
    "pair": "Admit somebody by the code they were given.",
    "doctor": "Check this installation and say what to do about what is wrong.",
    "init": "Write a commented configuration.",
    "version": "Show the version.",
}


class Commands(click.Group):
    """The commands by name, each in a module of its own."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Give the names in the order of the help text."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import one command."""
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"gateway.cli.{cmd_name}").command
        if not isinstance(command, click.Command):
            raise TypeError(f"gateway.cli.{cmd_name}.command is no command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that a word names; of a word that names none, say what may have been meant."""
        if not args[0].startswith("-") and args[0] not in COMMANDS:
            raise click.UsageError(f"No such command {args[0]!r}.{_meant(args[0])}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _meant(word: str) -> str:
    if os.sep in word or os.path.isdir(word):
        return f" To work in a directory: gateway chat --workspace {shlex.quote(word)}"
    near = difflib.get_close_matches(word, COMMANDS, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def _show_version(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's
    if value:
        from gateway.cli.version import version_line

        click.echo(version_line())
        ctx.exit()


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=ending("gateway chat --workspace ~/code/app --checkpoints", "gateway checkpoints", "gateway chat --help"),
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show the version."
)
def cli() -> None:
    """A coding agent in your chat whose every change can be taken back.

    Everything it keeps lives in ~/.takeback; TAKEBACK_HOME names another directory.
    """


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    _ensure_standard_streams()
    try:
        code = cli.main(args=arguments, prog_name="gateway", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Abort:
        code = Exit.INTERRUPTED
    except KeyboardInterrupt:
        code = Exit.INTERRUPTED
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except BrokenPipeError:  # whoever reads the output has seen enough
        _discard_output()
        code = Exit.ERROR
    except Exception as error:
        cause = cause_of(error)
        code = code_of(cause)
        if code is None:
            raise
        click.echo(f"gateway: {sentence_of(cause)}", err=True)
        _discard_output()
    sys.exit(int(code or 0))


def _discard_output() -> None:
    """Give what is left of the output to nobody: the interpreter must not fail on flushing it."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _ensure_standard_streams() -> None:
    """Open what was closed before the start: else the database would get the number of standard error."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR)
            if descriptor != number:
                os.dup2(descriptor, number)
                os.close(descriptor)
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w", encoding="utf-8"))
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")  # names of any bytes, and terminals of any alphabet
