"""Reading a workspace into the store: scan, write what is new, make it the base that the next capture builds on.

Order that matters in a crash:

1. blobs, then trees and the commit are complete in the object store;
2. refs name the commit;
3. the index mirrors it.

A crash between 2 and 3 leaves an index that mirrors an older commit; the next capture sees that the base is another
one and compares with what the base really holds.
"""

import json
import time
import warnings
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from engine.checkpoints.bulk import BulkReader
from engine.checkpoints.feed import WorkspaceFeed
from engine.checkpoints.found import Scan
from engine.checkpoints.looking import Look
from engine.checkpoints.manifest import MODES_PATH, decode_modes, git_mode
from engine.checkpoints.mending import Proof, mend_contents, without
from engine.checkpoints.reading import blob_oid
from engine.checkpoints.scan import megabytes
from engine.checkpoints.touched import EVERYTHING, Touched
from engine.checkpoints.writing import FilesMoved, are_few, write_few, write_many
from engine.errors import CaptureFailed, GitFailed, LargeCheckpointWarning, StoreDamaged
from engine.host.files import Tree
from engine.host.leftovers import remove_old_leftovers
from engine.host.paths import display
from engine.model import EntryKind, Gap, Workspace
from engine.store.batch import ObjectBatch
from engine.store.commits import write_commit
from engine.store.index import Index
from engine.store.modes import Modes
from engine.store.objects import CommitContent, list_tree
from engine.store.opened import Store
from engine.store.refs import base_ref, find_ref
from engine.store.rows import Row, Rows
from engine.store.soundness import find_known, has_all_trees

_ATTEMPTS = 3
_CONTENT_KINDS = (EntryKind.FILE, EntryKind.SYMLINK, EntryKind.REPOSITORY)


@dataclass(frozen=True, slots=True)
class Captured:
    """A workspace as it was at one moment, held by the base ref.

    ``before`` and ``rows`` are the rows of the capture before and of this one; ``changed`` the paths that differ.
    """

    commit: str
    tree: str
    before: Rows
    rows: Rows
    changed: frozenset[str]
    gaps: tuple[Gap, ...]
    excluded: frozenset[str]
    notes: tuple[str, ...] = ()

    def differing(self, earlier: Rows) -> Iterable[str]:
        """Return the paths whose rows are not what they were in an earlier capture."""
        return self.changed if self.before is earlier else self.rows.differing(earlier)


@dataclass(slots=True)
class _Pending:
    """What one commit needs beyond what the store held before; ``packed`` are contents that need not be written."""

    content: CommitContent
    modes: bytes
    modes_oid: str
    blobs: list[str] = field(default_factory=list)
    packed: frozenset[str] = frozenset()


def capture(
    store: Store,
    workspace: Workspace,
    own: frozenset[tuple[int, int]],
    forced: Iterable[str] = (),
    *,
    feed: WorkspaceFeed | None = None,
    named: Iterable[str] = (),
    anew: bool = False,
    unread: Iterable[str] = (),
) -> Captured:
    """Capture a workspace; the caller holds ``store.use``.

    Args:
        store: the store.
        workspace: what to capture.
        own: device and inode of Takeback's own directories.
        forced: files a tool named, captured even where rules hide them.
        feed: what tells of changes, so that only what was touched is looked at.
        named: paths that are looked at although the feed says nothing of them.
        anew: look at everything, whatever the feed says.
        unread: files that are read whatever their times say.

    Raises:
        CaptureFailed: it cannot be read, is too large, or would not keep still.
        GitFailed: the store could not take it; the base is as it was.
        StorageFailed: the system refused it; the base is as it was.
    """
    proof = Proof(store, workspace)
    before = without(proof.prove(_trusted_base(store, workspace)), unread)
    forced = frozenset(forced)
    also = EVERYTHING if anew else Touched(frozenset(named))
    for attempt in range(_ATTEMPTS):
        # What moved between look and writing is written as it is read the next time: one busy file costs no checkpoint.
        with _reader(store, workspace, restless=attempt > 0) as reader:
            look = Look(store, workspace, before, own, forced, feed=feed, also=also, read=reader.read)
            try:
                scan = look.scan()
                remove_old_leftovers(workspace.root, scan.excluded)
                captured = write_scan(store, workspace, before, scan, reader)
            except FilesMoved:
                look.failed()
                continue
            except BaseException:
                look.failed()
                raise
        look.succeeded(store.index(workspace))
        proof.succeeded()
        return captured
    raise CaptureFailed(workspace.root, "files kept changing while they were read; try again when they are quiet")


