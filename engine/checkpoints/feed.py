"""The change feed: what was touched in a workspace since the last capture, heard from the kernel while nobody looked.

It is trusted between captures of one process, never longer than `TRUSTED_S` after the last look at everything, and only
where nothing can have gone by unheard. A full queue, an unmounted or newly mounted file system, one that is not known
to tell everything, too few watches, another process's capture or a directory exchanged under its name: each makes
`take` answer ``None``, and watching begins anew while whoever asked looks for himself.

What can stay unheard until the next look at everything, and why that is bearable: a file written through a mapping
that nobody wrote to otherwise, until the mapping ends; a file that got a second name outside the workspace since the
last look, written through that name. Both are looked at when a tool names them, and before a restore, which always
looks at everything.
"""

import logging
import threading
import time
from collections.abc import Callable, Hashable, Iterable

from engine.checkpoints.hearing import Heard, Watches
from engine.checkpoints.touched import NOTHING, Touched
from engine.host.mounts import STRICT_KINDS, Ground, find_ground
from engine.host.watching import Watcher, WatchingImpossible, read_limit
from engine.model import Workspace

TRUSTED_S = 600.0
"""How long after a look at everything the feed is believed, in seconds."""

_MOST_RECENT = 256  # paths; each costs a stat per capture
_MOST_LINKED = 2000  # beyond, looking at all of them each time is no gain over looking at everything
_SHARE = 2  # other programs of the same user watch, too: half of what the machine allows is theirs
_INSTANCES_SHARE = 4
_USUAL_WATCHES = 8192  # the limits of old kernels, for where they cannot be read
_USUAL_INSTANCES = 128

_LOG = logging.getLogger(__name__)


