"""A directory tree in memory: what stands at each path, and what gestures make of it."""

import os
import shlex
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.model import gestures

Gesture = tuple[str, ...]
"""A word of `gestures` and its arguments, paths and contents as text with surrogates for odd bytes."""


@dataclass(frozen=True, slots=True)
class Node:
    """What stands at one path; ``data`` is a file's content or a link's target."""

    kind: str
    mode: int
    data: bytes = b""

    @property
    def is_directory(self) -> bool:
        return self.kind == "directory"


Tree = dict[str, Node]

DIRECTORY = Node("directory", 0o755)


def look(root: Path) -> Tree:
    """Read a real tree, everything below its root."""
    found: Tree = {}
    top = os.fsencode(root)
    for directory, names, files in os.walk(top):
        for name in [*names, *files]:
            path = os.path.join(directory, name)
            found[os.fsdecode(os.path.relpath(path, top))] = _node(path)
    return found


def _node(path: bytes) -> Node:
    status = os.lstat(path)
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISLNK(status.st_mode):
        return Node("link", 0o777, os.readlink(path))
    if stat.S_ISDIR(status.st_mode):
        return Node("directory", mode)
    with open(path, "rb") as file:
        return Node("file", mode, file.read())


def perform(tree: Tree, gesture: Sequence[str]) -> None:
    """Do one gesture in memory."""
    word, path, *rest = gesture
    _DOERS[word](tree, path, *rest)


def perform_really(root: Path, gesture: Sequence[str]) -> None:
    """Do one gesture in a real tree, as a person does."""
    here = os.getcwd()
    os.chdir(root)
    try:
        gestures.perform(_real(gesture))
    finally:
        os.chdir(here)


def script(performed: Sequence[Gesture]) -> str:
    """Return a command that does the same, which nobody can understand without running it."""
    text = Path(gestures.__file__).read_text()
    calls = "".join(f"perform({_real(gesture)!r})\n" for gesture in performed)
    return f"python3 - <<'EOF'\n{text}\n{calls}EOF"


def _real(gesture: Sequence[str]) -> tuple[object, ...]:
    word, path, *rest = gesture
    arguments = [int(rest[0])] if word == "chmod" else [os.fsencode(argument) for argument in rest]
    return (word, os.fsencode(path), *arguments)


def below(tree: Tree, path: str) -> list[str]:
    """Return the paths below a directory."""
    return [other for other in tree if other.startswith(f"{path}/")]


def parents(path: str) -> Iterator[str]:
    """Yield the directories above a path, nearest first."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def has_free_way(tree: Tree, path: str) -> bool:
    """Whether everything above a path that exists is a directory."""
    return all(tree.get(parent, DIRECTORY).is_directory for parent in parents(path))


def drop(tree: Tree, path: str) -> None:
    """Take away what stands at a path, and all below it."""
    for other in [path, *below(tree, path)]:
        tree.pop(other, None)


def make_parents(tree: Tree, path: str) -> None:
    """Make every directory above a path, in place of whatever else stands there."""
    for parent in reversed([*parents(path)]):
        if not tree.get(parent, Node("nothing", 0)).is_directory:
            tree[parent] = DIRECTORY


def write(tree: Tree, path: str, content: bytes) -> None:
    """Put a file at a path; one that is there keeps its mode."""
    make_parents(tree, path)
    old = tree.get(path)
    if old is None or old.kind != "file":
        drop(tree, path)
        old = Node("file", 0o644)
    tree[path] = replace(old, data=content)


def _write(tree: Tree, path: str, content: str) -> None:
    write(tree, path, os.fsencode(content))


def _mkdir(tree: Tree, path: str) -> None:
    make_parents(tree, f"{path}/.")


def _link(tree: Tree, path: str, target: str) -> None:
    make_parents(tree, path)
    drop(tree, path)
    tree[path] = Node("link", 0o777, os.fsencode(target))


def _chmod(tree: Tree, path: str, number: str) -> None:
    node = tree.get(path)
    if node is not None and node.kind != "link":
        modes = gestures.DIRECTORY_MODES if node.is_directory else gestures.FILE_MODES
        tree[path] = replace(node, mode=modes[int(number) % len(modes)])


def _move(tree: Tree, path: str, to: str) -> None:
    if path not in tree or f"{to}/".startswith(f"{path}/") or f"{path}/".startswith(f"{to}/"):
        return
    moved = {to + other[len(path) :]: tree[other] for other in [path, *below(tree, path)]}
    make_parents(tree, to)
    drop(tree, to)
    drop(tree, path)
    tree.update(moved)


def _nest(tree: Tree, path: str) -> None:
    _mkdir(tree, path)
    _mkdir(tree, f"{path}/.git")
    for name, content in gestures.REPOSITORY.items():
        write(tree, f"{path}/.git/{os.fsdecode(name)}", content)
    for name in gestures.REPOSITORY_DIRECTORIES:
        _mkdir(tree, f"{path}/.git/{os.fsdecode(name)}")


_DOERS = {
    "write": _write,
    "remove": drop,
    "mkdir": _mkdir,
    "link": _link,
    "chmod": _chmod,
    "move": _move,
    "nest": _nest,
}


def quoted(path: str) -> str:
    """Return a path as one word for a shell or a command of the chat."""
    return shlex.quote(path)
