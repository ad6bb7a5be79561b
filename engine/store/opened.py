"""The store in use: its git, its locks, and what a process remembers of a workspace between two captures."""

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from engine.errors import StorageFailed, StoreBusy
from engine.host import durable, locks
from engine.host.git import Git
from engine.model import Workspace
from engine.store.commits import Commits
from engine.store.index import Index, load_index, save_index
from engine.store.layout import REF_ROOT, Layout
from engine.store.ledger import Ledger, Reading, read_on
from engine.store.object_files import ObjectFiles
from engine.store.objects import TreeChange
from engine.store.readings import Readings
from engine.store.stamps import Stamp, file_stamp
from engine.store.torn import find_torn

# A git that outlives the process that started it sees the end of its input and is gone, with its locks, before this.
STALE_REF_LOCK_S = 1.0
STALE_NAMES_LOCK_S = 60.0
"""How old in seconds a lock over all names has to be to be nobody's: git holds one for moments."""

# Writing an index costs several syncs; a turn makes one or two captures.
_MOST_UNSAVED_CAPTURES = 16
_MOST_UNSAVED_ROWS = 2000

# Directories that stood where a workspace is and are still told apart; beyond that the oldest are forgotten.
_MOST_PLACES = 64

_HISTORY = ("checkpoints", "sessions")


@dataclass(slots=True)
class Remembered:
    """What is kept in memory, each with the stamp of the file it was read from.

    ``unsaved`` are the rows that the index's file lacks (``None``: all), for as many captures as it is behind.
    ``broken`` are the names of checkpoints that the last list had to leave out, because their commits are gone.
    ``tracked`` is what the user's repository tracks, ``seen`` what the last look found.
    ``proved`` says that this process has seen the store give back what the base holds, ``files`` which files it was in
    then, ``doubted`` those of them that were seen to be broken since. ``compared`` are two trees with the changes
    between them, as a plan found them last, ``manifest`` what git's trees cannot say of one, by its id.
    """

    index: Index | None = None
    index_stamp: tuple[int, ...] | None = None
    unsaved: set[str] | None = None
    unsaved_captures: int = 0
    ledger: tuple[Stamp | None, Reading] | None = None
    project: tuple[Stamp | None, dict[str, Any]] | None = None
    tracked: Any = None
    tracked_stamp: tuple[int, ...] | None = None
    seen: Any = None
    sieve: Any = None
    broken: tuple[str, ...] = ()
    proved: bool = False
    files: ObjectFiles = field(default_factory=ObjectFiles)
    doubted: set[str] = field(default_factory=set)
    looks: int = 0
    compared: tuple[tuple[str, str], tuple[TreeChange, ...]] | None = None
    manifest: tuple[str, Any] | None = None


