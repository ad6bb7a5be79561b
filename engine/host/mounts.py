"""What a directory stands on: which directory it is, on what kind of file system, and what is mounted below it.

Only Linux says the latter two. Elsewhere a mount shows in the device of the directory that it covers.
"""

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

STRICT_KINDS = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "bcachefs", "zfs", "tmpfs", "overlay"})
"""Local file systems: every change goes through this machine's kernel, which stamps and tells it."""

_OVERLAY = "overlay"
_LAYER_OPTIONS = frozenset({"upperdir", "lowerdir", "lowerdir+", "datadir+"})
_MOUNTS = "/proc/self/mountinfo"
_ESCAPE = re.compile(r"\\([0-7]{3})")
_ESCAPED = str.maketrans({" ": "\\040", "\t": "\\011", "\n": "\\012", "\\": "\\134"})  # proc_pid_mountinfo(5)


@dataclass(frozen=True, slots=True)
class Ground:
    """What a directory stands on at one moment; equal as long as nothing was mounted, unmounted or exchanged.

    ``kinds`` are the file systems of the directory and of the mounts below it, ``below`` those mounts as the kernel
    describes them, ``files`` those of them that are a single file mounted over another, ``layers`` the directories
    beneath overlays that can be reached from here: what is changed there shows above without a sound.
    """

    device: int
    inode: int
    mount: str
    kinds: frozenset[str]
    below: tuple[str, ...]
    files: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()


def find_ground(root: str) -> Ground | None:
    """Return what a directory stands on, ``None`` where Linux does not say."""
    try:
        descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        if sys.platform != "linux":
            return Ground(status.st_dev, status.st_ino, "", frozenset(), ())
        mount = _mount_of(descriptor)
        table = _read(_MOUNTS).splitlines()
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return _ground(root, status, mount, table)


def _ground(root: str, status: os.stat_result, mount: str, table: list[str]) -> Ground | None:
    inside = root.translate(_ESCAPED).rstrip("/") + "/"
    below = [line for line in table if line.split(" ", 5)[4].startswith(inside)]
    own = [line for line in table if line.split(" ", 1)[0] == mount]
    if not own:
        return None
    kinds = frozenset(_kind(line) for line in [*own, *below])
    files = tuple(path for path in map(_mount_point, below) if not os.path.isdir(path))
    layers = tuple(layer for line in [*own, *below] if _kind(line) == _OVERLAY for layer in _iter_layers(line))
    return Ground(status.st_dev, status.st_ino, own[0], kinds, tuple(below), files, layers)


def _iter_layers(line: str) -> Iterator[str]:
    """Yield the layers of an overlay that are there; those of a container are out of sight from within it."""
    for option in line.rpartition(" ")[2].split(","):
        name, _equals, value = option.partition("=")
        if name in _LAYER_OPTIONS:
            paths = map(_unescaped, value.split(":"))
            yield from (path for path in paths if os.path.isabs(path) and os.path.isdir(path))


def _mount_point(line: str) -> str:
    return _unescaped(line.split(" ", 5)[4])


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda found: chr(int(found[1], 8)), text)


def _mount_of(descriptor: int) -> str:
    """Return the id of the mount that an open directory is on."""
    for line in _read(f"/proc/self/fdinfo/{descriptor}").splitlines():
        name, _colon, value = line.partition(":")
        if name == "mnt_id":
            return value.strip()
    return ""


def _kind(line: str) -> str:
    return line.partition(" - ")[2].partition(" ")[0]


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="surrogateescape") as stream:
        return stream.read()
