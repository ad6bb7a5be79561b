"""The sieve: what may differ from the last look at everything, found by git's comparison of stat data, in C.

The rows of a look at everything are listed in the format of git's index, in a file without a name that git is started
with; one git command compares them with what is there, and a stat of every directory shows where names came or went.
It answers like a walk, at a fraction of its cost, and counts as one. The list is written when it is first asked, since
most commands do without: what it is made of stays as it was, however much later that is.

git is usually built to compare whole seconds. So the answer is strict by what is left out of the list and looked at
every time: a row that was not stamped clearly before the second in which the look began, or is not to be trusted. A
later change then always has a later second in its ctime, which nobody can set. What changed its row since that look is
looked at, too. A clock that was set back, a mount, and a file system that may not keep ctimes make no sieve at all.
"""

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from engine.checkpoints.feed import WorkspaceFeed
from engine.checkpoints.found import Scan
from engine.checkpoints.index_file import encode_listing
from engine.checkpoints.source import VIRTUALENV_MARKERS, is_junk
from engine.checkpoints.touched import Touched
from engine.errors import GitFailed, GitUnavailable
from engine.host.mounts import STRICT_KINDS, Ground, find_ground
from engine.host.unnamed import UnnamedFile
from engine.model import EntryKind, Workspace
from engine.store.opened import Store
from engine.store.rows import RACY_NS, Row, Rows

LEAST_ROWS = 300
"""With fewer a walk is no slower than starting git."""

_MOST_DIFFERING = 500  # rows; then the list is written anew after the next look, or when a twentieth of it differs
_SHARE_DIFFERING = 20
_SECOND_NS = 1_000_000_000
_CLOCK_SLACK_NS = _SECOND_NS // 2
_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CONTENT_KINDS = (EntryKind.FILE, EntryKind.SYMLINK)
_RULING_NAME = ".gitignore"

DirectoryStamp = tuple[int, int, int, int, int]


@dataclass(slots=True)
class Sieve:
    """What a process keeps of a look at everything.

    ``rows`` are those of the look, which began in the second after ``settled_s``, ``owners`` who owns what is in a
    directory. ``listed`` is the list that was made of them, ``left_out`` those that it does not hold. ``directories``
    are the stamps of all directories (``None``: to be listed each time), ``ruling`` those of files that decide on
    others and are no rows.
    """

    rows: Rows
    ground: Ground
    clock_ns: int
    settled_s: int
    owners: dict[str, tuple[int, int]]
    listed: UnnamedFile | None = None
    left_out: frozenset[str] = frozenset()
    directories: dict[str, DirectoryStamp | None] = field(default_factory=dict)
    ruling: dict[str, DirectoryStamp | None] = field(default_factory=dict)

    def ensure_list(self) -> UnnamedFile:
        """Return the list, made if there is none yet.

        Raises:
            OSError: it could not be written.
        """
        if self.listed is None:
            content, self.left_out = _list(self)
            self.listed = UnnamedFile(content)
        return self.listed


def sift(store: Store, workspace: Workspace, rows: Rows, feed: WorkspaceFeed | None = None) -> Touched | None:
    """Return what has to be looked at so that everything was; ``None`` where no sieve fits. Holds for ``rows`` alone.

    The caller holds ``store.use``. A feed that began anew gets its watches first, so that it hears what comes after.
    """
    sieve = store.remembered(workspace).sieve
    if sieve is None or sieve.ground != find_ground(workspace.root) or _clock_ns() < sieve.clock_ns - _CLOCK_SLACK_NS:
        return None
    try:
        if feed is not None and feed.needs_cover():
            feed.cover(_iter_open(workspace.root, sieve.directories))
        listed = sieve.ensure_list()
        changed = store.git.differing(listed.path, workspace.root, keep_open=[listed.descriptor])
        with _opened_root(workspace.root) as root:
            moved, exchanged = _moved(root, sieve, rows)
    except (GitFailed, GitUnavailable, OSError):
        return None
    paths = {path.decode("utf-8", "surrogateescape") for path in changed}
    return Touched(frozenset(paths | sieve.left_out | rows.differing(sieve.rows) | moved), frozenset(exchanged))


def keep_sieve(store: Store, workspace: Workspace, scan: Scan, began_ns: int) -> None:
    """Make a sieve of a look at everything that began at this time and whose rows were kept; failing only costs time.

    The caller holds ``store.use``. The sieve before is kept until it has become a bad fit.
    """
    known = store.remembered(workspace)
    if len(scan.rows) < LEAST_ROWS:
        known.sieve = None
        return
    ground = find_ground(workspace.root)
    if ground is None or ground.kinds - STRICT_KINDS:
        known.sieve = None
        return
    try:
        with _opened_root(workspace.root) as root:
            fitting = _find_fitting(known.sieve, scan, ground)
            names = _all_directories(scan.rows) if fitting is None else _directories_of(fitting, scan.rows)
            names.update(_iter_marked(root, scan.excluded))
            directories, owners = _stamp_directories(root, names, began_ns)
            ruling = _stamp_ruling(root, scan.excluded, began_ns)
        settled_s = (began_ns - _SECOND_NS) // _SECOND_NS  # a margin for clocks that are corrected a little
        kept = fitting or Sieve(scan.rows, ground, _clock_ns(), settled_s, owners)
        kept.directories = directories
        kept.ruling = ruling
        known.sieve = kept
    except OSError:
        known.sieve = None


