"""One walk over a workspace: what is there, what changed since the last capture, what cannot be captured.

The walk goes by directory descriptors, so no symlink is ever followed; FIFOs, sockets and devices are never opened.
It reads only files whose stat data do not prove them unchanged, and writes nothing.
"""

import hashlib
import os
import stat
from dataclasses import dataclass, field

from engine.checkpoints.reading import read_file, read_link
from engine.checkpoints.source import VIRTUALENV_MARKERS, DirectoryRules, SourceRules
from engine.checkpoints.tracked import read_exclude, read_small_file
from engine.errors import CaptureFailed
from engine.host.paths import is_repository_part
from engine.model import Entry, EntryKind, Gap, GapReason, Limits
from engine.store.index import LOST_OID, Row
from engine.store.layout import RESERVED

# What stands for a nested repository's commit where it has none or keeps it elsewhere: a constant nobody's commit has.
NO_COMMIT = hashlib.sha1(b"takeback: a nested repository without a commit", usedforsecurity=False).hexdigest()

_CONTENT_KINDS = (EntryKind.FILE, EntryKind.SYMLINK)
_DEEPEST = 900  # levels; each holds a descriptor open
_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(slots=True)
class Scan:
    """What a walk found.

    ``rows`` is the whole workspace; ``changed`` the paths whose row is new, different or gone compared with the rows
    before; ``excluded`` what exists but is no source, a directory for all below it.
    """

    rows: dict[str, Row] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    gaps: list[Gap] = field(default_factory=list)
    excluded: list[str] = field(default_factory=list)


