"""A directory tree as a value: what a person would miss if it came back differently."""

import hashlib
import os
import stat
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Seen:
    """One path: kind, permission bits, what it holds, and when it was last written, where that says something."""

    kind: str
    mode: int
    content: bytes = b""
    mtime_ns: int = 0


Photograph = dict[str, Seen]


def photograph(root: str | Path) -> Photograph:
    """Everything below a directory, the directory itself as ``.``."""
    top = os.fsencode(root)
    taken = {".": _look(top)}
    for directory, names, files in os.walk(top):
        for name in [*names, *files]:
            path = os.path.join(directory, name)
            taken[os.fsdecode(os.path.relpath(path, top))] = _look(path)
    return taken


def _look(path: bytes) -> Seen:
    status = os.lstat(path)
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISLNK(status.st_mode):
        return Seen("link", 0o777, os.readlink(path))
    if stat.S_ISDIR(status.st_mode):
        return Seen("directory", mode)
    if stat.S_ISREG(status.st_mode):
        with open(path, "rb") as stream:
            return Seen("file", mode, hashlib.blake2b(stream.read()).digest(), status.st_mtime_ns)
    return Seen("special", mode)


def differing(one: Photograph, other: Photograph) -> set[str]:
    """The paths whose kind, permission bits or content differ."""
    return {path for path in one.keys() | other.keys() if _lasting(one.get(path)) != _lasting(other.get(path))}


def touched(one: Photograph, other: Photograph) -> set[str]:
    """The paths that differ in anything, the time of writing included."""
    return {path for path in one.keys() | other.keys() if one.get(path) != other.get(path)}


def _lasting(seen: Seen | None) -> Seen | None:
    return seen and replace(seen, mtime_ns=0)


def copy_tree(source: Path, target: Path) -> None:
    """Copy a tree with modes, links and times; no file is shared between the two."""
    subprocess.run(["cp", "-a", "--", source, target], check=True)
