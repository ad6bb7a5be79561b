"""Changing paths of a tree gives the tree that git would make of what is then there, and reads little."""

import hashlib
from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from engine.store.objects import EMPTY_TREE
from engine.store.tree_edit import TreeEdit

Leaves = dict[str, tuple[str, str]]
A, B, C = ("100644", "a" * 40), ("100755", "b" * 40), ("120000", "c" * 40)
NAMES = st.sampled_from(["a", "a.b", "a-", "b", "ü", "\udcff"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
EDITS = st.lists(st.tuples(PATHS, st.sampled_from([A, B, C, None])), max_size=12)


class Trees:
    """Trees by id, and which of them were read."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}
        self.read: list[str] = []

    def load(self, oid: str) -> bytes:
        self.read.append(oid)
        return self.held[oid]

    def store(self, content: bytes) -> None:
        self.held[hashlib.sha1(b"tree %d\0" % len(content) + content, usedforsecurity=False).hexdigest()] = content

    def build(self, leaves: Leaves) -> str:
        root, trees = build_trees([(path, mode, oid) for path, (mode, oid) in leaves.items()])
        self.held.update(trees)
        return root if leaves else EMPTY_TREE


def build_trees(leaves: Sequence[tuple[str, str, str]]) -> tuple[str, dict[str, bytes]]:
    """The id of the tree that holds these paths (path, git mode, id), and every tree of it by id."""
    listing: dict[str, list[tuple[bytes, bytes]]] = {"": []}
    for path, mode, oid in leaves:
        _list(listing, path, mode, oid)
        parent = path.rpartition("/")[0]
        while parent:
            listing.setdefault(parent, [])
            parent = parent.rpartition("/")[0]
    trees = {}
    root = ""
    for directory in sorted(listing, key=_depth, reverse=True):
        content = b"".join(line for _key, line in sorted(listing[directory]))
        root = hashlib.sha1(b"tree %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
        trees[root] = content
        if directory:
            _list(listing, directory, "40000", root)
    return root, trees


def _list(listing: dict[str, list[tuple[bytes, bytes]]], path: str, mode: str, oid: str) -> None:
    parent, _slash, name = path.rpartition("/")
    raw = name.encode("utf-8", "surrogateescape")
    key = raw + b"/" if mode == "40000" else raw  # git orders a directory as if its name ended so
    line = b"%s %s\0%s" % (mode.encode("ascii"), raw, bytes.fromhex(oid))
    listing.setdefault(parent, []).append((key, line))


def _depth(path: str) -> int:
    return path.count("/") + 1 if path else 0


def edited(trees: Trees, base: str | None, edits: Mapping[str, tuple[str, str] | None]) -> str:
    edit = TreeEdit(base, trees.load)
    for path, wanted in edits.items():
        if wanted is None:
            edit.remove(path)
        else:
            edit.put(path, *wanted)
    return edit.finish(trees.store)


def _apply(leaves: Leaves, path: str, wanted: tuple[str, str] | None) -> None:
    for known in [known for known in leaves if known == path or known.startswith(f"{path}/")]:
        del leaves[known]
    if wanted is not None:
        for known in [known for known in leaves if path.startswith(f"{known}/")]:
            del leaves[known]
        leaves[path] = wanted


@given(EDITS, EDITS)
def test_edits_add_up_to_what_is_there(
    first: list[tuple[str, tuple[str, str] | None]], second: list[tuple[str, tuple[str, str] | None]]
) -> None:
    leaves: Leaves = {}
    for path, wanted in first:
        _apply(leaves, path, wanted)
    trees = Trees()
    base = trees.build(leaves)
    edit = TreeEdit(base, trees.load)
    for path, wanted in second:
        _apply(leaves, path, wanted)
        if wanted is None:
            edit.remove(path)
        else:
            edit.put(path, *wanted)

    root = edit.finish(trees.store)

    assert root == Trees().build(leaves)
    assert _reachable(trees, root) == leaves


def _reachable(trees: Trees, oid: str, above: str = "") -> Leaves:
    found: Leaves = {}
    content = b"" if oid == EMPTY_TREE else trees.held[oid]
    while content:
        head, _nul, content = content.partition(b"\0")
        mode, _space, name = head.partition(b" ")
        path = above + name.decode("utf-8", "surrogateescape")
        entry, content = content[:20].hex(), content[20:]
        found |= _reachable(trees, entry, f"{path}/") if mode == b"40000" else {path: (mode.decode(), entry)}
    return found


def test_only_directories_above_what_changes_are_read_and_written() -> None:
    trees = Trees()
    base = trees.build({f"{top}/{sub}/{name}": A for top in "abc" for sub in "def" for name in "ghi"} | {"x/y": A})
    written: list[bytes] = []
    edit = TreeEdit(base, trees.load)
    edit.put("a/d/g", *B)

    edit.finish(written.append)

    assert len(trees.read) == len(written) == 3


def test_what_is_put_as_it_was_writes_the_same_tree() -> None:
    trees = Trees()
    base = trees.build({"a/b": A, "c": B})

    assert edited(trees, base, {"a/b": A, "gone": None}) == base