def _reader(store: Store, workspace: Workspace, *, restless: bool = False) -> BulkReader:
    return BulkReader(store.git, partial(store.readings.tell, workspace), restless=restless)


def look(store: Store, workspace: Workspace, own: frozenset[tuple[int, int]], forced: Iterable[str] = ()) -> Scan:
    """Walk a workspace like `capture` and write nothing."""
    return Look(store, workspace, _trusted_base(store, workspace), own, frozenset(forced)).scan()


def encode_message(subject: str, meta: dict[str, Any]) -> bytes:
    """Return a commit message: a line for people, then the facts as JSON."""
    return f"{subject}\n\n{json.dumps(meta, indent=1)}\n".encode("utf-8", "backslashreplace")


def decode_message(message: str) -> tuple[str, dict[str, Any]]:
    """Return subject and facts of a commit message; no facts for one that is not ours."""
    subject, _blank, body = message.partition("\n\n")
    try:
        meta = json.loads(body)
    except ValueError:
        meta = {}
    return subject, meta if isinstance(meta, dict) else {}


def _trusted_base(store: Store, workspace: Workspace) -> Index:
    """Return the index, made to mirror what the base ref really holds."""
    index = store.index(workspace)
    base = find_ref(store.git, base_ref(workspace.hash), store.commits)
    if base is None:
        return Index() if index.base is not None else index
    if index.base == base.commit:
        return index
    if not has_all_trees(store.git, base.tree):
        return Index()
    held = list_tree(store.git, base.tree)
    modes = held.pop(MODES_PATH, None)
    return Index(_rows_of(held, index), base.commit, base.tree, modes and modes[1])


def _rows_of(held: Mapping[str, tuple[str, str]], index: Index) -> Rows:
    """Return the rows of what a base holds; what the index does not say of it is known, and read again."""
    rows = {path: row for path, row in index.rows.items() if row.entry.kind is EntryKind.DIRECTORY}
    manifest = decode_modes(None)
    for path, (mode, oid) in held.items():
        row = index.rows.get(path)
        entry = manifest.entry(path, mode, oid)
        if row is not None and (git_mode(row.entry), row.entry.oid) == (mode, oid):
            rows[path] = row
        elif entry is not None:
            rows[path] = Row(entry, trusted=False)
    return Rows.of(rows)


def write_scan(
    store: Store, workspace: Workspace, before: Index, scan: Scan, reader: BulkReader | None = None
) -> Captured:
    """Write what a walk found on top of the rows before, and make it the base; ``reader`` may have packed some of it.

    Raises:
        GitFailed: the base is as it was.
        FilesMoved: files are no longer what the walk found; the base is as it was.
    """
    modes = before.modes.then(before.rows, scan.rows, scan.changed) if before.modes else Modes.of(scan.rows)
    pending = _pending(before, scan, modes)
    pending.packed = frozenset() if reader is None else reader.packed
    commit, tree = before.base, before.base_tree
    notes: tuple[str, ...] = ()
    if commit is None or tree is None or pending.content.added or pending.content.deleted:
        if before.base is None:
            store.git.executable()  # what could not be restored later is said now
            store.touch(workspace)  # before there is a name that only a workspace's record leads to
        known = _find_known(store, scan, pending)
        with nullcontext(reader) if reader else _reader(store, workspace) as packing:
            commit, tree = _write_objects(store, workspace, scan, pending, known, packing)
        notes = _large_notes(workspace, scan, pending)
    _keep_index(store, workspace, before, scan, Index(scan.rows, commit, tree, pending.modes_oid, modes))
    return Captured(commit, tree, before.rows, scan.rows, scan.changed, scan.gaps, scan.excluded, notes)


def _pending(before: Index, scan: Scan, modes: Modes) -> _Pending:
    oid, encoded = before.modes_oid, b""
    if oid is None or modes is not before.modes:
        encoded = modes.encode()
        oid = blob_oid(encoded)
    pending = _Pending(CommitContent(before.base_tree), encoded, oid)
    for path in sorted(scan.changed):
        _add_path(pending, path, before.rows.find(path), scan.rows.find(path))
    if pending.modes_oid != before.modes_oid:
        pending.content.added[MODES_PATH] = ("100644", pending.modes_oid)
    return pending


