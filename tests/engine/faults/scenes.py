"""What is broken off at every step, and the workspace before it: small, with a bit of everything.

Files, a link, an empty directory, modes, a file too large to be captured, one that rules hide, a hand-edit, the
person's repository.
"""

import os
import pickle
import shutil
import signal
import subprocess
from collections.abc import Callable
from typing import Any

import engine.guard
import engine.store.journal
from engine.errors import EngineError
from engine.model import CheckpointKind, Limits, RestorePlan, RestoreReport, ToolResult, Workspace
from engine.upkeep.retention import PrunePolicy
from tests.engine.lab import CHAT, Lab, snapshot

Picture = dict[str, tuple[object, ...]]
Act = Callable[[Lab], object]
Restoring = Callable[[Lab], RestoreReport]

LIMITS = Limits(max_file_size_bytes=3000)
TOKEN = "the restore that is broken off"
HAND = "hand.txt"
# So many files go into a pack of their own; fewer than the engine's own number, which is a matter of speed alone.
MANY = 30
# Never captured: whatever happens, they stay exactly as they are, and so does the person's repository.
UNCAPTURED = ("huge.bin", "node_modules", "node_modules/left.js", ".git")
CHANGE = (
    "echo two > changed; rm removed; chmod 600 mode; mkdir -p new/deep; echo new > new/deep/file; "
    "rm swapped; mkdir swapped; echo x > swapped/x; rm -r folder; echo flat > folder; ln -sfn other link; rmdir hollow"
)
FEW = "echo two > changed; rm -r folder; echo flat > folder"


def picture(lab: Lab) -> Picture:
    """What stands in the workspace, but for temporary files of a process that was killed."""
    return {path: state for path, state in snapshot(lab.root).items() if ".takeback-tmp-" not in path}


def uncaptured(seen: Picture) -> Picture:
    """The part that no checkpoint holds."""
    return {path: state for path, state in seen.items() if _is_uncaptured(path)}


def _is_uncaptured(path: str) -> bool:
    return path in UNCAPTURED or path.startswith((".git/", "node_modules/"))


# --- scenes


def fill(lab: Lab) -> None:
    """Make the workspace that every scene begins with."""
    lab.limits = LIMITS
    template = lab.home / "template"
    template.mkdir()
    lab.git("init", "-q", "--template", str(template))
    for path in ("changed", "removed", "mode", "swapped", "folder/inner", "folder/deep/inner", HAND):
        lab.edit(path, f"one of {path}\n")
    (lab.root / "mode").chmod(0o755)
    (lab.root / "hollow").mkdir()
    (lab.root / "link").symlink_to("changed")
    lab.git("add", ".")
    lab.git("commit", "-q", "-m", "one")
    lab.edit("huge.bin", b"x" * 4000)
    lab.edit("node_modules/left.js", "left\n")


def start(lab: Lab) -> None:
    """Have a store, and something in the workspace that it does not hold yet."""
    fill(lab)
    lab.engine.checkpoint(lab.workspace, "earlier")
    lab.edit("changed", "changed since\n")


def change(lab: Lab, command: str = CHANGE) -> None:
    """Let the agent change something of every kind, then the person something."""
    fill(lab)
    assert lab.run(command).ok
    lab.edit(HAND, "by hand\n")


def change_and_plan(lab: Lab) -> None:
    """As `change`, and plan to restore but for hand-edits; applying it plans anew."""
    change(lab)
    keep(lab, "plan", plan_restore(lab, everything=False))


def change_and_plan_all(lab: Lab) -> None:
    """Let the agent change a few things, and plan to restore everything."""
    change(lab, FEW)
    keep(lab, "plan", plan_restore(lab, everything=True))


def restored_and_planned(lab: Lab) -> None:
    """Restore everything, and plan to undo that."""
    change(lab, FEW)
    lab.rollback(everything=True)
    keep(lab, "plan", plan_undo(lab))


def broken_off(lab: Lab) -> None:
    """Let a restore be killed half-way."""
    change(lab, FEW)
    keep(lab, "picture", picture(lab))
    seen = 0

    def fault(_operation: str, _path: str) -> None:
        nonlocal seen
        seen += 1
        if seen == 5:
            os.kill(os.getpid(), signal.SIGKILL)

    child = os.fork()
    if child == 0:
        try:
            be_another_process()
            lab.settings = {"file_fault": fault}
            lab.engine = lab.open_engine()
            restore(lab)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def be_another_process() -> None:
    """Take a name of this process's own, as one that was not forked from another has."""
    engine.guard.INSTANCE = engine.store.journal.INSTANCE = f"process {os.getpid()}"


def keep(lab: Lab, name: str, value: object) -> None:
    """Keep something that is needed later, beside the workspace."""
    (lab.home / name).write_bytes(pickle.dumps(value))


