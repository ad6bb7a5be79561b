"""Tells systemd how the gateway is: ready, stopping, and alive, each a datagram to the socket that it named.

The protocol is sd_notify(3). Without that socket, as anywhere but under systemd, nothing is said.
"""

import logging
import os
import socket
from collections.abc import Mapping

SOCKET_VARIABLE = "NOTIFY_SOCKET"
WATCHDOG_VARIABLE = "WATCHDOG_USEC"
WATCHDOG_PROCESS_VARIABLE = "WATCHDOG_PID"

_log = logging.getLogger(__name__)


class Supervisor:
    """Who started this process and watches over it.

    ``address`` is a socket's path; one that begins with ``@`` is a name in Linux's abstract namespace. ``watchdog_s``
    is how long the watcher waits for a sign of life before it restarts the process, ``None`` where it does not wait.
    """

    def __init__(self, address: str | None, watchdog_s: float | None = None) -> None:
        self._address = address
        self.watchdog_s = watchdog_s if address else None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Supervisor":
        """Take what systemd handed over. A socket of a kind that this does not know is said, and not used."""
        address = environment.get(SOCKET_VARIABLE) or None
        if address is not None and not address.startswith(("/", "@")):
            _log.warning("%s names %s, which is no socket of this machine; not used", SOCKET_VARIABLE, address)
            address = None
        return cls(address, _watchdog_s(environment))

    def ready(self) -> None:
        """Say that everything has started."""
        self._tell("READY=1")

    def stopping(self) -> None:
        """Say that the process is about to end."""
        self._tell("STOPPING=1")

    def alive(self) -> None:
        """Give a sign of life."""
        self._tell("WATCHDOG=1")

    def _tell(self, state: str) -> None:
        """Send one datagram, without waiting; a watcher that is gone or full is no reason to fail."""
        if self._address is None:
            return
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        try:
            with socket.socket(
                socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
            ) as sender:
                sender.connect(address)
                sender.send(state.encode())
        except OSError as error:
            _log.warning("the service manager was not told %s: %s", state, error.strerror)


def _watchdog_s(environment: Mapping[str, str]) -> float | None:
    """How long systemd waits, if it is this process that it waits for."""
    if environment.get(WATCHDOG_PROCESS_VARIABLE, str(os.getpid())) != str(os.getpid()):
        return None
    try:
        microseconds = int(environment.get(WATCHDOG_VARIABLE, "0"))
    except ValueError:
        return None
    return microseconds / 1e6 if microseconds > 0 else None
