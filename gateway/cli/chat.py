"""``gateway chat``."""

import sys

import click

from gateway.cli.exits import Exit, ending


@click.command(
    epilog=ending(
        "gateway chat",
        "gateway chat --workspace ~/code/app --checkpoints",
        "echo '$ ls' | gateway chat --workspace .",
        """echo '{"text": "/status", "chat": "a"}' | gateway chat --jsonl""",
    )
)
@click.option(
    "--workspace",
    type=click.Path(exists=True, file_okay=False, resolve_path=True),
    help="The directory to work in. Without it: default_workspace of the configuration, or a small sample to try with.",
)
@click.option(
    "--checkpoints/--no-checkpoints",
    default=None,
    help="Take checkpoints in this run, whatever the configuration says.",
)
@click.option("--jsonl", is_flag=True, help="Read and write JSON lines, for programs.")
@click.option("--chat", "chat", default="local", show_default=True, help="The chat that messages belong to.")
@click.option("--verbose", is_flag=True, help="Write the log to stderr instead of the home's gateway.log.")
def command(workspace: str | None, checkpoints: bool | None, jsonl: bool, chat: str, verbose: bool) -> Exit:  # noqa: FBT001
    """Talk to the agent in this terminal.

    In a terminal: Alt-Enter (or a backslash before Enter) begins another line, Ctrl-C stops the running turn, Ctrl-D
    ends the chat.

    Without a terminal: one message a line, each dealt with before the next is read. A line has no newline in it, so
    /write and /patch need the terminal or --jsonl.

    With --jsonl: an object a line, {"text": "...", "chat": "...", "user": "..."}, the last two optional. Each reply
    is {"chat", "text", "files": [{"name", "content"}], "buttons": [{"label", "command"}]}; after the last reply to a
    message comes {"chat", "done": true}. A line that cannot be used is answered with {"error"} and {"done": true}. A
    file that is not UTF-8 text has "encoding": "base64". Different chats are different sessions and are handled at the
    same time; the messages of one chat are handled in order.
    """
    from gateway.app import ConsoleWishes, FrontEnd
    from gateway.cli.running import run_gateway

    if not 0 < len(chat) <= 200:  # noqa: PLR2004 - the bound that the JSON door has
        raise click.BadParameter("a chat's name has 1 to 200 characters", param_hint="--chat")
    if jsonl:
        front_end = FrontEnd.JSON_LINES
    else:
        front_end = FrontEnd.TERMINAL if sys.stdin.isatty() and sys.stdout.isatty() else FrontEnd.LINES
    return run_gateway(ConsoleWishes(front_end, chat, workspace, checkpoints), log_to_file=not verbose)
