"""Commands on another host, by the system's own OpenSSH, over one connection that all commands share.

The workspace is a directory of this host that the other one shares (NFS, sshfs, a container's mount, or the same
machine), so checkpoints hold for what runs there. Nothing asks: keys, an agent, and hosts that are known already.
"""

import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

from engine.backends.base import ProcessResult, Site, StopSignal
from engine.backends.client import ClientChannel, call_client
from engine.backends.container import inside, is_gone, this_owner
from engine.backends.conversation import PATIENCE_S, Hearing, NotStarted, Order, language, run_elsewhere
from engine.backends.options import Options
from engine.backends.waiting import holding, refuse_stopped
from engine.backends.wrapper import GATE, Verdict, killing, one_line
from engine.errors import ToolRefused

CONNECT_S: Final = 15
"""How long a connection may take."""

IDLE_S: Final = 600
"""How long an unused connection is kept."""

_PLACE: Final = "/tmp"  # noqa: S108 - what is made there is ours alone
_PREFIX: Final = "takeback-ssh-"
_CALL_S: Final = CONNECT_S + 15.0


class SshBackend:
    """Runs commands by ``ssh``; one instance per workspace.

    Options: ``host`` (as ssh understands it), ``user``, ``port``, ``identity``, ``known_hosts``, ``path`` (the
    workspace's directory there, if it is another), ``env``, ``args`` (more arguments for ssh).
    """

    kind = "ssh"
    is_container = False

    def __init__(self, options: Mapping[str, Any], site: Site) -> None:
        read = Options(self.kind, options)
        host = read.word("host")
        if not host:
            raise read.refusal("host", "is missing")
        user, port = read.word("user"), read.number("port")
        identity, known_hosts = read.text("identity"), read.text("known_hosts")
        self._path = read.directory("path", site.root)
        self._env = read.variables("env")
        extra = read.texts("args")
        read.finish()
        self._site = site
        self._host = host
        settings = ["BatchMode=yes", f"ConnectTimeout={CONNECT_S}", "ServerAliveInterval=10", "ServerAliveCountMax=3"]
        settings += [f"UserKnownHostsFile={_quoted(known_hosts)}"] if known_hosts else []
        settings += [f"IdentityFile={_quoted(identity)}", "IdentitiesOnly=yes"] if identity else []
        settings += [f"User={user}"] if user else []
        settings += [f"Port={port:.0f}"] if port else []
        self._settings = [word for setting in settings for word in ("-o", setting)]
        self._extra = list(extra)
        self._sockets: str | None = None
        self._lock = threading.Lock()

    def run(
        self,
        command: str,
        cwd: str,
        env: Mapping[str, str],
        timeout_s: float | None,
        on_output: Callable[[bytes], None],
        stop: StopSignal,
        *,
        keep_background: bool = False,
    ) -> ProcessResult:
        """Run a command on the host; see ``Backend.run``."""
        directory = inside(self._site, self._path, cwd)
        order = Order(command, directory, {**language(env), **self._env}, keep_background)
        try:
            opening = partial(self._open_channel, stop)
            return run_elsewhere(opening, order, Hearing(on_output), stop, timeout_s)
        except NotStarted as error:
            raise ToolRefused(f"ssh {self._host}", f"{error.reason}. Nothing ran there") from error

    def close(self) -> None:
        """End the shared connection."""
        with self._lock:
            sockets, self._sockets = self._sockets, None
        if sockets is None:
            return
        with suppress(NotStarted):
            call_client(self._arguments(sockets, "-O", "exit"), self._site.environment, timeout_s=_CALL_S)
        shutil.rmtree(sockets, ignore_errors=True)

    def _open_channel(self, stop: StopSignal, text: str, mark: str) -> ClientChannel:
        sockets = self._connected(stop)

        def kill(verdict: Verdict) -> bool:
            if verdict.group is None:
                return False
            line = one_line(killing(verdict.group, mark))
            try:
                done = call_client(self._remote(sockets), self._site.environment, stdin=line, timeout_s=PATIENCE_S)
            except NotStarted:
                return False
            return done.exit_code == 0

        return ClientChannel(self._remote(sockets), self._site.environment, text, kill)

    def _connected(self, stop: StopSignal) -> str:
        """Return the directory of the connection's socket, with a connection behind it; raises ``NotStarted``."""
        with holding(self._lock, stop):
            if self._sockets is None:
                _sweep()
                # Short, because a socket's path may have some hundred bytes; private, because it is as good as a key.
                self._sockets = tempfile.mkdtemp(prefix=f"{_PREFIX}{this_owner()}-", dir=_PLACE)
            sockets = self._sockets
            check = self._arguments(sockets, "-O", "check")
            there = call_client(check, self._site.environment, timeout_s=_CALL_S, stop=stop)
            if there.exit_code != 0:
                self._connect(sockets, stop)
        refuse_stopped(stop)
        return sockets

    def _connect(self, sockets: str, stop: StopSignal) -> None:
        """Make the connection that the others use; it stays behind, in the background, when this call ends.

        What stays behind keeps its standard errors open, so they go to a file: a pipe would not end before it.
        """
        said = os.path.join(sockets, "said")
        sharing = ["-o", "ControlMaster=auto", "-o", f"ControlPersist={IDLE_S}", "-E", said]
        connect = [*self._arguments(sockets, *sharing), "exit 0"]
        done = call_client(connect, self._site.environment, timeout_s=_CALL_S, detaches=True, stop=stop)
        if done.exit_code != 0:
            reason = _last_said(said) or f"ssh ended with exit code {done.exit_code} and said nothing"
            raise NotStarted(f"no connection: {reason}")

    def _remote(self, sockets: str) -> list[str]:
        """Return the call that runs the wrapper there; any login shell takes these words as they are."""
        return [*self._arguments(sockets, "-o", "ControlMaster=no"), f"exec /bin/sh -c '{GATE}'"]

    def _arguments(self, sockets: str, *more: str) -> list[str]:
        socket = os.path.join(sockets, "c")
        return ["ssh", "-T", "-S", socket, *self._settings, *more, *self._extra, "--", self._host]


def _sweep() -> None:
    """Remove what processes that were killed have left; their connections end by themselves."""
    for name in os.listdir(_PLACE):
        path = os.path.join(_PLACE, name)
        if name.startswith(_PREFIX) and is_gone(name.removeprefix(_PREFIX).partition("-")[0]):
            with suppress(OSError):
                if os.lstat(path).st_uid == os.geteuid():
                    shutil.rmtree(path)


def _quoted(path: str) -> str:
    """Write a path for ssh's own reading of an option: words end at spaces, and % begins a token."""
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def _last_said(path: str) -> str:
    try:
        with open(path, "rb") as file:
            lines = file.read().decode("utf-8", "replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1].strip() if lines else ""
