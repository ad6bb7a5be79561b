"""Other places where commands run: a host behind ssh, a container of podman."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.backends.base import Backend, ProcessResult, Site, StopSignal
from engine.backends.registry import create_backend
from tests.apptainer import Apptainer, opened_apptainer
from tests.containers import Podman, opened_podman
from tests.remote_host import RemoteHost, opened_host


class Elsewhere:
    """A backend with a workspace; ``heard`` is what its output was handed on as."""

    def __init__(self, base: Path, kind: str, options: dict[str, object]) -> None:
        self.workspace = base / "ws"
        self.workspace.mkdir(exist_ok=True)
        self.env = {"PATH": os.environ["PATH"], "HOME": str(base), "LANG": "C.UTF-8", "SECRET": "hidden"}
        self.site = Site(str(self.workspace), "0123456789abcdef", str(base / "private"), self.env)
        self.backend: Backend = create_backend(kind, options, self.site)
        self.begin()

    def begin(self) -> None:
        """Forget what was heard and whether it was stopped."""
        self.heard: list[bytes] = []
        self.stop = StopSignal()
        self.stop_at = b""

    def __call__(self, command: str, *, timeout_s: float | None = 60, keep: bool = False) -> ProcessResult:
        """Run a command; when ``stop_at`` is heard, it is stopped."""
        return self.backend.run(
            command, str(self.workspace), self.env, timeout_s, self._hear, self.stop, keep_background=keep
        )

    def _hear(self, data: bytes) -> None:
        self.heard.append(data)
        if self.stop_at and self.stop_at in data:
            self.stop.stop()


@pytest.fixture(scope="session")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Podman]:
    with opened_podman(tmp_path_factory.mktemp("podman")) as opened:
        yield opened


@pytest.fixture(scope="session")
def apptainer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apptainer]:
    with opened_apptainer(tmp_path_factory.mktemp("apptainer")) as opened:
        yield opened


@pytest.fixture(scope="session")
def remote_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RemoteHost]:
    with opened_host(tmp_path_factory.mktemp("host")) as opened:
        yield opened


@pytest.fixture
def ssh(tmp_path: Path, remote_host: RemoteHost) -> Iterator[Elsewhere]:
    place = Elsewhere(tmp_path, "ssh", remote_host.options())
    yield place
    place.backend.close()