class Feed:
    """The feeds of all workspaces of an engine; thread-safe.

    Args:
        enabled: whether it is to be used at all.
        most_watches: how many directories may be watched at once; by default a share of what the machine allows.
        make_watcher: gives a fresh queue.
        ground: says what a directory stands on.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        *,
        enabled: bool = True,
        most_watches: int | None = None,
        make_watcher: Callable[[], Watcher] = Watcher,
        ground: Callable[[str], Ground | None] = find_ground,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.enabled = enabled
        self.make_watcher = make_watcher
        self.ground = ground
        self.clock = clock
        self.lock = threading.RLock()
        self._most = most_watches or read_limit("max_user_watches", _USUAL_WATCHES) // _SHARE
        self._most_instances = max(1, read_limit("max_user_instances", _USUAL_INSTANCES) // _INSTANCES_SHARE)
        self._feeds: dict[str, WorkspaceFeed] = {}  # the least recently used first

    def of(self, workspace: Workspace) -> "WorkspaceFeed":
        """Return the feed of a workspace."""
        with self.lock:
            feed = self._feeds.pop(workspace.hash, None) or WorkspaceFeed(self, workspace.root)
            self._feeds[workspace.hash] = feed
            return feed

    def hindrance(self, root: str) -> str | None:
        """Return why changes below a directory cannot be listened to, as far as that is known without trying."""
        try:
            self.judged_ground(root)
            self.make_watcher().close()
        except WatchingImpossible as refusal:
            return refusal.why
        return None

    def judged_ground(self, root: str) -> Ground:
        """Return what a directory stands on.

        Raises:
            WatchingImpossible: not everything that happens there would be heard of.
        """
        ground = self.ground(root)
        if ground is None:
            raise WatchingImpossible("the system does not say what it is mounted on")
        silent = ground.kinds - STRICT_KINDS
        if silent:
            raise WatchingImpossible(f"not all changes on {', '.join(sorted(silent))} would be heard of")
        if ground.files:
            # What happens to it is told to the directory that it is from.
            raise WatchingImpossible(f"a file is mounted over {ground.files[0]}")
        if ground.layers:
            raise WatchingImpossible(f"it is an overlay, and what changes in {ground.layers[0]} would not be heard of")
        return ground

    def close(self) -> None:
        """Watch nothing any more, for good."""
        with self.lock:
            self.enabled = False
            for feed in self._feeds.values():
                feed.rest("")
            self._feeds.clear()

    def make_room(self, wanting: "WorkspaceFeed", watches: int) -> None:
        """Have workspaces that were not used for longest give back what another one needs.

        Raises:
            WatchingImpossible: it needs more than there may be.
        """
        others = [feed for feed in self._feeds.values() if feed is not wanting and feed.watching]
        while others and (
            len(others) >= self._most_instances
            or wanting.watched + watches + sum(feed.watched for feed in others) > self._most
        ):
            others.pop(0).rest("its watches were given to another workspace")
        if wanting.watched + watches > self._most:
            raise WatchingImpossible(
                f"it has more than {self._most:,} directories to watch (see sysctl fs.inotify.max_user_watches)"
            )


class WorkspaceFeed:
    """The feed of one workspace.

    A capture takes what was touched; where that is ``None`` it looks at everything itself, with `watch` called for
    each directory before it is listed, and says `scanned` when that ended well.
    """

    def __init__(self, feed: Feed, root: str) -> None:
        self._feed = feed
        self._root = root
        self._watches: Watches | None = None
        self._ground: Ground | None = None
        self._basis: Hashable = None
        self._scanned_at: float | None = None
        self._covered = False
        self._rest_until = 0.0
        self._waiting = Touched()
        self._linked: frozenset[str] = frozenset()
        self._recent: dict[str, None] = {}
        self.why: str | None = None

    @property
    def watching(self) -> bool:
        """Whether it has a queue."""
        return self._watches is not None

    @property
    def watched(self) -> int:
        """How many directories it watches."""
        return 0 if self._watches is None else len(self._watches)

    def take(self, basis: Hashable = None) -> Touched | None:
        """Return what was touched since the last capture, ``None`` where everything has to be looked at.

        ``basis`` names what the answer will be put on top of; it has to be what `scanned` or the last `keep` was told.
        """
        with self._feed.lock:
            try:
                heard = self._listen(basis)
            except WatchingImpossible as loss:
                self._begin_anew(loss.why)
                return None
            self._remember(heard)
            touched = self._waiting | Touched(self._linked.union(self._recent))
            self._waiting = Touched()
            return touched

    def has_heard(self, basis: Hashable) -> bool:
        """Whether anything happened since the last capture, which is named as in `take`.

        Where nothing can be heard, nothing has been; where something went by unheard, it may have been anything.
        """
        with self._feed.lock:
            if self._watches is None or self._scanned_at is None or basis != self._basis:
                return False
            try:
                heard = self._listen(basis)
            except WatchingImpossible as loss:
                self.rest(loss.why)
                return True
            self._remember(heard)
            return heard.touched != NOTHING

    def put_back(self, touched: Touched) -> None:
        """Keep what a capture took for the next one, because it failed."""
        with self._feed.lock:
            self._waiting |= touched

    def keep(self, basis: Hashable, linked: Iterable[str] = ()) -> None:
        """Note what the next answer will be put on top of, and more files that have several names."""
        with self._feed.lock:
            self._basis = basis
            self._linked = self._linked.union(linked)

    def watch(self, descriptor: int, path: str) -> None:
        """Watch a directory that is about to be listed."""
        with self._feed.lock:
            if self._watches is None:
                return
            try:
                if not self._watches.has_path(path):
                    self._feed.make_room(self, 1)
                self._watches.add(descriptor, path)
            except WatchingImpossible as refusal:
                self.rest(refusal.why)
                self._rest_until = self._feed.clock() + TRUSTED_S

    def cover(self, directories: Iterable[tuple[int, str]]) -> None:
        """Watch all known directories, open and with their paths, before they are looked at other than by a walk."""
        for descriptor, path in directories:
            self.watch(descriptor, path)
        self._covered = self._watches is not None

    def needs_cover(self) -> bool:
        """Whether `cover` has to come before trust can."""
        return self._watches is not None and not self._covered

    def scanned(self, basis: Hashable = None, linked: Iterable[str] = (), *, walked: bool) -> None:
        """Note that everything was looked at since `take` said ``None``: from here on the feed is trusted.

        ``linked`` are all files that have several names. ``walked`` says that every directory was listed, each after
        `watch`; otherwise they have to be covered.
        """
        with self._feed.lock:
            if self._watches is None or not (walked or self._covered):
                return
            self._covered = True
            self._basis = basis
            self._linked = frozenset(linked)
            self._scanned_at = self._feed.clock()
            self.why = None
            if len(self._linked) > _MOST_LINKED:
                self.rest(f"more than {_MOST_LINKED:,} of its files have several names")
                self._rest_until = self._feed.clock() + TRUSTED_S

    def rest(self, why: str) -> None:
        """Watch nothing until the next `take`, which answers ``None``."""
        with self._feed.lock:
            if self._watches is not None:
                self._watches.close()
            self._watches = None
            self._scanned_at = None
            self._covered = False
            self._waiting = Touched()
            self._say(why)

    def _listen(self, basis: Hashable) -> Heard:
        """Return what the queue holds.

        Raises:
            WatchingImpossible: it cannot be trusted.
        """
        if self._watches is None or self._scanned_at is None:
            raise WatchingImpossible(self.why or "")
        if self._feed.clock() - self._scanned_at > TRUSTED_S:
            raise WatchingImpossible("")
        if basis != self._basis:
            raise WatchingImpossible("")
        # The order matters: what is mounted before the queue is read is either seen here or heard there.
        heard = self._watches.hear()
        if self._feed.ground(self._root) != self._ground:
            raise WatchingImpossible("another directory or file system is there now")
        return heard

    def _begin_anew(self, why: str) -> None:
        """Start with an empty queue and no watch; what happens from here on is heard once directories are watched."""
        again = self._rest_until > self._feed.clock()
        self.rest(why or (self.why or "" if again else ""))
        if again or not self._feed.enabled:
            return
        try:
            self._ground = self._feed.judged_ground(self._root)
            self._feed.make_room(self, 0)
            self._watches = Watches(self._feed.make_watcher())
        except WatchingImpossible as refusal:
            self._say(refusal.why)

    def _remember(self, heard: Heard) -> None:
        """Keep the files touched last: one that is mapped is changed without a sound."""
        for path in heard.files:
            self._recent.pop(path, None)
            self._recent[path] = None
        for path in list(self._recent)[: max(len(self._recent) - _MOST_RECENT, 0)]:
            del self._recent[path]
        self._waiting |= heard.touched

    def _say(self, why: str) -> None:
        if why and why != self.why:
            _LOG.info("changes in %s are looked for, not listened to: %s", self._root, why)
        self.why = why or None
