"""What the product is compared with: plain git with an index that it keeps, and the sequence of the usual checkpointer.

Both work on a bare repository of their own beside the tree, as the product does, and run git alone: no chat, no
service and no ledger, so that what they take is the least that their way of working can take.
"""

import os
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.bench.speed.work import Taken, Work

_NAMES = ("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME")
_MAILS = ("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL")
_REF = "refs/checkpoints/one"


class Repository:
    """A bare repository whose work tree is the measured tree."""

    def __init__(self, directory: Path, tree: Path) -> None:
        self.directory = directory
        self.tree = tree
        self.started = 0
        self.last: str | None = None
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": "/nonexistent",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_INDEX_FILE": str(directory / "kept-index"),
            **dict.fromkeys(_NAMES, "Bench"),
            **dict.fromkeys(_MAILS, "bench@localhost"),
        }
        subprocess.run(["git", "init", "-q", "--bare", str(directory)], env=self._environment, check=True)

    def git(self, *arguments: str) -> str:
        """Run git and return what it said."""
        self.started += 1
        command = ["git", f"--git-dir={self.directory}", f"--work-tree={self.tree}", "-c", "core.bare=false"]
        done = subprocess.run(
            [*command, *arguments], cwd=self.tree, env=self._environment, check=True, capture_output=True
        )
        return done.stdout.decode("utf-8", "replace").strip()

    def commit(self) -> str:
        """Make what the index holds the last checkpoint."""
        tree = self.git("write-tree")
        parents = ["-p", self.last] if self.last else []
        self.last = self.git("commit-tree", tree, *parents, "-m", "before a change")
        self.git("update-ref", _REF, self.last)
        return self.last

    def store_bytes(self) -> int:
        """Return what the disk holds for it."""
        return disk_bytes(self.directory)


class Plain:
    """Git as it is best: an index that is kept with its stat data, ``add -A`` on top of it."""

    name = "plain git, kept index"

    def __init__(self, repository: Repository) -> None:
        self.repository = repository

    def capture(self, *, changed: bool) -> None:
        """Take the state in; a commit only where something changed."""
        self.repository.git("add", "-A")
        if changed or self.repository.last is None:
            self.repository.commit()
        else:
            self.repository.git("write-tree")


class Usual:
    """The sequence of the checkpointer that people use today: the index is read anew from the last commit each time."""

    name = "usual sequence"

    def __init__(self, repository: Repository) -> None:
        self.repository = repository

    def capture(self, *, changed: bool) -> None:
        """Take the state in."""
        repository = self.repository
        if repository.last is not None:
            repository.git("read-tree", repository.last)
        repository.git("add", "-A")
        repository.git("ls-files", "--stage")
        if repository.last is not None:
            repository.git("diff-index", "--cached", "--name-only", repository.last)
        if changed or repository.last is None:
            repository.commit()


Peer = Plain | Usual


def measure(peer: Peer, edited: str, churn: Callable[[], None] | None, runs: int) -> Taken:
    """Do everything that a peer can do, so many times each."""
    taken = Taken()
    repository = peer.repository
    timed(taken, repository, Work.FIRST, lambda: peer.capture(changed=True))
    taken.store_bytes = repository.store_bytes()
    file = repository.tree / edited
    for number in range(runs):
        file.write_text(f"peer {number}\n")
        timed(taken, repository, Work.TURN, lambda: peer.capture(changed=True))
        timed(taken, repository, Work.NOTHING, lambda: peer.capture(changed=False))
    log = ("log", "-20", "--shortstat", "--format=%h %ci %s", _REF)
    for number in range(runs):
        timed(taken, repository, Work.LIST, lambda: repository.git(*log))
        before = str(repository.last)
        file.write_text(f"peer again {number}\n")
        timed(taken, repository, Work.DIFF, partial(_diff, peer, before))
        timed(taken, repository, Work.RESTORE, partial(_restore, peer, before))
    if churn is not None:
        for _ in range(max(1, runs // 4)):
            timed(taken, repository, Work.CHURN, lambda: (churn(), peer.capture(changed=True)))
    return taken


def timed(taken: Taken, repository: Repository, work: Work, do: Callable[[], object]) -> None:
    """Do a piece of work once and note how long it took and how many processes it started."""
    started, began = repository.started, time.perf_counter()
    do()
    taken.add(work, time.perf_counter() - began)
    taken.processes[work] = repository.started - started


def _diff(peer: Peer, before: str) -> None:
    peer.capture(changed=False)
    peer.repository.git("diff", "--cached", "--stat", before)
    peer.repository.git("diff", "--cached", before)


def _restore(peer: Peer, before: str) -> None:
    peer.capture(changed=True)
    peer.repository.git("checkout", "-q", before, "--", ".")


def disk_bytes(directory: Path) -> int:
    """Return what the files below a directory take on the disk, in whole blocks."""
    return sum(
        os.lstat(os.path.join(parent, name)).st_blocks * 512
        for parent, _directories, names in os.walk(directory)
        for name in names
    )
