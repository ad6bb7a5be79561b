"""What a command names outside the workspace: looked at before and after it, because no capture holds any of it."""

import glob
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from engine.host.paths import display
from engine.model import Workspace

_MOST_LOOKED_AT = 100
_MOST_NAMED = 3
_MOST_PATTERNS = 2

_Stamp = tuple[int, ...] | None

Stamps = Mapping[str, tuple[str, _Stamp]]
"""Names as a command has them: where each led, and what tells one state there from another, ``None`` for nothing."""


def outside_stamps(workspace: Workspace, named: Iterable[str]) -> Stamps:
    """Look at what is named; words of which only the shell knows what they name are left out."""
    return {name: (path, _stamp(path)) for name, path in islice(_places(workspace, named), _MOST_LOOKED_AT)}


def changed_outside(before: Stamps) -> tuple[str, ...]:
    """Return what to say of those that are not what they were."""
    changed = [display(name) for name, (path, stamp) in before.items() if _stamp(path) != stamp]
    if not changed:
        return ()
    more = f" (+{len(changed) - _MOST_NAMED})" if len(changed) > _MOST_NAMED else ""
    return (f"changed outside the workspace, where no checkpoint reaches: {', '.join(changed[:_MOST_NAMED])}{more}",)


def _places(workspace: Workspace, named: Iterable[str]) -> Iterator[tuple[str, str]]:
    root = os.path.realpath(workspace.root)
    for name in named:
        try:
            path = os.path.join(workspace.cwd, name)
            for found in (path, *_fitting(path)):
                real = os.path.realpath(found)
                if os.path.commonpath([root, real]) != root:
                    yield (name if found == path else found), real
        except (OSError, ValueError):
            continue  # no file can have such a name


def _fitting(path: str) -> Iterator[str]:
    """Find what fits a pattern, unless so many of its parts are one that looking would take longer than the command."""
    patterns = sum(map(glob.has_magic, path.split(os.sep)))
    return glob.iglob(path) if patterns <= _MOST_PATTERNS else iter(())


def _stamp(path: str) -> _Stamp:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        return None  # what goes through a pipe or a device changes no file
    return status.st_dev, status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns
