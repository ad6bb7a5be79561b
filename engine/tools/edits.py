"""Changes of files as values: prepared first, so that a checkpoint can be taken in between, then made together."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from engine.errors import EngineError, ToolRefused
from engine.host.files import ContentChanged, Signature
from engine.host.paths import PathUnsafe, display
from engine.tools.filetree import FileTree

_MAX_LINKS = 40  # what Linux follows before it says ELOOP, path_resolution(7)


@dataclass(frozen=True, slots=True)
class FileEdit:
    """A file to be written whole; ``before`` is what stands there and has to stand there still, ``None`` nothing."""

    path: str
    before: Signature | None
    content: bytes
    mode: int


@dataclass(frozen=True, slots=True)
class FileRemoval:
    """A file to be removed; ``before`` has to stand there still."""

    path: str
    before: Signature


Edit: TypeAlias = FileEdit | FileRemoval


class EditsFailed(EngineError):
    """Several files were to be changed, one could not be, and not all changed before it could be put back."""

    def __init__(self, path: str, cause: BaseException, left: Sequence[str]) -> None:
        self.path = path
        self.cause = cause
        self.left = tuple(left)
        names = ", ".join(map(display, left))
        super().__init__(
            f"{display(path)} could not be changed ({cause}), and these files stay changed: {names}. "
            "The checkpoint before this holds them: /rollback"
        )


def edited_paths(edits: Iterable[Edit]) -> list[str]:
    """Return the paths that edits change, each once, in order."""
    return list(dict.fromkeys(edit.path for edit in edits))


def apply_edits(tree: FileTree, edits: Sequence[Edit]) -> None:
    """Make every change, or none: when one fails, those before it are put back and its error is raised.

    Raises:
        ContentChanged: a file is not what it was when the change was prepared.
        PathUnsafe: a parent was replaced by a symlink meanwhile.
        OSError: the system refused.
        EditsFailed: not everything could be put back; the files are named.
    """
    # A single change is all or nothing by itself, so its old content, of whatever size, is not read.
    kept = [_keep(tree, edit) for edit in edits] if len(edits) > 1 else [None] * len(edits)
    done: list[_Done] = []
    for edit, content in zip(edits, kept, strict=True):
        change = _Done(edit, content)
        done.append(change)
        try:
            _apply(tree, change)
        except BaseException as error:
            left = [each.edit.path for each in reversed(done) if not _put_back(tree, each)]
            if left:
                raise EditsFailed(edit.path, error, left) from error
            raise


def follow_link(tree: FileTree, path: str) -> str:
    """Return where the symlinks at a path lead, below the root; a path without one is returned as it is.

    What they lead to need not exist. Raises ``ToolRefused`` for a link that leads outside, or round in a circle.
    """
    current = path
    for _ in range(_MAX_LINKS):
        found = tree.signature(current) if current else None
        if found is None or not found.is_link:
            return current
        target = os.fsdecode(tree.read_link(current))
        try:
            current = tree.resolve(os.path.dirname(current), target)
        except PathUnsafe as error:
            raise ToolRefused(
                display(path), f"is a symbolic link to {display(target)}, which {error.reason}"
            ) from error
    raise ToolRefused(display(path), "is a symbolic link that leads round in a circle")


def find_target(tree: FileTree, path: str) -> tuple[str, Signature | None]:
    """Return the path that writing to ``path`` would write, links followed, and what stands there.

    Raises ``ToolRefused`` where no file can be written: at the root, a directory, a FIFO, below a file.
    """
    if not path:
        raise ToolRefused("the workspace itself", "is a directory; name a file in it")
    target = follow_link(tree, path)
    before = tree.signature(target) if target else None
    if not target or (before is not None and before.is_directory):
        raise ToolRefused(display(path), "is a directory; name a file in it")
    if before is not None and not before.is_file:
        raise ToolRefused(display(path), "is neither a file nor a directory; it is left alone")
    if before is None:
        _require_free_way(tree, target)
    return target, before


@dataclass(slots=True)
class _Done:
    """A change that was begun: the content before it, and what it made."""

    edit: Edit
    content: bytes | None
    after: Signature | None = None
    finished: bool = False
    parents: Sequence[str] = ()


def _keep(tree: FileTree, edit: Edit) -> bytes | None:
    """Read what a change will replace, to be able to put it back."""
    if edit.before is None:
        return None
    with tree.open_file(edit.path) as file:
        content = file.read()
    found = tree.signature(edit.path)
    if found != edit.before:
        raise ContentChanged(edit.path, found)
    return content


def _apply(tree: FileTree, change: _Done) -> None:
    edit = change.edit
    if isinstance(edit, FileRemoval):
        tree.remove_file(edit.path, expected=edit.before)
    else:
        change.parents = tree.ensure_parents(edit.path)
        change.after = tree.write_file(edit.path, [edit.content], edit.mode, expected=edit.before)
    change.finished = True


def _put_back(tree: FileTree, change: _Done) -> bool:
    """Undo one change as far as it came; whether what stands there now is what stood there before."""
    edit = change.edit
    try:
        if change.finished or _stands(tree, edit):
            _restore(tree, change)
        for parent in reversed(change.parents):
            tree.remove_directory(parent)
    except (OSError, PathUnsafe, ContentChanged):
        return False
    return True


def _stands(tree: FileTree, edit: Edit) -> bool:
    """Whether a change that failed was made all the same: its last step, making it durable, can fail alone."""
    found = tree.signature(edit.path)
    if found == edit.before or found is None:
        return found is None and edit.before is not None
    if isinstance(edit, FileRemoval) or not found.is_file or found.size != len(edit.content):
        return False
    with tree.open_file(edit.path) as file:
        return file.read() == edit.content


def _restore(tree: FileTree, change: _Done) -> None:
    edit = change.edit
    now = change.after if change.finished else tree.signature(edit.path)
    if edit.before is None:
        tree.remove_file(edit.path, expected=now)
    elif change.content is not None:
        tree.write_file(edit.path, [change.content], edit.before.mode, expected=now)


def _require_free_way(tree: FileTree, path: str) -> None:
    """Refuse a path below something that is no directory."""
    parts = path.split("/")
    for depth in range(1, len(parts)):
        parent = "/".join(parts[:depth])
        found = tree.signature(parent)
        if found is None:
            return
        if not found.is_directory:
            raise ToolRefused(display(path), f"{display(parent)} is not a directory, so no file can be below it")
