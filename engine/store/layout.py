"""Where the store keeps what, and the smallest repair on opening: what is missing is made, nothing is deleted."""

import errno
import hashlib
import os
import re
import stat
import time
from dataclasses import dataclass

from engine.host.durable import write_bytes

REF_ROOT = "refs/takeback"
RESERVED = ".takeback"  # in a checkpoint's tree: what git's trees cannot say; in a workspace: never captured

_HEAD = b"ref: refs/heads/none\n"  # never born: no history of the store is anybody's branch
_CONFIG = b"""[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = true
\tlogAllRefUpdates = false
\tcompression = 1
\tcommitGraph = false
[gc]
\tauto = 0
\twriteCommitGraph = false
[repack]
\twriteBitmaps = false
[pack]
\tthreads = 2
\tcompression = 6
"""
_ATTRIBUTES = b"* -text -eol -ident -filter -working-tree-encoding\n"
_EXCLUDE = b"# What is source is decided by Takeback itself; git never looks at a workspace.\n"

_LEGACY_HASH = re.compile(r"[0-9a-f]{12,64}")


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths below one base directory."""

    base: str

    @property
    def store(self) -> str:
        """The bare repository that all workspaces share."""
        return os.path.join(self.base, "store")

    @property
    def last_prune(self) -> str:
        """The marker of the last prune."""
        return os.path.join(self.base, ".last_prune")

    @property
    def gc_pending(self) -> str:
        """The refs dropped since the last gc."""
        return os.path.join(self.store, ".gc-pending")

    @property
    def quarantine(self) -> str:
        """The names that led to nothing and were set aside."""
        return os.path.join(self.store, "quarantine.json")

    def project(self, workspace_hash: str) -> str:
        """The file that describes a workspace."""
        return os.path.join(self.store, "projects", f"{workspace_hash}.json")

    def index(self, workspace_hash: str) -> str:
        """The stat cache of a workspace."""
        return os.path.join(self.store, "indexes", workspace_hash)

    def ledger(self, workspace_hash: str) -> str:
        """The ledger of a workspace."""
        return os.path.join(self.store, "ledgers", f"{workspace_hash}.jsonl")

    def journal(self, workspace_hash: str) -> str:
        """The plan of a restore that is under way."""
        return os.path.join(self.store, "journal", f"{workspace_hash}.json")

    def running(self, workspace_hash: str, runner: str = "") -> str:
        """The note of a tool that is under way; ``runner`` names whose, an older note belongs to nobody."""
        suffix = f".{runner}" if runner else ""
        return os.path.join(self.store, "journal", f"{workspace_hash}.running{suffix}.json")

    def lock(self, workspace_hash: str) -> str:
        """The lock of a workspace."""
        return os.path.join(self.store, "journal", f"{workspace_hash}.lock")

    def has_base(self) -> bool:
        """Whether the base directory is there.

        Raises:
            OSError: it cannot be told, or something else stands there; that is no proof that there is none.
        """
        return _is_directory(self.base)

    def exists(self) -> bool:
        """Whether a store was ever made here.

        Raises:
            OSError: it cannot be told, or something else stands there; that is no proof that there is none.
        """
        return self.has_base() and _is_directory(self.store)

    def ensure(self) -> None:
        """Make what is missing: directories 0700, files 0600.

        Raises:
            OSError: the base cannot be written.
        """
        fresh = not os.path.isdir(self.store)
        os.makedirs(self.base, 0o700, exist_ok=True)
        if fresh:
            self._set_legacy_aside()
        for name in (
            "",
            "objects",
            "objects/info",
            "objects/pack",
            "refs",
            "info",
            "projects",
            "indexes",
            "ledgers",
            "journal",
        ):
            _ensure_directory(os.path.join(self.store, name))
        for name, content in (
            ("HEAD", _HEAD),
            ("config", _CONFIG),
            ("info/attributes", _ATTRIBUTES),
            ("info/exclude", _EXCLUDE),
        ):
            _ensure_content(os.path.join(self.store, name), content)

    def _set_legacy_aside(self) -> None:
        """Move the per-project repositories of the older layout to one dated directory."""
        older = [
            name
            for name in os.listdir(self.base)
            if _LEGACY_HASH.fullmatch(name) and os.path.isfile(os.path.join(self.base, name, "HEAD"))
        ]
        if not older:
            return
        aside = os.path.join(self.base, f"legacy-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}")
        os.makedirs(aside, 0o700, exist_ok=True)
        for name in older:
            os.rename(os.path.join(self.base, name), os.path.join(aside, name))


def real_base(base: str) -> str:
    """Return where a base really is: its goal is never made anew where it leads to a disk that is not mounted."""
    leads_nowhere = os.path.islink(base) and not os.path.exists(base)
    return os.path.abspath(base) if leads_nowhere else os.path.realpath(base)


def workspace_hash(root: str) -> str:
    """Return the name of a workspace in the store, from its absolute real path."""
    return hashlib.sha256(os.fsencode(root)).hexdigest()[:16]


def _is_directory(path: str) -> bool:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        if os.path.islink(path):  # it leads to a disk that is not mounted now
            raise
        return False
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
    return True


def _ensure_directory(path: str) -> None:
    if not os.path.isdir(path):
        os.makedirs(path, 0o700, exist_ok=True)
        os.chmod(path, 0o700)


def _ensure_content(path: str, content: bytes) -> None:
    try:
        with open(path, "rb") as stream:
            if stream.read() == content:
                return
    except FileNotFoundError:
        pass
    write_bytes(path, content)
