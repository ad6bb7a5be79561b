"""Capturing only what a file tool touched: the rest is as the capture before found it, whatever anybody does meanwhile.

What others change in the meantime is left for the next whole capture to find, where it counts as theirs.
"""

import time
from collections.abc import Iterable

from engine.checkpoints.capture import Captured, write_scan
from engine.checkpoints.feed import WorkspaceFeed
from engine.checkpoints.found import Scan
from engine.checkpoints.looking import build_on
from engine.checkpoints.manifest import iter_parents
from engine.checkpoints.mending import note_written
from engine.checkpoints.source import is_secret_name
from engine.checkpoints.standing import look_at
from engine.checkpoints.writing import FilesMoved
from engine.host.files import ContentChanged, Signature, Tree
from engine.host.paths import PathUnsafe
from engine.model import Entry, EntryKind, Workspace
from engine.store.layout import RESERVED
from engine.store.opened import Store
from engine.store.rows import RACY_NS, Draft, Row


def recapture(
    store: Store,
    workspace: Workspace,
    before: Captured,
    paths: Iterable[str],
    *,
    feed: WorkspaceFeed | None = None,
) -> Captured | None:
    """Capture these paths anew on top of a capture; the caller holds ``store.use``.

    ``None`` says that a whole capture is needed: somebody else captured in between, or a path has to be judged by the
    rules of a whole one (a secret's name, a size over the limit, something that will not keep still).

    Raises:
        GitFailed: the store could not take it; the base is as it was.
    """
    index = store.index(workspace)
    if index.base != before.commit:
        return None
    wanted = set(paths)
    if any(is_secret_name(path.rpartition("/")[2]) or path.split("/")[0] == RESERVED for path in wanted):
        return None
    draft = Draft(index.rows)
    with Tree.open(workspace.root) as tree:
        for path in sorted(wanted | {parent for named in wanted for parent in iter_parents(named)}):
            try:
                row = _read(tree, path, workspace.limits.max_file_size_bytes)
            except (OSError, PathUnsafe, ContentChanged, _NeedsWhole):
                return None
            _put(draft, path, row)
    rows, changed = draft.finish()
    rows = rows if changed else index.rows
    try:
        captured = write_scan(store, workspace, index, Scan(rows, changed, before.gaps, before.excluded))
    except FilesMoved:
        return None
    note_written(store, workspace)
    build_on(store, workspace, index, store.index(workspace), feed)
    return captured


class _NeedsWhole(Exception):
    """This path cannot be captured by itself."""


def _read(tree: Tree, path: str, limit_bytes: int) -> Row | None:
    read_at_ns = time.time_ns()
    found = tree.signature(path)
    if found is not None and found.is_file and found.size > limit_bytes:
        raise _NeedsWhole
    signature, entry = look_at(tree, path)
    if signature is None or entry is None:
        return None
    return Row(entry) if entry.kind is EntryKind.DIRECTORY else _row(entry, signature, read_at_ns)


def _row(entry: Entry, signature: Signature, read_at_ns: int) -> Row:
    trusted = max(signature.mtime_ns, signature.ctime_ns) < read_at_ns - RACY_NS
    stamps = (signature.size, signature.mtime_ns, signature.ctime_ns, signature.ino, signature.dev)
    return Row(entry, *stamps, trusted=trusted)


def _put(draft: Draft, path: str, row: Row | None) -> None:
    if row is None or row.entry.kind is not EntryKind.DIRECTORY:
        draft.remove(path)
    if row is not None:
        draft.put(path, row)
