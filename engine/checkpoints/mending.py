"""Making sure that the store can give back what a capture relies on, while the workspace still has the content.

What this process did not write itself is doubted: the base once, when a process first builds on it, and again when the
files that hold it are no longer the ones that were proved; an object that was in the store before a capture wanted to
write it, each time. What proves to be broken is written anew from the
workspace; content that is no longer there cannot be, and the capture no longer claims to hold it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from engine.checkpoints.reading import blob_oid
from engine.errors import StoreDamaged
from engine.host.files import Tree
from engine.host.git import Git
from engine.host.paths import PathUnsafe
from engine.model import EntryKind, Workspace
from engine.store.index import Index
from engine.store.loose import is_sound_file
from engine.store.object_files import ObjectFiles, find_broken_packs, oid_of
from engine.store.opened import Store
from engine.store.reader import ObjectReader
from engine.store.rows import LOST_OID, Row, Rows
from engine.store.soundness import find_known, find_spoiled, find_unsound, has_all_trees, write_anew

_CONTENT_KINDS = (EntryKind.FILE, EntryKind.SYMLINK)


class Proof:
    """Proving of a base, for one capture; `succeeded` notes that the store holds it.

    Args:
        store: the store.
        workspace: whose base.
    """

    def __init__(self, store: Store, workspace: Workspace) -> None:
        self._store = store
        self._known = store.remembered(workspace)
        self._doubted: frozenset[str] = frozenset()

    def prove(self, base: Index) -> Index:
        """Return the base, with what the store cannot give back of it marked, so that a walk reads it again.

        Raises:
            GitFailed: git could not be asked.
        """
        known, git_dir = self._known, self._store.git.git_dir
        if not known.proved:
            known.files = ObjectFiles()
        self._doubted = known.files.changed(git_dir, known.looks) | known.doubted
        known.looks += 1
        broken_packs = find_broken_packs(git_dir, (path for path in self._doubted if oid_of(path) is None))
        known.doubted |= broken_packs  # until they are mended: a file that was looked at anew does not show it
        if broken_packs or self._are_lost(filter(None, map(oid_of, self._doubted))):
            known.proved = False
        known.files = known.files.with_new(git_dir)
        return base if known.proved else without_lost(self._store, base, broken_packs)

    def _are_lost(self, oids: Iterable[str]) -> bool:
        """Whether the store seems not to have objects any more; a gc moves them into packs."""
        wanted = frozenset(oids)
        found = {oid for oid in wanted if is_sound_file(self._store.git.git_dir, oid)}
        return bool(wanted - found - find_known(self._store.git, wanted - found, loose=False))

    def succeeded(self) -> None:
        """Note that all of what is the base now was seen in the store, or written to it just now."""
        self._known.files = self._known.files.without(self._doubted).with_new(self._store.git.git_dir)
        self._known.doubted -= self._doubted
        self._known.proved = True


def note_written(store: Store, workspace: Workspace) -> None:
    """Note that a base was made of a proved one without a proof of its own: what was written for it is sound."""
    known = store.remembered(workspace)
    if known.proved:
        known.files = known.files.with_new(store.git.git_dir)


def without_lost(store: Store, base: Index, broken_packs: Iterable[str] = ()) -> Index:
    """Return an index in which what the store cannot give back is marked, so that a walk reads it again.

    Raises:
        GitFailed: git could not be asked.
    """
    if base.base_tree is None:
        return base
    if not has_all_trees(store.git, base.base_tree):
        return Index()
    held = {row.entry.oid for row in base.rows.values() if row.entry.kind in _CONTENT_KINDS}
    lost = find_spoiled(store.git, (oid for oid in (*held, base.modes_oid, base.base) if oid), broken_packs)
    if base.base in lost:
        return Index()
    if not lost:
        return base
    unread = (path for path, row in base.rows.items() if row.entry.oid in lost)
    return replace(without(base, unread), modes_oid=None if base.modes_oid in lost else base.modes_oid)


def without(base: Index, paths: Iterable[str]) -> Index:
    """Return an index in which files are marked, so that a walk reads them again whatever their times say."""
    marked = {path: _marked(base.rows[path]) for path in paths if path in base.rows}
    return replace(base, rows=Rows.of({**base.rows, **marked})) if marked else base


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


def _require(git: Git, oids: frozenset[str]) -> None:
    if not oids:
        return
    broken = find_unsound(git, oids)
    if broken:
        raise StoreDamaged(f"object {min(broken)} cannot be read, and neither what was written in its place")
