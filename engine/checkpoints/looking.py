"""Looking at a workspace for a capture at the price of what changed: by the change feed, the sieve, or a walk.

What the last look found is remembered with everything beside the files that decided it. As long as that is the same,
only what is touched has to be looked at again; whatever is not certain is walked.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace

from engine.checkpoints.feed import WorkspaceFeed
from engine.checkpoints.found import Scan
from engine.checkpoints.manifest import iter_parents
from engine.checkpoints.reading import read_files
from engine.checkpoints.scan import ReadFiles, Scanner
from engine.checkpoints.sieve import keep_sieve, sift
from engine.checkpoints.source import SourceRules, Tracked
from engine.checkpoints.touched import EVERYTHING, NOTHING, Touched
from engine.checkpoints.tracked import index_stamp, read_exclude, read_tracked
from engine.model import Limits, Workspace
from engine.store.index import Index
from engine.store.opened import Store

# Beyond this many paths that are judged by other rules than before, a walk is as good.
_MOST_REJUDGED = 2000


@dataclass(frozen=True, slots=True)
class Circumstances:
    """All that decides, beside the files, what a look finds."""

    tracked: Tracked
    forced: frozenset[str]
    exclude: bytes
    limits: Limits
    own: frozenset[tuple[int, int]]

    def rejudged(self, before: "Circumstances") -> Touched | None:
        """Return what is judged by other rules than before, ``None`` where that can be anything."""
        if (self.exclude, self.limits, self.own) != (before.exclude, before.limits, before.own):
            return None
        paths = self.forced ^ before.forced
        below: frozenset[str] = frozenset()
        if self.tracked is not before.tracked:
            paths |= self.tracked.files ^ before.tracked.files
            below = self.tracked.directories ^ before.tracked.directories
        return Touched(paths, below) if len(paths) + len(below) <= _MOST_REJUDGED else None


@dataclass(frozen=True, slots=True)
class Seen:
    """What the last look found, as the index that was made of it, and under which circumstances.

    ``linked`` are all files that have several names, whichever look found them.
    """

    index: Index
    scan: Scan
    circumstances: Circumstances
    linked: frozenset[str] = frozenset()


class Look:
    """One look at a workspace, to be settled by `succeeded` or `failed`.

    Args:
        store: the store.
        workspace: what to look at.
        before: the index that mirrors the base, whose rows are built upon.
        own: device and inode of Takeback's own directories.
        forced: files a tool named, captured even where rules hide them.
        feed: what tells of changes.
        also: what is to be looked at whatever the feed says.
        read: reads the files that have to be read.
    """

    def __init__(
        self,
        store: Store,
        workspace: Workspace,
        before: Index,
        own: frozenset[tuple[int, int]],
        forced: frozenset[str],
        *,
        feed: WorkspaceFeed | None = None,
        also: Touched = NOTHING,
        read: ReadFiles = read_files,
    ) -> None:
        self._store = store
        self._workspace = workspace
        self._before = before
        self._feed = feed
        self._read = read
        self._now = _circumstances(store, workspace, own, forced)
        self._taken = None if feed is None else feed.take(before.base)
        self._began_ns = time.time_ns()
        trusted = self._taken is not None and also != EVERYTHING
        self._again = self._what_again((self._taken or NOTHING) | also) if trusted else None
        self._whole = self._again is None
        self._scan: Scan | None = None

    def scan(self) -> Scan:
        """Look.

        Raises:
            CaptureFailed: the root cannot be read, or there are more source files than the limit.
        """
        parents = {parent for path in self._now.forced for parent in iter_parents(path)}
        rules = SourceRules(self._now.tracked, self._before.rows, self._now.forced, frozenset(parents))
        tell = None if self._feed is None else self._feed.watch
        limits, own = self._workspace.limits, self._now.own
        scanner = Scanner(self._workspace.root, self._before.rows, rules, limits, own, tell, read=self._read)
        found = None if self._whole else self._scanned(scanner)
        if found is None or self._has_new_links(found):
            self._whole = True
            self._again = self._sifted()
            found = self._scanned(scanner)
        self._scan = found
        return found

    def _scanned(self, scanner: Scanner) -> Scan:
        seen = self._seen()
        return scanner.scan() if seen is None or self._again is None else scanner.rescan(seen.scan, self._again)

    def _has_new_links(self, scan: Scan) -> bool:
        """Whether a file got another name: the feed told of that one alone, so the file's other rows may be old."""
        seen = self._seen()
        return seen is None or not scan.linked <= seen.linked

    def succeeded(self, index: Index) -> None:
        """Note that what was seen has become an index, on which the next look can build."""
        if self._scan is None:
            return
        seen, walked = self._seen(), self._again is None
        linked = self._scan.linked if walked or seen is None else self._scan.linked | seen.linked
        self._store.remembered(self._workspace).seen = Seen(index, self._scan, self._now, linked)
        if self._whole:
            keep_sieve(self._store, self._workspace, self._scan, self._began_ns)
        if self._feed is None:
            return
        if self._whole:
            self._feed.scanned(index.base, linked, walked=walked)
        else:
            self._feed.keep(index.base, linked)

    def failed(self) -> None:
        """Note that nothing came of it: what the feed told has to be told again."""
        if self._feed is not None and self._taken is not None:
            self._feed.put_back(self._taken)

    def _seen(self) -> Seen | None:
        """Return what the last look found, if that is what is built upon."""
        seen = self._store.remembered(self._workspace).seen
        return seen if isinstance(seen, Seen) and seen.index is self._before else None

    def _sifted(self) -> Touched | None:
        """Return what to look at again so that everything was looked at, ``None`` where only a walk can tell."""
        rejudged = self._what_again(Touched())
        if rejudged is None:
            return None
        touched = sift(self._store, self._workspace, self._before.rows, self._feed)
        return None if touched is None else touched | rejudged

    def _what_again(self, touched: Touched) -> Touched | None:
        seen = self._seen()
        rejudged = None if seen is None else self._now.rejudged(seen.circumstances)
        return None if rejudged is None else touched | rejudged


def build_on(store: Store, workspace: Workspace, before: Index, after: Index, feed: WorkspaceFeed | None) -> None:
    """Note that an index was made from the last one by what a tool did, without a look."""
    seen = store.remembered(workspace).seen
    if isinstance(seen, Seen) and seen.index is before:
        store.remembered(workspace).seen = replace(seen, index=after, scan=replace(seen.scan, rows=after.rows))
        if feed is not None:
            feed.keep(after.base)


def _circumstances(
    store: Store, workspace: Workspace, own: frozenset[tuple[int, int]], forced: Iterable[str]
) -> Circumstances:
    known = store.remembered(workspace)
    stamp = index_stamp(workspace.root)
    if known.tracked is None or known.tracked_stamp != stamp:
        known.tracked = read_tracked(store.git, workspace.root) if stamp else Tracked()
        known.tracked_stamp = stamp
    return Circumstances(known.tracked, frozenset(forced), read_exclude(workspace.root), workspace.limits, own)
