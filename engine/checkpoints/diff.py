"""Comparisons for people: totals, a line per file, and the patch between two captures."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.checkpoints.manifest import iter_parents
from engine.host.git import Git, GitProcess
from engine.model import ChangeStats, DiffResult, Gap
from engine.store.layout import RESERVED

LARGEST_PATCH_BYTES = 4 * 1024 * 1024

_WITHOUT_RESERVED = f":(exclude,top,literal){RESERVED}"
_EVERYTHING = ":(top)"
_STAT_WIDTH = "--stat=100,70,400"
# A quarter of the stack's limit is what a command line may take on Linux, 128 KB of it always (execve(2)).
_LARGEST_LIST_BYTES = 96 * 1024
_POINTER_BYTES = 9  # and the NUL
_FLAGS = ("--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--submodule=short")


@dataclass(slots=True)
class _Shown:
    """What has been read of a comparison: its totals, its lines per file, and the patch."""

    files: int = 0
    insertions: int = 0
    deletions: int = 0
    lists: int = 0
    lines: list[bytes] = field(default_factory=list)
    total: bytes = b""
    patch: bytes = b""

    def stats(self) -> ChangeStats:
        return ChangeStats(self.files, self.insertions, self.deletions)

    def count(self, line: bytes) -> None:
        added, removed, _name = line.split(b"\t", 2)
        self.files += 1
        self.insertions += int(added) if added != b"-" else 0
        self.deletions += int(removed) if removed != b"-" else 0


def change_stats(git: Git, old: str, new: str, selection: Sequence[str] = (), *, literal: bool = False) -> ChangeStats:
    """Return how much differs between two commits or trees."""
    shown = _Shown()
    for specs in _specs(selection, literal=literal):
        out = git.run(["diff-tree", "-r", "--numstat", *_FLAGS, old, new, "--", *specs], literal_pathspecs=False)
        for line in out.splitlines():
            shown.count(line)
    return shown.stats()


def _show(git: Git, old: str, new: str, selection: Sequence[str], *, literal: bool) -> _Shown:
    """Compare, with one process per list of paths for all there is to show."""
    shown = _Shown()
    for specs in _specs(selection, literal=literal):
        with git.open(["diff-tree", "-r", "--numstat", _STAT_WIDTH, "-p", *_FLAGS, old, new, "--", *specs]) as process:
            process.stdin.close()
            _read_lines(process, shown)
            shown.patch += process.stdout.read(LARGEST_PATCH_BYTES + 1 - len(shown.patch))
            if len(shown.patch) > LARGEST_PATCH_BYTES:
                process.kill()  # the lists that follow are counted all the same
            else:
                process.finish()
    return shown


def _read_lines(process: GitProcess, shown: _Shown) -> None:
    """Read what comes before the patch: counts, then lines for people that begin with a space, then an empty one."""
    line = b""
    for raw in process.stdout:
        process.advance()
        line = raw.rstrip(b"\n")
        if not line:
            break
        if line.startswith(b" "):
            shown.lines.append(line)
        else:
            shown.count(line)
    if shown.lines:
        shown.total = shown.lines.pop()
        shown.lists += 1


def _stat_text(shown: _Shown) -> str:
    """Return a line per file and a line with the totals."""
    total = shown.total
    if shown.lists > 1:
        sums = f" {shown.files} files changed, {shown.insertions} insertions(+), {shown.deletions} deletions(-)"
        total = sums.encode("ascii")
    return _text(b"\n".join([*shown.lines, total])) if shown.lists else ""


def _patch_text(shown: _Shown) -> str:
    """Return the patch, cut after `LARGEST_PATCH_BYTES` with a line that says so.

    Nothing in it is escaped, so that it still is a patch: bytes that are no UTF-8 are surrogates (``surrogateescape``).
    """
    if len(shown.patch) <= LARGEST_PATCH_BYTES:
        return shown.patch.decode("utf-8", "surrogateescape")
    whole_lines = shown.patch[:LARGEST_PATCH_BYTES].rpartition(b"\n")[0].decode("utf-8", "surrogateescape")
    return f"{whole_lines}\n… the diff is longer than {LARGEST_PATCH_BYTES // (1024 * 1024)} MB and was cut here\n"


def _specs(selection: Sequence[str], *, literal: bool) -> list[list[str]]:
    """Return the pathspecs, exact paths in as many lists as it takes for each to fit on a command line."""
    if not literal or not selection:
        return [[*(selection or [_EVERYTHING]), _WITHOUT_RESERVED]]
    chosen = set(selection)
    lists: list[list[str]] = []
    room = 0
    for path in selection:
        if not chosen.isdisjoint(iter_parents(path)):  # a directory in another list brings it already
            continue
        spec = f":(top,literal){path}"
        size = len(os.fsencode(spec)) + _POINTER_BYTES
        if size > room:
            lists.append([_WITHOUT_RESERVED])
            room = _LARGEST_LIST_BYTES
        lists[-1].append(spec)
        room -= size
    return lists


def _text(raw: bytes) -> str:
    """Return text that any chat can show: bytes that are no UTF-8 as escapes, no control characters but line ends."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", raw.decode("utf-8", "backslashreplace"))


_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)")


def compare(
    git: Git,
    title: str,
    old: str,
    new: str,
    selection: Sequence[str],
    gaps: tuple[Gap, ...],
    *,
    literal: bool = False,
) -> DiffResult:
    """Compare two trees as people see it: totals, a line per file, and the patch."""
    if old == new:
        return DiffResult(title, ChangeStats(0, 0, 0), "", "", gaps)
    shown = _show(git, old, new, selection, literal=literal)
    return DiffResult(title, shown.stats(), _stat_text(shown), _patch_text(shown), gaps)
