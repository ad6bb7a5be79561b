"""Single paths in a tree of the store, found by reading the directories above them and no others."""

from collections.abc import Iterable, Iterator

from engine.errors import StoreDamaged
from engine.store.objects import EMPTY_TREE
from engine.store.reader import ObjectReader

_TREE = "040000"
_OID_BYTES = 20


def find_entries(reader: ObjectReader, tree: str, paths: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return what stands at these paths, each as git mode and id; directories above them are proved on the way.

    Raises:
        StoreDamaged: one of these directories cannot be read, or is not what its id stands for.
    """
    return dict(_find(reader, tree, "", sorted(set(paths))))


def _find(reader: ObjectReader, tree: str, above: str, paths: list[str]) -> Iterator[tuple[str, tuple[str, str]]]:
    wanted: dict[str, list[str]] = {}
    for path in paths:
        name, _slash, rest = path[len(above) :].partition("/")
        below = wanted.setdefault(name, [])
        if rest:
            below.append(path)
    here = {path for path in paths if "/" not in path[len(above) :]}
    content = b"" if tree == EMPTY_TREE else reader.read(tree, "tree")
    for name, mode, oid in _parse(content, tree):
        if name not in wanted:
            continue
        if above + name in here:
            yield above + name, (mode, oid)
        if mode == _TREE and wanted[name]:
            yield from _find(reader, oid, f"{above}{name}/", wanted[name])


def _parse(content: bytes, tree: str) -> Iterator[tuple[str, str, str]]:
    """Yield name, git mode and id of each entry of a tree."""
    at = 0
    try:
        while at < len(content):
            space = content.index(b" ", at)
            end = content.index(b"\0", space)
            mode = content[at:space].decode("ascii").zfill(6)
            name = content[space + 1 : end].decode("utf-8", "surrogateescape")
            at = end + 1 + _OID_BYTES
            yield name, mode, content[end + 1 : at].hex()
    except ValueError as error:
        raise StoreDamaged(f"tree {tree} cannot be read") from error
