"""What differs between a checkpoint and a capture, every kind of entry with all its permission bits."""

from collections.abc import Iterator

from engine.checkpoints.capture import Captured
from engine.checkpoints.history import Held
from engine.checkpoints.manifest import MODES_PATH, Manifest, decode_modes, iter_parents
from engine.errors import GitFailed, StoreDamaged
from engine.host.git import Git
from engine.model import Entry, EntryKind
from engine.restore.plan import Difference
from engine.store.layout import RESERVED
from engine.store.objects import TreeChange, diff_trees, list_tree
from engine.store.reader import open_reader

_NOTHING = "000000"


def find_differences(git: Git, target: Held, captured: Captured) -> list[Difference]:
    """Compare a checkpoint with a capture.

    Raises:
        StoreDamaged: an object of the checkpoint is missing or unreadable.
    """
    if target.tree == captured.tree:
        return []
    try:
        changes = diff_trees(git, target.tree, captured.tree, with_trees=True)
        manifest, now_manifest = _manifests(git, target, captured, changes)
        found = dict(_from_trees(changes, manifest))
        if manifest != now_manifest:
            found |= dict(_from_manifests(git, target, captured, manifest, now_manifest, found))
    except GitFailed as error:
        raise StoreDamaged(f"checkpoint {target.checkpoint.id[:8]} cannot be read ({error.detail})") from error
    rows = captured.rows
    differences = []
    for path, wanted in found.items():
        now = rows[path].entry if path in rows else None
        if wanted != now:
            differences.append(Difference(path, wanted, now))
    return differences


def read_bare(git: Git, tree: str) -> frozenset[str]:
    """Return the directories of a checkpoint that no file of it implies.

    Raises:
        StoreDamaged: the checkpoint cannot be read.
    """
    with open_reader(git) as reader:
        return decode_modes(reader.read(f"{tree}:{MODES_PATH}")).bare


def _manifests(git: Git, target: Held, captured: Captured, changes: list[TreeChange]) -> tuple[Manifest, Manifest]:
    if any(change.path == MODES_PATH for change in changes):
        with open_reader(git) as reader:
            return (
                decode_modes(reader.read(f"{target.tree}:{MODES_PATH}")),
                decode_modes(reader.read(f"{captured.tree}:{MODES_PATH}")),
            )
    with open_reader(git) as reader:
        both = decode_modes(reader.read(f"{captured.tree}:{MODES_PATH}"))
    return both, both


def _from_trees(changes: list[TreeChange], manifest: Manifest) -> Iterator[tuple[str, Entry | None]]:
    # A file that became a directory is two changes of one path; what stood there has the last word.
    for change in sorted(changes, key=lambda change: change.old_mode != _NOTHING):
        if change.path == RESERVED or change.path.startswith(f"{RESERVED}/"):
            continue
        if change.old_mode == _NOTHING:
            yield change.path, manifest.directory(change.path) if change.path in manifest.bare else None
        else:
            yield change.path, manifest.entry(change.path, change.old_mode, change.old_oid)


def _from_manifests(
    git: Git, target: Held, captured: Captured, old: Manifest, new: Manifest, found: dict[str, Entry | None]
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
    held = list_tree(git, target.tree)
    directories = {parent for path in held for parent in iter_parents(path)}
    for path in candidates:
        if path in held:
            yield path, old.entry(path, *held[path])
        elif path in directories:
            yield path, old.directory(path)
        elif path in above_empty:
            yield path, None
