"""What killed processes leave in the store: locks, half-written packs, crash notes, directories half deleted.

Only swept with the store to oneself and only when old: every git of ours has ended by then, because none may run as
long, and one that outlives its process (a gc) still holds the store's lock. A git that a person runs by hand holds
no lock of ours, which is what the age is for. The note of a gc names its process, so it need not be old.
"""

import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterator

from engine.host.durable import TEMPORARY_PREFIX, sync_directory
from engine.store.layout import Layout
from engine.store.opened import STALE_NAMES_LOCK_S
from engine.upkeep.facts import tree_bytes
from engine.upkeep.processes import is_alive

STALE_S = 3600.0
"""How old debris has to be in seconds: longer than any git command of ours may run; names are locked for moments."""

_DELETING_PREFIX = ".deleting-"
_SCRATCH_PREFIX = ".rehearsal-"
_GC_NOTE = "gc.pid"
_LOCKS = re.compile(r".*\.lock|gc\.pid|packed-refs\.new")
_NAME_LOCKS = re.compile(r".*\.lock|packed-refs\.new")
_PARTIAL = re.compile(r"tmp_.*|\.tmp-.*|incoming-.*")
_CRASH = re.compile(r"fast_import_crash_\d+")
_FAST_IMPORT_KEEP = b"fast-import"


def sweep(layout: Layout, now_s: float | None = None) -> list[str]:
    """Remove old debris and return its names relative to the base; the caller has the store to itself."""
    now_s = time.time() if now_s is None else now_s
    swept = []
    for path in _find(layout):
        if _changed_at(path) < now_s - _stale_s(layout, path) or _is_note_of_ended_gc(path):
            _remove(path)
            swept.append(os.path.relpath(path, layout.base))
    return sorted(swept)


def _stale_s(layout: Layout, path: str) -> float:
    inside = os.path.relpath(path, layout.store)
    locks_names = os.path.dirname(inside) == "" or inside.startswith("refs/")
    return STALE_NAMES_LOCK_S if locks_names and _NAME_LOCKS.fullmatch(os.path.basename(path)) else STALE_S


def waiting_bytes(layout: Layout) -> int:
    """Return how much of the store is debris that is not old enough to be swept; it goes without a rule."""
    inside = os.path.join(layout.store, "")
    return sum(_size(path) for path in _find(layout) if path.startswith(inside))


def _find(layout: Layout) -> Iterator[str]:
    store = layout.store
    yield from _matching(layout.base, re.compile(f"({_DELETING_PREFIX}|{_SCRATCH_PREFIX}|{TEMPORARY_PREFIX}).*"))
    yield from _matching(store, _LOCKS)
    yield from _matching(store, _CRASH)
    yield from _matching(store, _PARTIAL)
    for name in ("projects", "info", "indexes"):  # what an atomic write of ours had not yet renamed
        yield from _matching(os.path.join(store, name), _PARTIAL)
    yield from _matching(os.path.join(store, "journal"), re.compile(f"{re.escape(TEMPORARY_PREFIX)}.*"))
    for directory, _names, files in os.walk(os.path.join(store, "refs")):
        yield from (os.path.join(directory, name) for name in files if _LOCKS.fullmatch(name))
    yield from _find_objects(os.path.join(store, "objects"))


def _find_objects(root: str) -> Iterator[str]:
    yield from _matching(root, _PARTIAL)
    for directory in _listed(root):
        path = os.path.join(root, directory)
        yield from _matching(path, _PARTIAL)
        yield from _matching(path, _LOCKS)
    for path in _matching(os.path.join(root, "pack"), re.compile(r"pack-.*\.keep")):
        # A pack marked so is never repacked; fast-import takes its mark away again unless it is killed.
        with open(path, "rb") as stream:
            if stream.read(64).strip() == _FAST_IMPORT_KEEP:
                yield path


def _matching(directory: str, pattern: re.Pattern[str]) -> list[str]:
    return [os.path.join(directory, name) for name in _listed(directory) if pattern.fullmatch(name)]


def _listed(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _changed_at(path: str) -> float:
    try:
        return os.lstat(path).st_mtime
    except FileNotFoundError:
        return float("inf")


def _size(path: str) -> int:
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return 0
    return tree_bytes(path) if stat.S_ISDIR(status.st_mode) else status.st_size


def _is_note_of_ended_gc(path: str) -> bool:
    """Whether this is a gc's note and its process has ended; git itself would believe a zombie for twelve hours."""
    if os.path.basename(path) != _GC_NOTE:
        return False
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            pid, host = stream.read(1024).split(maxsplit=1)
    except (OSError, ValueError):
        return False
    return pid.isdecimal() and host.strip() == os.uname().nodename and not is_alive(int(pid), "git")


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        remove_tree(path)
    else:
        os.unlink(path)


def set_aside(path: str) -> str:
    """Take a directory out of sight in one durable step and return its new name; a crash leaves it to `sweep`."""
    parent = os.path.dirname(path)
    aside = os.path.join(parent, f"{_DELETING_PREFIX}{secrets.token_hex(6)}")
    os.rename(path, aside)
    sync_directory(parent)
    return aside


def remove_tree(path: str) -> None:
    """Remove a directory of ours with all it holds, also where a mode stands in the way.

    Raises:
        OSError: a part of it could not be removed.
    """
    for directory, names, _files in os.walk(path):
        os.chmod(directory, 0o700)
        for name in names:
            below = os.path.join(directory, name)
            if not os.path.islink(below):
                os.chmod(below, 0o700)
    shutil.rmtree(path)


def scratch_name() -> str:
    """Return the name of a directory that `sweep` removes when its maker was killed."""
    return f"{_SCRATCH_PREFIX}{secrets.token_hex(6)}"
