"""Looks at an installation: what is well, what is odd, what is wrong, and what to do about it.

Here is what Takeback has for itself; `gateway.installation.surroundings` looks at what it depends on. Nothing is
made, repaired or removed. An existing database is opened as the gateway itself would open it.
"""

import os
import shutil
import sqlite3
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

import anyio

from engine.errors import EngineError
from engine.model import Workspace
from gateway.config import ConfigInvalid, Configuration, load_configuration
from gateway.home import Home
from gateway.installation import surroundings
from gateway.installation.findings import Finding, Level, Patient
from gateway.render import counted
from gateway.state.database import open_database
from gateway.state.errors import StateError

if TYPE_CHECKING:
    from engine.api import Engine

OLDEST_PYTHON = (3, 11)
OLDEST_SQLITE = (3, 35, 0)
"""The first with ``RETURNING``."""
GIB = 1024**3
LOW_DISK_BYTES = GIB
FULL_DISK_BYTES = GIB // 10


def examine(home: Home, environment: Mapping[str, str], engine: "Engine") -> list[Finding]:
    """Look at everything. Blocking."""
    configuration: Configuration | None = None
    invalid: ConfigInvalid | None = None
    try:
        configuration = load_configuration(home, environment)
    except ConfigInvalid as error:
        invalid = error
    patient = Patient(home, engine, configuration, invalid)
    return [finding for check in CHECKS for finding in check(patient)]


def _python(_patient: Patient) -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info >= OLDEST_PYTHON:
        yield Finding("python", Level.OK, version)
    else:
        yield Finding("python", Level.PROBLEM, f"{version} is too old", "Install Python 3.11 or newer.")
    if sqlite3.sqlite_version_info >= OLDEST_SQLITE:
        yield Finding("sqlite", Level.OK, sqlite3.sqlite_version)
    else:
        remedy = "Use a Python that was built with SQLite 3.35 or newer."
        yield Finding("sqlite", Level.PROBLEM, f"{sqlite3.sqlite_version} is too old", remedy)


def _git(patient: Patient) -> Iterator[Finding]:
    reason = patient.engine.availability()
    if reason is None:
        yield Finding("git", Level.OK, "works")
    else:
        yield Finding("git", Level.PROBLEM, reason, "Install git 2.30 or newer; without it there are no checkpoints.")


def _home(patient: Patient) -> Iterator[Finding]:
    path = patient.home.path
    try:
        status = os.stat(path)
    except FileNotFoundError:
        yield Finding("home", Level.OK, f"{path} is not there yet; the first start makes it")
        return
    except OSError as error:
        yield Finding("home", Level.PROBLEM, f"{path}: {error.strerror}", "Set TAKEBACK_HOME to a directory of yours.")
        return
    if not stat.S_ISDIR(status.st_mode):
        yield Finding("home", Level.PROBLEM, f"{path} is not a directory", "Move it away, or set TAKEBACK_HOME.")
    elif status.st_uid != os.geteuid():
        remedy = f"Run as its owner, or set TAKEBACK_HOME: chown -R {os.geteuid()} '{path}' gives it to you."
        yield Finding("home", Level.PROBLEM, f"{path} belongs to user {status.st_uid}", remedy)
    elif not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        yield Finding("home", Level.PROBLEM, f"{path} is not writable", f"chmod 700 '{path}'")
    elif stat.S_IMODE(status.st_mode) & 0o077:
        mode = f"{stat.S_IMODE(status.st_mode):04o}"
        yield Finding("home", Level.WARNING, f"others may look into {path} ({mode})", f"chmod 700 '{path}'")
    else:
        yield Finding("home", Level.OK, path)


def _configuration(patient: Patient) -> Iterator[Finding]:
    path = patient.home.config
    if patient.invalid is not None:
        for problem in patient.invalid.problems:
            remedy = "Correct it; deploy/config.example.yaml shows every key."
            yield Finding("configuration", Level.PROBLEM, str(problem), remedy)
        return
    for warning in patient.configuration.warnings if patient.configuration else ():
        yield Finding("configuration", Level.WARNING, warning, "Remove the key.")
    if not os.path.exists(path):
        yield Finding("configuration", Level.OK, f"{path} is not there: the defaults hold")
        return
    holds_secrets = bool(patient.configuration and patient.configuration.settings.secrets())
    mode = stat.S_IMODE(os.stat(path).st_mode)
    if holds_secrets and mode & 0o077:
        detail = f"others may read {path} ({mode:04o}), which may hold secrets"
        yield Finding("configuration", Level.WARNING, detail, f"chmod 600 '{path}'")
    else:
        yield Finding("configuration", Level.OK, path)


def _workspaces(patient: Patient) -> Iterator[Finding]:
    settings = patient.configuration.settings if patient.configuration else None
    for name, workspace in settings.workspaces.items() if settings else ():
        if workspace.backend.is_container:
            yield Finding(f"workspace {name}", Level.OK, f"{workspace.path} (in a container: no checkpoints)")
            continue
        try:
            opened = patient.engine.open_workspace(workspace.path)
        except EngineError as error:
            yield Finding(f"workspace {name}", Level.PROBLEM, str(error), f"Correct workspaces.{name}.path.")
            continue
        yield Finding(f"workspace {name}", Level.OK, opened.root + _unheard(patient, opened))
        yield from _damaged_checkpoints(patient, name, opened)


def _unheard(patient: Patient, workspace: Workspace) -> str:
    """Say why changes are not heard of, where they are to be."""
    wanted = patient.configuration is None or patient.configuration.settings.checkpoints.change_feed
    why = patient.engine.unheard(workspace) if wanted else None
    return "" if why is None else f" (checkpoints look at every file: {why})"


def _damaged_checkpoints(patient: Patient, name: str, workspace: Workspace) -> Iterator[Finding]:
    try:
        patient.engine.checkpoints(workspace)
    except EngineError as error:
        yield Finding(f"workspace {name}", Level.PROBLEM, str(error), "Run: gateway checkpoints verify")
        return
    for note in patient.engine.damage(workspace):
        yield Finding(f"workspace {name}", Level.PROBLEM, note, "Run: gateway checkpoints verify")


def _database(patient: Patient) -> Iterator[Finding]:
    path = patient.home.database
    if not os.path.exists(path):
        yield Finding("database", Level.OK, f"{path} is not there yet; the first start makes it")
        return
    try:
        unsound = anyio.run(_unsound, path)
    except StateError as error:
        yield Finding("database", Level.PROBLEM, str(error), "See the message.")
        return
    for line in unsound:
        yield Finding("database", Level.PROBLEM, line, f"Restore {path} from a backup.")
    if not unsound:
        yield Finding("database", Level.OK, path)


async def _unsound(path: str) -> list[str]:
    async with open_database(path) as database:
        return await database.check()


def _store(patient: Patient) -> Iterator[Finding]:
    status = patient.engine.upkeep.status()
    if status.problem is not None:
        yield Finding("store", Level.PROBLEM, status.problem, "Run: gateway checkpoints verify")
    elif not status.exists:
        yield Finding("store", Level.OK, f"{status.base} is not there yet; the first checkpoint makes it")
    elif not os.access(status.base, os.R_OK | os.W_OK | os.X_OK):
        yield Finding("store", Level.PROBLEM, f"{status.base} is not writable", f"chmod -R u+rwX '{status.base}'")
    elif status.torn or status.quarantined:
        names = (*status.torn, *status.quarantined)
        what = f"{names[0]} is damaged" + (f", and {len(names) - 1} more names" if names[1:] else "")
        yield Finding("store", Level.PROBLEM, what, "Run: gateway checkpoints verify")
    else:
        yield Finding("store", Level.OK, f"{status.base}, {counted(len(status.projects), 'workspace')}")


def _disk(patient: Patient) -> Iterator[Finding]:
    path = patient.home.path
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    free = shutil.disk_usage(path).free
    detail = f"{free / GIB:.1f} GB free at {path}"
    remedy = "Free some space: gateway prune drops old checkpoints."
    if free < FULL_DISK_BYTES:
        yield Finding("disk", Level.PROBLEM, detail, remedy)
    elif free < LOW_DISK_BYTES:
        yield Finding("disk", Level.WARNING, detail, remedy)
    else:
        yield Finding("disk", Level.OK, detail)


CHECKS: tuple[Callable[[Patient], Iterator[Finding]], ...] = (
    _python,
    _git,
    _home,
    _configuration,
    _workspaces,
    _database,
    _store,
    _disk,
    *surroundings.CHECKS,
)
"""Every check, in the order of the report."""
