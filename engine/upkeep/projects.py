"""What the store knows of a workspace's directory: where it is, whether it is there, whether it is surely deleted."""

import os
import stat
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from engine.host import durable
from engine.store.layout import Layout


class State(StrEnum):
    """What is known of a workspace's directory."""

    LIVE = "live"
    ORPHAN = "orphan"
    """It is not found: deleted, or on a disk that is not mounted now."""
    UNKNOWN = "unknown"
    """It cannot be told, or which directory it is is not known."""


@dataclass(frozen=True, slots=True)
class Project:
    """What ``projects/<hash>.json`` says; ``parent`` is the device and inode of the directory above."""

    workdir: str
    created_at: datetime | None
    last_touch: datetime | None
    parent: tuple[int, int] | None


def read_project(layout: Layout, workspace_hash: str) -> Project | None:
    """Return what is noted of a workspace, ``None`` for a missing or torn file."""
    try:
        value: Any = durable.read_json(layout.project(workspace_hash))
        return None if value is None else parse_project(value)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def parse_project(value: Any) -> Project:
    """Return what a project file says.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: it is not what is written there.
    """
    workdir = os.fsdecode(value["workdir"].encode("utf-8", "surrogateescape"))
    parent = value.get("parent")
    identity = (int(parent["dev"]), int(parent["ino"])) if parent else None
    return Project(workdir, _time(value.get("created_at")), _time(value.get("last_touch")), identity)


def write_project(path: str, workdir: str, created_at: datetime | None, touched_at: datetime) -> None:
    """Note a workspace that is known from elsewhere; the directory that holds it is noted if it is there."""
    touched = touched_at.isoformat(timespec="seconds")
    value: dict[str, Any] = {
        "workdir": os.fsencode(workdir).decode("utf-8", "surrogateescape"),
        "created_at": created_at.isoformat(timespec="seconds") if created_at else touched,
        "last_touch": touched,
    }
    if os.path.isdir(workdir):
        parent = os.stat(os.path.dirname(workdir))
        value["parent"] = {"dev": parent.st_dev, "ino": parent.st_ino}
    durable.write_json(path, value)


def _time(text: Any) -> datetime | None:
    try:
        at = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def state_of(project: Project | None) -> State:
    """Return whether a workspace's directory is there."""
    if project is None:
        return State.UNKNOWN
    try:
        status = os.stat(project.workdir)
    except (FileNotFoundError, NotADirectoryError):
        return State.UNKNOWN if os.path.islink(project.workdir) else State.ORPHAN
    except (OSError, ValueError):
        return State.UNKNOWN
    return State.LIVE if stat.S_ISDIR(status.st_mode) else State.UNKNOWN


def doubt_of(project: Project) -> str | None:
    """Return why a directory cannot be taken for deleted, ``None`` if it is observably gone.

    A directory that is not found may be on a disk that is not mounted. It is observably gone only where the directory
    that held it is still the same one, by device and inode as noted when the workspace was last used, and is in use:
    it holds something, or something is mounted there.
    """
    try:
        os.lstat(project.workdir)
    except FileNotFoundError:
        return _doubt_of_parent(project)
    except OSError as error:
        return f"it cannot be looked at ({error.strerror})"
    return "it is there"


def _doubt_of_parent(project: Project) -> str | None:
    parent = os.path.dirname(project.workdir)
    if project.parent is None:
        return "which directory held it was never noted"
    try:
        status = os.stat(parent)
        occupied = os.path.ismount(parent) or _holds_something(parent)
    except OSError as error:
        return f"the directory that held it cannot be looked at ({error.strerror}); its disk may not be mounted"
    if not stat.S_ISDIR(status.st_mode) or (status.st_dev, status.st_ino) != project.parent:
        return "the directory that held it is another one now; its disk may not be mounted"
    if not occupied:
        return "the directory that held it is empty; its disk may not be mounted"
    return None


def _holds_something(path: str) -> bool:
    with os.scandir(path) as entries:
        return next(entries, None) is not None
