"""What the doctor finds around an installation: clock, platforms, backends, units, a running service."""

import filecmp
import json
import os
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Coroutine, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio

import gateway
from gateway.config import Backend
from gateway.config.providers import missing_key, problem_of
from gateway.installation.credentials import (
    SLACK_MANIFEST,
    PlatformUnreachable,
    TokenRefused,
    slack_app,
    slack_bot,
    slack_lacks,
    telegram_bot,
)
from gateway.installation.findings import Finding, Level, Patient
from gateway.state.clock import from_text
from gateway.state.database import open_database
from gateway.state.errors import StateError

MADE_AT = datetime(2026, 1, 1, tzinfo=UTC)
"""Before this there was no Takeback: a clock that says so is wrong."""

TOLERANCE = timedelta(minutes=5)
PATIENCE_S = 5.0
UNITS = ("takeback.service", "takeback-prune.service", "takeback-prune.timer")


def _clock(patient: Patient) -> Iterator[Finding]:
    now = datetime.fromtimestamp(time.time(), UTC)
    remedy = "Set the clock and keep it set: timedatectl set-ntp true"
    if now < MADE_AT:
        yield Finding("clock", Level.PROBLEM, f"it says {now:%Y-%m-%d %H:%M}, which is past", remedy)
        return
    newest = _newest(patient.home.database)
    if newest is not None and newest > now + TOLERANCE:
        detail = f"it says {now:%Y-%m-%d %H:%M}, but something was stored at {newest:%Y-%m-%d %H:%M}"
        yield Finding("clock", Level.PROBLEM, detail, remedy)
    else:
        yield Finding("clock", Level.OK, f"{now:%Y-%m-%d %H:%M} UTC")


def _newest(path: str) -> datetime | None:
    """The newest moment in the database, if it can be read; what is wrong with it is found elsewhere."""
    if not os.path.exists(path):
        return None

    async def read() -> str | None:
        async with open_database(path) as database:
            row = await database.fetch_one(
                "SELECT max((SELECT coalesce(max(received_at), '') FROM inbox),"
                " (SELECT coalesce(max(started_at), '') FROM turns)) AS newest"
            )
        return row["newest"] if row is not None else None

    try:
        newest = anyio.run(read)
    except StateError:
        return None
    return from_text(newest) if newest else None


def _tokens(patient: Patient) -> Iterator[Finding]:
    settings = patient.configuration.settings if patient.configuration else None
    if settings is None:
        return
    if settings.telegram is not None:
        token, base = settings.telegram.token.get_secret_value(), settings.telegram.api_base
        yield _asked("telegram", lambda: telegram_bot(token, base))
    if settings.slack is not None:
        bot_token, base = settings.slack.bot_token.get_secret_value(), settings.slack.api_base
        bot = _asked("slack", lambda: slack_bot(bot_token, base))
        yield bot
        if bot.level is Level.OK:
            yield from _scopes(bot_token, base)
        if settings.slack.app_token is not None and settings.slack.mode == "socket":
            app_token = settings.slack.app_token.get_secret_value()
            yield _asked("slack app", lambda: slack_app(app_token, base))


def _scopes(bot_token: str, api_base: str) -> Iterator[Finding]:
    try:
        missing = anyio.run(slack_lacks, bot_token, api_base)
    except (TokenRefused, PlatformUnreachable):
        return  # found a moment ago, when there was an answer
    if missing:
        remedy = f"Put {SLACK_MANIFEST} into the app's page App Manifest, then install the app anew (Install App)."
        yield Finding("slack scopes", Level.PROBLEM, f"the app lacks {', '.join(missing)}", remedy)


def _asked(name: str, ask: Callable[[], Coroutine[Any, Any, str | None]]) -> Finding:
    try:
        bot = anyio.run(ask)
    except TokenRefused as error:
        return Finding(name, Level.PROBLEM, str(error), error.remedy)
    except PlatformUnreachable as error:
        remedy = f"Look at the network, a proxy, and {name.split(maxsplit=1)[0]}.api_base; it may pass by itself."
        return Finding(name, Level.WARNING, str(error), remedy)
    return Finding(name, Level.OK, bot or "the token is good")


