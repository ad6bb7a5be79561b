"""The composition root: the one place that knows every concrete part and puts them together."""

import os
import signal
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, auto
from functools import partial

from adapters.console.attachments import AttachmentDirectory
from adapters.console.jsonl import JsonLines
from adapters.console.lines import Lines
from adapters.console.pending import Speaker
from adapters.console.streams import LineReader, Writer
from adapters.contract import Adapter
from adapters.telegram.token import TokenMalformed, check_token
from engine.api import Engine
from gateway.access.admission import rules_of
from gateway.agents.base import Agent
from gateway.agents.direct import DirectAgent
from gateway.agents.model.agent import KIND, ModelAgent
from gateway.blotting import blotted
from gateway.commands.menu import menu
from gateway.commands.table import COMMANDS
from gateway.config import Agent as AgentSettings
from gateway.config import ConfigInvalid, Configuration, Problem, Settings
from gateway.config.agent import DEFAULT_LABEL
from gateway.config.providers import problem_of
from gateway.config.settings import Slack as SlackSettings
from gateway.config.settings import Telegram as TelegramSettings
from gateway.conversations import Wishes
from gateway.installation.sample import ensure_sample
from gateway.operation.endpoints import Address
from gateway.operation.housekeeping import Tidying
from gateway.pruning import make_prune_policy
from gateway.router import ToCommand, route
from gateway.service import Service
from gateway.workspaces import Workspaces

SAMPLE = "sample"
"""The name of the workspace for a first try."""


class FrontEnd(Enum):
    """How the console talks."""

    TERMINAL = auto()
    LINES = auto()
    JSON_LINES = auto()


@dataclass(frozen=True, slots=True)
class ConsoleWishes:
    """What the command line says about the console.

    ``workspace`` is a directory to work in; ``chat`` names the chat that messages without a name belong to;
    ``checkpoints`` switches them for this run. ``stays`` keeps the service up when the input ends.
    """

    front_end: FrontEnd
    chat: str = "local"
    workspace: str | None = None
    checkpoints: bool | None = None
    stays: bool = False


def make_engine(configuration: Configuration) -> Engine:
    """Make the engine that guards this home's workspaces; nothing is opened yet.

    The lock is not named: it stands in the home by default, and then the engine knows the whole home as Takeback's own
    and never captures it, wherever it lies.
    """
    return Engine(
        configuration.home.checkpoints,
        user_home=configuration.user_home,
        search_path=configuration.search_path,
        command_env=configuration.command_environment,
        client_env=configuration.client_environment,
        change_feed=configuration.settings.checkpoints.change_feed,
    )


def make_agents(configuration: Configuration) -> dict[str, Agent]:
    """Make every kind of agent that the configuration asks for.

    Raises:
        ConfigInvalid: it asks for one that this version does not have.
    """
    settings = configuration.settings
    secrets = configuration.secrets()
    agents: dict[str, Agent] = {
        DirectAgent.kind: DirectAgent(),
        ModelAgent.kind: ModelAgent(settings.agent, configuration.model_keys, secrets=secrets),
    }
    problems: dict[str, Problem] = {}
    for section, agent in settings.agents().items():
        for problem in _problems(configuration, section, agent, agents):
            problems.setdefault(problem.what, problem)
    if problems:
        raise ConfigInvalid([*problems.values()])
    return agents


def _problems(
    configuration: Configuration, section: tuple[str, ...], settings: AgentSettings, agents: Collection[str]
) -> Iterator[Problem]:
    """Find what this version does not have of what an agent's section asks for, and where it asks for that."""
    if settings.kind not in agents:
        what = f"agent.kind {settings.kind} is not part of this version; it has: {', '.join(agents)}"
        yield Problem(configuration.place(_written(configuration, section, ("kind",))), what)
    for choice in settings.choices().values() if settings.kind == KIND else ():
        problem = problem_of(choice)
        if problem is not None:
            key = ("model",) if choice.label == DEFAULT_LABEL else ("models", choice.label, "model")
            yield Problem(configuration.place(_written(configuration, section, key)), f"agent.model: {problem}")