def _find_fitting(sieve: Sieve | None, scan: Scan, ground: Ground) -> Sieve | None:
    """Return the sieve before if its list is still a good one."""
    if sieve is None or sieve.ground != ground:
        return None
    differing = len(scan.rows.differing(sieve.rows)) + len(sieve.left_out)
    return sieve if differing <= max(_MOST_DIFFERING, len(sieve.rows) // _SHARE_DIFFERING) else None


def _all_directories(rows: Rows) -> set[str]:
    return {path for path, row in rows.items() if row.entry.kind is EntryKind.DIRECTORY} | {""}


def _directories_of(sieve: Sieve, rows: Rows) -> set[str]:
    """Return all directories without looking at every row."""
    new = {path for path in rows.differing(sieve.rows) if path in rows}
    known = {path for path in sieve.directories if not path or path in rows}
    return known | {path for path in new if rows[path].entry.kind is EntryKind.DIRECTORY}


def _iter_marked(root: int, excluded: Iterable[str]) -> Iterator[str]:
    """Yield the directories that are no source because of what is in them, and could become it."""
    for path in (path for path in excluded if not is_junk(path.rpartition("/")[2])):
        if any(_stamp(root, f"{path}/{marker}") is not None for marker in VIRTUALENV_MARKERS):
            yield path


def _list(sieve: Sieve) -> tuple[bytes, frozenset[str]]:
    """Return the list, and the paths that are left out of it."""
    listed, left_out = [], []
    for directory, inside in sieve.rows.iter_directories():
        prefix, owner = f"{directory}/" if directory else "", sieve.owners[directory]
        for name, row in inside.items():
            if row.entry.kind not in _CONTENT_KINDS:
                continue
            if _is_listed(row, sieve.settled_s):
                listed.append(((prefix + name).encode("utf-8", "surrogateescape"), row, owner))
            else:
                left_out.append(prefix + name)
    return encode_listing(listed), frozenset(left_out)


def _is_listed(row: Row, settled_s: int) -> bool:
    """Whether whole seconds prove of a row that it is as it was read."""
    return row.trusted and not row.older and max(row.mtime_ns, row.ctime_ns) // _SECOND_NS < settled_s


def _iter_open(root: str, paths: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield directories, each open as long as it is looked at; what is none any more is left out."""
    with _opened_root(root) as top:
        for path in paths:
            try:
                descriptor = os.open(path or ".", _DIRECTORY_FLAGS, dir_fd=top)
            except OSError:
                continue
            try:
                yield descriptor, path
            finally:
                os.close(descriptor)


def _moved(root: int, sieve: Sieve, rows: Rows) -> tuple[set[str], set[str]]:
    """Return where names may have come or gone, and where another directory stands or another rule holds."""
    moved, exchanged = set(), set()
    for path, known in sieve.directories.items():
        now = _stamp(root, path)
        if known is None or now != known:
            moved.add(path)
            if known is not None and (now is None or now[:3] != known[:3]):
                exchanged.add(path)
    for path, known in sieve.ruling.items():
        if known is None or _stamp(root, path) != known:
            exchanged.add(path.rpartition("/")[0])
    for path in moved:
        ruling = f"{path}/{_RULING_NAME}" if path else _RULING_NAME
        if ruling not in rows and ruling not in sieve.ruling and _stamp(root, ruling) is not None:
            exchanged.add(path)
    return moved, exchanged


def _stamp_directories(
    root: int, paths: Iterable[str], began_ns: int
) -> tuple[dict[str, DirectoryStamp | None], dict[str, tuple[int, int]]]:
    """Return stamps of directories as far as they hold for a look that began then, and their owners.

    Who owns a directory mostly owns what is in it. Where that is wrong, git says that it differs, and it is looked at.
    """
    stamps: dict[str, DirectoryStamp | None] = {}
    owners: dict[str, tuple[int, int]] = {}
    for path in paths:
        stamps[path], owners[path] = None, (0, 0)
        with suppress(OSError):
            status = os.stat(path or ".", dir_fd=root, follow_symlinks=False)
            owners[path] = (status.st_uid, status.st_gid)
            stamps[path] = _settled(_of(status), began_ns)
    return stamps, owners


def _stamp_ruling(root: int, excluded: Iterable[str], began_ns: int) -> dict[str, DirectoryStamp | None]:
    """Return stamps of the files that decide on others although they are no source themselves."""
    ruling = (path for path in excluded if path.rpartition("/")[2] == _RULING_NAME)
    return {path: _settled(_stamp(root, path), began_ns) for path in ruling}


def _settled(stamp: DirectoryStamp | None, began_ns: int) -> DirectoryStamp | None:
    """Return a stamp if it proves that nothing happened since a look began; otherwise nothing ever equals it."""
    return stamp if stamp is not None and max(stamp[3:]) < began_ns - RACY_NS else None


def _stamp(root: int, path: str) -> DirectoryStamp | None:
    try:
        return _of(os.stat(path or ".", dir_fd=root, follow_symlinks=False))
    except OSError:
        return None


def _of(status: os.stat_result) -> DirectoryStamp:
    return status.st_dev, status.st_ino, status.st_mode, status.st_mtime_ns, status.st_ctime_ns


@contextmanager
def _opened_root(root: str) -> Iterator[int]:
    descriptor = os.open(root, _DIRECTORY_FLAGS & ~os.O_NOFOLLOW)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _clock_ns() -> int:
    """Return how far the clock of file stamps is ahead of one that is never set."""
    steady = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.time_ns() - time.clock_gettime_ns(steady)
