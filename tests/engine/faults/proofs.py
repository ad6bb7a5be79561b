"""What must hold after a fault at any step, proved with a fresh engine by really restoring."""

import os
import re
import time
from collections.abc import Iterator

from engine.model import Checkpoint, CheckpointKind, RestoreReport
from engine.store.layout import Layout
from engine.upkeep.debris import sweep
from tests.engine.faults import scenes
from tests.engine.faults.scenes import HAND, TOKEN, Picture, Restoring, picture, uncaptured
from tests.engine.lab import Lab

# All that a store has, so that whatever else is found in it was left behind.
BELONGS = re.compile(
    r"\.checkpoints\.lock|checkpoints/(\.last_prune|store/("
    r"HEAD|config|\.gc-pending|packed-refs|info/(attributes|exclude|refs)|refs/takeback/[0-9a-f]{16}/[a-z0-9/]+"
    r"|projects/[0-9a-f]{16}\.json|indexes/[0-9a-f]{16}|ledgers/[0-9a-f]{16}\.jsonl|journal/[0-9a-f]{16}\.lock"
    r"|objects/([0-9a-f]{2}/[0-9a-f]{38}|pack/pack-[0-9a-f]{40}\.(pack|idx|rev)|info/packs)))"
)


class Unproved(AssertionError):
    """An invariant does not hold."""


def require(condition: object, what: str) -> None:
    """Fail with a sentence; these proofs run in processes where nobody rewrites assertions."""
    if not condition:
        raise Unproved(what)


def same(wanted: Picture, found: Picture, what: str) -> None:
    """Compare two pictures and name what differs."""
    differing = sorted(path for path in wanted.keys() | found.keys() if wanted.get(path) != found.get(path))
    require(not differing, f"{what}: {differing}")


def nothing_torn(lab: Lab, before: Picture, after: Picture) -> None:
    """Each path is as it was or as it will be."""
    seen = picture(lab)
    for path in seen.keys() | before.keys():
        state = seen.get(path)
        allowed = [before.get(path), after.get(path)]
        # One kind of thing takes another's place by way of nothing, and a directory may still have the mode that lets
        # its content be put into it.
        between = len({item and item[0] for item in allowed}) > 1
        opened = state is not None and state[0] == "directory"
        require(opened or state in allowed or (between and state is None), f"{path} is torn: {state}")
    same(uncaptured(before), uncaptured(seen), "not captured, yet changed")


def again(lab: Lab, before: Picture, _after: Picture, _said: str) -> None:
    """A checkpoint changes no file, and taking it again works."""
    same(before, picture(lab), "a checkpoint changed the workspace")
    nameless(lab)
    scenes.take_checkpoint(lab)


def nameless(lab: Lab) -> None:
    """What has a name in the store belongs to a workspace that the store knows, so that a rule drops it some day."""
    named = {name.split("/")[2] for name in _files(lab.store) if name.startswith("refs/takeback/")}
    known = {name.removesuffix(".json") for name in (os.path.basename(path) for path in _files(lab.store))}
    require(named <= known, f"names of a workspace that is not known: {named - known}")


def checkpoint(lab: Lab, before: Picture, _after: Picture, _said: str) -> None:
    """A checkpoint holds everything that stood there."""
    for path in ("changed", "mode", "swapped"):
        lab.edit(path, "scrambled\n")
    lab.edit("scrambled/too", "x\n")
    (lab.root / "link").unlink()
    (lab.root / "hollow").rmdir()
    _restore(lab, _called(lab, "the one"))
    same(before, picture(lab), "a checkpoint does not hold what stood there")


def third_again(lab: Lab, before: Picture, _after: Picture, _said: str) -> None:
    """As `again`; the one before is not lost, the oldest may be."""
    listed = [item.reason for item in lab.checkpoints()]
    require(listed[-2:] in (["second", "first"], ["the one", "second"]), f"a checkpoint is lost: {listed}")
    same(before, picture(lab), "a checkpoint changed the workspace")
    scenes.take_third_checkpoint(lab)


def third_checkpoint(lab: Lab, before: Picture, after: Picture, said: str) -> None:
    """As `checkpoint`; the one before restores too, the oldest is dropped now or with the next one."""
    listed = [item.reason for item in lab.checkpoints()]
    require(listed in (["the one", "second"], ["the one", "second", "first"]), f"not as it should be: {listed}")
    checkpoint(lab, before, after, said)
    _restore(lab, _called(lab, "second"))
    require(lab.read("changed") == "two\n", "the checkpoint before does not hold what it held")
    require(not lab.exists("fresh"), "what was made later did not go")


def later_tool(lab: Lab, _before: Picture, _after: Picture, _said: str) -> None:
    """The person edits a file, and the next tool works and is guarded."""
    lab.edit(HAND, "by hand since\n")
    later = lab.write("later", "later\n")
    require(later.ok and not [n for n in later.notes if "no checkpoint" in n], f"a later tool: {later}")


def taken_back(lab: Lab, before: Picture, _after: Picture, said: str) -> None:
    """The turn can be taken back whole, and what a person did since is known to be theirs."""
    let_temporary_files_be_old(lab)
    lab.rollback()
    require(not lab.exists("later"), "the later tool was not taken back")
    require(lab.read(HAND) == "by hand since\n", "a hand-edit is gone")
    if "no checkpoint was taken" in said:  # and the tool went on, as it must
        return
    _restore(lab, [item for item in lab.checkpoints() if item.kind is CheckpointKind.TURN][-1])
    now = picture(lab)
    now.pop(HAND)  # by the state of the first turn, or, if that never began, of the later one
    same({path: state for path, state in before.items() if path != HAND}, now, "the turn was not taken back whole")


