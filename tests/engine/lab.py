"""A workspace, a store and an engine in a temporary home, with the gestures of agent and person."""

import os
import shutil
import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path

from engine import Engine
from engine.model import (
    Action,
    Checkpoint,
    Limits,
    RestorePlan,
    RestoreReport,
    ToolCall,
    ToolResult,
    TurnRef,
    Workspace,
)

CHAT = "console:local"


class Lab:
    """The agent acts through the engine's tools, the person through the file system."""

    def __init__(self, base: Path, **settings: object) -> None:
        self.home = base / "home"
        self.root = self.home / "ws"
        self.root.mkdir(parents=True, exist_ok=True)
        self.settings = settings
        self.limits = Limits()
        self.engine = self.open_engine()
        self.turn = 0

    def open_engine(self) -> Engine:
        """Start anew, as after a restart."""
        return Engine(
            str(self.home / ".takeback" / "checkpoints"),
            user_home=str(self.home),
            search_path=os.environ["PATH"],
            command_env={"PATH": os.environ["PATH"], "HOME": str(self.home)},
            **self.settings,  # type: ignore[arg-type]
        )

    @property
    def store(self) -> Path:
        return self.home / ".takeback" / "checkpoints" / "store"

    @property
    def workspace(self) -> Workspace:
        return self.engine.open_workspace(str(self.root), self.limits)

    # --- the agent

    def next_turn(self) -> int:
        self.turn += 1
        return self.turn

    def call(self, chat: str = CHAT) -> ToolCall:
        turn = TurnRef(chat, f"session of {chat}", str(self.turn))
        return ToolCall(self.workspace, turn, guarded=True, operation=f"operation-{self.turn}")

    def write(self, path: str, content: str | bytes, *, chat: str = CHAT, new_turn: bool = True) -> ToolResult:
        if new_turn:
            self.next_turn()
        data = content.encode() if isinstance(content, str) else content
        return self.engine.write_file(self.call(chat), path, data)

    def run(self, command: str, *, chat: str = CHAT, new_turn: bool = True) -> ToolResult:
        if new_turn:
            self.next_turn()
        return self.engine.terminal(self.call(chat), command, timeout_s=60)

    def patch(self, text: str) -> ToolResult:
        self.next_turn()
        return self.engine.patch(self.call(), text)

    # --- the person

    def edit(self, path: str, content: str | bytes) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)

    def read(self, path: str) -> str:
        return (self.root / path).read_text()

    def exists(self, path: str) -> bool:
        return os.path.lexists(self.root / path)

    def checkpoints(self) -> list[Checkpoint]:
        return self.engine.checkpoints(self.workspace)

    def plan(self, number: int = 1, *selection: str, everything: bool = False, chat: str = CHAT) -> RestorePlan:
        target = self.checkpoints()[number - 1]
        return self.engine.plan_restore(
            self.workspace, target.id, selection=selection, everything=everything, chat=chat
        )

    def rollback(self, number: int = 1, *selection: str, everything: bool = False, chat: str = CHAT) -> RestoreReport:
        return self.engine.apply_restore(self.plan(number, *selection, everything=everything, chat=chat))

    def undo_turn(self, turn: int, checkpoint: Checkpoint, chat: str = CHAT) -> RestoreReport:
        plan = self.engine.plan_restore(self.workspace, checkpoint.id, turns=[str(turn)], chat=chat)
        return self.engine.apply_restore(plan)

    def undo_restore(self, report: RestoreReport) -> RestoreReport:
        assert report.safety is not None
        return self.engine.apply_restore(self.engine.plan_restore(self.workspace, report.safety.id, chat=CHAT))

    def git(self, *arguments: str, at: str = ".") -> str:
        """Run git as the person does, on the person's repository."""
        done = subprocess.run(
            ["git", "-c", "user.name=P", "-c", "user.email=p@localhost", "-c", "init.defaultBranch=main", *arguments],
            cwd=self.root / at,
            check=True,
            capture_output=True,
            text=True,
            env={"PATH": os.environ["PATH"], "HOME": str(self.home), "GIT_CONFIG_NOSYSTEM": "1"},
        )
        return done.stdout

    def nested(self, path: str, *, commit: bool = True) -> None:
        """Make a nested repository."""
        (self.root / path).mkdir(parents=True)
        self.git("init", "-q", at=path)
        self.edit(f"{path}/inner.txt", "inner\n")
        if commit:
            self.git("add", ".", at=path)
            self.git("commit", "-q", "-m", "one", at=path)


def snapshot(root: Path, *, skip: Sequence[str] = ()) -> dict[str, tuple[object, ...]]:
    """Everything below a directory: kind, permission bits and bytes of each path."""
    found: dict[str, tuple[object, ...]] = {}
    for directory, names, files in os.walk(os.fsencode(root)):
        here = os.path.relpath(directory, os.fsencode(root))
        for name in [*names, *files]:
            path = os.fsdecode(os.path.normpath(os.path.join(here, name)))
            if any(path == s or path.startswith(f"{s}/") for s in skip):
                continue
            found[path] = describe(os.path.join(directory, name))
    return found


def describe(path: bytes) -> tuple[object, ...]:
    status = os.lstat(path)
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISLNK(status.st_mode):
        return ("link", os.readlink(path))
    if stat.S_ISDIR(status.st_mode):
        return ("directory", mode)
    if stat.S_ISREG(status.st_mode):
        try:
            with open(path, "rb") as stream:
                return ("file", mode, stream.read())
        except PermissionError:
            return ("file", mode, None)
    return ("other", mode)


def actions(plan: RestorePlan) -> dict[str, Action]:
    return {item.path: item.action for item in plan.items}


def paths(notes: Sequence[object]) -> list[str]:
    return [note.path for note in notes]  # type: ignore[attr-defined]


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
