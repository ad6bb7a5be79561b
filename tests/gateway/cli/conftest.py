"""The command line as people run it: a process of its own, with a home of its own."""

import os
import select
import subprocess
import sys
from dataclasses import dataclass

import pytest

from tests.gateway.cli.platform_server import platforms_on_loopback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))


@dataclass
class Command:
    """Runs ``gateway`` with a given home and nothing else of this machine's configuration."""

    home: str
    user_home: str

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": self.user_home,
            "TAKEBACK_HOME": self.home,
            "LANG": "C.UTF-8",
            "TERM": "xterm",
            "PYTHONPATH": ROOT,
            "PYTHONWARNINGS": "error",
        }

    def __call__(self, *arguments: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.line(*arguments),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            cwd=self.user_home,
            env={**self.environment, **environment},
        )

    def line(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "gateway", *arguments]

    def start(self, *arguments: str, **options) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self.line(*arguments), **{"cwd": self.user_home, "env": self.environment, **options})


@pytest.fixture
def gateway(tmp_path):
    user_home = tmp_path / "user"
    user_home.mkdir()
    return Command(str(tmp_path / "home"), str(user_home))


@pytest.fixture
def platforms():
    """Telegram and Slack on loopback, to ask about tokens."""
    with platforms_on_loopback() as platforms:
        yield platforms


@pytest.fixture
def workspace(tmp_path):
    """A small project that is no part of the homes."""
    path = tmp_path / "project"
    path.mkdir()
    (path / "notes.md").write_text("one\n")
    (path / "Makefile").write_text("all:\n")
    return path


class Signpost:
    """Something that a command in a shell can raise (``echo > PATH``) and a test can wait for."""

    def __init__(self, path: str) -> None:
        self.path = path
        os.mkfifo(path)
        self._descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def wait(self, within_s: float = 20) -> None:
        assert select.select([self._descriptor], [], [], within_s)[0], "it was not raised"

    def close(self) -> None:
        os.close(self._descriptor)


@pytest.fixture
def begun(tmp_path):
    """Raised by a command that has begun."""
    signpost = Signpost(str(tmp_path / "begun"))
    yield signpost
    signpost.close()
