"""From the kernel's events to what has to be looked at again, whatever directories did meanwhile.

What a batch of events means does not depend on their order, nor on how often each came: every event only ever adds
to what is looked at, and watches are dropped when the whole batch is understood. A directory that is new at its place
is walked; one that left takes its watches with it, and gets new ones where it is found again.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from engine.checkpoints.source import VIRTUALENV_MARKERS
from engine.checkpoints.touched import Touched
from engine.host.watching import (
    ATTRIB,
    CREATE,
    DELETE,
    DELETE_SELF,
    IGNORED,
    IS_DIRECTORY,
    MOVE_SELF,
    MOVED_FROM,
    MOVED_TO,
    OVERFLOW,
    UNMOUNT,
    Event,
    WatchingImpossible,
)

# Files whose coming, going or content decides what else in their directory is source.
_DECISIVE = VIRTUALENV_MARKERS | {".git", ".gitignore"}


class Queue(Protocol):
    """What gives events; `engine.host.watching.Watcher` is one."""

    def add(self, descriptor: int) -> int:
        """Watch an open directory and return the watch, the same for the same directory."""

    def remove(self, watch: int) -> None:
        """Watch a directory no longer."""

    def drain(self) -> Iterable[Event]:
        """Give what is queued, to the end of the queue."""

    def close(self) -> None:
        """Give everything back."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What a batch of events means; ``files`` are those of the touched paths that are no directories."""

    touched: Touched
    files: tuple[str, ...] = ()


class Watches:
    """The watched directories of one workspace; not thread-safe.

    A watch can stand for several paths for a while: a directory that moved while it was looked for.
    """

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._paths: dict[int, set[str]] = {}
        self._watches: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._paths)

    def has_path(self, path: str) -> bool:
        """Whether a directory of this path is watched, be it this one or one that was there before."""
        return path in self._watches

    def add(self, descriptor: int, path: str) -> None:
        """Watch an open directory.

        Raises:
            WatchingImpossible: the kernel refuses.
        """
        watch = self._queue.add(descriptor)
        before = self._watches.get(path)
        if before == watch:
            return
        if before is not None:
            self._forget(path)
        self._watches[path] = watch
        self._paths.setdefault(watch, set()).add(path)

    def hear(self) -> Heard:
        """Read the queue to its end.

        Raises:
            WatchingImpossible: something was lost.
        """
        batch = _Batch()
        for event in self._queue.drain():
            if event.mask & OVERFLOW:
                raise WatchingImpossible("more happened at once than the system keeps")
            if event.mask & UNMOUNT:
                raise WatchingImpossible("a file system was unmounted")
            for path in self._paths.get(event.watch, ()):
                batch.add(path, event)
            if event.mask & IGNORED:
                batch.ended.add(event.watch)
        self._drop(batch)
        return Heard(Touched(frozenset(batch.paths), frozenset(batch.below)), tuple(batch.files))

    def close(self) -> None:
        """Watch nothing any more."""
        self._queue.close()

    def _drop(self, batch: "_Batch") -> None:
        for watch in batch.ended:
            for path in self._paths.pop(watch, ()):
                if self._watches.get(path) == watch:
                    del self._watches[path]
        if batch.left:
            for path in [path for path in self._watches if _is_within(path, batch.left)]:
                self._forget(path)

    def _forget(self, path: str) -> None:
        watch = self._watches.pop(path)
        paths = self._paths.get(watch, set())
        paths.discard(path)
        if not paths:
            self._paths.pop(watch, None)
            self._queue.remove(watch)


class _Batch:
    def __init__(self) -> None:
        self.paths: set[str] = set()
        self.below: set[str] = set()
        self.files: dict[str, None] = {}
        self.left: set[str] = set()
        self.ended: set[int] = set()

    def add(self, directory: str, event: Event) -> None:
        if not event.name:
            self._add_self(directory, event.mask)
            return
        path = f"{directory}/{event.name}" if directory else event.name
        self.paths.add(path)
        if event.mask & IS_DIRECTORY:
            if event.mask & (MOVED_FROM | DELETE):
                self.left.add(path)
            if event.mask & (CREATE | MOVED_TO | ATTRIB):
                self.below.add(path)
        else:
            self.files.pop(path, None)
            self.files[path] = None
        if event.name in _DECISIVE:
            self.below.add(directory)

    def _add_self(self, directory: str, mask: int) -> None:
        """What happens to a directory itself; its parent tells of its coming and going, but perhaps was not watched."""
        if not directory and mask & (MOVE_SELF | DELETE_SELF | IGNORED):
            raise WatchingImpossible("the workspace's directory was moved or removed")
        if mask & (ATTRIB | MOVE_SELF | DELETE_SELF | IGNORED):
            self.below.add(directory)


def _is_within(path: str, directories: set[str]) -> bool:
    while path:
        if path in directories:
            return True
        path = path.rpartition("/")[0]
    return False