def finished(lab: Lab, before: Picture, after: Picture, _said: str) -> None:
    """A restore under way is finished and said; one that was never begun changed nothing."""
    workspace = lab.workspace
    under_way = os.path.exists(Layout(os.path.dirname(lab.store)).journal(workspace.hash))
    reports = lab.engine.resume_restores(workspace)
    require(len(reports) == int(under_way), f"a restore under way ({under_way}), and said: {reports}")
    outcome = lab.engine.restore_outcome(workspace, TOKEN)
    if outcome is None:
        same(before, picture(lab), "a restore that was never begun changed something")
    elif outcome.complete:
        same(after, picture(lab), "a restore is said to be complete")
    else:
        _only_said(before, after, picture(lab), outcome)


def finished_from_the_middle(lab: Lab, before: Picture, after: Picture, said: str) -> None:
    """As `finished`."""
    finished(lab, before, after, said)


def restore(lab: Lab, before: Picture, after: Picture, _said: str) -> None:
    """Asked for again a restore is complete; undoing it brings everything back that stood there before."""
    _again_and_back(lab, before, after, scenes.restore)


def restore_all(lab: Lab, before: Picture, after: Picture, _said: str) -> None:
    """As `restore`."""
    _again_and_back(lab, before, after, scenes.restore_all)


def undo(lab: Lab, before: Picture, after: Picture, _said: str) -> None:
    """As `restore`."""
    _again_and_back(lab, before, after, scenes.undo, safeties=2)


def restore_from_the_middle(lab: Lab, _before: Picture, after: Picture, _said: str) -> None:
    """As `restore`; what stood there is from before the restore that was broken off."""
    _again_and_back(lab, scenes.kept_picture(lab), after, scenes.restore)


def _again_and_back(lab: Lab, before: Picture, after: Picture, run: Restoring, safeties: int = 1) -> None:
    let_temporary_files_be_old(lab)
    again = run(lab)
    require(again.complete, f"asked for again: {again.failed}")
    same(after, picture(lab), "a restore that was asked for again is not complete")
    safety = [item for item in lab.checkpoints() if item.kind is CheckpointKind.SAFETY][-safeties]
    _restore(lab, safety)
    same(before, picture(lab), "what stood there before a restore does not come back")


def _only_said(before: Picture, after: Picture, now: Picture, outcome: RestoreReport) -> None:
    """What is not as the checkpoint has it is named, or lies in or above what is."""
    named = [note.path for note in outcome.failed]
    for path in before.keys() | after.keys() | now.keys():
        if now.get(path) != after.get(path):
            near = any(f"{path}/".startswith(f"{n}/") or n.startswith(f"{path}/") for n in named)
            require(near, f"{path} was not restored, and only these are said: {named}")


def prune_again(lab: Lab, before: Picture, _after: Picture, _said: str) -> None:
    """A prune drops all that it decided on or nothing; asked for again it is complete."""
    same(before, picture(lab), "a prune changed the workspace")
    require(len(lab.checkpoints()) in (2, 4), "some are dropped and some are not")
    scenes.prune(lab)


def prune(lab: Lab, _before: Picture, _after: Picture, _said: str) -> None:
    """What remains restores."""
    require(len(lab.checkpoints()) == 2, "not pruned")
    _restore(lab, lab.checkpoints()[-1])
    require(lab.read("changed") == "turn 1\n", "a checkpoint does not hold what it held")
    require(lab.exists("only-1") and not lab.exists("only-2"), "a checkpoint does not hold what it held")


def _called(lab: Lab, reason: str) -> Checkpoint:
    return next(item for item in lab.checkpoints() if item.reason == reason)


def _restore(lab: Lab, target: Checkpoint) -> None:
    plan = lab.engine.plan_restore(lab.workspace, target.id, everything=True)
    report = lab.engine.apply_restore(plan)
    require(report.complete, f"restoring {target.reason!r}: {report.failed}")


def store_is_whole(lab: Lab) -> None:
    """The store's own proof agrees, and nothing is left behind for ever."""
    report = lab.engine.upkeep.verify()
    require(report.healthy, f"not healthy: {[finding.what for finding in report.findings]}")
    base = os.path.dirname(lab.store)
    sweep(Layout(base), time.time_ns() / 1e9 + 2 * 3600)
    strangers = [name for name in _files(os.path.dirname(base)) if not BELONGS.fullmatch(name)]
    require(not strangers, f"left in the store: {strangers}")
    if let_temporary_files_be_old(lab):
        scenes.take_checkpoint(lab)
    temporary = [str(path) for path in lab.root.rglob(".takeback-tmp-*")]
    require(not temporary, f"left in the workspace: {temporary}")


def let_temporary_files_be_old(lab: Lab) -> bool:
    """Let hours pass for the temporary files that were left; whether there are any."""
    left = [*lab.root.rglob(".takeback-tmp-*")]
    for path in left:
        os.utime(path, (0, 0), follow_symlinks=False)
    return bool(left)


def _files(root: str) -> Iterator[str]:
    for directory, _names, files in os.walk(root):
        yield from (os.path.relpath(os.path.join(directory, name), root) for name in files)
