"""The machine that the soak runs on: one home, many workspaces, and what clients were told of them."""

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SHORT_ID = 7


@dataclass
class Acknowledged:
    """The checkpoints of one workspace that a client has seen in a list: id → reason, and who was older than whom."""

    reasons: dict[str, str] = field(default_factory=dict)
    older: dict[str, set[str]] = field(default_factory=dict)


@dataclass
class Town:
    """A home with workspaces ``w00``… ; rules are small, so that they bite; ``size_bites`` says if the cap does."""

    base: Path
    count: int
    max_snapshots: int = 6
    cap_mb: float = 500
    noise_bytes: int = 20_000
    size_bites: bool = False
    pruned: set[str] = field(default_factory=set)
    by_rule: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.user_home, self.home = self.base / "user", self.base / "home"
        self.workspaces = [f"w{number:02d}" for number in range(self.count)]
        self.acknowledged = {name: Acknowledged() for name in self.workspaces}
        self.user_home.mkdir()
        self.home.mkdir(0o700)
        lines = []
        for name in self.workspaces:
            self.root(name).mkdir(parents=True)
            lines.append(f"  {name}: {{path: {self.root(name)}}}\n")
        (self.home / "config.yaml").write_text(
            f"checkpoints: {{enabled: true, max_snapshots: {self.max_snapshots}, max_total_size_mb: {self.cap_mb}}}\n"
            f'approvals: "off"\nworkspaces:\n{"".join(lines)}'
        )
        (self.home / "config.yaml").chmod(0o600)
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.user_home),
            "TAKEBACK_HOME": str(self.home),
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(ROOT),
            "PYTHONWARNINGS": "error",
        }

    def root(self, name: str) -> Path:
        return self.base / "code" / name

    def line(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "gateway", *arguments]

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Run a command to its end; exit code and what it wrote."""
        done = subprocess.run(
            self.line(*arguments),
            cwd=self.user_home,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    def acknowledge(self, name: str, listed: list[tuple[str, str]]) -> None:
        """Note what a client was shown, newest first."""
        with self.lock:
            known = self.acknowledged[name]
            for position, (checkpoint, reason) in enumerate(listed):
                known.reasons[checkpoint] = reason
                known.older.setdefault(checkpoint, set()).update(other for other, _ in listed[position + 1 :])

    def note_prune(self, report: dict[str, Any]) -> None:
        """Note what a prune says that it dropped."""
        with self.lock:
            self.by_rule.update(item["rule"] for item in report["decisions"])
            self.pruned |= {item["name"][:SHORT_ID] for item in report["decisions"] if item["target"] == "checkpoint"}

    def listed(self) -> dict[str, list[str]]:
        """What is listed now, newest first, by workspace."""
        code, out, errors = self.run("checkpoints", "list", "--json")
        assert code == 0, errors
        by_root = {str(self.root(name).resolve()): name for name in self.workspaces}
        # What was killed during its first capture has none, and nobody knows yet where it is.
        return {
            by_root[project["workdir"]]: [item["id"][:SHORT_ID] for item in project["checkpoints"]]
            for project in json.loads(out)
            if project["checkpoints"]
        }