def kept(lab: Lab, name: str) -> Any:
    """Return what was kept."""
    return pickle.loads((lab.home / name).read_bytes())


def kept_picture(lab: Lab) -> Picture:
    """Return what stood in the workspace before the restore that was broken off."""
    picture: Picture = kept(lab, "picture")
    return picture


def several_turns(lab: Lab) -> None:
    """Take four checkpoints through an agent's turns."""
    fill(lab)
    for number in range(4):
        assert lab.run(f"echo turn {number} > changed; echo {number} > only-{number}").ok


def neglected(lab: Lab) -> None:
    """Reach the limit of checkpoints, and leave the store as killed processes and careless hands leave one."""
    fill(lab)
    lab.engine.checkpoint(limited(lab), "first")
    lab.edit("changed", "two\n")
    lab.engine.checkpoint(limited(lab), "second")
    lab.edit("changed", "three\n")
    lab.edit("fresh/file", "fresh\n")
    (lab.root / "removed").unlink()
    subprocess.run(["git", "--git-dir", str(lab.store), "pack-refs", "--all"], check=True)
    refs = lab.store / "refs"
    shutil.rmtree(refs)
    (lab.store / "HEAD").unlink()
    (lab.store / "info" / "exclude").write_text("# of an older version\n")
    (lab.store / "objects" / "pack" / "tmp_pack_killed").write_bytes(b"half")
    locked = refs / "takeback" / lab.workspace.hash
    locked.mkdir(parents=True)
    (locked / "base.lock").touch()


# --- what is broken off


def limited(lab: Lab) -> Workspace:
    """The workspace with room for two checkpoints."""
    return lab.engine.open_workspace(str(lab.root), Limits(max_file_size_bytes=3000, max_snapshots=2))


def take_checkpoint(lab: Lab) -> None:
    """Take a checkpoint by hand."""
    lab.engine.checkpoint(lab.workspace, "the one")


def fill_much(lab: Lab) -> None:
    """Make a workspace whose first checkpoint goes into a pack of its own."""
    fill(lab)
    for number in range(MANY):
        lab.edit(f"many/{number}", f"{number}\n")


def take_third_checkpoint(lab: Lab) -> None:
    """Take a checkpoint that pushes the oldest out."""
    lab.engine.checkpoint(limited(lab), "the one")


def run_command(lab: Lab) -> ToolResult:
    """Let the agent run a command that changes something of every kind."""
    return lab.run(CHANGE)


def write_file(lab: Lab) -> ToolResult:
    """Let the agent write a file in a directory that is not there yet."""
    return lab.write("pkg/sub/new.py", "new\n")


def restore(lab: Lab) -> RestoreReport:
    """Restore and keep hand-edits."""
    return apply(lab, everything=False)


def restore_all(lab: Lab) -> RestoreReport:
    """Restore everything."""
    return apply(lab, everything=True)


def apply(lab: Lab, *, everything: bool) -> RestoreReport:
    """Restore to before the agent's turn."""
    return lab.engine.apply_restore(plan_restore(lab, everything=everything))


def plan_restore(lab: Lab, *, everything: bool) -> RestorePlan:
    """Plan to restore to before the agent's turn."""
    target = next(item for item in lab.checkpoints() if item.kind is CheckpointKind.TURN)
    return lab.engine.plan_restore(lab.workspace, target.id, everything=everything, chat=CHAT, token=free_token(lab))


def apply_plan(lab: Lab) -> RestoreReport:
    """Do what was planned when the scene was made."""
    return lab.engine.apply_restore(kept(lab, "plan"))


def undo(lab: Lab) -> RestoreReport:
    """Undo the first restore."""
    return lab.engine.apply_restore(plan_undo(lab))


def plan_undo(lab: Lab) -> RestorePlan:
    """Plan to undo the first restore."""
    safety = [item for item in lab.checkpoints() if item.kind is CheckpointKind.SAFETY][-1]
    return lab.engine.plan_restore(lab.workspace, safety.id, chat=CHAT, token=free_token(lab))


def free_token(lab: Lab) -> str:
    """Name a restore; one that is asked for again is another one."""
    return TOKEN if lab.engine.restore_outcome(lab.workspace, TOKEN) is None else f"{TOKEN}, again"


def prune(lab: Lab) -> None:
    """Drop all but two checkpoints and reclaim the space."""
    report = lab.engine.upkeep.prune(PrunePolicy(max_snapshots=2, retention_days=None))
    if report.errors:
        raise PruneFailed(report.errors)


class PruneFailed(EngineError):
    """A prune that ended early, with what it said."""


def finish(lab: Lab) -> list[RestoreReport]:
    """Finish the restore that a kill broke off."""
    return lab.engine.resume_restores(lab.workspace)