def _written(configuration: Configuration, section: tuple[str, ...], key: tuple[str, ...]) -> tuple[str, ...]:
    """The key itself where it was written in a workspace's section, else that of the common one."""
    here = (*section, *key)
    return here if here in configuration.places else ("agent", *key)


def console_service(configuration: Configuration, wishes: ConsoleWishes) -> Service:
    """Put the gateway together with the console as its chat platform. Blocking; makes the sample if it is needed.

    Raises:
        ConfigInvalid: the configuration asks for what this version does not have.
        WorkspaceRefused: the directory that the command line names cannot be one.
    """
    agents, engine = make_agents(configuration), make_engine(configuration)
    if wishes.workspace is not None:
        engine.open_workspace(wishes.workspace)
    settings, default = _workspaces(configuration, wishes)
    if wishes.checkpoints is not None:
        settings = settings.with_checkpoints(on=wishes.checkpoints)
    speaker = Speaker(wishes.chat, scope=f"@{os.path.realpath(wishes.workspace)}" if wishes.workspace else "")
    reader, writer = LineReader(sys.stdin.fileno()), Writer(sys.stdout.fileno())
    attachments = AttachmentDirectory(configuration.home.attachments)
    adapter: Adapter
    match wishes.front_end:
        case FrontEnd.JSON_LINES:
            adapter = JsonLines(reader, writer, speaker)
        case FrontEnd.LINES:
            adapter = Lines(reader, writer, attachments, speaker)
        case FrontEnd.TERMINAL:
            adapter = _terminal(configuration, attachments, speaker, _banner(settings, default))
    at_prompt = wishes.front_end is FrontEnd.TERMINAL
    return Service(
        home=configuration.home.path,
        engine=engine,
        adapters=(adapter, *platforms(configuration)) if wishes.stays else (adapter,),
        rules=rules_of(settings),
        buttons_kept=timedelta(days=settings.button_days),
        agents=agents,
        open_workspaces=lambda offload: Workspaces(settings, offload, default),
        wishes=Wishes(speaker.place(), default if wishes.workspace else None, wishes.checkpoints),
        # The prompt takes Ctrl-C for itself.
        signals=(signal.SIGTERM, signal.SIGHUP) if at_prompt else (signal.SIGTERM, signal.SIGHUP, signal.SIGINT),
        drains=lambda: not at_prompt and not writer.gone.is_set(),
        stays=wishes.stays and not at_prompt,
        housekeeping=_tidying(settings, engine) if wishes.stays else None,
        http=Address(settings.http.host, settings.http.port)
        if wishes.stays and settings.http.port is not None
        else None,
        guards=_takes_checkpoints(settings),
        secrets=configuration.secrets(),
    )


def platforms(configuration: Configuration) -> tuple[Adapter, ...]:
    """Make the adapter of every configured chat platform. Blocking: what one needs is imported only where it is used.

    Raises:
        ConfigInvalid: a platform cannot be used as it is configured.
    """
    telegram, slack = configuration.settings.telegram, configuration.settings.slack
    return (
        *((_telegram(telegram),) if telegram is not None else ()),
        *((_slack(slack),) if slack is not None else ()),
    )


def _tidying(settings: Settings, engine: Engine) -> Tidying:
    """What the running service tidies by itself."""
    prunes = settings.checkpoints.auto_prune
    return Tidying(
        idle=timedelta(days=settings.session_idle_days),
        policy=make_prune_policy(settings, engine, asked_for=False) if prunes else None,
        min_interval_hours=settings.checkpoints.min_interval_hours,
    )


def _takes_checkpoints(settings: Settings) -> bool:
    return settings.checkpoints.enabled or any(settings.checkpoints_of(name).enabled for name in settings.workspaces)


