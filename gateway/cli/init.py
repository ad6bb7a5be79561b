"""``gateway init``."""

import os
import sys
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

import click

from gateway.cli import opening
from gateway.cli.exits import Exit, ending

if TYPE_CHECKING:
    from gateway.installation.setup import Choices, SlackChoice, TelegramChoice

_DIRECTORY = click.Path(exists=True, file_okay=False, resolve_path=True)
_FILE = click.Path(exists=True, dir_okay=False)


@click.command(
    epilog=ending(
        "gateway init",
        "gateway init --workspace ~/code/app --checkpoints",
        "gateway init --workspace /srv/app --name app --no-checkpoints --force",
        "gateway init --workspace /srv/app --telegram-token-file token --telegram-admin 12345",
    )
)
@click.option("--workspace", type=_DIRECTORY, help="The directory that chats work in.")
@click.option("--name", help="The workspace's name; its directory's unless given.")
@click.option("--checkpoints/--no-checkpoints", default=None, help="Whether checkpoints are taken (default: they are).")
@click.option("--telegram-token-file", type=_FILE, help="A file that holds the Telegram bot's token.")
@click.option("--telegram-admin", type=int, help="Your numeric id on Telegram, to be an admin at once.")
@click.option("--telegram-api-base", help="Another Bot API server.")
@click.option("--slack-bot-token-file", type=_FILE, help="A file that holds the Slack app's token xoxb-….")
@click.option("--slack-app-token-file", type=_FILE, help="A file that holds the Slack app's token xapp-….")
@click.option("--slack-admin", help="Your id on Slack (U…), to be an admin at once.")
@click.option("--slack-api-base", help="Another Slack server.")
@click.option("--check/--no-check", default=True, help="Ask the platforms whether the tokens are good.")
@click.option("--force", is_flag=True, help="Replace a configuration that is there; it is kept as config.yaml.before.")
def command(**options: Any) -> Exit:
    """Write a commented configuration.

    In a terminal, asks for what is not given as an option. Without one, --workspace is needed and nothing is asked.
    A token that its platform refuses is not written.
    """
    from gateway.installation.credentials import TokenRefused
    from gateway.installation.setup import AlreadyConfigured, write_configuration

    home = opening.home()
    try:
        # Nobody is asked for anything that would then be thrown away.
        if os.path.lexists(home.config) and not options["force"]:
            raise AlreadyConfigured(home.config)  # noqa: TRY301 - said as the writing itself says it
        choices, bots = _chosen(options)
        before = write_configuration(home, os.environ, choices, force=options["force"])
    except AlreadyConfigured as error:
        return _failed(str(error))
    except TokenRefused as error:
        return _failed(f"{error}. Nothing was written. {error.remedy}")
    except OSError as error:
        return _failed(f"{home.config} could not be written: {error.strerror}")
    if before is not None:
        click.echo(f"The configuration that was there is kept as {before}.")
    click.echo(f"Written: {home.config}")
    for line in _next_steps(choices, bots):
        click.echo(line)
    return Exit.OK


def _failed(sentence: str) -> Exit:
    click.echo(f"gateway: {sentence}", err=True)
    return Exit.ERROR


def _chosen(options: dict[str, Any]) -> tuple["Choices", dict[str, str]]:
    """What was given and, in a terminal, answered; and the names of the bots, as far as they are known."""
    from gateway.installation.setup import Choices, suggested_name

    asks = sys.stdin.isatty() and sys.stdout.isatty()
    workspace, name, checkpoints = options["workspace"], options["name"], options["checkpoints"]
    if workspace is None:
        if not asks:
            raise click.UsageError("--workspace is needed where nobody can be asked")
        workspace = str(click.prompt("Directory that chats work in", default=os.getcwd(), type=_DIRECTORY))
        if name is None:
            name = click.prompt("Its name", default=suggested_name(workspace))
        if checkpoints is None:
            checkpoints = click.confirm("Take checkpoints, so that every change can be taken back?", default=True)
    else:
        asks = False
    bots: dict[str, str] = {}
    telegram = _telegram(options, bots, asks=asks)
    slack = _slack(options, bots, asks=asks)
    return Choices(workspace, name or suggested_name(workspace), checkpoints is not False, telegram, slack), bots


