"""What is made sure of before a restore changes anything: that it can be done, and that it can be undone.

The checkpoint's contents are there; what is about to be replaced or removed is in the safety checkpoint, and the store
was seen to give it back: the contents, the directories above them, and what says of them what git's trees cannot.
Whatever a restore leaves alone needs no proof: it stays where it is.
"""

import time
from collections.abc import Mapping

from engine.checkpoints.capture import Captured
from engine.checkpoints.manifest import MODES_PATH, git_mode
from engine.checkpoints.mending import mend_contents
from engine.checkpoints.standing import look_at
from engine.errors import CaptureFailed, StoreDamaged
from engine.host.files import ContentChanged, Tree
from engine.host.git import Git
from engine.host.paths import PathUnsafe, display
from engine.model import Action, Entry, EntryKind, RestorePlan
from engine.store.loose import is_sound_file
from engine.store.objects import CommitContent, missing_objects, open_writer
from engine.store.reader import ObjectReader
from engine.store.refs import merged_ref
from engine.store.soundness import find_known, find_unsound
from engine.store.trees import find_entries

_CONTENT_KINDS = (EntryKind.FILE, EntryKind.SYMLINK)


def find_lost(reader: ObjectReader, targets: Mapping[str, Entry | None], *, thorough: bool) -> frozenset[str]:
    """Return those paths whose contents the store cannot give back; of packs only that they have them is seen.

    With ``thorough`` git is asked for what lies in packs, otherwise their indexes are.

    Raises:
        GitFailed: git could not be asked.
    """
    git = reader.git
    entries = {path: entry for path, entry in targets.items() if entry is not None and entry.kind in _CONTENT_KINDS}
    contents = {path: entry.oid for path, entry in entries.items() if entry.oid is not None}
    doubted = {oid for oid in contents.values() if not is_sound_file(git.git_dir, oid)}
    packed = find_known(git, doubted, loose=False)
    if thorough:
        packed -= frozenset(missing_objects(git, packed))
    lost = find_unsound(git, doubted - packed, reader)
    return frozenset(path for path, oid in contents.items() if oid in lost)


def holds_what_goes(reader: ObjectReader, plan: RestorePlan, captured: Captured) -> bool:
    """Whether a capture has every path that a plan takes away, as the plan saw it, and its directories can be read.

    The contents are proved by `prove_contents`.
    """
    going = _going(plan)
    try:
        found = find_entries(reader, captured.tree, [*going, MODES_PATH])
        modes = found.get(MODES_PATH)
        if modes is None or not reader.proves(modes[1]):
            return False
    except StoreDamaged:
        return False
    held = ((path, entry) for path, entry in going.items() if entry.kind is not EntryKind.DIRECTORY)
    return all(found.get(path) == (git_mode(entry), entry.oid) for path, entry in held)


def find_stale(files: Tree, plan: RestorePlan) -> frozenset[str]:
    """Return those files that a plan takes away and that do not hold what was captured, whatever their times say.

    A mapping can be written to without a trace while its page waits to be written out (mmap(2)).
    """
    return frozenset(path for path, entry in _going(plan).items() if _is_stale(files, path, entry))


def _is_stale(files: Tree, path: str, entry: Entry) -> bool:
    if entry.kind is not EntryKind.FILE:
        return False
    try:
        found = look_at(files, path)[1]
    except (OSError, PathUnsafe, ContentChanged):
        return False  # which applying the plan finds, and says
    return found is not None and found.kind is EntryKind.FILE and found.oid != entry.oid


def prove_contents(git: Git, reader: ObjectReader, files: Tree, plan: RestorePlan) -> None:
    """Prove the contents that a plan takes away, and write anew what is broken.

    Raises:
        CaptureFailed: one is lost, and no longer stands there either.
        StoreDamaged: the store does not give back what was just written.
    """
    contents = {entry.oid: path for path, entry in _going(plan).items() if entry.oid is not None}
    moved = mend_contents(git, files, contents, reader)
    if moved:
        raise CaptureFailed(plan.workspace.root, f"{display(moved[0])} changed and what stood there is lost")


def _going(plan: RestorePlan) -> Mapping[str, Entry]:
    return {item.path: item.now for item in plan.effective if item.now is not None}


def name_merged(git: Git, plan: RestorePlan) -> None:
    """Name the contents that were merged, so that no gc takes them while the journal needs them."""
    merged = [item.target for item in plan.effective if item.action is Action.MERGE and item.target is not None]
    blobs = sorted({entry.oid for entry in merged if entry.kind is not EntryKind.DIRECTORY and entry.oid})
    if blobs:
        content = CommitContent(None, added={oid: ("100644", oid) for oid in blobs})
        with open_writer(git) as writer:
            writer.commit([merged_ref(plan.workspace.hash)], b"merged", int(time.time()), content)
