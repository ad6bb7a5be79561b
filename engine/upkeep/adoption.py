"""Making commits of ours out of foreign trees, and moving them with all they hold from one repository to another.

A foreign tree says nothing of permission bits, so files get those that stand in the workspace today. What stands there
and is in none of the foreign checkpoints was never captured by that software, so no restore to one may delete it.
"""

import json
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from engine.checkpoints.capture import encode_message
from engine.checkpoints.history import one_line
from engine.checkpoints.manifest import MODES_PATH, encode_modes, git_mode, iter_parents
from engine.errors import GitFailed
from engine.host.git import Git, GitProcess
from engine.host.paths import PathUnsafe, is_repository_part, validate
from engine.model import CheckpointKind, Entry, EntryKind, Gap, GapReason, Workspace
from engine.store.gaps import encode_gap
from engine.store.layout import RESERVED
from engine.store.objects import CommitContent, list_tree, open_writer
from engine.store.reader import COPY_BYTES, open_reader
from engine.store.rows import Row
from engine.upkeep.foreign import LeftOut
from engine.upkeep.heritage import Ancestor

_GITLINK = "160000"
_REGULAR = "100644"
_EXECUTABLE = "100755"
_SYMLINK = "120000"
_FALLBACKS = {_REGULAR: 0o644, _EXECUTABLE: 0o755}
_DIRECTORY_MODE = 0o755
_PERMISSIONS = 0o777  # no bit that lets a program run as somebody else is taken from a foreign store
_LONG_TIMEOUT_S = 1800.0
_NO_SUBJECT = "imported checkpoint"