def _workspaces(configuration: Configuration, wishes: ConsoleWishes) -> tuple[Settings, str]:
    """The workspaces of this run, and the name of the one where a new chat begins."""
    settings = configuration.settings
    if wishes.workspace is not None:
        path = os.path.realpath(wishes.workspace)
        for name, workspace in settings.workspaces.items():
            if os.path.realpath(workspace.path) == path:
                return settings, name
        return settings.with_workspace(path, path), path
    if settings.default_workspace is not None:
        return settings, settings.default_workspace
    if settings.workspaces:
        return settings, next(iter(settings.workspaces))
    return settings.with_workspace(SAMPLE, ensure_sample(configuration.home.sample)), SAMPLE


def _telegram(telegram: TelegramSettings) -> Adapter:
    token = telegram.token.get_secret_value()
    try:
        check_token(token)
    except TokenMalformed as error:
        raise ConfigInvalid([Problem("telegram.token", str(error))]) from None
    from adapters.telegram.adapter import Telegram
    from adapters.telegram.webhook import Webhook

    webhook = None
    if telegram.mode == "webhook" and telegram.webhook_url is not None:
        secret = telegram.webhook_secret.get_secret_value() if telegram.webhook_secret else None
        webhook = Webhook(telegram.webhook_url, telegram.webhook_host, telegram.webhook_port, secret)
    return Telegram(token, telegram.api_base, menu=menu(), admins=telegram.admins, webhook=webhook)


def _slack(slack: SlackSettings) -> Adapter:
    from adapters.slack.adapter import Slack
    from adapters.slack.http_mode import HttpMode
    from adapters.slack.socket_mode import SocketMode

    mode: HttpMode | SocketMode
    if slack.mode == "http" and slack.signing_secret is not None:
        mode = HttpMode(slack.signing_secret.get_secret_value(), slack.http_host, slack.http_port)
    else:
        mode = SocketMode(slack.app_token.get_secret_value() if slack.app_token else "")
    return Slack(slack.bot_token.get_secret_value(), slack.api_base, mode, is_command=_is_command)


def _is_command(text: str) -> bool:
    """Whether a text is a command that is understood; a word that begins one may also begin a sentence."""
    return isinstance(route(text, agent_kind=""), ToCommand)


def _terminal(configuration: Configuration, attachments: AttachmentDirectory, speaker: Speaker, banner: str) -> Adapter:
    """Make the prompt; what it needs is imported here because pipes and programs do without."""
    from prompt_toolkit.input import create_input
    from prompt_toolkit.output import create_output
    from prompt_toolkit.output.vt100 import Vt100_Output

    from adapters.console.completion import CommandCompleter, Suggestion
    from adapters.console.terminal import Aids, Terminal, open_history

    output = create_output(sys.stdout)
    if isinstance(output, Vt100_Output):
        # Not asked where its cursor is: a terminal that does not answer would hold up every reply for a second.
        output.enable_cpr = False
    suggestions = [Suggestion(usage.form, usage.does) for command in COMMANDS for usage in command.usages]
    suggestions += [Suggestion(f"/{word}", meaning) for word, meaning in TOOL_WORDS.items()]
    history = open_history(configuration.home.history, partial(blotted, secrets=configuration.secrets()))
    aids = Aids(banner, history, CommandCompleter(suggestions))
    return Terminal(create_input(sys.stdin), output, attachments, speaker, aids)


TOOL_WORDS = {
    "run": "run a command, as $ does",
    "read": "show a file",
    "write": "write a file; its content begins on the next line (Alt-Enter)",
    "patch": "apply an edit that begins on the next line (Alt-Enter)",
}
"""What the direct agent understands, for completion."""


def _banner(settings: Settings, workspace: str) -> str:
    state = "on" if settings.checkpoints_of(workspace).enabled else "off (/checkpoints on)"
    path = settings.workspaces[workspace].path
    return (
        f"Takeback in {path}, checkpoints {state}.\n"
        "/help lists what you can type. Alt-Enter begins another line, Ctrl-C stops what runs, Ctrl-D ends."
    )
