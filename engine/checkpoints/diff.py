"""Comparisons for people: totals, a line per file, and the patch between two captures."""

import os
import re
from collections.abc import Sequence

from engine.checkpoints.manifest import iter_parents
from engine.host.git import Git
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


def change_stats(git: Git, old: str, new: str, selection: Sequence[str] = (), *, literal: bool = False) -> ChangeStats:
    """Return how much differs between two commits or trees."""
    files = insertions = deletions = 0
    for specs in _specs(selection, literal=literal):
        out = git.run(["diff-tree", "-r", "--numstat", *_FLAGS, old, new, "--", *specs], literal_pathspecs=False)
        for line in out.splitlines():
            added, removed, _name = line.split(b"\t", 2)
            files += 1
            insertions += int(added) if added != b"-" else 0
            deletions += int(removed) if removed != b"-" else 0
    return ChangeStats(files, insertions, deletions)


def stat_text(git: Git, old: str, new: str, selection: Sequence[str] = (), *, literal: bool = False) -> str:
    """Return a line per file and a line with the totals."""
    parts = [
        _text(git.run(["diff-tree", "-r", _STAT_WIDTH, *_FLAGS, old, new, "--", *specs], literal_pathspecs=False))
        for specs in _specs(selection, literal=literal)
    ]
    if len(parts) == 1:
        return parts[0].rstrip("\n")
    stats = change_stats(git, old, new, selection, literal=literal)
    total = f" {stats.files} files changed, {stats.insertions} insertions(+), {stats.deletions} deletions(-)"
    return "\n".join([*(line for part in parts for line in part.splitlines()[:-1]), total])


def patch_text(git: Git, old: str, new: str, selection: Sequence[str] = (), *, literal: bool = False) -> str:
    """Return the patch, cut after `LARGEST_PATCH_BYTES` with a line that says so.

    Nothing in it is escaped, so that it still is a patch: bytes that are no UTF-8 are surrogates (``surrogateescape``).
    """
    out = b""
    for specs in _specs(selection, literal=literal):
        with git.open(["diff-tree", "-r", "-p", *_FLAGS, old, new, "--", *specs]) as process:
            process.stdin.close()
            out += process.stdout.read(LARGEST_PATCH_BYTES + 1 - len(out))
            if len(out) > LARGEST_PATCH_BYTES:
                process.kill()
                break
            process.finish()
    else:
        return out.decode("utf-8", "surrogateescape")
    whole_lines = out[:LARGEST_PATCH_BYTES].rpartition(b"\n")[0].decode("utf-8", "surrogateescape")
    return f"{whole_lines}\n… the diff is longer than {LARGEST_PATCH_BYTES // (1024 * 1024)} MB and was cut here\n"


def joined_gaps(gaps: Sequence[Gap], more: Sequence[Gap]) -> tuple[Gap, ...]:
    """Return the gaps of both, of one path the first."""
    known = {gap.path for gap in gaps}
    return (*gaps, *(gap for gap in more if gap.path not in known))


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
        return DiffResult(title, change_stats(git, old, new), "", "", gaps)
    return DiffResult(
        title,
        change_stats(git, old, new, selection, literal=literal),
        stat_text(git, old, new, selection, literal=literal),
        patch_text(git, old, new, selection, literal=literal),
        gaps,
    )
