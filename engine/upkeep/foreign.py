"""A store of the same layout that other software made, read from the outside.

No git ever runs in it: names and project files are read as text, so its configuration, hooks and links are nothing but
bytes. Its object files are lent to a repository of ours, once it is clear that they are plain files and that they lend
nothing from elsewhere. Nothing in it is changed.
"""

import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from engine.errors import ImportRefused
from engine.host.paths import display
from engine.upkeep.projects import parse_project

_OID = re.compile(r"[0-9a-f]{40}")
_PACKED = re.compile(r"([0-9a-f]+) (refs/\S+)")
_LENT = ("alternates", "http-alternates")
_MOST_TEXT_BYTES = 64 * 1024 * 1024
_LAST_SECOND = 253_370_764_800  # the year 9999
_CHECKPOINTS = "checkpoints"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something that was not taken over, and why."""

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class ForeignWorkspace:
    """A workspace of a foreign store: where it is, and the names of its history with what they stand for."""

    workdir: str
    created_at: datetime | None
    last_touch: datetime | None
    tips: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ForeignStore:
    """What a foreign store says of itself; ``objects`` is its directory of objects."""

    path: str
    objects: str
    workspaces: tuple[ForeignWorkspace, ...]
    left_out: tuple[LeftOut, ...]


def read_foreign(directory: str) -> ForeignStore:
    """Return what a store, or the store in a base directory, holds.

    Raises:
        ImportRefused: there is none, or it is one that cannot be read safely.
    """
    path = _find_store(os.path.realpath(directory), directory)
    try:
        _refuse_unsafe(path)
        names, torn = _read_names(path)
        projects, bad = _read_projects(path)
    except OSError as error:
        raise ImportRefused(path, f"it cannot be read ({error.strerror}: {error.filename})") from error
    tips, nobodys = _by_project(names, projects)
    workspaces = [
        ForeignWorkspace(project.workdir, project.created_at, project.last_touch, _checkpoints_of(tips[stem]))
        for stem, project in sorted(projects.items())
        if stem in tips
    ]
    return ForeignStore(path, os.path.join(path, "objects"), tuple(workspaces), (*torn, *bad, *nobodys))


def _find_store(path: str, named: str) -> str:
    for candidate in (os.path.join(path, "store"), path):
        if os.path.isdir(os.path.join(candidate, "objects")):
            return candidate
    raise ImportRefused(named, "there is no store in it: neither objects/ nor store/objects/")


def _refuse_unsafe(path: str) -> None:
    if "\n" in path:
        raise ImportRefused(display(path), "its name holds a line break; rename it")
    if os.path.lexists(os.path.join(path, "reftable")):
        raise ImportRefused(path, "its names are kept as a reftable, which is not read; migrate it to files")
    objects = os.path.join(path, "objects")
    for name in _LENT:
        if os.path.lexists(os.path.join(objects, "info", name)):
            raise ImportRefused(
                path, f"it borrows objects from elsewhere (objects/info/{name}), which may be anything; import from "
                "a copy that holds all of them"
            )  # fmt: skip
    for found, names, files in os.walk(objects, onerror=_raise):
        for name in (*names, *files):
            mode = os.lstat(os.path.join(found, name)).st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                where = os.path.relpath(os.path.join(found, name), path)
                raise ImportRefused(path, f"{display(where)} is neither a file nor a directory")


def _raise(error: OSError) -> None:
    raise error


def _read_names(path: str) -> tuple[dict[str, str], list[LeftOut]]:
    """Return all names with what they stand for; one in a file of its own counts more than a packed one."""
    names: dict[str, str] = {}
    left_out: list[LeftOut] = []
    found = [*_packed_names(path), *_loose_names(path)]
    for name, value in found:
        if _OID.fullmatch(value):
            names[name] = value
        else:
            left_out.append(LeftOut(display(name), f"it holds no id of 40 digits: {display(value, 60)}"))
    return names, left_out


def _packed_names(path: str) -> Iterator[tuple[str, str]]:
    for line in (_read_text(os.path.join(path, "packed-refs")) or "").splitlines():
        if match := _PACKED.fullmatch(line):
            yield match[2], match[1]


def _loose_names(path: str) -> Iterator[tuple[str, str]]:
    for directory, _names, files in os.walk(os.path.join(path, "refs")):
        for name in files:
            found = os.path.join(directory, name)
            if not name.endswith(".lock"):
                yield os.path.relpath(found, path), (_read_text(found) or "").strip()


def _read_text(path: str) -> str | None:
    """Return a file's text, ``None`` where there is none; a link leads nowhere and a pipe says nothing."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        return stream.read(_MOST_TEXT_BYTES).decode("utf-8", "surrogateescape")


@dataclass(frozen=True, slots=True)
class _Project:
    workdir: str
    created_at: datetime | None
    last_touch: datetime | None


def _read_projects(path: str) -> tuple[dict[str, _Project], list[LeftOut]]:
    projects: dict[str, _Project] = {}
    left_out: list[LeftOut] = []
    directory = os.path.join(path, "projects")
    if not os.path.isdir(directory) or os.path.islink(directory):
        raise ImportRefused(path, "it has no projects/, so it does not say whose checkpoints it holds")
    for name in sorted(os.listdir(directory)):
        stem, suffix = os.path.splitext(name)
        if suffix != ".json":
            continue
        try:
            projects[stem] = _parse(_read_text(os.path.join(directory, name)))
        except ValueError as error:
            left_out.append(LeftOut(f"projects/{display(name)}", str(error)))
    return projects, left_out


def _parse(text: str | None) -> _Project:
    try:
        value: Any = json.loads(text or "")
        times = {name: _as_text(value.get(name)) for name in ("created_at", "last_touch")}
        found = parse_project({"workdir": value["workdir"], **times})
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError("it is not what a project file holds") from error
    workdir = os.path.normpath(found.workdir)
    if not os.path.isabs(found.workdir) or "\0" in workdir or workdir.strip("/") == "":
        raise ValueError(f"its workdir is no directory that can be guarded: {display(found.workdir, 80)}")
    return _Project(os.path.realpath(workdir), found.created_at, found.last_touch)


def _as_text(moment: Any) -> Any:
    """Return a time as text, where it is given in seconds."""
    if isinstance(moment, (int, float)) and 0 <= moment < _LAST_SECOND:
        return datetime.fromtimestamp(moment, UTC).isoformat()
    return moment


def _by_project(
    names: Mapping[str, str], projects: Mapping[str, _Project]
) -> tuple[dict[str, dict[str, str]], list[LeftOut]]:
    """Give each name to the project whose stem is a part of it, whatever else the name is made of."""
    tips: dict[str, dict[str, str]] = {}
    left_out = []
    for name, oid in names.items():
        stem = next((part for part in name.split("/")[1:] if part in projects), None)
        if stem is None:
            left_out.append(LeftOut(display(name), "no project file says which directory it belongs to"))
        else:
            tips.setdefault(stem, {})[name.partition(f"/{stem}")[2].lstrip("/") or name] = oid
    return tips, left_out


def _checkpoints_of(tips: Mapping[str, str]) -> dict[str, str]:
    """Return the names that are checkpoints: where some are called so, the others are something else."""
    called_so = {name: oid for name, oid in tips.items() if name.startswith(f"{_CHECKPOINTS}/")}
    return called_so or dict(tips)
