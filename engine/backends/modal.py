"""Sandboxes of Modal, through its library ``modal``.

Bytes go and come as they are. The service offers no way to end one program in a sandbox: it is asked by its input, then
killed by another program; what outlives both is said to be left running.
"""

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import urlsplit

from engine.backends.base import Site
from engine.backends.container import container_name, idle_seconds
from engine.backends.conversation import NotStarted
from engine.backends.options import Options
from engine.backends.remote import GATED
from engine.backends.service import Rented, ServiceBackend, has_network, load_library, required

SERVER: Final = "https://api.modal.com"
"""Where the service is unless configured; given to the library, so that it looks nowhere else for it."""

APP: Final = "takeback"
"""What the service calls the application that all sandboxes belong to."""

CONNECT_S: Final = 10.0
"""How long connecting may take; the library itself tries for a minute, and cannot be stopped meanwhile."""

LONGEST_S: Final = 24 * 60 * 60
"""How long a sandbox lives at most: the service grants no more."""


def create_modal(options: Mapping[str, Any], site: Site) -> ServiceBackend:
    """Make the backend.

    Options: ``token_id``, ``token_secret``, ``server`` (another address of the service), ``image`` (of a registry),
    ``name``, ``path`` (of the workspace inside; the host's unless given), ``network`` (none unless given; ``all``),
    ``cpus``, ``memory_mb``, ``idle_hours``, ``env``.
    """
    read = Options("modal", options)
    workdir = read.directory("path", site.root)
    environment, idle_s = read.variables("env"), idle_seconds(read)
    service = _Modal(read, site, idle_s)
    read.finish()
    return ServiceBackend("modal", service, site, workdir, environment, idle_s)


class _Modal:
    """See ``Service``."""

    title = "Modal"

    def __init__(self, read: Options, site: Site, idle_s: float | None) -> None:
        self.name = container_name("modal", read.text("name"), site)
        self._credentials = tuple(required(read, "token_id", "token_secret"))
        self._server = read.text("server") or SERVER
        self._environment = site.environment
        self._image = read.text("image")
        memory_mb = read.number("memory_mb")
        self._facts: dict[str, Any] = {
            "block_network": not has_network(read),
            "cpu": read.number("cpus"),
            "memory": None if memory_mb is None else round(memory_mb),
            "idle_timeout": None if idle_s is None else max(1, min(round(idle_s), LONGEST_S)),
            "timeout": LONGEST_S,
        }
        self._library = load_library("modal", "modal", "modal")
        self._client: Any = None
        self._held: list[Any] = []

    def find(self) -> Rented | None:
        """Look it up by name among those that run."""
        with _translated(self._library):
            client = self._connected()
            try:
                return self._hold(self._library.Sandbox.from_name(APP, self.name, client=client))
            except self._library.exception.NotFoundError:
                return None

    def start(self, labels: Mapping[str, str]) -> Rented:
        """Start one that does nothing by itself."""
        library = self._library
        with _translated(library):
            client = self._connected()
            image = library.Image.from_registry(self._image) if self._image else library.Image.debian_slim()
            app = library.App.lookup(APP, client=client, create_if_missing=True)
            made = library.Sandbox.create(
                app=app, client=client, name=self.name, image=image, tags=dict(labels), **self._facts
            )
        return self._hold(made)

    def close(self) -> None:
        """Close the connections: those to sandboxes, and that to the service."""
        held, self._held = self._held, []
        client, self._client = self._client, None
        with _translated(self._library):
            for sandbox in held:
                sandbox.detach()
            if client is not None:
                client.close()

    def _hold(self, sandbox: Any) -> "_Sandbox":
        self._held.append(sandbox)
        return _Sandbox(self._library, sandbox)

    def _connected(self) -> Any:
        if self._client is None:
            if not any(name.lower().endswith("_proxy") for name in self._environment):  # the library goes through one
                _require_listener(self._server)
            kind = self._library.client.api_pb2.CLIENT_TYPE_CLIENT
            client = self._library.Client(self._server, kind, self._credentials)
            self._client = client.__enter__()  # it lives until close
        return self._client


class _Sandbox:
    """See ``Rented``."""

    def __init__(self, library: Any, sandbox: Any) -> None:
        self._library = library
        self._sandbox = sandbox

    @property
    def labels(self) -> Mapping[str, str]:
        """Its tags."""
        with _translated(self._library):
            return dict(self._sandbox.get_tags())

    def begin(self) -> "_Process":
        """Start the gate."""
        with _translated(self._library):
            return _Process(self._library, self._sandbox.exec(*GATED, text=False))

    def runs(self) -> bool:
        """Ask the service."""
        with _translated(self._library):
            try:
                return self._sandbox.poll() is None
            except self._library.exception.NotFoundError:
                return False

    def own(self, labels: Mapping[str, str]) -> None:
        """Change its tags."""
        with _translated(self._library):
            self._sandbox.set_tags(dict(labels))

    def remove(self) -> None:
        """Terminate it."""
        with _translated(self._library):
            self._sandbox.terminate()


class _Process:
    """See ``RemoteProcess``."""

    def __init__(self, library: Any, process: Any) -> None:
        self._library = library
        self._process = process

    def send(self, text: str) -> None:
        """Write, and wait until the service has it."""
        with _translated(self._library):
            self._process.stdin.write(text.encode())
            self._process.stdin.drain()

    def output(self) -> Iterator[bytes]:
        """Yield what comes."""
        return self._heard(self._process.stdout)

    def errors(self) -> Iterator[bytes]:
        """Yield what comes."""
        return self._heard(self._process.stderr)

    def kill(self) -> None:
        """Nothing to do: the service offers no way."""

    def close(self) -> None:
        """End its input, which a wrapper that still runs takes for the wish to end its command."""
        with _translated(self._library):
            self._process.stdin.write_eof()
            self._process.stdin.drain()

    def _heard(self, stream: Any) -> Iterator[bytes]:
        with _translated(self._library):
            yield from stream


def _require_listener(server: str) -> None:
    """Raise ``OSError`` where nobody listens at an address."""
    where = urlsplit(server)
    with socket.create_connection((where.hostname or "", where.port or 443), CONNECT_S):
        return


@contextmanager
def _translated(library: Any) -> Iterator[None]:
    """Make of what the library raises a ``NotStarted`` that a person understands."""
    raised = library.exception
    try:
        yield
    except (raised.AuthError, raised.PermissionDeniedError) as error:
        raise NotStarted(f"the service refuses the token; see token_id and token_secret ({error})") from error
    except raised.ResourceExhaustedError as error:
        raise NotStarted(f"the service gives no more now: a quota or a rate limit is reached ({error})") from error
    except (raised.ConnectionError, OSError) as error:
        raise NotStarted(f"the service cannot be reached ({error})") from error
    except raised.Error as error:
        raise NotStarted(str(error) or type(error).__name__) from error
