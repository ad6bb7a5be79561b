"""What an agent can be told to do: the message, and what it is predicted to change."""

import difflib
import os
import posixpath
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from hypothesis import strategies as st

from engine.host.paths import display
from tests.model.trees import Gesture, Tree, drop, has_free_way, parents, perform, quoted, script, write

CHATS = ("a", "b")
PLAIN_PATHS = ("@.txt", "@/x", "@/d/y", "@/d", "@")
HIDDEN_PATHS = ("@/.env", "@/node_modules/n", "@/node_modules", "@/o.ign", "@/d/x.log", "@/hidden/h")
ODD_PATHS = ("@/\udcff [1]* ", "@/d/é'\"")
"""Paths of a chat, which stands for the @: what one chat's agent changes, no other's does."""

TEXTS = ("one\n", "two\n", "three\nfour\n", "")
CONTENTS = (*TEXTS, "no line end", "\udcff\x00\udc80")
TARGETS = ("x", "../@.txt", "nowhere", "d", "../../outside/kept")


@dataclass(frozen=True, slots=True)
class Act:
    """A message to the agent. ``named`` are the paths its tool names; without ``guarded`` it captures nothing.

    ``effect`` is what it does to a tree; ``destructive`` whether its checkpoint is taken in any case.
    """

    text: str
    reason: str = ""
    named: tuple[str, ...] = ()
    effect: Callable[[Tree], None] = lambda _tree: None
    destructive: bool = True
    guarded: bool = True
    begins: bool = True


Told = tuple[str, ...] | tuple[str, list[Gesture]]

plain_paths = st.sampled_from(PLAIN_PATHS)
paths = st.sampled_from(PLAIN_PATHS * 3 + HIDDEN_PATHS + ODD_PATHS)
texts = st.sampled_from(TEXTS)
contents = st.sampled_from(CONTENTS)


@st.composite
def gestures(draw: st.DrawFn, where: st.SearchStrategy[str] = paths) -> Gesture:
    """One gesture on a chat's paths."""
    word = draw(st.sampled_from(("write", "write", "write", "remove", "move", "chmod", "link", "mkdir")))
    path = draw(where)
    match word:
        case "write":
            return word, path, draw(contents)
        case "move":
            return word, path, draw(where)
        case "chmod":
            return word, path, str(draw(st.integers(0, 3)))
        case "link":
            return word, path, draw(st.sampled_from(TARGETS))
    return word, path


def told(where: st.SearchStrategy[str] = paths) -> st.SearchStrategy[Told]:
    """What an agent is told, its paths without a chat."""
    return st.one_of(
        st.tuples(st.just("write"), where, texts),
        st.tuples(st.just("script"), st.lists(gestures(where), min_size=1, max_size=4)),
        st.tuples(st.just("patch"), where, st.one_of(st.none(), texts)),
        st.tuples(st.sampled_from(("rm", "sed", "read", "cat")), where),
        st.tuples(st.just("echo"), where, texts),
    )


def filled(gesture: Sequence[str], chat: str) -> Gesture:
    """Return a gesture on the paths of one chat."""
    return tuple(argument.replace("@", chat) for argument in gesture)


def act(tree: Tree, chat: str, what: Told) -> Act | None:
    """Return the message that tells an agent something, ``None`` where it means nothing in this state of the tree."""
    if what[0] == "script":
        return _script([filled(gesture, chat) for gesture in what[1]])
    word, path, *rest = (argument if argument is None else argument.replace("@", chat) for argument in what)
    if any(tree[parent].kind == "link" for parent in parents(path) if parent in tree):
        return None
    return _MAKERS[word](tree, path, *rest)


def _script(performed: list[Gesture]) -> Act:
    def effect(tree: Tree) -> None:
        for gesture in performed:
            perform(tree, gesture)

    return Act(f"$ {script(performed)}", "before terminal: python3 - <<'EOF'", effect=effect, destructive=False)


def _write(tree: Tree, path: str, content: str) -> Act | None:
    text = f"/write {path}\n{content}"
    target = _follow(tree, path)
    if target is None:
        return None
    node = tree.get(target)
    if not has_free_way(tree, target) or (node is not None and node.is_directory):
        return Act(text, guarded=False)
    effect = partial(write, path=target, content=os.fsencode(content))
    return Act(text, f"before write_file: {display(target)}", (target,), effect)


def _follow(tree: Tree, path: str) -> str | None:
    """Return where a link inside the workspace leads, ``None`` where that is no plain place."""
    node = tree.get(path)
    if node is None or node.kind != "link":
        return path
    target = posixpath.normpath(posixpath.join(posixpath.dirname(path), os.fsdecode(node.data)))
    clear = not target.startswith("..") and has_free_way(tree, target)
    return target if clear and (target not in tree or tree[target].kind == "file") else None


def _patch(tree: Tree, path: str, content: str | None) -> Act | None:
    node = tree.get(path)
    plain = path.isascii() and "[" not in path and has_free_way(tree, path)
    if not plain or (node is not None and node.kind != "file"):
        return None
    old = None if node is None else os.fsdecode(node.data)
    if old == content or "" in (old, content) or (old is not None and old not in TEXTS):
        return None
    lines = difflib.unified_diff(
        (old or "").splitlines(keepends=True),
        (content or "").splitlines(keepends=True),
        "/dev/null" if old is None else f"a/{path}",
        "/dev/null" if content is None else f"b/{path}",
    )
    text = f"/patch\n{''.join(lines)}"
    if content is None:
        return Act(text, f"before patch: {path}", (path,), partial(drop, path=path))
    return Act(text, f"before patch: {path}", (path,), partial(write, path=path, content=content.encode()))


def _rm(tree: Tree, path: str) -> Act:
    command = f"rm -rf -- {quoted(path)}"
    return Act(f"$ {command}", _terminal(command), (path,), partial(drop, path=path))


def _echo(tree: Tree, path: str, content: str) -> Act | None:
    node = tree.get(path)
    if node is not None and (node.kind == "link" or not node.mode & 0o200):
        return None
    command = f"printf %s {quoted(content)} > {quoted(path)}"
    fails = (node is not None and node.is_directory) or not all(
        parent in tree and tree[parent].is_directory for parent in parents(path)
    )
    if fails:
        return Act(f"$ {command}", _terminal(command), (path,))
    return Act(f"$ {command}", _terminal(command), (path,), partial(write, path=path, content=os.fsencode(content)))


def _sed(tree: Tree, path: str) -> Act | None:
    node = tree.get(path)
    if node is None or node.kind != "file" or os.fsdecode(node.data) not in TEXTS:
        return None
    command = f"sed -i s/one/two/ {quoted(path)}"
    effect = partial(write, path=path, content=node.data.replace(b"one", b"two"))
    return Act(f"$ {command}", _terminal(command), (path,), effect)


def _read(_tree: Tree, path: str) -> Act:
    return Act(f"/read {path}", guarded=False, begins=False)


def _cat(_tree: Tree, path: str) -> Act:
    return Act(f"$ cat -- {quoted(path)}", guarded=False)


def _terminal(command: str) -> str:
    shown = "".join(char if char.isprintable() else display(char) for char in " ".join(command.split()))
    return f"before terminal: {shown}"


_MAKERS = {"write": _write, "patch": _patch, "rm": _rm, "echo": _echo, "sed": _sed, "read": _read, "cat": _cat}