class Scanner:
    """Walks one workspace.

    Args:
        root: its real path.
        before: the rows of the last capture.
        rules: what is source.
        limits: the workspace's limits.
        own: device and inode of directories of Takeback's own, which are left out.
    """

    def __init__(
        self,
        root: str,
        before: dict[str, Row],
        rules: SourceRules,
        limits: Limits,
        own: frozenset[tuple[int, int]] = frozenset(),
    ) -> None:
        self._root = root
        self._before = before
        self._rules = rules
        self._limits = limits
        self._own = own
        self._files = 0
        self._scan = Scan()

    def scan(self) -> Scan:
        """Walk everything.

        Raises:
            CaptureFailed: the root cannot be read, or there are more source files than the limit.
        """
        try:
            descriptor = os.open(self._root, _DIRECTORY_FLAGS & ~os.O_NOFOLLOW)
        except OSError as error:
            raise CaptureFailed(self._root, f"the directory cannot be read ({error.strerror})") from error
        try:
            self._directory(descriptor, "", _list(descriptor), self._rules.top(read_exclude(self._root)), 0)
        except OSError as error:
            raise CaptureFailed(self._root, f"the directory cannot be read ({error.strerror})") from error
        finally:
            os.close(descriptor)
        scan = self._scan
        scan.changed |= self._before.keys() - scan.rows.keys()
        scan.gaps.sort(key=lambda gap: gap.path)
        scan.excluded.sort()
        return scan

    def _directory(
        self, descriptor: int, path: str, listing: list[os.DirEntry[str]], rules: DirectoryRules, depth: int
    ) -> None:
        if any(entry.name == ".gitignore" for entry in listing):
            rules = rules.with_patterns(path, read_small_file(".gitignore", descriptor) or b"")
        prefix = f"{path}/" if path else ""
        before, rows, limit = self._before, self._scan.rows, self._limits.max_file_size_bytes
        for entry in listing:
            name = entry.name
            here = prefix + name
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            except OSError as error:
                self._gap(here, GapReason.UNREADABLE, error.strerror or "")
                continue
            # The way of nearly every path of nearly every capture: known, and provably as it was.
            row = before.get(here)
            if row is not None and row.describes(status) and stat.S_ISREG(status.st_mode) and status.st_size <= limit:
                self._count_file()
                rows[here] = row
            elif is_repository_part(name) or here == RESERVED:
                self._scan.excluded.append(here)
            elif stat.S_ISDIR(status.st_mode):
                self._subdirectory(descriptor, here, name, status, rules, depth)
            elif rules.admits(here, name):
                self._leaf(descriptor, here, name, status)
            else:
                self._scan.excluded.append(here)

    def _leaf(self, directory: int, path: str, name: str, status: os.stat_result) -> None:
        if stat.S_ISREG(status.st_mode):
            self._file(directory, path, name, status)
        elif stat.S_ISLNK(status.st_mode):
            self._link(directory, path, name, status)
        else:
            self._gap(path, GapReason.SPECIAL, "a FIFO, socket or device")

    def _subdirectory(
        self, parent: int, path: str, name: str, status: os.stat_result, rules: DirectoryRules, depth: int
    ) -> None:
        if (status.st_dev, status.st_ino) in self._own:
            self._gap(path, GapReason.STORE)
            return
        inside = rules.enter(path, name)
        if inside is None:
            self._scan.excluded.append(path)
            return
        if depth >= _DEEPEST:
            self._gap(path, GapReason.UNREADABLE, f"nested deeper than {_DEEPEST} levels")
            return
        try:
            descriptor = os.open(name, _DIRECTORY_FLAGS, dir_fd=parent)
        except FileNotFoundError:
            return
        except OSError as error:
            self._unreadable_directory(path, error)
            return
        try:
            self._open_subdirectory(descriptor, path, stat.S_IMODE(status.st_mode), inside, depth)
        except OSError as error:
            self._unreadable_directory(path, error)
        finally:
            os.close(descriptor)

    def _open_subdirectory(self, descriptor: int, path: str, mode: int, rules: DirectoryRules, depth: int) -> None:
        listing = _list(descriptor)
        names = {entry.name for entry in listing}
        if ".git" in names:
            self._put(path, Row(Entry(EntryKind.REPOSITORY, 0, _nested_commit(descriptor))))
            self._gap(path, GapReason.NESTED_REPOSITORY)
        elif names & VIRTUALENV_MARKERS and path not in self._rules.tracked.directories:
            self._scan.excluded.append(path)
        else:
            self._put(path, Row(Entry(EntryKind.DIRECTORY, mode, None)))
            self._directory(descriptor, path, listing, rules, depth + 1)

    def _unreadable_directory(self, path: str, error: OSError) -> None:
        self._keep_below(path)
        self._gap(path, GapReason.UNREADABLE, error.strerror or "")

    def _file(self, directory: int, path: str, name: str, status: os.stat_result) -> None:
        self._count_file()
        if status.st_size > self._limits.max_file_size_bytes:
            limit = megabytes(self._limits.max_file_size_bytes)
            self._gap(path, GapReason.TOO_LARGE, f"{megabytes(status.st_size)}, the limit is {limit}")
            return
        try:
            read = read_file(directory, name, self._limits.max_file_size_bytes)
        except FileNotFoundError:
            return
        except OSError as error:
            self._gap(path, GapReason.UNREADABLE, error.strerror or "")
            return
        if read is None:
            self._gap(path, GapReason.CHANGING)
            return
        self._put(path, read)

    def _link(self, directory: int, path: str, name: str, status: os.stat_result) -> None:
        self._count_file()
        try:
            row = read_link(directory, name, status)
        except OSError:
            return
        self._put(path, row)

    def _put(self, path: str, row: Row) -> None:
        self._scan.rows[path] = row
        if self._before.get(path) != row:
            self._scan.changed.add(path)

    def _gap(self, path: str, reason: GapReason, detail: str = "") -> None:
        """Note a gap; what was captured of it before stays in the checkpoint, marked as older."""
        row = self._before.get(path)
        older = row is not None and row.entry.kind in _CONTENT_KINDS and row.entry.oid != LOST_OID
        if row is not None and older:
            self._put(path, Row(row.entry, trusted=False, older=True))
        self._scan.gaps.append(Gap(path, reason, detail, older))

    def _keep_below(self, path: str) -> None:
        """Keep what was captured below a directory that cannot be read now."""
        below = f"{path}/"
        for known, row in self._before.items():
            if known == path:
                self._put(known, row)
            elif known.startswith(below) and known not in self._scan.rows and row.entry.oid != LOST_OID:
                self._put(known, Row(row.entry, trusted=False, older=True))

    def _count_file(self) -> None:
        self._files += 1
        if self._files > self._limits.max_source_files:
            raise CaptureFailed(
                self._root,
                f"it has more than {self._limits.max_source_files:,} source files; choose a smaller directory",
            )


def megabytes(size: int) -> str:
    """Return a size for people."""
    return f"{size / (1024 * 1024):.1f} MB"


def _list(descriptor: int) -> list[os.DirEntry[str]]:
    with os.scandir(descriptor) as listing:
        return list(listing)


def _nested_commit(directory: int) -> str:
    """Return the commit a nested repository is at, read from its files; `NO_COMMIT` where that is not plain."""
    try:
        git = os.open(".git", _DIRECTORY_FLAGS, dir_fd=directory)
    except OSError:
        return NO_COMMIT
    try:
        head = (read_small_file("HEAD", git) or b"").strip()
        if head.startswith(b"ref: "):
            name = os.fsdecode(head[5:].strip())
            safe = name.startswith("refs/") and ".." not in name
            head = (read_small_file(name, git) or b"").strip() if safe else b""
        text = head.decode("ascii", "replace")
        return text if len(text) == len(NO_COMMIT) and set(text) <= set("0123456789abcdef") else NO_COMMIT
    finally:
        os.close(git)
