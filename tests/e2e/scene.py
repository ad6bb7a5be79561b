"""A person's machine: a home, a project, and the program working in it."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.homes import Holdings, assert_same, holdings
from tests.e2e.processes import end_all, living
from tests.e2e.program import Program
from tests.e2e.trees import Photograph, photograph
from tests.e2e.waypoints import Waypoint

ROOT = Path(__file__).resolve().parents[2]

_TROUBLE = re.compile(r"^\S+ (?:error|critical) .*|^Traceback .*", re.MULTILINE)


@dataclass
class Scene:
    """One machine. ``base`` is an empty directory; ``log_may_hold`` is a pattern of errors that a test provokes.

    ``launcher`` is a command that starts the program.
    """

    base: Path
    log_may_hold: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    launcher: tuple[str, ...] = ()
    programs: list[Program] = field(default_factory=list)
    waypoints: list[Waypoint] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.user_home = self.base / "user"
        self.home = self.base / "home"
        self.project = self.base / "project"
        for directory in (self.user_home, self.project):
            directory.mkdir()
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.user_home),
            "TAKEBACK_HOME": str(self.home),
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(ROOT),
            "PYTHONWARNINGS": "error",
            **self.environment,
        }

    # --- the program

    def line(self, *arguments: str) -> list[str]:
        """A command line of the program."""
        return [*self.launcher, sys.executable, "-m", "gateway", *arguments]

    def start(self, *arguments: str, **environment: str) -> Program:
        """Start the chat; without arguments in the project, with checkpoints."""
        given = arguments or ("--workspace", str(self.project), "--checkpoints")
        program = Program(
            self.line("chat", "--jsonl", *given),
            cwd=str(self.user_home),
            env={**self.environment, **environment},
            log=str(self.home / "gateway.log"),
            errors=str(self.base / "errors"),
        )
        self.programs.append(program)
        return program

    def run(self, *arguments: str, stdin: bytes = b"", **environment: str) -> subprocess.CompletedProcess[bytes]:
        """Run a command of the program to its end."""
        return subprocess.run(
            self.line(*arguments),
            input=stdin,
            capture_output=True,
            timeout=90,
            check=False,
            cwd=self.user_home,
            env={**self.environment, **environment},
        )

    def start_plain(self, *, stdout: int) -> subprocess.Popen[bytes]:
        """Start the chat for a pipe, with its output going to a descriptor."""
        return subprocess.Popen(
            self.line("chat", "--workspace", str(self.project), "--checkpoints"),
            stdin=subprocess.PIPE,
            stdout=stdout,
            stderr=subprocess.PIPE,
            cwd=self.user_home,
            env=self.environment,
        )

    def configure(self, text: str) -> None:
        """Write ``config.yaml``."""
        self.home.mkdir(mode=0o700, exist_ok=True)
        (self.home / "config.yaml").write_text(text)

    def close(self) -> None:
        """End whatever still runs."""
        for program in self.programs:
            program.close()
        for waypoint in self.waypoints:
            waypoint.close()
        end_all(str(self.user_home))

    def complaints(self) -> list[str]:
        """What the program wrote to standard error, and errors in its log that no test provoked."""
        found = []
        for path in (self.base / "errors", self.home / "gateway.log"):
            text = path.read_text(errors="replace") if path.exists() else ""
            found += [text] if path.name == "errors" and text else []
            trouble = [match.group() for match in _TROUBLE.finditer(text) if path.name != "errors"]
            found += [line for line in trouble if not (self.log_may_hold and re.search(self.log_may_hold, line))]
        return found

    def waypoint(self, name: str) -> Waypoint:
        """A place, outside the project, where a command and the test meet."""
        self.waypoints.append(Waypoint(self.base / name))
        return self.waypoints[-1]

    def living(self) -> dict[int, str]:
        """Every process that the program, or a command of the agent's, has running."""
        return living(str(self.user_home))

    # --- the person

    def edit(self, path: str, content: str | bytes, *, mode: int | None = None) -> Path:
        """Write a file of the project by hand."""
        target = self.project / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
        if mode is not None:
            target.chmod(mode)
        return target

    def read(self, path: str) -> str:
        """A file of the project."""
        return (self.project / path).read_text()

    def exists(self, path: str) -> bool:
        """Whether anything stands at a path of the project."""
        return os.path.lexists(self.project / path)

    def tree(self) -> Photograph:
        """The project as it is."""
        return photograph(self.project)

    def git(self, *arguments: str, at: str = ".") -> str:
        """Run git as the person does, on the person's own repository."""
        done = subprocess.run(
            ["git", "-c", "user.name=P", "-c", "user.email=p@localhost", "-c", "init.defaultBranch=main", *arguments],
            cwd=self.project / at,
            check=True,
            capture_output=True,
            text=True,
            env={"PATH": os.environ["PATH"], "HOME": str(self.user_home), "GIT_CONFIG_NOSYSTEM": "1"},
        )
        return done.stdout

    def repository(self, path: str = ".", *, commit: bool = True) -> None:
        """Make a repository of the person's with one commit of all that is there."""
        (self.project / path).mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", at=path)
        if commit:
            self.git("add", "-f", ".", at=path)
            self.git("commit", "-q", "--allow-empty", "-m", "one", at=path)

    # --- what must not change

    def everything(self) -> tuple[Photograph, Holdings]:
        """The project with the times of its files, and what Takeback keeps."""
        return self.tree(), holdings(self.home)

    def assert_unchanged(self, before: tuple[Photograph, Holdings]) -> None:
        """A refusal changes nothing: no file, no ref, no ledger, no row."""
        tree, kept = self.everything()
        assert tree == before[0]
        assert_same(before[1], kept)
