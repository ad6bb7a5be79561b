"""Applying the files of a unified diff to a draft: changing, making, removing, renaming, modes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

from engine.errors import ToolRefused
from engine.host.paths import PathUnsafe, display
from engine.tools.patch.draft import Draft
from engine.tools.patch.hunks import apply_hunks
from engine.tools.patch.unified import FilePatch

_READ_BITS = 0o444
_EXECUTE_BITS = 0o111


def apply_diff(draft: Draft, patches: list[FilePatch]) -> None:
    """Work a whole diff into a draft; ``ToolRefused`` where a file does not fit."""
    for _, part in groupby(patches, key=lambda patch: patch.part):
        draft.begin_part()
        _apply_part(draft, list(part))


@dataclass(slots=True)
class _Names:
    """Names within a part of a patch: those whose file a rename takes away, now or later, and those taken since."""

    leaving: frozenset[str]
    taken: set[str] = field(default_factory=set)

    def are_free(self, draft: Draft, path: str) -> bool:
        """Whether a file can come to this name, also because the one that is there leaves it."""
        return draft.content(path) is None or (path in self.leaving and path not in self.taken)


def _apply_part(draft: Draft, part: Sequence[FilePatch]) -> None:
    names = _Names(frozenset(draft.find(patch.old) for patch in part if patch.moves == "rename" and patch.old))
    for patch in part:
        if patch.moves is not None:
            _move(draft, patch, names)
        elif patch.creates and patch.deletes:
            raise ToolRefused(display(patch.new or patch.old or ""), "is both made and removed by this patch")
        elif patch.creates:
            _create(draft, patch, names)
        else:
            _change(draft, patch, names)


def _create(draft: Draft, patch: FilePatch, names: _Names) -> None:
    name = _new_name(patch)
    path = draft.find(name)
    if not names.are_free(draft, path):
        raise ToolRefused(display(path), "the patch makes this file, but it is there already")
    names.taken.add(path)
    draft.write(path, apply_hunks(display(path), b"", patch.hunks), _mode(draft.mode(path), patch))


def _change(draft: Draft, patch: FilePatch, names: _Names) -> None:
    path = _find_source(draft, patch)
    content = draft.content(path)
    if content is None:
        _create(draft, patch, names)
        return
    changed = apply_hunks(display(path), content, patch.hunks)
    if not patch.deletes:
        draft.write(path, changed, _mode(draft.mode(path), patch))
    elif changed:
        raise ToolRefused(display(path), "the patch removes this file, but not all of its lines; it holds more by now")
    else:
        draft.remove(path)


def _move(draft: Draft, patch: FilePatch, names: _Names) -> None:
    if patch.old is None or patch.new is None:
        raise ToolRefused(display(patch.new or patch.old or ""), f"the {patch.moves} lines name only one file")
    source, target = draft.find(patch.old), draft.find(patch.new)
    content, mode = draft.base(source)
    if content is None:
        raise ToolRefused(display(source), "there is no such file")
    if source == target or not names.are_free(draft, target):
        raise ToolRefused(display(target), f"the patch would {patch.moves} a file to this name, but it is taken")
    names.taken.add(target)
    draft.write(target, apply_hunks(display(source), content, patch.hunks), _mode(mode, patch))
    if patch.moves == "rename" and source not in names.taken:
        draft.remove(source)


def _find_source(draft: Draft, patch: FilePatch) -> str:
    """Return the file that is changed: for a plain diff the first of its names that there is.

    A plain diff that makes a file may name it on both sides (``diff -N``); its path is then the new name's.
    """
    refused: ToolRefused | PathUnsafe | None = None
    for name in _source_names(patch):
        try:
            path = draft.find(name)
        except (ToolRefused, PathUnsafe) as error:
            refused = refused or error
            continue
        if draft.content(path) is not None:
            return path
    if refused is not None:
        raise refused
    if not patch.git and not patch.deletes and [(hunk.start, hunk.old) for hunk in patch.hunks] == [(0, [])]:
        return draft.find(_new_name(patch))
    raise ToolRefused(display(patch.old or patch.new or ""), "there is no such file")


def _source_names(patch: FilePatch) -> list[str]:
    names = [name for name in (patch.old if patch.deletes else patch.new, patch.old) if name]
    if patch.git:
        return names[:1]
    without = [name.partition("/")[2] for name in names if "/" in name.rstrip("/")]
    marked = all(name.startswith(("a/", "b/")) for name in names)
    found = [*without, *names] if marked else [*names, *without]
    return [name for name in dict.fromkeys(found) if name]


def _new_name(patch: FilePatch) -> str:
    name = patch.new or patch.old
    if name is None:
        raise ToolRefused("this patch", "has a part that names no file")
    return name[2:] if not patch.git and name.startswith("b/") else name


def _mode(mode: int, patch: FilePatch) -> int:
    """Apply a mode line, which knows no more than whether a file can be executed: by all who may read it."""
    if patch.executable is None:
        return mode
    without = mode & ~_EXECUTE_BITS
    return without | (mode & _READ_BITS) >> 2 if patch.executable else without
