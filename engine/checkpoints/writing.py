"""Writing a capture into the store without starting git: contents, the directories above them, a commit, its name.

A few objects become a file each, many become a pack. Order that matters in a crash: all objects are durable before the
name is given.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from engine.checkpoints.bulk import LARGE_BYTES
from engine.host.files import Tree
from engine.host.git import Git
from engine.host.paths import PathUnsafe
from engine.model import EntryKind
from engine.store.batch import ObjectBatch
from engine.store.loose import object_id, write_loose
from engine.store.names import write_name
from engine.store.objects import CommitContent
from engine.store.packing import PackWriter
from engine.store.reader import COPY_BYTES, ObjectReader, open_reader
from engine.store.rows import Row
from engine.store.soundness import find_known, find_unsound
from engine.store.tree_edit import ReadTree, TreeEdit, WriteTree

# Beyond, one pack is faster than a file for each object.
_MOST_PATHS = 64
_MOST_BYTES = 4 * 1024 * 1024


class FilesMoved(Exception):
    """Files changed between the look at them and the moment their bytes were written."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = tuple(paths)
        super().__init__()


def are_few(content: CommitContent, files: Mapping[str, Row]) -> bool:
    """Whether a commit that adds these files is better written as a file for each object than as a pack."""
    paths = len(content.added) + len(content.deleted)
    return paths <= _MOST_PATHS and sum(row.size for row in files.values()) <= _MOST_BYTES


def write_few(
    git: Git,
    root: str,
    content: CommitContent,
    files: Mapping[str, Row],
    others: Sequence[bytes],
    *,
    commit: Callable[[ObjectBatch, str], str],
    ref: str,
) -> tuple[str, str]:
    """Write a commit with all it needs and name it; return its id and its tree's.

    Args:
        git: the store.
        root: the workspace.
        content: what the commit's tree is made of.
        files: the files and links whose contents are new, as they were read.
        others: more contents.
        commit: adds the commit of a tree to a batch.
        ref: the name.

    Raises:
        FilesMoved: files are no longer as they were read; nothing was named.
        StoreDamaged: the tree cannot be read that it builds on; nothing was named.
        OSError: nothing was named, or the name is not durable.
    """
    batch = ObjectBatch(git.git_dir)
    for other in others:
        batch.add("blob", other)
    _add_files(batch, root, files)
    with open_reader(git) as reader:
        tree = _edit(content, partial(reader.read, kind="tree"), partial(batch.add, "tree"))
    oid = commit(batch, tree)
    batch.write()
    write_name(git.git_dir, ref, oid)
    return oid, tree


def write_many(
    git: Git,
    root: str,
    content: CommitContent,
    files: Mapping[str, Row],
    others: Sequence[bytes],
    *,
    pack: PackWriter,
    commit: Callable[[str], str],
    ref: str,
) -> tuple[str, str]:
    """Write a commit with all it needs and name it like `write_few`, with a pack that may hold some of it already.

    ``commit`` writes the commit of a tree.

    Raises:
        FilesMoved: files are no longer as they were read; nothing was named.
        GitFailed: what the store holds could not be proved; nothing was named.
        StoreDamaged: the tree cannot be read that it builds on; nothing was named.
        StorageFailed: nothing was named.
        OSError: nothing was named, or the name is not durable.
    """
    _pack_files(pack, root, files)
    with open_reader(git) as reader:
        tree = _pack_trees(pack, reader, content, others)
    pack.install()
    for other in others:  # a file each, as their directory: they are read often, which from a pack takes a process
        write_loose(git.git_dir, "blob", other)
    oid = commit(tree)
    write_name(git.git_dir, ref, oid)
    return oid, tree


def _pack_trees(pack: PackWriter, reader: ObjectReader, content: CommitContent, others: Sequence[bytes]) -> str:
    """Pack the directories that the store does not hold, and those that it cannot give back; return the id of all."""
    trees: list[bytes] = []
    tree = _edit(content, partial(reader.read, kind="tree"), trees.append)
    by_oid = {object_id("tree", one): one for one in trees}
    known = find_known(reader.git, by_oid)
    sound = known - find_unsound(reader.git, known, reader) if known else known
    named = [bytes.fromhex(object_id("blob", other)) for other in others]
    for oid, one in by_oid.items():
        if any(name in one for name in named):
            write_loose(reader.git.git_dir, "tree", one)
        elif oid not in sound:
            pack.put("tree", one)
    return tree


def _edit(content: CommitContent, read: ReadTree, write: WriteTree) -> str:
    edit = TreeEdit(content.base, read)
    for path in content.deleted:
        edit.remove(path)
    for path, (mode, oid) in content.added.items():
        edit.put(path, mode, oid)
    return edit.finish(write)


def _pack_files(pack: PackWriter, root: str, files: Mapping[str, Row]) -> None:
    moved = []
    with Tree.open(root) as tree:
        for path, row in files.items():
            if row.entry.oid not in pack and _pack_file(pack, tree, path, row) != row.entry.oid:
                moved.append(path)
    if moved:
        raise FilesMoved(moved)


def _pack_file(pack: PackWriter, tree: Tree, path: str, row: Row) -> str | None:
    if row.size <= LARGE_BYTES or row.entry.kind is EntryKind.SYMLINK:
        return _put_file(pack.put, tree, path, row)
    try:
        with tree.open_file(path) as stream:
            chunks = iter(lambda: stream.read(COPY_BYTES), b"")
            return pack.stream(row.size, chunks, lambda oid: oid == row.entry.oid)
    except (OSError, PathUnsafe):
        return None


def _add_files(batch: ObjectBatch, root: str, files: Mapping[str, Row]) -> None:
    with Tree.open(root) as tree:
        moved = [path for path, row in files.items() if _put_file(batch.add, tree, path, row) != row.entry.oid]
    if moved:
        raise FilesMoved(moved)


def _put_file(put: Callable[[str, bytes], str], tree: Tree, path: str, row: Row) -> str | None:
    """Put a file's or link's bytes where they are to go; return the id they have now, ``None`` if they are gone."""
    try:
        if row.entry.kind is EntryKind.SYMLINK:
            return put("blob", tree.read_link(path))
        with tree.open_file(path) as stream:
            return put("blob", stream.read(row.size + 1))  # one more shows that it has grown
    except (OSError, PathUnsafe):
        return None