Listing = Mapping[str, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Adopted:
    """A commit of ours that stands for a foreign checkpoint; ``number`` is the one it already has."""

    commit: str
    taken_at: datetime
    number: int | None = None


def adopt(
    scratch: Git, workspace: Workspace, source: str, ancestors: Sequence[Ancestor]
) -> tuple[list[Adopted], list[LeftOut]]:
    """Make a commit of ours of each of these checkpoints, in the scratch repository; return also what cannot be one.

    Raises:
        GitFailed, StoreDamaged: none was made that counts.
    """
    listings = [_listing(scratch, item) for item in ancestors]
    standing = _Standing(workspace.root)
    never_held = standing.never_held([listing for listing, _modes in listings])
    adopted: list[Adopted] = []
    left_out: list[LeftOut] = []
    with open_writer(scratch) as writer:
        for item, (listing, noted) in zip(ancestors, listings, strict=True):
            try:
                modes = encode_modes(standing.rows(listing)) if noted is None else _harmless(noted)
            except ValueError as error:
                left_out.append(
                    LeftOut(f"checkpoint {item.commit[:8]}", f"its permission bits cannot be read: {error}")
                )
                continue
            oid = writer.blob(len(modes), [modes])
            content = CommitContent(item.tree, [RESERVED], {MODES_PATH: (_REGULAR, oid or "")})
            meta = _meta(workspace, source, item, listing, never_held)
            name = f"refs/adopted/{workspace.hash}/{len(adopted):08d}"
            commit, _tree = writer.commit([name], encode_message(str(meta["reason"]), meta), item.at_s, content)
            adopted.append(Adopted(commit, datetime.fromtimestamp(item.at_s, UTC)))
    return adopted, left_out


def _listing(scratch: Git, item: Ancestor) -> tuple[Listing, bytes | None]:
    """Return what a foreign tree holds, and what a store of Takeback's own noted of permission bits."""
    listing = list_tree(scratch, item.tree)
    modes = listing.get(MODES_PATH)
    if modes is None:
        noted = None
    else:
        with open_reader(scratch) as reader:
            noted = reader.read(modes[1])
    return {path: entry for path, entry in listing.items() if path.partition("/")[0] != RESERVED}, noted


def _meta(
    workspace: Workspace, source: str, item: Ancestor, listing: Listing, never_held: Sequence[str]
) -> dict[str, object]:
    nested = [Gap(path, GapReason.NESTED_REPOSITORY) for path, (mode, _oid) in listing.items() if mode == _GITLINK]
    return {
        "kind": CheckpointKind.MANUAL.value,
        "reason": one_line(item.subject) or _NO_SUBJECT,
        "taken_at": datetime.fromtimestamp(item.at_s, UTC).isoformat(timespec="milliseconds"),
        "workdir": workspace.root,
        "turn": None,
        "ledger": 0,
        "restore_token": None,
        "replaced_head": None,
        "gaps": [encode_gap(gap) for gap in nested],
        "excluded": sorted(never_held),
        "imported": {"from": source, "commit": item.commit},
    }


def _harmless(noted: bytes) -> bytes:
    """Return permission bits as Takeback notes them, without those that let a program run as somebody else.

    Raises:
        ValueError: they are not what Takeback notes.
    """
    try:
        value = json.loads(noted)
        usual = {name: int(mode) & _PERMISSIONS for name, mode in value["usual"].items()}
        modes = {path: int(mode) & _PERMISSIONS for path, mode in value["modes"].items()}
        empty = [str(path) for path in value["empty"]]
        for path in (*modes, *empty):
            validate(path)
    except (KeyError, TypeError, AttributeError, RecursionError, PathUnsafe) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error
    return json.dumps({"usual": usual, "modes": modes, "empty": empty}, indent=1).encode("ascii")


class _Standing:
    """What stands in a workspace while its history is taken over; where nothing does, the usual holds."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._modes: dict[str, int] = {}

    def rows(self, listing: Listing) -> dict[str, Row]:
        """Return the entries of a foreign tree with the permission bits that stand there now, where they fit."""
        directories = {parent for path in listing for parent in iter_parents(path)}
        rows = {path: Row(Entry(EntryKind.DIRECTORY, self._directory(path), None)) for path in directories}
        for path, (mode_class, oid) in listing.items():
            if mode_class in _FALLBACKS:
                rows[path] = Row(self._file(path, mode_class, oid))
            else:
                kind = EntryKind.SYMLINK if mode_class == _SYMLINK else EntryKind.REPOSITORY
                rows[path] = Row(Entry(kind, 0, oid))
        return rows

    def _directory(self, path: str) -> int:
        mode = self._mode(path)
        return mode & _PERMISSIONS if stat.S_ISDIR(mode) else _DIRECTORY_MODE

    def _file(self, path: str, mode_class: str, oid: str) -> Entry:
        mode = self._mode(path)
        entry = Entry(EntryKind.FILE, mode & _PERMISSIONS, oid)
        if stat.S_ISREG(mode) and git_mode(entry) == mode_class:
            return entry
        return Entry(EntryKind.FILE, _FALLBACKS[mode_class], oid)

    def _mode(self, path: str) -> int:
        if path not in self._modes:
            try:
                self._modes[path] = os.lstat(os.path.join(self._root, path)).st_mode
            except OSError:
                self._modes[path] = 0
        return self._modes[path]

    def never_held(self, listings: Sequence[Listing]) -> list[str]:
        """Return what stands there and is in none of these trees, a directory for all below it."""
        held = {path for listing in listings for path in listing}
        directories = {parent for path in held for parent in iter_parents(path)}
        found = []
        pending = [""]
        while pending:
            above = pending.pop()
            for name, is_directory in _entries(os.path.join(self._root, above)):
                path = f"{above}/{name}" if above else name
                if is_directory and path in directories:
                    pending.append(path)
                elif path not in held and not is_repository_part(name):
                    found.append(path)
        return found


def _entries(path: str) -> list[tuple[str, bool]]:
    try:
        with os.scandir(path) as entries:
            return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    except OSError:
        return []


def transfer(source: Git, target: Git, commits: Sequence[str]) -> None:
    """Put commits with all they hold into another repository, as one pack; no name is made.

    Raises:
        GitFailed: nothing was put there.
    """
    arguments = ["pack-objects", "--revs", "--stdout", "--quiet", "--delta-base-offset"]
    with (
        source.open(arguments, timeout_s=_LONG_TIMEOUT_S) as packing,
        target.open(["index-pack", "--stdin"], timeout_s=_LONG_TIMEOUT_S) as indexing,
    ):
        # It reads all of its input before it writes a byte, so neither side can wait for the other.
        packing.stdin.write("".join(f"{commit}\n" for commit in commits).encode("ascii"))
        packing.stdin.close()
        while chunk := packing.stdout.read(COPY_BYTES):
            packing.advance()
            _feed(indexing, chunk)
        packing.finish()
        indexing.finish()


def _feed(process: GitProcess, chunk: bytes) -> None:
    try:
        process.stdin.write(chunk)
    except BrokenPipeError:
        process.finish()
        raise GitFailed("index-pack", "it ended before the pack did") from None
    process.advance()
