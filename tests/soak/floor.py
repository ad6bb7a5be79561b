"""The size below which no rule can bring a store: found by building the store that the rules leave, and measuring it.

It knows the rules by themselves, not by the code that applies them: names are read with plain git, sessions from the
database, and git packs what they stand for. What stays is the newest checkpoint of each workspace with the state after
it, the state captured last, the beginnings of sessions that are not over, and what a restore or a command names that
was cut off.
"""

import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from engine.model import session_hash

_COMMIT = re.compile(r"\b[0-9a-f]{40}\b")
_DEBRIS = re.compile(r"tmp_.*|\.tmp-.*|incoming-.*")
GIT = shutil.which("git") or "git"
SLACK_BYTES = 64 * 1024
"""Git may pack the same objects a little better in a copy."""


def floor_bytes(store: Path, database: Path, scratch: Path) -> int:
    """Return how large a store is at least that has forgotten all that the rules let go; it is built in ``scratch``."""
    shutil.copytree(store, scratch, ignore=shutil.ignore_patterns("gc.pid", "*.lock"))
    lines = _git(scratch, "for-each-ref", _FORMAT).splitlines()
    names = {name: commit for commit, name in (line.split(" ", 1) for line in lines)}
    named = set(_named_by_unfinished_work(scratch))
    kept = {name for name, commit in names.items() if commit in named} | set(_kept(names, _ended(database)))
    orders = [f"delete {name}" for name in names.keys() - kept]
    orders += [f"create refs/floor/{commit} {commit}" for commit in named if _exists(scratch, commit)]
    _git(scratch, "update-ref", "--stdin", stdin="".join(f"{order}\n" for order in orders))
    _git(scratch, "gc", "--prune=now", "--quiet")
    return size_of(scratch) - debris_of(scratch)


def size_of(directory: Path) -> int:
    """Return what the files below a directory hold."""
    return sum(path.lstat().st_size for path in directory.rglob("*") if not path.is_dir())


def debris_of(store: Path) -> int:
    """Return what killed processes left half written; it is no history, and goes when it is old."""
    found = [path for path in (store / "objects").rglob("*") if _DEBRIS.fullmatch(path.name)]
    return sum(path.lstat().st_size for path in found if not path.is_dir())


_FORMAT = "--format=%(objectname) %(refname)"


def _kept(names: dict[str, str], ended: set[str]) -> Iterator[str]:
    newest: dict[str, int] = {}
    for name in names:
        _refs, _takeback, workspace, kind, *rest = name.split("/")
        if kind == "checkpoints":
            newest[workspace] = max(newest.get(workspace, -(10**9)), int(rest[0]))
    for name in names:
        _refs, _takeback, workspace, kind, *rest = name.split("/")
        if kind in ("checkpoints", "after"):
            if int(rest[0]) == newest.get(workspace):
                yield name
        elif kind in ("base", "merged") or (kind == "sessions" and rest[0] not in ended):
            yield name


def _ended(database: Path) -> set[str]:
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("SELECT id FROM sessions WHERE ended_at IS NOT NULL").fetchall()
    return {session_hash(identity) for (identity,) in rows}


def _named_by_unfinished_work(store: Path) -> Iterator[str]:
    for path in (store / "journal").glob("*.json"):
        yield from _COMMIT.findall(path.read_text())


def _exists(store: Path, commit: str) -> bool:
    return _git(store, "cat-file", "--batch-check=%(objecttype)", stdin=f"{commit}\n").strip() == "commit"


def _git(store: Path, *arguments: str, stdin: str = "") -> str:
    done = subprocess.run(
        [GIT, "--git-dir", str(store), *arguments],
        input=stdin,
        env={"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout
