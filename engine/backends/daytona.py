"""Sandboxes of Daytona, through its library ``daytona``.

A program runs in a session of its own, as what the service calls a command: its input is sent line by line, its output
comes by lines. So a last line without its end gets one, and a NUL is lost. Deleting the session ends the program and
all below it.
"""

import secrets
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

from engine.backends.base import Site
from engine.backends.container import container_name, idle_seconds
from engine.backends.conversation import NotStarted
from engine.backends.daytona_log import CommandLog
from engine.backends.options import Options
from engine.backends.remote import GATED
from engine.backends.service import Rented, ServiceBackend, has_network, load_library, required

SERVER: Final = "https://app.daytona.io/api"
"""Where the service is unless configured; given to the library, so that it looks nowhere else for it."""

WORKDIR: Final = "/home/daytona/workspace"
"""Where the workspace is unless configured; commands do not run as root, and this they can make."""

START_S: Final = 300.0
"""How long a sandbox may take to start: an image may have to be built."""

_STOP_MINUTES = 240  # unless a time without use is configured; the service then keeps the files
_DELETE_MINUTES = 24 * 60  # a stopped one that nobody came back for
_SEND_CHARACTERS = 256 * 1024
_STARTABLE: Final = frozenset({"stopped", "archived", "paused"})
_GOING: Final = frozenset({"destroyed", "destroying"})


def create_daytona(options: Mapping[str, Any], site: Site) -> ServiceBackend:
    """Make the backend.

    Options: ``api_key``, ``server`` (another address of the service), ``target`` (a region), ``image``, ``name``,
    ``path`` (of the workspace inside), ``network`` (none unless given; ``all``), ``idle_hours``, ``env``.
    """
    read = Options("daytona", options)
    workdir = read.directory("path", WORKDIR)
    environment, idle_s = read.variables("env"), idle_seconds(read)
    service = _Daytona(read, site, _STOP_MINUTES if idle_s is None else max(1, round(idle_s / 60)))
    read.finish()
    return ServiceBackend("daytona", service, site, workdir, environment, idle_s)


class _Daytona:
    """See ``Service``."""

    title = "Daytona"

    def __init__(self, read: Options, site: Site, stop_minutes: int) -> None:
        self.name = container_name("daytona", read.text("name"), site)
        (self._key,) = required(read, "api_key")
        self._server = read.text("server") or SERVER
        self._target = read.text("target") or None
        self._image = read.text("image")
        self._network = has_network(read)
        self._stop_minutes = stop_minutes
        self._library = load_library("daytona", "daytona", "daytona")
        self._client: Any = None

    def find(self) -> Rented | None:
        """Look it up by name, and start it if it was stopped."""
        with _translated(self._library):
            try:
                found = self._connected().get(self.name)
            except self._library.DaytonaNotFoundError:
                return None
            if _state(found) in _GOING:
                return None
            if _state(found) in _STARTABLE:
                found.start(timeout=START_S)
        return _Sandbox(self._library, found, self._key)

    def start(self, labels: Mapping[str, str]) -> Rented:
        """Start one that the service stops and deletes by itself when nobody uses it."""
        facts = {
            "name": self.name,
            "labels": dict(labels),
            "network_block_all": not self._network,
            "auto_stop_interval": self._stop_minutes,
            "auto_delete_interval": _DELETE_MINUTES,
        }
        library = self._library
        wanted = (
            library.CreateSandboxFromImageParams(image=self._image, **facts)
            if self._image
            else library.CreateSandboxFromSnapshotParams(**facts)
        )
        with _translated(library):
            return _Sandbox(library, self._connected().create(wanted, timeout=START_S), self._key)

    def close(self) -> None:
        """Forget the client, which closes its connections when nothing refers to it any more."""
        self._client = None

    def _connected(self) -> Any:
        if self._client is None:
            config = self._library.DaytonaConfig(api_key=self._key, api_url=self._server, target=self._target)
            self._client = self._library.Daytona(config)
        return self._client


class _Sandbox:
    """See ``Rented``."""

    def __init__(self, library: Any, sandbox: Any, key: str) -> None:
        self._library = library
        self._sandbox = sandbox
        self._key = key

    @property
    def labels(self) -> Mapping[str, str]:
        """Its labels."""
        return dict(self._sandbox.labels or {})

    def begin(self) -> "_Process":
        """Start the gate in a session of its own."""
        session = f"takeback-{secrets.token_hex(8)}"
        request = self._library.SessionExecuteRequest(
            command=shlex.join(GATED), run_async=True, suppress_input_echo=True
        )
        with _translated(self._library):
            process = self._sandbox.process
            process.create_session(session)
            command = process.execute_session_command(session, request).cmd_id
        address = f"{self._sandbox.toolbox_proxy_url}/{self._sandbox.id}/process/session/{session}/command/{command}"
        return _Process(self._library, process, session, command, CommandLog(f"{address}/logs?follow=true", self._key))

    def runs(self) -> bool:
        """Ask the service."""
        with _translated(self._library):
            try:
                self._sandbox.refresh_data()
            except self._library.DaytonaNotFoundError:
                return False
            return bool(_state(self._sandbox) == "started")

    def own(self, labels: Mapping[str, str]) -> None:
        """Change its labels."""
        with _translated(self._library):
            self._sandbox.set_labels({**self.labels, **labels})

    def remove(self) -> None:
        """Delete it."""
        with _translated(self._library):
            self._sandbox.delete()


class _Process:
    """See ``RemoteProcess``: a command of a session."""

    def __init__(self, library: Any, process: Any, session: str, command: str, log: CommandLog) -> None:
        self._library = library
        self._process = process
        self._session = session
        self._command = command
        self.output = log.output
        self.errors = log.errors
        self._log = log

    def send(self, text: str) -> None:
        """Send whole lines: the service ends what it is sent with a line's end anyway."""
        with _translated(self._library):
            for piece in _whole_lines(text):
                self._process.send_session_command_input(self._session, self._command, piece)

    def kill(self) -> None:
        """Delete the session."""
        with _translated(self._library):
            self._process.delete_session(self._session)

    def close(self) -> None:
        """Delete the session too: nobody else knows of it. What detached itself from it lives on."""
        self._log.close()
        with suppress(NotStarted):
            self.kill()


def _whole_lines(text: str) -> Iterator[str]:
    lines = text.splitlines(keepends=True)
    piece = ""
    for line in lines:
        if piece and len(piece) + len(line) > _SEND_CHARACTERS:
            yield piece
            piece = ""
        piece += line
    if piece:
        yield piece


def _state(sandbox: Any) -> str:
    return str(getattr(sandbox.state, "value", sandbox.state))


@contextmanager
def _translated(library: Any) -> Iterator[None]:
    """Make of what the library raises a ``NotStarted`` that a person understands."""
    try:
        yield
    except (library.DaytonaAuthenticationError, library.DaytonaForbiddenError) as error:
        raise NotStarted(f"the service refuses the key; see api_key ({error})") from error
    except library.DaytonaRateLimitError as error:
        raise NotStarted(f"the service gives no more now: a quota or a rate limit is reached ({error})") from error
    except library.DaytonaConnectionError as error:
        raise NotStarted(f"the service cannot be reached ({error})") from error
    except library.DaytonaError as error:
        # What its HTTP client raises when it gives up is not told from other errors but by where it comes from.
        lost = type(error.__cause__).__module__.startswith("urllib3")
        raise NotStarted(f"the service cannot be reached ({error})" if lost else str(error)) from error