@dataclass(slots=True)
class Store:
    """One store; thread-safe through its locks: whoever reads or writes a workspace's files holds `use`.

    ``lock_wait_s`` bounds every wait for a lock; ``commits`` is what is known of the commits in it;
    ``readings`` are told how far the reading of many files has come.
    """

    layout: Layout
    git: Git
    lock_path: str
    lock_wait_s: float = 10.0
    commits: Commits = field(init=False)
    readings: Readings = field(default_factory=Readings)
    _remembered: dict[str, Remembered] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Know no commit yet."""
        self.commits = Commits(self.git)

    def has_base(self) -> bool:
        """Whether the directory that holds the store is there.

        Raises:
            StorageFailed: it cannot be told, or something else stands there.
        """
        with _refusals_told():
            return self.layout.has_base()

    def exists(self) -> bool:
        """Whether there is a store.

        Raises:
            StorageFailed: it cannot be told, or something else stands there.
        """
        with _refusals_told():
            return self.layout.exists()

    def ensure(self) -> None:
        """Make or repair what the store's directory needs.

        Raises:
            StorageFailed: it can be neither.
        """
        with _refusals_told():
            os.makedirs(os.path.dirname(self.lock_path), 0o700, exist_ok=True)
            self.layout.ensure()

    @contextmanager
    def use(self, workspace: Workspace, purpose: str) -> Iterator[None]:
        """Work on one workspace: beside others on other workspaces, alone on this one, never during a gc.

        Raises:
            StoreBusy: not free within the bounded wait.
            StorageFailed: the system refused a step, here or in the block.
        """
        self.ensure()
        with (
            _refusals_told(),
            locks.hold(self.lock_path, shared=True, wait_s=self.lock_wait_s, purpose=purpose),
            locks.hold(self.layout.lock(workspace.hash), shared=False, wait_s=self.lock_wait_s, purpose=purpose),
        ):
            self._sweep_ref_locks(workspace)
            self._sweep_names_lock()
            self._sweep_torn_names(workspace)
            yield

    @contextmanager
    def beside(self, purpose: str) -> Iterator[None]:
        """Read the whole store beside others, never during a gc.

        Raises:
            StoreBusy: not free within the bounded wait.
        """
        self.ensure()
        with (
            _refusals_told(),
            locks.hold(self.lock_path, shared=True, wait_s=self.lock_wait_s, purpose=purpose),
        ):
            yield

    @contextmanager
    def alone(self, purpose: str) -> Iterator[int]:
        """Work on the whole store with nobody else in it; the value is the lock's descriptor.

        Raises:
            StoreBusy: not free within the bounded wait.
        """
        self.ensure()
        with _refusals_told(), ExitStack() as stack:
            lock = locks.hold(self.lock_path, shared=False, wait_s=self.lock_wait_s, purpose=purpose)
            try:
                descriptor = stack.enter_context(lock)
            except StoreBusy as error:
                raise StoreBusy(error.lock, self._find_holder(error.holder), error.waited_s) from None
            yield descriptor

    def _find_holder(self, holder: str) -> str:
        """Return who works in a workspace, where the store's lock does not say who holds it."""
        if holder != locks.ANOTHER:
            return holder
        journal = os.path.dirname(self.layout.lock(""))
        names = sorted(name for name in os.listdir(journal) if name.endswith(".lock"))
        found = (locks.find_holder(os.path.join(journal, name)) for name in names)
        return next((one for one in found if one is not None), holder)

    def remembered(self, workspace: Workspace) -> Remembered:
        """Return what this process remembers of a workspace."""
        return self._remembered.setdefault(workspace.hash, Remembered())

    def doubt(self, paths: Iterable[str]) -> None:
        """Have files that hold objects, by path below ``objects``, proved again before a base is believed."""
        for known in list(self._remembered.values()):
            known.doubted.update(paths)

    def index(self, workspace: Workspace) -> Index:
        """Return the index, read anew only when another process wrote it."""
        known = self.remembered(workspace)
        stamp = file_stamp(self.layout.index(workspace.hash))
        if known.index is None or known.index_stamp != stamp:
            known.index = load_index(self.layout.index(workspace.hash))
            known.index_stamp = stamp
            known.unsaved, known.unsaved_captures = set(), 0
        return known.index

    def keep_index(self, workspace: Workspace, before: Index, index: Index, changed: Iterable[str]) -> None:
        """Remember a new index in place of the one before, and write it to its file now and then.

        A file that lags behind is seen by its base, and costs time alone; ``changed`` names the rows that are new,
        different or gone.
        """
        known = self.remembered(workspace)
        whole = known.unsaved is None or before is not known.index or before.base is None
        known.unsaved = None if whole else {*(known.unsaved or ()), *changed}
        known.unsaved_captures += 1
        known.index = index
        if (
            known.unsaved is None
            or known.unsaved_captures >= _MOST_UNSAVED_CAPTURES
            or len(known.unsaved) > _MOST_UNSAVED_ROWS
        ):
            self._save_index(workspace.hash, known)

    def _save_index(self, workspace_hash: str, known: Remembered) -> None:
        path = self.layout.index(workspace_hash)
        if known.index is not None:
            save_index(path, known.index, known.unsaved)
        known.unsaved, known.unsaved_captures = set(), 0
        known.index_stamp = file_stamp(path)

    def close(self) -> None:
        """Write what was not worth writing after each capture; where others are at work, it is left."""
        for workspace_hash, known in list(self._remembered.items()):
            if not known.unsaved:
                continue
            lock = locks.hold(self.layout.lock(workspace_hash), shared=False, wait_s=0, purpose="closing")
            with suppress(StoreBusy, OSError), lock:
                if known.index_stamp == file_stamp(self.layout.index(workspace_hash)):
                    self._save_index(workspace_hash, known)

    def ledger(self, workspace: Workspace) -> Ledger:
        """Return the ledger of the place that stands there; of what somebody appended to it only that is read."""
        known = self.remembered(workspace)
        path = self.layout.ledger(workspace.hash)
        stamp = file_stamp(path)
        here = self.place(workspace)
        before = known.ledger if known.ledger and known.ledger[1].ledger.here == here else None
        if before is not None and before[0] == stamp:
            return before[1].ledger
        reading = read_on(path, before[1] if before else Reading(Ledger(here=here)))
        known.ledger = stamp, reading  # as one: a list takes no lock and may come between
        return reading.ledger

    def touch(self, workspace: Workspace, *, looked: bool = True) -> None:
        """Note that the workspace is in use: its directory, the parent's identity, and to the minute when.

        ``looked`` is whether what stands there is taken for the workspace from now on, whichever directory it is.
        """
        self._note(workspace, looked=looked)

    def is_strange(self, workspace: Workspace) -> bool:
        """Whether a directory stands there that was never taken for the workspace, while another was.

        Directories are told apart by their inodes alone: the device changes from one start of the system to the next.
        """
        places = _places(self._project(workspace))
        return bool(places) and str(os.stat(workspace.root).st_ino) not in places

    def enter(self, workspace: Workspace) -> None:
        """Note that a directory stands there that has nothing to do with the one before: it is a place of its own."""
        places = _places(self._project(workspace))
        self._note(workspace, looked=True, place=max(places.values(), default=0) + 1)

    def _project(self, workspace: Workspace) -> dict[str, Any]:
        """Return what is noted of the workspace, nothing where it cannot be read; read again only when it changed."""
        known = self.remembered(workspace)
        path = self.layout.project(workspace.hash)
        stamp = file_stamp(path)
        if known.project is not None and known.project[0] == stamp:
            return known.project[1]
        try:
            value = durable.read_json(path)
        except ValueError:
            value = None
        project = value if isinstance(value, dict) else {}
        known.project = stamp, project
        return project

    def _note(self, workspace: Workspace, *, looked: bool, place: int | None = None) -> None:
        path = self.layout.project(workspace.hash)
        now = datetime.now(UTC).isoformat(timespec="minutes")
        known = self._project(workspace)
        parent = os.stat(os.path.dirname(workspace.root))
        value = {
            "workdir": os.fsencode(workspace.root).decode("utf-8", "surrogateescape"),
            "created_at": known.get("created_at", now),
            "last_touch": now,
            "parent": {"dev": parent.st_dev, "ino": parent.st_ino},
        }
        places = _places(known)
        if looked:
            stands = os.stat(workspace.root).st_ino
            here = _place_of(known, stands) if place is None else place
            places.pop(str(stands), None)  # so that the newest is the last
            places[str(stands)] = here
            value["root"] = stands
        elif known.get("root") is not None:
            value["root"] = known["root"]
        if any(places.values()):
            value["places"] = dict(list(places.items())[-_MOST_PLACES:])
        if value != known:
            durable.write_json(path, value)

    def place(self, workspace: Workspace) -> int:
        """Return the number of the place that the workspace's directory is.

        A directory that takes over from another, as its copy, is the same place; one that has nothing to do with it, as
        where a disk is not mounted, is another, and the one before is its old place again when it comes back.
        """
        try:
            stands = os.stat(workspace.root).st_ino
        except OSError:
            stands = None
        return _place_of(self._project(workspace), stands)

    def knows(self, workspace_hash: str) -> bool:
        """Whether a workspace of this name has ever been captured."""
        return os.path.exists(self.layout.project(workspace_hash))

    def _sweep_ref_locks(self, workspace: Workspace) -> None:
        """Remove what a killed git left locked below a workspace's refs; the caller has the workspace to itself."""
        for directory, _names, files in os.walk(os.path.join(self.layout.store, REF_ROOT, workspace.hash)):
            for path in (os.path.join(directory, name) for name in files if name.endswith(".lock")):
                age_s = time.time() - os.path.getmtime(path)
                if 0 <= age_s < STALE_REF_LOCK_S:
                    time.sleep(STALE_REF_LOCK_S - age_s)
                durable.remove(path)

    def _sweep_names_lock(self) -> None:
        """Remove the lock over all names that a git left that was killed dropping one; others may be at it just now."""
        path = os.path.join(self.layout.store, "packed-refs.lock")
        with suppress(FileNotFoundError):
            if time.time() - os.path.getmtime(path) > STALE_NAMES_LOCK_S:
                durable.remove(path)

    def _sweep_torn_names(self, workspace: Workspace) -> None:
        """Remove torn names that are made anew when they are needed; those of history are left, and said."""
        below = f"{REF_ROOT}/{workspace.hash}"
        for name, _content in list(find_torn(self.layout, below, beside=_HISTORY)):
            durable.remove(os.path.join(self.layout.store, name))


def _places(project: Mapping[str, Any]) -> dict[str, int]:
    """Return the places of the directories that stood where a workspace is, by their inodes."""
    root, places = project.get("root"), project.get("places")
    return {str(root): 0, **(places if isinstance(places, dict) else {})} if isinstance(root, int) else {}


def _place_of(project: Mapping[str, Any], inode: int | None) -> int:
    """Return the place of a directory; one that was never noted goes on from the last that was."""
    places = _places(project)
    return places.get(str(inode), places.get(str(project.get("root")), 0))


@contextmanager
def _refusals_told() -> Iterator[None]:
    """Translate what the system refuses."""
    try:
        yield
    except OSError as error:
        raise StorageFailed(os.fsdecode(error.filename or "the store"), error.strerror or str(error)) from error