def _telegram(options: dict[str, Any], bots: dict[str, str], *, asks: bool) -> "TelegramChoice | None":
    from gateway.config.settings import Telegram
    from gateway.installation.credentials import telegram_bot
    from gateway.installation.setup import TelegramChoice

    base = options["telegram_api_base"]

    def check(token: str) -> None:
        if options["check"]:
            _ask_platform("telegram", lambda: telegram_bot(token, base or _default(Telegram)), bots)

    token = _token(options["telegram_token_file"], "Telegram bot's token, from @BotFather", check, asks=asks)
    if token is None:
        return None
    admin = options["telegram_admin"]
    if admin is None and asks:
        answer = click.prompt("Your numeric Telegram id, if you know it (Enter: be admitted by a code)", default="",
                              show_default=False, value_proc=_number_or_nothing)  # fmt: skip
        admin = answer or None
    return TelegramChoice(token, admin, base)


def _slack(options: dict[str, Any], bots: dict[str, str], *, asks: bool) -> "SlackChoice | None":
    from gateway.config.settings import Slack
    from gateway.installation.credentials import slack_app, slack_bot
    from gateway.installation.setup import SLACK_STEPS, SlackChoice

    base = options["slack_api_base"]

    def check_bot(token: str) -> None:
        if options["check"]:
            _ask_platform("slack", lambda: slack_bot(token, base or _default(Slack)), bots)

    def check_app(token: str) -> None:
        if options["check"]:
            _ask_platform("slack app", lambda: slack_app(token, base or _default(Slack)), {})

    if asks and options["slack_bot_token_file"] is None:
        click.echo(SLACK_STEPS)
    bot_token = _token(options["slack_bot_token_file"], "Slack app's token xoxb-…", check_bot, asks=asks)
    if bot_token is None:
        return None
    app_token = _token(options["slack_app_token_file"], "Its other token, xapp-…", check_app, asks=asks)
    if app_token is None:
        raise click.UsageError("Slack needs both tokens: --slack-bot-token-file and --slack-app-token-file")
    admin = options["slack_admin"]
    if admin is None and asks:
        admin = click.prompt("Your Slack id, if you know it (Enter: be admitted by a code)", default="",
                             show_default=False) or None  # fmt: skip
    return SlackChoice(bot_token, app_token, admin, base)


def _default(section: type[Any]) -> str:
    return str(section.model_fields["api_base"].default)


def _number_or_nothing(text: str) -> int | None:
    if not text.strip():
        return None
    try:
        return int(text)
    except ValueError:
        raise click.UsageError("that is no number; @userinfobot tells yours") from None


def _token(path: str | None, what: str, check: Callable[[str], None], *, asks: bool) -> str | None:
    """A token from its file, or typed unseen until the platform takes it; ``None`` where there is none."""
    from gateway.installation.credentials import TokenRefused

    if path is not None:
        with open(path, encoding="utf-8", errors="replace") as file:
            token = file.read().strip()
        check(token)
        return token
    while asks:
        token = str(click.prompt(f"{what} (Enter: none)", default="", show_default=False, hide_input=True)).strip()
        if not token:
            return None
        try:
            check(token)
        except TokenRefused as error:
            click.echo(f"{error}. {error.remedy}")
        else:
            return token
    return None


def _ask_platform(name: str, ask: Callable[[], Coroutine[Any, Any, str | None]], bots: dict[str, str]) -> None:
    """Have a token checked; that nobody answers is said, and no reason to stop."""
    import anyio

    from gateway.installation.credentials import PlatformUnreachable

    try:
        bot = anyio.run(ask)
    except PlatformUnreachable as error:
        click.echo(f"gateway: warning: {error}. The token is taken unchecked; gateway doctor checks it.", err=True)
        return
    if bot is not None:
        bots[name] = bot
        click.echo(f"✓ {name}: {bot}")


def _next_steps(choices: "Choices", bots: dict[str, str]) -> list[str]:
    """What to do now, the way to be admitted among it."""
    lines = ["Start talking with: gateway chat"]
    for name, platform in (("telegram", choices.telegram), ("slack", choices.slack)):
        if platform is None:
            continue
        lines += ["Serve it with: gateway run"] if len(lines) == 1 else []
        bot = bots.get(name, f"the bot on {name}")
        if platform.admin is None:
            lines.append(
                f"Then write to {bot}: it gives you a code. Admit yourself with: gateway pair CODE --role admin"
            )
        else:
            lines.append(f"Then write to {bot}: you are its admin. Others are given a code, for your /pair CODE.")
    return lines