def _add_path(pending: _Pending, path: str, old: Row | None, new: Row | None) -> None:
    held = None if old is None else (git_mode(old.entry), old.entry.oid)
    wanted = None if new is None else (git_mode(new.entry), new.entry.oid)
    if held == wanted:
        return
    if old is not None and old.entry.kind in _CONTENT_KINDS:
        pending.content.deleted.append(path)
    if new is None or wanted is None or wanted[0] is None or wanted[1] is None:
        return
    pending.content.added[path] = (wanted[0], wanted[1])
    if new.entry.kind is not EntryKind.REPOSITORY and (held is None or held[1] != wanted[1]):
        pending.blobs.append(path)


def _find_known(store: Store, scan: Scan, pending: _Pending) -> frozenset[str]:
    """Return the contents that the store has something for which this capture did not write."""
    wanted = {oid for path in pending.blobs if (oid := scan.rows[path].entry.oid) is not None} - pending.packed
    return find_known(store.git, wanted)


def _write_objects(
    store: Store, workspace: Workspace, scan: Scan, pending: _Pending, known: frozenset[str], reader: BulkReader
) -> tuple[str, str]:
    files = {path: scan.rows[path] for path in pending.blobs if scan.rows[path].entry.oid not in pending.packed}
    try:
        if are_few(pending.content, files):
            reader.install()
            return _write_few(store, workspace, pending, files)
        _mend(store, workspace, scan, pending, known)
        new = {path: row for path, row in files.items() if row.entry.oid not in known}
        return _write_many(store, workspace, pending, new, reader)
    except (GitFailed, StoreDamaged):
        store.remembered(workspace).proved = False  # what it builds on may be to blame
        raise


def _write_few(store: Store, workspace: Workspace, pending: _Pending, files: Mapping[str, Row]) -> tuple[str, str]:
    def commit(batch: ObjectBatch, tree: str) -> str:
        return batch.add_commit(tree, encode_message("capture", {}), int(time.time()))

    others = [pending.modes] if MODES_PATH in pending.content.added else []
    ref = base_ref(workspace.hash)
    return write_few(store.git, workspace.root, pending.content, files, others, commit=commit, ref=ref)


def _write_many(
    store: Store,
    workspace: Workspace,
    pending: _Pending,
    files: Mapping[str, Row],
    reader: BulkReader,
) -> tuple[str, str]:
    def commit(tree: str) -> str:
        return write_commit(store.git, tree, encode_message("capture", {}), int(time.time()))

    others = [pending.modes] if MODES_PATH in pending.content.added else []
    ref = base_ref(workspace.hash)
    content, pack = pending.content, reader.pack()
    return write_many(store.git, workspace.root, content, files, others, pack=pack, commit=commit, ref=ref)


def _mend(store: Store, workspace: Workspace, scan: Scan, pending: _Pending, known: frozenset[str]) -> None:
    """Prove what is not written because it is there already."""
    doubtful = {oid: path for path in pending.blobs if (oid := scan.rows[path].entry.oid) in known}
    if doubtful:
        with Tree.open(workspace.root) as tree:
            moved = mend_contents(store.git, tree, doubtful)
        if moved:
            raise FilesMoved(moved)


def _large_notes(workspace: Workspace, scan: Scan, pending: _Pending) -> tuple[str, ...]:
    sizes = {path: scan.rows[path].size for path in pending.blobs}
    total = sum(sizes.values())
    if total <= workspace.limits.large_checkpoint_bytes:
        return ()
    largest = max(sizes, key=lambda path: sizes[path])
    note = (
        f"this checkpoint adds {megabytes(total)} to the store; "
        f"the largest file is {display(largest)} ({megabytes(sizes[largest])})"
    )
    warnings.warn(note, LargeCheckpointWarning, stacklevel=2)
    return (note,)


def _keep_index(store: Store, workspace: Workspace, before: Index, scan: Scan, index: Index) -> None:
    if not scan.changed and before.base == index.base:
        before.modes = index.modes
        return
    store.keep_index(workspace, before, index, scan.changed)
