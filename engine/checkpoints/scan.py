"""Looking at a workspace: what is there, what changed since the last capture, what cannot be captured.

A walk looks at everything; a rescan looks again at what is touched and takes all else as it was found before. Both go
by directory descriptors, so no symlink is ever followed; FIFOs, sockets and devices are never opened. They read only
files whose stat data do not prove them unchanged, all of them at the end, and write nothing.
"""

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from engine.checkpoints.found import Scan
from engine.checkpoints.manifest import iter_parents
from engine.checkpoints.nested import nested_commit
from engine.checkpoints.reading import Outcome, Outcomes, Sizes, read_files, read_link
from engine.checkpoints.source import VIRTUALENV_MARKERS, DirectoryRules, SourceRules
from engine.checkpoints.touched import Branch, Touched, branch_out
from engine.checkpoints.tracked import GITIGNORE, read_exclude, with_gitignore
from engine.errors import CaptureFailed
from engine.host.paths import is_repository_part
from engine.model import Entry, EntryKind, Gap, GapReason, Limits
from engine.store.layout import RESERVED
from engine.store.rows import LOST_OID, Draft, Row, Rows

_CONTENT_KINDS = (EntryKind.FILE, EntryKind.SYMLINK)
_DEEPEST = 200  # levels; each holds a descriptor open, and several calls of the interpreter
_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LEAF = Branch(look=True)

OnDirectory = Callable[[int, str], None]
"""Called with a directory's descriptor and path before it is listed."""

ReadFiles = Callable[[int, Sizes, int], Outcomes]
"""Reads files below an open root, none larger than a limit."""


