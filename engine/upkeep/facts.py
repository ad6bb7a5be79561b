"""What upkeep decides on: the store's workspaces and archives, read into plain values. Nothing here changes anything.

The refs are the truth about which checkpoints exist; ``projects/<hash>.json`` says where their workspace is. One git
process reads all refs, and no object is opened.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from engine.host.git import Git
from engine.model import Workspace
from engine.store.journal import read_restore, read_running
from engine.store.layout import REF_ROOT, Layout
from engine.upkeep.processes import is_alive
from engine.upkeep.projects import Project, State, doubt_of, read_project, state_of

_HASH = re.compile(r"[0-9a-f]{16}")
_ARCHIVE = re.compile(r"legacy-(\d{8}-\d{6})")
_SEQUENCE = re.compile(r"\d{8,}|-\d{7,}")  # what was imported is numbered downwards from -1


@dataclass(frozen=True, slots=True)
class HeldRef:
    """A checkpoint by its ref alone."""

    sequence: int
    commit: str


@dataclass(frozen=True, slots=True)
class WorkspaceFacts:
    """One workspace in the store.

    ``checkpoints`` are oldest first. ``after`` and ``sessions`` map the numbers and session hashes of those refs to
    their commits, ``others`` the names of any other kind. ``needed`` are checkpoints that an interrupted restore names.
    ``running`` are the states before tools that are under way or were cut off. ``in_use`` says why the workspace may
    not be deleted now. ``doubt`` says of an orphan why it cannot be taken for deleted.
    """

    hash: str
    project: Project | None
    state: State
    checkpoints: tuple[HeldRef, ...] = ()
    after: Mapping[int, str] = field(default_factory=dict)
    sessions: Mapping[str, str] = field(default_factory=dict)
    base: str | None = None
    others: Mapping[str, str] = field(default_factory=dict)
    needed: frozenset[str] = frozenset()
    running: tuple[str, ...] = ()
    in_use: str | None = None
    doubt: str | None = None

    @property
    def workdir(self) -> str | None:
        """Where the workspace is, ``None`` where that is not known."""
        return self.project.workdir if self.project else None

    @property
    def nameless(self) -> bool:
        """Whether it was captured once and no name of it is left: its deletion was cut off, or its names are lost."""
        return not (self.checkpoints or self.after or self.sessions or self.base or self.others)


@dataclass(frozen=True, slots=True)
class LegacyArchive:
    """Repositories of the older layout, moved aside together; ``archived_at`` is ``None`` for a foreign name."""

    name: str
    size_bytes: int
    archived_at: datetime | None = None


def read_workspaces(layout: Layout, git: Git) -> list[WorkspaceFacts]:
    """Return every workspace that has refs or a project file, ordered by hash.

    Raises:
        GitFailed, GitUnavailable: the refs cannot be read.
    """
    refs = _refs_by_workspace(git)
    names = set(refs) | set(_project_hashes(layout))
    noted = _noted_hashes(layout)
    return [_workspace(layout, name, refs.get(name, []), is_noted=name in noted) for name in sorted(names)]


def _refs_by_workspace(git: Git) -> dict[str, list[tuple[str, str]]]:
    out = git.run(["for-each-ref", "--format=%(objectname) %(refname)", REF_ROOT])
    refs: dict[str, list[tuple[str, str]]] = {}
    for line in out.decode("utf-8", "surrogateescape").splitlines():
        commit, name = line.split(" ", 1)
        workspace, _slash, rest = name.removeprefix(f"{REF_ROOT}/").partition("/")
        refs.setdefault(workspace, []).append((rest, commit))
    return refs


def _noted_hashes(layout: Layout) -> set[str]:
    """Return the workspaces of which there is a journal or a note; looked up once, for there may be hundreds."""
    try:
        names = os.listdir(os.path.dirname(layout.journal("")))
    except FileNotFoundError:
        return set()
    return {name.partition(".")[0] for name in names if name.endswith(".json")}


def _project_hashes(layout: Layout) -> Iterator[str]:
    try:
        names = os.listdir(os.path.dirname(layout.project("")))
    except FileNotFoundError:
        return
    for name in names:
        stem, dot, suffix = name.partition(".")
        if dot and suffix == "json" and _HASH.fullmatch(stem):
            yield stem


def _workspace(layout: Layout, name: str, refs: list[tuple[str, str]], *, is_noted: bool) -> WorkspaceFacts:
    checkpoints: list[HeldRef] = []
    after: dict[int, str] = {}
    sessions: dict[str, str] = {}
    base: str | None = None
    others: dict[str, str] = {}
    for rest, commit in refs:
        kind, _slash, last = rest.partition("/")
        if kind == "checkpoints" and _SEQUENCE.fullmatch(last):
            checkpoints.append(HeldRef(int(last), commit))
        elif kind == "after" and _SEQUENCE.fullmatch(last):
            after[int(last)] = commit
        elif kind == "sessions" and last:
            sessions[last] = commit
        elif rest == "base":
            base = commit
        else:
            others[rest] = commit
    project = read_project(layout, name)
    under_way = _read_under_way(layout, name) if is_noted else _NOTHING_UNDER_WAY
    ordered = tuple(sorted(checkpoints, key=lambda item: item.sequence))
    state = state_of(project)
    doubt = doubt_of(project) if project and state is State.ORPHAN else None
    return WorkspaceFacts(name, project, state, ordered, after, sessions, base, others, *under_way, doubt)


_UnderWay = tuple[frozenset[str], tuple[str, ...], str | None]
_NOTHING_UNDER_WAY: _UnderWay = (frozenset(), (), None)


def _read_under_way(layout: Layout, name: str) -> _UnderWay:
    """Return the checkpoints an interrupted restore names, the states before tools, and why the workspace stays."""
    workspace = Workspace("", "", name)
    notes = read_running(layout, workspace).values()
    running = tuple(note.commit for note in notes if note.commit is not None)
    try:
        journal = read_restore(layout, workspace)
    except ValueError:
        return frozenset(), running, "the journal of an interrupted restore cannot be read"
    if journal is not None:
        needed = frozenset({journal.target, journal.safety})
        return needed, running, "a restore was interrupted and has to be finished first"
    alive = next((note.pid for note in notes if is_alive(note.pid)), None)
    if alive is not None:
        return frozenset(), running, f"a command is under way there (process {alive})"
    return frozenset(), running, None


def read_pending(layout: Layout) -> frozenset[str]:
    """Return the names dropped since space was last reclaimed."""
    try:
        with open(layout.gc_pending, "rb") as stream:
            return frozenset(stream.read().decode("utf-8", "surrogateescape").splitlines())
    except FileNotFoundError:
        return frozenset()


def read_archives(layout: Layout) -> tuple[LegacyArchive, ...]:
    """Return the legacy archives, ordered by name."""
    try:
        entries = sorted(os.scandir(layout.base), key=lambda entry: entry.name)
    except FileNotFoundError:
        return ()
    return tuple(
        LegacyArchive(entry.name, tree_bytes(entry.path), _archived_at(entry.name))
        for entry in entries
        if entry.name.startswith("legacy-") and entry.is_dir(follow_symlinks=False)
    )


def _archived_at(name: str) -> datetime | None:
    match = _ARCHIVE.fullmatch(name)
    try:
        return datetime.strptime(match[1], "%Y%m%d-%H%M%S").replace(tzinfo=UTC) if match else None
    except ValueError:
        return None


def tree_bytes(path: str) -> int:
    """Return what the files below a directory hold, in bytes; what vanishes meanwhile counts as nothing."""
    total = 0
    pending = [path]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_size
        except (FileNotFoundError, NotADirectoryError):
            continue
    return total
