"""A store made as the engine makes it, and workspaces whose checkpoints the tests know by heart."""

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from engine.checkpoints.capture import Captured, capture
from engine.checkpoints.history import Purpose, keep_after, list_held, take
from engine.errors import GitFailed
from engine.host.git import Git
from engine.model import Checkpoint, CheckpointKind, Limits, TurnRef, Workspace
from engine.store.layout import Layout, workspace_hash
from engine.store.ledger import WriteRecord, append_record
from engine.store.opened import Store
from engine.store.reader import open_reader
from engine.store.refs import session_ref, update_refs

SEARCH_PATH = "/usr/local/bin:/usr/bin:/bin"
NOW = datetime(2026, 3, 16, 12, 0, tzinfo=UTC)


def no_fault(_arguments: tuple[str, ...]) -> None:
    """Let every git command go ahead."""


@dataclass
class Kit:
    """One store and what is done in it."""

    home: Path
    store: Store
    commands: list[tuple[str, ...]] = field(default_factory=list)
    fault: Callable[[tuple[str, ...]], None] = no_fault

    def workspace(self, name: str) -> Workspace:
        root = self.home / "code" / name
        root.mkdir(parents=True, exist_ok=True)
        path = os.path.realpath(root)
        return Workspace(path, path, workspace_hash(path), Limits(max_snapshots=1000))

    def write(self, workspace: Workspace, name: str, content: bytes) -> None:
        path = Path(workspace.root, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def checkpoint(self, workspace: Workspace, reason: str = "before write_file: a.txt") -> Checkpoint:
        with self.store.use(workspace, "a test"):
            captured = self.captured(workspace)
            held = list_held(self.store, workspace)
            return take(self.store, workspace, captured, Purpose(CheckpointKind.MANUAL, reason), held)

    def captured(self, workspace: Workspace) -> Captured:
        return capture(self.store, workspace, frozenset())

    def turns(self, workspace: Workspace, count: int, size_bytes: int = 2000) -> list[Checkpoint]:
        """Take ``count`` checkpoints, each with a new file content of its own that does not compress."""
        taken = []
        for _number in range(count):
            self.write(workspace, "noise.bin", os.urandom(size_bytes))
            taken.append(self.checkpoint(workspace))
        return taken

    def note_turn(self, workspace: Workspace, checkpoint: Checkpoint, path: str) -> None:
        """Note what a turn did, as the guard does."""
        with self.store.use(workspace, "a test"):
            captured = self.captured(workspace)
            found = next(item for item in list_held(self.store, workspace) if item.checkpoint.id == checkpoint.id)
            keep_after(self.store, workspace, found, replace(captured, tree=found.tree), captured)
            state = captured.rows[path].entry
            number = self.store.ledger(workspace).number + 1
            turn = TurnRef("chat", "session", str(number))
            record = WriteRecord(
                number, turn.chat, turn.session, turn.turn, checkpoint.id, captured.commit, {path: state}
            )
            append_record(self.store.layout.ledger(workspace.hash), record)

    def begin_session(self, workspace: Workspace, name: str) -> str:
        with self.store.use(workspace, "a test"):
            captured = self.captured(workspace)
            self.store.touch(workspace)
            update_refs(self.store.git, set_to=[(session_ref(workspace.hash, name), captured.commit)])
            return captured.commit

    def age(self, workspace: Workspace, days: float, now: datetime = NOW) -> None:
        """Make a workspace look as if it was used last ``days`` ago."""
        path = self.store.layout.project(workspace.hash)
        value = json.loads(Path(path).read_text())
        value["last_touch"] = (now - timedelta(days=days)).isoformat()
        Path(path).write_text(json.dumps(value))

    def ids(self, workspace: Workspace) -> list[str]:
        """The listed checkpoints, oldest first."""
        return [item.checkpoint.id for item in reversed(list_held(self.store, workspace))]

    def refs(self, workspace: Workspace) -> list[str]:
        out = self.store.git.run(["for-each-ref", "--format=%(refname)", f"refs/takeback/{workspace.hash}"])
        return [line.removeprefix(f"refs/takeback/{workspace.hash}/") for line in out.decode().splitlines()]

    def content(self, checkpoint: str, path: str) -> bytes:
        """Read a file out of a checkpoint, every byte proved."""
        with open_reader(self.store.git) as reader:
            return reader.read(f"{checkpoint}:{path}")

    def objects(self) -> int:
        out = self.store.git.run(["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"])
        return len(out.splitlines())

    def gcs(self) -> int:
        """How often git reclaimed space."""
        return sum(arguments[0] == "gc" for arguments in self.commands)

    def archive(self, name: str, size_bytes: int = 4096) -> Path:
        path = Path(self.store.layout.base, name, "0123456789abcdef")
        path.mkdir(parents=True)
        (path / "HEAD").write_bytes(b"x" * size_bytes)
        return path.parent

    def open_again(self, lock_wait_s: float = 0.2) -> Store:
        """The same store as another process sees it: nothing remembered."""
        git = Git(self.store.layout.store, search_path=SEARCH_PATH)
        return Store(self.store.layout, git, self.store.lock_path, lock_wait_s)

    @classmethod
    def in_directory(cls, path: Path) -> "Kit":
        kit: Kit

        def before(arguments: Sequence[str]) -> None:
            kit.commands.append(tuple(arguments))
            kit.fault(tuple(arguments))

        layout = Layout(f"{os.path.realpath(path)}/takeback/checkpoints")
        git = Git(layout.store, search_path=SEARCH_PATH, before=before)
        kit = cls(path, Store(layout, git, f"{path}/takeback/.checkpoints.lock", lock_wait_s=0.2))
        return kit


def failing(command: str) -> Callable[[tuple[str, ...]], None]:
    """Let every git command of that name fail."""

    def fault(arguments: tuple[str, ...]) -> None:
        if arguments[0] == command:
            raise GitFailed(command, "a test made it fail")

    return fault


def make_old(path: str | Path, hours: float = 2) -> None:
    """Make a file look as if it was last changed some hours ago."""
    at = time.time() - hours * 3600
    os.utime(path, (at, at), follow_symlinks=False)