class Scanner:
    """Looks at one workspace.

    Args:
        root: its real path.
        before: the rows of the last capture.
        rules: what is source.
        limits: the workspace's limits.
        own: device and inode of directories of Takeback's own, which are left out.
        on_directory: told of every directory before it is listed.
        read: reads the files that have to be read.
    """

    def __init__(
        self,
        root: str,
        before: Rows,
        rules: SourceRules,
        limits: Limits,
        own: frozenset[tuple[int, int]] = frozenset(),
        on_directory: OnDirectory | None = None,
        *,
        read: ReadFiles = read_files,
    ) -> None:
        self._root = root
        self._before = before
        self._rules = rules
        self._limits = limits
        self._own = own
        self._on_directory = on_directory
        self._read = read
        self._begin(anew=True)

    def _begin(self, *, anew: bool) -> None:
        self._files = 0
        self._draft = Draft(self._before, anew=anew)
        self._gaps: dict[str, Gap] = {}
        self._excluded: set[str] = set()
        self._linked: set[str] = set()
        self._forgotten: set[str] = set()
        self._listed: set[str] = set()
        self._unread: dict[str, dict[str, int]] = {}

    def scan(self) -> Scan:
        """Walk everything.

        Raises:
            CaptureFailed: the root cannot be read, or there are more source files than the limit.
        """
        self._begin(anew=True)
        with self._open_root() as descriptor:
            self._directory(descriptor, "", self._list(descriptor, ""), self._top(), 0)
            self._read_files(descriptor)
        return self._found((), frozenset())

    def rescan(self, previous: Scan, touched: Touched) -> Scan:
        """Look again at what is touched; the rest is as ``previous``, whose rows are those before, found it.

        What could not be captured before is looked at in any case. The outcome is that of a walk, provided that nothing
        else changed, neither files nor rules.

        Raises:
            CaptureFailed: as `scan`.
        """
        branch = branch_out(touched | Touched(below=frozenset(gap.path for gap in previous.gaps)))
        if branch.whole:
            return self.scan()
        self._begin(anew=False)
        with self._open_root() as descriptor:
            if branch.look:
                self._list_again(descriptor, "", branch, self._top(), 0)
            else:
                self._descend(descriptor, "", branch, self._top(), 0)
            self._read_files(descriptor)
        scan = self._found(previous.gaps, previous.excluded)
        near_limit = scan.rows.files + len(scan.gaps) > self._limits.max_source_files
        return self.scan() if near_limit else scan

    @contextmanager
    def _open_root(self) -> Iterator[int]:
        try:
            descriptor = os.open(self._root, _DIRECTORY_FLAGS & ~os.O_NOFOLLOW)
            try:
                yield descriptor
            finally:
                os.close(descriptor)
        except OSError as error:
            raise CaptureFailed(self._root, f"the directory cannot be read ({error.strerror})") from error

    def _top(self) -> DirectoryRules:
        return self._rules.top(read_exclude(self._root))

    def _found(self, gaps: Sequence[Gap], excluded: frozenset[str]) -> Scan:
        """Return what was found, with what was found before of these, as far as it was not looked at again."""
        rows, changed = self._draft.finish()
        kept_gaps = [gap for gap in gaps if not self._is_forgotten(gap.path)]
        gone = {path for path in excluded if self._is_forgotten(path)}
        if gone != self._excluded:
            excluded = excluded - gone | self._excluded
        return Scan(
            rows if changed else self._before,
            changed,
            tuple(sorted([*kept_gaps, *self._gaps.values()], key=lambda gap: gap.path)),
            excluded,
            frozenset(self._linked),
        )

    def _is_forgotten(self, path: str) -> bool:
        listed = path.rpartition("/")[0] in self._listed
        return listed or not self._forgotten.isdisjoint((path, *iter_parents(path)))

    def _list(self, descriptor: int, path: str) -> list[os.DirEntry[str]]:
        if self._on_directory is not None:
            self._on_directory(descriptor, path)
        with os.scandir(descriptor) as listing:
            return list(listing)

    def _descend(self, descriptor: int, path: str, branch: Branch, rules: DirectoryRules, depth: int) -> None:
        """Look at what is touched in a directory that itself is as it was."""
        rules = with_gitignore(rules, descriptor, path)
        prefix = f"{path}/" if path else ""
        for name, child in branch.children.items():
            self._look_again(descriptor, prefix + name, name, child, rules, depth)

    def _look_again(
        self, directory: int, path: str, name: str, branch: Branch, rules: DirectoryRules, depth: int
    ) -> None:
        """Look at what stands at a path now, in place of what was found there before."""
        row = self._before.get(path)
        if row is not None and row.entry.kind is EntryKind.DIRECTORY and not branch.whole:
            inside = rules.enter(path, name)
            if inside is not None and self._reenter(directory, path, name, branch, inside, depth):
                return
            self._take_back(path)
        self._draft.remove(path)
        self._forgotten.add(path)
        try:
            status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        except FileNotFoundError:
            return
        except OSError as error:
            self._gap(path, GapReason.UNREADABLE, error.strerror or "")
            return
        self._entry(directory, path, name, status, rules, depth)

    def _reenter(self, parent: int, path: str, name: str, branch: Branch, rules: DirectoryRules, depth: int) -> bool:
        """Look at what is touched in a known directory; whether it still is the directory that it was."""
        try:
            descriptor = os.open(name, _DIRECTORY_FLAGS, dir_fd=parent)
        except OSError:
            return False
        try:
            if not branch.look:
                self._descend(descriptor, path, branch, rules, depth + 1)
                return True
            mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
            if not self._list_again(descriptor, path, branch, rules, depth + 1):
                return False
            self._put_directory(path, mode)
        except OSError:
            return False
        else:
            return True
        finally:
            os.close(descriptor)

    def _take_back(self, path: str) -> None:
        """Unsay what was found below a directory that then proved to be another one."""
        below = f"{path}/"
        self._gaps = {known: gap for known, gap in self._gaps.items() if not known.startswith(below)}
        self._excluded = {known for known in self._excluded if not known.startswith(below)}
        for directory in [known for known in self._unread if known == path or known.startswith(below)]:
            del self._unread[directory]

    def _list_again(self, descriptor: int, path: str, branch: Branch, rules: DirectoryRules, depth: int) -> bool:
        """Look at all of a directory but at known ones in it that are not touched; whether it still is source."""
        listing = {entry.name: entry for entry in self._list(descriptor, path)}
        if path and (".git" in listing or listing.keys() & VIRTUALENV_MARKERS):
            return False
        rules = with_gitignore(rules, descriptor, path)
        self._listed.add(path)
        prefix = f"{path}/" if path else ""
        for name in sorted(listing.keys() | self._before.inside(path).keys() | branch.children.keys()):
            child = branch.children.get(name, _LEAF)
            if child is _LEAF and name in listing and self._is_known_directory(prefix + name, listing[name]):
                continue
            self._look_again(descriptor, prefix + name, name, child, rules, depth)
        return True

    def _is_known_directory(self, path: str, entry: os.DirEntry[str]) -> bool:
        row = self._before.get(path)
        return row is not None and row.entry.kind is EntryKind.DIRECTORY and entry.is_dir(follow_symlinks=False)

    def _directory(
        self, descriptor: int, path: str, listing: list[os.DirEntry[str]], rules: DirectoryRules, depth: int
    ) -> None:
        if any(entry.name == GITIGNORE for entry in listing):
            rules = with_gitignore(rules, descriptor, path)
        prefix = f"{path}/" if path else ""
        before, rows, limit = self._before.inside(path), self._draft.own(path), self._limits.max_file_size_bytes
        for entry in listing:
            name = entry.name
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            except OSError as error:
                self._gap(prefix + name, GapReason.UNREADABLE, error.strerror or "")
                continue
            # The way of nearly every path of nearly every capture: known, and provably as it was.
            row = before.get(name)
            if row is not None and row.describes(status) and stat.S_ISREG(status.st_mode) and status.st_size <= limit:
                self._count_file()
                rows[name] = row
                if status.st_nlink > 1:
                    self._linked.add(prefix + name)
            else:
                self._entry(descriptor, prefix + name, name, status, rules, depth)

    def _entry(
        self, directory: int, path: str, name: str, status: os.stat_result, rules: DirectoryRules, depth: int
    ) -> None:
        """Judge and read what stands at a path."""
        row = self._before.get(path)
        if status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode):
            self._linked.add(path)
        if is_repository_part(name) or path == RESERVED:
            self._excluded.add(path)
        elif stat.S_ISDIR(status.st_mode):
            self._subdirectory(directory, path, name, status, rules, depth)
        elif not rules.admits(path, name):
            self._excluded.add(path)
        elif row is not None and self._proves(row, status):
            self._count_file()
            self._draft.put(path, row)
        else:
            self._leaf(directory, path, name, status)

    def _proves(self, row: Row, status: os.stat_result) -> bool:
        """Whether a row certainly still says what a regular file holds."""
        small = status.st_size <= self._limits.max_file_size_bytes
        return stat.S_ISREG(status.st_mode) and small and row.describes(status)

    def _leaf(self, directory: int, path: str, name: str, status: os.stat_result) -> None:
        if stat.S_ISREG(status.st_mode):
            self._file(path, name, status)
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
            self._excluded.add(path)
            return
        if depth >= _DEEPEST:
            self._gap(path, GapReason.UNREADABLE, f"nested deeper than {_DEEPEST} levels")
            return
        try:
            descriptor = os.open(name, _DIRECTORY_FLAGS, dir_fd=parent)
        except FileNotFoundError:
            return
        except OSError as error:
            self._unreadable_directory(path, status, error)
            return
        try:
            self._open_subdirectory(descriptor, path, stat.S_IMODE(status.st_mode), inside, depth)
        except OSError as error:
            self._unreadable_directory(path, status, error)
        finally:
            os.close(descriptor)

    def _open_subdirectory(self, descriptor: int, path: str, mode: int, rules: DirectoryRules, depth: int) -> None:
        listing = self._list(descriptor, path)
        names = {entry.name for entry in listing}
        if ".git" in names:
            self._draft.put(path, Row(Entry(EntryKind.REPOSITORY, 0, nested_commit(descriptor))))
            self._gap(path, GapReason.NESTED_REPOSITORY)
        elif names & VIRTUALENV_MARKERS and path not in self._rules.tracked.directories:
            self._excluded.add(path)
        else:
            self._put_directory(path, mode)
            self._directory(descriptor, path, listing, rules, depth + 1)

    def _unreadable_directory(self, path: str, status: os.stat_result, error: OSError) -> None:
        self._keep_below(path, stat.S_IMODE(status.st_mode))
        self._gap(path, GapReason.UNREADABLE, error.strerror or "")

    def _file(self, path: str, name: str, status: os.stat_result) -> None:
        self._count_file()
        if status.st_size > self._limits.max_file_size_bytes:
            limit = megabytes(self._limits.max_file_size_bytes)
            self._gap(path, GapReason.TOO_LARGE, f"{megabytes(status.st_size)}, the limit is {limit}")
            return
        self._unread.setdefault(path.rpartition("/")[0], {})[name] = status.st_size

    def _read_files(self, root: int) -> None:
        """Read the files whose contents are not known."""
        unread, self._unread = self._unread, {}
        for path, outcome in self._read(root, unread, self._limits.max_file_size_bytes):
            self._put_file(path, outcome)

    def _put_file(self, path: str, outcome: Outcome) -> None:
        if isinstance(outcome, Row):
            self._draft.put(path, outcome)
        elif outcome is None:
            self._gap(path, GapReason.CHANGING)
        elif not isinstance(outcome, FileNotFoundError):
            self._gap(path, GapReason.UNREADABLE, outcome.strerror or "")

    def _link(self, directory: int, path: str, name: str, status: os.stat_result) -> None:
        self._count_file()
        try:
            row = read_link(directory, name, status)
        except OSError:
            return
        self._draft.put(path, row)

    def _put_directory(self, path: str, mode: int) -> None:
        row = Row(Entry(EntryKind.DIRECTORY, mode, None))
        known = self._before.get(path)
        self._draft.put(path, known if known is not None and known == row else row)

    def _gap(self, path: str, reason: GapReason, detail: str = "") -> None:
        """Note a gap; what was captured of it before stays in the checkpoint, marked as older."""
        row = self._before.get(path)
        older = row is not None and row.entry.kind in _CONTENT_KINDS and row.entry.oid != LOST_OID
        if row is not None and older:
            self._draft.put(path, Row(row.entry, trusted=False, older=True))
        self._gaps[path] = Gap(path, reason, detail, older)

    def _keep_below(self, path: str, mode: int) -> None:
        """Keep what was captured below a directory that cannot be read now; its mode is known without reading it."""
        known = self._before.get(path)
        if known is not None and known.entry.kind is EntryKind.DIRECTORY:
            self._put_directory(path, mode)
        elif known is not None:
            self._draft.put(path, known)
        for below in self._before.iter_below(path):
            row = self._before[below]
            if self._draft.get(below) is None and row.entry.oid != LOST_OID:
                self._draft.put(below, Row(row.entry, trusted=False, older=True))

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
