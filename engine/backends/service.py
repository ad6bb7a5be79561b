"""A backend over a sandbox that a service in the network rents out, reached through the service's own library.

One sandbox per workspace: found again by its name, started when first needed, removed when the backend is closed. One
that a process started which is gone is taken over with what is in it; one that somebody else started is used and left
alone.

When this program dies, nobody ends what runs there: the service does, when the sandbox's time is over.
"""

import hashlib
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any, Final, Protocol

from engine.backends.base import Executed, Site, StopSignal
from engine.backends.container import is_gone, this_owner
from engine.backends.conversation import NotStarted
from engine.backends.kept import KeptBackend
from engine.backends.options import Options
from engine.backends.remote import RemoteChannel, RemoteProcess, call_through
from engine.backends.waiting import refuse_stopped, unless_stopped
from engine.backends.wrapper import Verdict, killing
from engine.errors import ToolRefused

HOME_LABEL: Final = "takeback-home"
"""Which Takeback started a sandbox: a digest of the machine and of where it keeps its own things."""

OWNER_LABEL: Final = "takeback-owner"
"""Which process started it."""

_MAKE_DIRECTORY: Final = ("/bin/sh", "-c", 'mkdir -p -- "$1" && [ -w "$1" ]', "sh")


class Rented(Protocol):
    """A sandbox that there is; every method may raise ``NotStarted``."""

    @property
    def labels(self) -> Mapping[str, str]:
        """What whoever started it wrote on it."""
        ...

    def begin(self) -> RemoteProcess:
        """Start ``GATED`` in it."""
        ...

    def runs(self) -> bool:
        """Whether it still runs."""
        ...

    def own(self, labels: Mapping[str, str]) -> None:
        """Write other labels on it."""
        ...

    def remove(self) -> None:
        """Remove it with all that is in it."""
        ...


class Service(Protocol):
    """A service, as one workspace uses it; every method may raise ``NotStarted``."""

    @property
    def title(self) -> str:
        """What the service is called."""
        ...

    @property
    def name(self) -> str:
        """What the sandbox is called."""
        ...

    def find(self) -> Rented | None:
        """Return the sandbox of that name, running; ``None`` when there is none."""
        ...

    def start(self, labels: Mapping[str, str]) -> Rented:
        """Start one."""
        ...

    def close(self) -> None:
        """Let go of connections; it may be used again afterwards."""
        ...


class ServiceBackend(KeptBackend):
    """Runs commands and reaches files in a workspace's sandbox; ``service`` is what rents it out."""

    def __init__(
        self,
        kind: str,
        service: Service,
        site: Site,
        workdir: str,
        environment: Mapping[str, str],
        idle_s: float | None,
    ) -> None:
        super().__init__(kind, site, workdir, environment, idle_s)
        self._service = service
        self._rented: Rented | None = None

    def execute(self, arguments: Sequence[str], stdin: bytes = b"") -> Executed:
        """Run a short program in the sandbox; see ``Sandbox.execute``."""
        with self._idle.in_use():
            try:
                return call_through(self._ensure().begin(), arguments, stdin)
            except NotStarted as error:
                raise self._explained(error.reason) from error

    def close(self) -> None:
        """Remove the sandbox, if this started it, and let go of the service."""
        self._idle.cancel()
        with self._lock:
            rented, self._rented = self._rented, None
            with suppress(NotStarted):
                if rented is not None and self._ours:
                    rented.remove()
            self._service.close()

    def _open_channel(self, stop: StopSignal, text: str, mark: str) -> RemoteChannel:
        # Libraries offer no way to interrupt them.
        rented, process = unless_stopped(partial(self._begin, stop), stop)

        def kill(verdict: Verdict) -> bool:
            if verdict.group is None:
                return False
            try:
                return call_through(rented.begin(), ("/bin/sh", "-c", killing(verdict.group, mark))).exit_code == 0
            except NotStarted:
                return False

        return RemoteChannel(process, text, kill)

    def _begin(self, stop: StopSignal) -> tuple[Rented, RemoteProcess]:
        """Start the gate in the sandbox, which runs nothing until it is told to; after a stop, let go of it."""
        rented = self._ensure()
        refuse_stopped(stop)
        process = rented.begin()
        if stop.stopped:
            process.close()
        return rented, process

    def _ensure(self) -> Rented:
        """Return the sandbox, started if there is none; raises ``NotStarted``."""
        with self._lock:
            if self._rented is None:
                labels = {HOME_LABEL: _home(self._site), OWNER_LABEL: this_owner()}
                found = self._service.find()
                self._ours = found is None or _is_left_behind(found.labels, labels)
                if found is not None and self._ours:
                    found.own(labels)
                rented = self._service.start(labels) if found is None else found
                self._make_directory(rented)
                self._rented = rented
            return self._rented

    def _make_directory(self, rented: Rented) -> None:
        try:
            _require_made(call_through(rented.begin(), (*_MAKE_DIRECTORY, self.workdir)), self.workdir)
        except NotStarted:
            if self._ours:
                with suppress(NotStarted):
                    rented.remove()
            raise

    def _explained(self, reason: str) -> ToolRefused:
        """Say also when the sandbox is there no more; it is forgotten then."""
        with self._lock, suppress(NotStarted):
            if self._rented is not None and not self._rented.runs():
                self._rented = None
                reason = (
                    f"the sandbox {self._service.name!r} is gone or was stopped meanwhile; "
                    "the next command starts it anew, perhaps without the files that were in it"
                )
        return ToolRefused(f"sandbox ({self._service.title})", f"{' '.join(reason.split())}. Nothing ran")


def load_library(kind: str, module: str, extra: str) -> Any:
    """Import a service's library; raises ``ToolRefused`` with the line that installs it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise ToolRefused(
            f"backend {kind!r}",
            f"needs a package that is not installed here ({error.name}). Install it: pip install 'takeback[{extra}]'",
        ) from error


def required(read: Options, *names: str) -> list[str]:
    """Read options without which the service admits nobody."""
    values = [read.text(name) for name in names]
    for name, value in zip(names, values, strict=True):
        if not value.strip():
            raise read.refusal(name, "is needed: it is what the service knows you by")
    return values


def has_network(read: Options) -> bool:
    """Read whether a sandbox reaches the network; the services know only all and nothing."""
    network = read.text("network") or "none"
    if network not in {"none", "all"}:
        raise read.refusal("network", f"must be 'none' or 'all', not {network!r}")
    return network == "all"


def _require_made(made: Executed, directory: str) -> None:
    if made.exit_code:
        said = made.errors.decode("utf-8", "replace").strip() or "it is there but cannot be written to"
        raise NotStarted(f"{directory} could not be made in the sandbox ({said}); set another path")


def _home(site: Site) -> str:
    return hashlib.sha256(f"{socket.gethostname()}\0{site.private}".encode()).hexdigest()[:16]


def _is_left_behind(found: Mapping[str, str], ours: Mapping[str, str]) -> bool:
    """Whether a sandbox is of this home and its process runs no more, or is this one."""
    if found.get(HOME_LABEL) != ours[HOME_LABEL]:
        return False
    owner = found.get(OWNER_LABEL, "")
    return owner == ours[OWNER_LABEL] or is_gone(owner)