def _backends(patient: Patient) -> Iterator[Finding]:
    configuration = patient.configuration
    for name, workspace in configuration.settings.workspaces.items() if configuration else ():
        program = _program(workspace.backend)
        if program is None or configuration is None:
            continue
        found = shutil.which(program, path=configuration.search_path)
        if found is None:
            detail = f"{program} is not there, so no command runs in it"
            remedy = f"Install {program}, or correct workspaces.{name}.backend."
            yield Finding(f"backend of {name}", Level.PROBLEM, detail, remedy)
        else:
            yield Finding(f"backend of {name}", Level.OK, f"{workspace.backend.kind}, {found}")


def _program(backend: Backend) -> str | None:
    """The program that a backend is reached by, ``None`` where it is reached by none."""
    if backend.kind in {"docker", "singularity", "apptainer"}:
        return backend.cli or backend.kind
    return "ssh" if backend.kind == "ssh" else None


def _models(patient: Patient) -> Iterator[Finding]:
    configuration = patient.configuration
    if configuration is None:
        return
    settings = configuration.settings
    agents = [settings.agent, *(settings.agent_of(name) for name in settings.workspaces)]
    choices = {choice.model: choice for agent in agents if agent.kind == "model" for choice in agent.choices().values()}
    for choice in choices.values():
        name = f"model {choice.label}"
        if (problem := problem_of(choice)) is not None:
            yield Finding(name, Level.PROBLEM, problem, "Install what it says, or correct agent in config.yaml.")
        elif (lacks := missing_key(choice, configuration.model_keys)) is not None:
            yield Finding(name, Level.PROBLEM, lacks, "Set it where the gateway is started, and start it again.")
        else:
            yield Finding(name, Level.OK, choice.shown)


def _units(patient: Patient) -> Iterator[Finding]:
    """Compare what is installed with what belongs to this version; where there is no checkout, nothing is known."""
    own = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(gateway.__file__))), "deploy", "systemd")
    for name in UNITS:
        installed, shipped = os.path.join(patient.units, name), os.path.join(own, name)
        if not (os.path.exists(installed) and os.path.exists(shipped)):
            continue
        if filecmp.cmp(installed, shipped, shallow=False):
            yield Finding(f"unit {name}", Level.OK, installed)
        else:
            remedy = (
                f"Look: diff '{installed}' '{shipped}'. Then copy it and run: systemctl daemon-reload. What you change "
                f"yourself belongs beside it: systemctl edit {name}"
            )
            yield Finding(f"unit {name}", Level.WARNING, f"{installed} is not this version's", remedy)


def _service(patient: Patient) -> Iterator[Finding]:
    """Ask the running service how it is, where its address is known."""
    http = patient.configuration.settings.http if patient.configuration else None
    if http is None or not http.port:
        return
    address = f"http://{f'[{http.host}]' if ':' in http.host else http.host}:{http.port}/readyz"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(address, timeout=PATIENCE_S) as answer:
            checks = json.load(answer)["checks"]
    except urllib.error.HTTPError as error:
        checks = _checks(error)
    except (OSError, ValueError, KeyError):
        yield Finding("service", Level.OK, f"nothing answers at {address}: it does not run now")
        return
    unwell = {part: reason for part, reason in checks.items() if reason != "ok"}
    for part, reason in unwell.items():
        remedy = "See its log (journalctl -u takeback); start it anew once the reason is gone."
        yield Finding("service", Level.PROBLEM, f"{part}: {reason}", remedy)
    if not unwell:
        yield Finding("service", Level.OK, f"ready at {address}")


def _checks(error: urllib.error.HTTPError) -> dict[str, str]:
    try:
        checks = json.load(error)["checks"]
    except (ValueError, KeyError, TypeError):
        checks = None
    return checks if isinstance(checks, dict) else {"its address": f"something else answers there ({error.code})"}


CHECKS: tuple[Callable[[Patient], Iterator[Finding]], ...] = (_clock, _tokens, _backends, _models, _units, _service)
"""Every check, in the order of the report."""
