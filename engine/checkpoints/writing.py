"""Writing a few changes into the store without starting git: contents, the directories above them, a commit, its name.

Order that matters in a crash: all objects are durable before the name is given.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from engine.host.files import Tree
from engine.host.git import Git
from engine.host.paths import PathUnsafe
from engine.model import EntryKind
from engine.store.batch import ObjectBatch
from engine.store.names import write_name
from engine.store.objects import CommitContent
from engine.store.reader import open_reader
from engine.store.rows import Row
from engine.store.tree_edit import TreeEdit

# Beyond, one stream into git is faster than a file for each object.
_MOST_PATHS = 64
_MOST_BYTES = 4 * 1024 * 1024


class FilesMoved(Exception):
    """Files changed between the look at them and the moment their bytes were written."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = tuple(paths)
        super().__init__()


def are_few(content: CommitContent, files: Mapping[str, Row]) -> bool:
    """Whether a commit that adds these files to a tree that is there is better written here than by git."""
    paths = len(content.added) + len(content.deleted)
    return content.base is not None and paths <= _MOST_PATHS and sum(row.size for row in files.values()) <= _MOST_BYTES


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
        edit = TreeEdit(content.base, partial(reader.read, kind="tree"))
        for path in content.deleted:
            edit.remove(path)
        for path, (mode, oid) in content.added.items():
            edit.put(path, mode, oid)
        tree = edit.finish(partial(batch.add, "tree"))
    oid = commit(batch, tree)
    batch.write()
    write_name(git.git_dir, ref, oid)
    return oid, tree


def _add_files(batch: ObjectBatch, root: str, files: Mapping[str, Row]) -> None:
    with Tree.open(root) as tree:
        moved = [path for path, row in files.items() if _add_file(batch, tree, path, row) != row.entry.oid]
    if moved:
        raise FilesMoved(moved)


def _add_file(batch: ObjectBatch, tree: Tree, path: str, row: Row) -> str | None:
    try:
        if row.entry.kind is EntryKind.SYMLINK:
            return batch.add("blob", tree.read_link(path))
        with tree.open_file(path) as stream:
            return batch.add("blob", stream.read(row.size + 1))  # one more shows that it has grown
    except (OSError, PathUnsafe):
        return None
