"""Sandboxes of Vercel, through its library ``vercel-sandbox``.

They keep their files when they are stopped, and the library wakes a stopped one for the next command. Output is text
there: a byte that is no UTF-8 comes as U+FFFD, and the library hands it on in whole lines.
"""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from importlib import import_module
from typing import Any, Final

from engine.backends.base import Site
from engine.backends.container import container_name, idle_seconds
from engine.backends.conversation import NotStarted
from engine.backends.options import Options
from engine.backends.remote import GATED
from engine.backends.service import Rented, ServiceBackend, has_network, load_library, required

WORKDIR: Final = "/vercel/sandbox/workspace"
"""Where the workspace is unless configured; commands do not run as root, and this they can make."""

LONGEST: Final = timedelta(minutes=45)
"""How long a sandbox runs at most: what every plan of the service grants."""

_MISSING = 404
_GONE: Final = frozenset({404, 410})
_RUNNING: Final = frozenset({"pending", "running"})
_WORDS: Final = {
    401: "refuses the token; see token, team_id and project_id",
    402: "wants to be paid first: the plan's allowance is used up",
    403: "refuses the token for this team or project; see token, team_id and project_id",
    429: "gives no more now: a quota or a rate limit is reached",
}


def create_vercel_sandbox(options: Mapping[str, Any], site: Site) -> ServiceBackend:
    """Make the backend.

    Options: ``token``, ``team_id``, ``project_id``, ``server`` (another address of the service), ``image``, ``name``,
    ``path`` (of the workspace inside), ``network`` (none unless given; ``all``), ``cpus``, ``idle_hours``, ``env``.
    """
    read = Options("vercel_sandbox", options)
    workdir = read.directory("path", WORKDIR)
    service = _Vercel(read, site)
    environment, idle_s = read.variables("env"), idle_seconds(read)
    read.finish()
    return ServiceBackend("vercel_sandbox", service, site, workdir, environment, idle_s)


class _Vercel:
    """See ``Service``."""

    title = "Vercel"

    def __init__(self, read: Options, site: Site) -> None:
        self.name = container_name("vercel_sandbox", read.text("name"), site)
        self._credentials = required(read, "token", "team_id", "project_id")
        self._server = read.text("server")
        self._image = read.text("image")
        self._network = has_network(read)
        self._cpus = read.number("cpus")
        self._library = load_library("vercel_sandbox", "vercel.sandbox.sync", "vercel")
        self._client: Any = None

    def find(self) -> Rented | None:
        """Look it up by name; a stopped one is woken by the next command."""
        with _translated(self._library):
            try:
                return _Sandbox(self._library, self._connected().get_sandbox(name=self.name))
            except self._library.SandboxApiError as error:
                if error.status_code == _MISSING:
                    return None
                raise

    def start(self, labels: Mapping[str, str]) -> Rented:
        """Start one whose files outlive its being stopped."""
        library = self._library
        policy = library.NetworkPolicy.allow_all() if self._network else library.NetworkPolicy.deny_all()
        with _translated(library):
            made = self._connected().create_sandbox(
                name=self.name,
                image=self._image or None,
                execution_time_limit=LONGEST,
                resources=library.SandboxResources(vcpus=round(self._cpus)) if self._cpus else None,
                persistent=True,
                network_policy=policy,
                tags=dict(labels),
            )
        return _Sandbox(library, made)

    def close(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _connected(self) -> Any:
        if self._client is None:
            credentials = self._library.SandboxCredentials(*self._credentials)
            self._client = self._library.SyncSandboxClient.create(
                options=self._library.SandboxServiceOptions(
                    base_url=self._server or None, credentials_factory=lambda: credentials
                )
            )
        return self._client


class _Sandbox:
    """See ``Rented``."""

    def __init__(self, library: Any, sandbox: Any) -> None:
        self._library = library
        self._sandbox = sandbox

    @property
    def labels(self) -> Mapping[str, str]:
        """Its tags."""
        return dict(self._sandbox.tags or {})

    def begin(self) -> "_Process":
        """Start the gate."""
        command, *arguments = GATED
        with _translated(self._library):
            started = self._sandbox.create_process(command, arguments, stdin=subprocess.PIPE)
        return _Process(self._library, started)

    def runs(self) -> bool:
        """Ask the service, which wakes one that was stopped."""
        with _translated(self._library):
            try:
                session = self._sandbox.session().refresh()
            except self._library.SandboxApiError as error:
                if error.status_code in _GONE:
                    return False
                raise
            return session.status in _RUNNING

    def own(self, labels: Mapping[str, str]) -> None:
        """Change its tags."""
        with _translated(self._library):
            self._sandbox.update(tags=dict(labels))

    def remove(self) -> None:
        """Destroy it, its snapshots too."""
        with _translated(self._library):
            self._sandbox.destroy(delete_orphan_snapshots=True)


class _Process:
    """See ``RemoteProcess``; the streams are read by lines, since the library waits for a whole block otherwise."""

    def __init__(self, library: Any, process: Any) -> None:
        self._library = library
        self._process = process

    def send(self, text: str) -> None:
        """Write all of it, in the pieces that the library makes."""
        with _translated(self._library):
            data = memoryview(text.encode())
            while data:
                data = data[self._process.stdin.write(data) :]

    def output(self) -> Iterator[bytes]:
        """Yield lines."""
        return self._lines(self._process.stdout)

    def errors(self) -> Iterator[bytes]:
        """Yield lines."""
        return self._lines(self._process.stderr)

    def kill(self) -> None:
        """Send SIGKILL."""
        with _translated(self._library):
            self._process.kill()

    def close(self) -> None:
        """End its input, which a wrapper that still runs takes for the wish to end its command."""
        with _translated(self._library):
            self._process.stdin.close()

    def _lines(self, reader: Any) -> Iterator[bytes]:
        with _translated(self._library):
            while line := reader.readline():
                yield line.encode("utf-8", "surrogateescape")


@contextmanager
def _translated(library: Any) -> Iterator[None]:
    """Make of what the library raises a ``NotStarted`` that a person understands."""
    try:
        yield
    except library.SandboxApiError as error:
        words = _WORDS.get(error.status_code, f"answers with {error.status_code}")
        raise NotStarted(f"the service {words} ({error})") from error
    except (library.SandboxStdinError, BrokenPipeError) as error:
        raise NotStarted(f"the program takes no more input ({error})") from error
    except library.SandboxError as error:
        raise NotStarted(str(error)) from error
    except (OSError, import_module("httpx2").TransportError) as error:
        raise NotStarted(f"the service cannot be reached ({error})") from error
