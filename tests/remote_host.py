"""A real sshd on loopback, with keys made for it: another host, as far as ssh can tell, that shares every path."""

import os
import select
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SSHD = "/usr/sbin/sshd"
NO_CONFIG = ["-F", "/dev/null"]
"""So that ssh reads nothing of whoever runs the tests; their home is not the one in the environment."""


@dataclass(frozen=True)
class RemoteHost:
    """The host: where it listens, and what lets one in."""

    port: int
    identity: str
    known_hosts: str
    log: Path
    daemon: subprocess.Popen[bytes]

    def options(self, **more: Any) -> dict[str, Any]:
        """The options of a backend that reaches it."""
        return {
            "host": "127.0.0.1",
            "port": self.port,
            "identity": self.identity,
            "known_hosts": self.known_hosts,
            "args": NO_CONFIG,
            **more,
        }

    def logins(self) -> int:
        """How often somebody was let in."""
        return self.log.read_text().count("Accepted publickey")


@contextmanager
def opened_host(base: Path) -> Iterator[RemoteHost]:
    """Start it; at the end it is gone."""
    os.makedirs("/run/sshd", exist_ok=True)
    for name in ("host_key", "key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(base / name)], check=True)
    (base / "authorized").write_text((base / "key.pub").read_text())
    port, home = free_port(), base / "home"
    public = " ".join((base / "host_key.pub").read_text().split()[:2])
    (base / "known_hosts").write_text(f"[127.0.0.1]:{port} {public}\n")
    (base / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {base / 'host_key'}\nAuthorizedKeysFile {base / 'authorized'}\n"
        f"PidFile none\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
        "PermitRootLogin prohibit-password\nLogLevel VERBOSE\nMaxSessions 50\n"
        f"SetEnv HOME={home}\n"  # a shell there reads no start-up file of whoever runs the tests
    )
    log = base / "sshd.log"
    home.mkdir()
    with log.open("wb") as said:
        daemon = subprocess.Popen([SSHD, "-D", "-e", "-f", str(base / "sshd_config")], stderr=said)
    try:
        wait_until_it_listens(port, daemon)
        yield RemoteHost(port, str(base / "key"), str(base / "known_hosts"), log, daemon)
    finally:
        daemon.kill()
        daemon.wait()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def wait_until_it_listens(port: int, daemon: subprocess.Popen[bytes]) -> None:
    ended = os.pidfd_open(daemon.pid)
    try:
        for _ in range(300):
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", port)) == 0:
                    return
            assert not select.select([ended], [], [], 0.05)[0], "sshd ended"
    finally:
        os.close(ended)
    raise AssertionError("sshd does not listen")
