"""What differs between a checkpoint and a capture, every kind of entry with all its permission bits."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from engine.checkpoints.capture import Captured
from engine.checkpoints.history import Held
from engine.checkpoints.manifest import MODES_PATH, Manifest, covers, decode_modes, iter_parents
from engine.checkpoints.standing import look_at
from engine.errors import GitFailed, StoreDamaged
from engine.host.files import ContentChanged, Tree
from engine.host.paths import PathUnsafe
from engine.model import Entry, EntryKind, Gap, GapReason, Workspace
from engine.restore.plan import Difference
from engine.store.layout import RESERVED
from engine.store.modes import TREE
from engine.store.objects import TreeChange, diff_trees, list_tree
from engine.store.opened import Store
from engine.store.reader import ObjectReader
from engine.store.rows import Rows
from engine.store.trees import find_entries

_NOTHING = "000000"
_NO_OID = "0" * 40
_MOST_REMEMBERED = 10_000  # changes; a plan of more takes longer than comparing again
_MOST_LOOKED_UP = 500  # paths; reading the directories above more of them takes longer than listing all


def find_differences(
    store: Store, workspace: Workspace, target: Held, captured: Captured, reader: ObjectReader
) -> list[Difference]:
    """Compare a checkpoint with a capture.

    Raises:
        StoreDamaged: an object of the checkpoint is missing or unreadable.
    """
    if target.tree == captured.tree:
        return []
    try:
        changes = _changes(store, workspace, target.tree, captured.tree)
        manifest, now_manifest = _manifests(store, workspace, reader, captured, changes)
        found = dict(_from_trees(changes, manifest))
        if manifest != now_manifest:
            found |= dict(_from_manifests(reader, target, captured, manifest, now_manifest, found))
    except GitFailed as error:
        if error.timed_out:
            raise
        raise StoreDamaged(f"checkpoint {target.checkpoint.id[:8]} cannot be read ({error.detail})") from error
    rows = captured.rows
    differences = []
    for path, wanted in found.items():
        now = rows[path].entry if path in rows else None
        if wanted != now:
            differences.append(Difference(path, wanted, now))
    return differences


def without_standing(tree: Tree, differences: Iterable[Difference], gaps: Iterable[Gap]) -> list[Difference]:
    """Leave out what stands in a nested repository as the checkpoint holds it, although no capture looks there."""
    nested = frozenset(gap.path for gap in gaps if gap.reason is GapReason.NESTED_REPOSITORY)
    return [d for d in differences if not (covers(nested, d.path) and _stands(tree, d))]


def _stands(tree: Tree, difference: Difference) -> bool:
    with suppress(OSError, PathUnsafe, ContentChanged):
        return look_at(tree, difference.path)[1] == difference.target
    return False


def _changes(store: Store, workspace: Workspace, old: str, new: str) -> Sequence[TreeChange]:
    """Return where two trees differ; what is performed is planned again, mostly with the same ones."""
    known = store.remembered(workspace)
    compared = known.compared
    if compared is None or compared[0] != (old, new):
        compared = (old, new), tuple(diff_trees(store.git, old, new, with_trees=True))
        known.compared = compared if len(compared[1]) <= _MOST_REMEMBERED else None
    return compared[1]


def read_bare(reader: ObjectReader, tree: str) -> frozenset[str]:
    """Return the directories of a checkpoint that no file of it implies.

    Raises:
        StoreDamaged: the checkpoint cannot be read.
    """
    return _read_manifest(reader, tree)[1].bare


def below_directories(rows: Rows, differences: Iterable[Difference]) -> frozenset[str]:
    """Return what is captured below the directories among these differences."""
    directories = {d.path for d in differences if d.now is not None and d.now.kind is EntryKind.DIRECTORY}
    outermost = (path for path in directories if directories.isdisjoint(iter_parents(path)))
    return frozenset(below for path in outermost for below in rows.iter_below(path))


def _manifests(
    store: Store, workspace: Workspace, reader: ObjectReader, captured: Captured, changes: Iterable[TreeChange]
) -> tuple[Manifest, Manifest]:
    change = next((change for change in changes if change.path == MODES_PATH), None)
    if change is not None:
        old, new = (reader.read(oid) if oid != _NO_OID else None for oid in (change.old_oid, change.new_oid))
        return decode_modes(old), decode_modes(new)
    known = store.remembered(workspace)
    index = store.index(workspace)
    if known.manifest is None or index.base_tree != captured.tree or known.manifest[0] != index.modes_oid:
        known.manifest = _read_manifest(reader, captured.tree)
    return known.manifest[1], known.manifest[1]


def _read_manifest(reader: ObjectReader, tree: str) -> tuple[str, Manifest]:
    """Return the manifest of a tree and its id."""
    found = find_entries(reader, tree, [MODES_PATH]).get(MODES_PATH)
    if found is None:
        raise StoreDamaged(f"object {tree}:{MODES_PATH} is missing")
    return found[1], decode_modes(reader.read(found[1]))


def _from_trees(changes: Iterable[TreeChange], manifest: Manifest) -> Iterator[tuple[str, Entry | None]]:
    # A file that became a directory is two changes of one path; what stood there has the last word.
    for change in sorted(changes, key=lambda change: change.old_mode != _NOTHING):
        if change.path == RESERVED or change.path.startswith(f"{RESERVED}/"):
            continue
        if change.old_mode == _NOTHING:
            yield change.path, manifest.directory(change.path) if change.path in manifest.bare else None
        else:
            yield change.path, manifest.entry(change.path, change.old_mode, change.old_oid)


def _from_manifests(
    reader: ObjectReader,
    target: Held,
    captured: Captured,
    old: Manifest,
    new: Manifest,
    found: dict[str, Entry | None],
) -> Iterator[tuple[str, Entry | None]]:
    """Yield what the checkpoint holds at paths whose bytes are equal but whose permission bits may not be."""
    for path in old.bare:
        yield path, old.directory(path)
    # A directory above an empty one may be new, or have been there with files in it.
    above_empty = {p for p in new.bare - old.bare if captured.rows[p].entry.kind is EntryKind.DIRECTORY}
    candidates = set(captured.rows) if old.usual != new.usual else {*old.modes, *new.modes, *above_empty}
    candidates -= found.keys() | old.bare
    if not candidates:
        return
    held = _entries(reader, target.tree, candidates)
    for path in candidates:
        if path in held:
            yield path, old.entry(path, *held[path])
        elif path in above_empty:
            yield path, None


def _entries(reader: ObjectReader, tree: str, paths: set[str]) -> dict[str, tuple[str, str]]:
    """Return what a tree holds at these paths, directories too."""
    if len(paths) <= _MOST_LOOKED_UP:
        return find_entries(reader, tree, paths)
    held = list_tree(reader.git, tree)
    return {parent: (TREE, "") for path in held for parent in iter_parents(path)} | held
