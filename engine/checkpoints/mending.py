"""Making sure that the store can give back what a capture relies on, while the workspace still has the content.

What this process did not write itself is doubted: the base once, when a process first builds on it; an object that was
in the store before a capture wanted to write it, each time. What proves to be broken is written anew from the
workspace; content that is no longer there cannot be, and the capture no longer claims to hold it.
"""

from collections.abc import Mapping
from dataclasses import replace

from engine.checkpoints.manifest import MODES_PATH, git_mode
from engine.checkpoints.reading import blob_oid
from engine.errors import StoreDamaged
from engine.host.files import Tree
from engine.host.git import Git
from engine.host.paths import PathUnsafe
from engine.model import EntryKind
from engine.store.index import Index
from engine.store.opened import Store
from engine.store.reader import ObjectReader
from engine.store.rows import LOST_OID, Row, Rows
from engine.store.soundness import build_trees, find_spoiled, find_unsound, has_all_trees, write_anew

_CONTENT_KINDS = (EntryKind.FILE, EntryKind.SYMLINK)


def without_lost(store: Store, base: Index) -> Index:
    """Return an index in which what the store cannot give back is marked, so that a walk reads it again.

    Raises:
        GitFailed: git could not be asked.
    """
    if base.base_tree is None:
        return base
    if not has_all_trees(store.git, base.base_tree):
        return Index()
    held = {row.entry.oid for row in base.rows.values() if row.entry.kind in _CONTENT_KINDS} | {base.modes_oid}
    lost = find_spoiled(store.git, (oid for oid in held if oid is not None))
    if not lost:
        return base
    rows = {path: _marked(row) if row.entry.oid in lost else row for path, row in base.rows.items()}
    return replace(base, rows=Rows.of(rows), modes_oid=None if base.modes_oid in lost else base.modes_oid)


def _marked(row: Row) -> Row:
    return replace(row, entry=replace(row.entry, oid=LOST_OID), trusted=False)


def mend_contents(git: Git, files: Tree, known: Mapping[str, str], reader: ObjectReader | None = None) -> list[str]:
    """Prove contents, by id with the path that holds each, and write anew what is broken.

    Returns:
        The paths that hold something else by now, whose contents are still broken.

    Raises:
        GitFailed: git could not be asked.
        StoreDamaged: the store does not give back what was just written.
    """
    broken = find_unsound(git, known, reader)
    moved = [known[oid] for oid in sorted(broken) if not _write_content(git, files, known[oid], oid)]
    _require(git, broken - {oid for oid, path in known.items() if path in moved})
    return moved


def _write_content(git: Git, files: Tree, path: str, oid: str) -> bool:
    try:
        signature = files.signature(path)
        if signature is None:
            return False
        if signature.is_link:
            content = files.read_link(path)
        else:
            with files.open_file(path) as stream:
                content = stream.read()
    except (OSError, PathUnsafe):
        return False
    if blob_oid(content) != oid:
        return False
    write_anew(git, "blob", content)
    return True


def mend_modes(git: Git, modes: bytes) -> None:
    """Prove what git's trees cannot say of a capture, and write it anew if it is broken.

    Raises:
        GitFailed: git could not be asked.
        StoreDamaged: the store does not give back what was just written.
    """
    broken = find_unsound(git, [blob_oid(modes)])
    if broken:
        write_anew(git, "blob", modes)
        _require(git, broken)


def mend_trees(git: Git, rows: Mapping[str, Row], modes_oid: str, tree: str) -> None:
    """Prove the directories of a capture, and write anew those that are broken.

    Raises:
        GitFailed: git could not be asked.
        StoreDamaged: the store does not give back what was just written.
    """
    if has_all_trees(git, tree):
        return
    leaves = [(MODES_PATH, "100644", modes_oid)]
    leaves += [
        (path, mode, row.entry.oid)
        for path, row in rows.items()
        if (mode := git_mode(row.entry)) is not None and row.entry.oid is not None
    ]
    root, trees = build_trees(leaves)
    if root != tree:
        raise StoreDamaged(f"tree {tree} cannot be read")
    broken = find_unsound(git, trees)
    for oid in broken:
        write_anew(git, "tree", trees[oid])
    _require(git, broken)


def _require(git: Git, oids: frozenset[str]) -> None:
    if not oids:
        return
    broken = find_unsound(git, oids)
    if broken:
        raise StoreDamaged(f"object {min(broken)} cannot be read, and neither what was written in its place")
