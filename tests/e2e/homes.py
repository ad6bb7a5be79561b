"""What Takeback keeps, as a value: the store's refs, its notes about workspaces, and the database's rows."""

import json
import os
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

PASSING = {"inbox", "inbox_files", "outbox", "outbox_files", "sqlite_sequence"}
"""Tables that hold what was asked and what was answered, a refusal included."""

Holdings = dict[str, Any]


def holdings(home: Path) -> Holdings:
    """Everything in a home that says what can be restored and where a conversation stands.

    Left out is what may tell of a refusal without changing anything: its own row among the restores, and when a
    workspace was last looked at.
    """
    kept: Holdings = {f"table {name}": rows for name, rows in tables(home).items() if name not in PASSING}
    if "table restores" in kept:
        kept["table restores"] = [row for row in kept["table restores"] if "refused" not in row]
    store = home / "checkpoints" / "store"
    if store.is_dir():
        kept["refs"] = refs(home)
        for name in ("ledgers", "journal"):
            kept[name] = {p.name: p.read_bytes() for p in sorted((store / name).iterdir()) if p.suffix != ".lock"}
        for path in sorted((store / "projects").iterdir()):
            kept[path.name] = {**json.loads(path.read_bytes()), "last_touch": None}
    return kept


def refs(home: Path) -> dict[str, str]:
    """The refs of the store, read with plain git as a person would."""
    return dict(line.split(" ") for line in git_of(home, "for-each-ref", "--format=%(refname) %(objectname)"))


def git_of(home: Path, *arguments: str) -> list[str]:
    """The lines that plain git says of the store."""
    done = subprocess.run(
        ["git", "--git-dir", home / "checkpoints" / "store", *arguments],
        check=True,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/nonexistent"},
    )
    return done.stdout.splitlines()


def tables(home: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Every table of the database with its rows, in order."""
    path = home / "gateway.db"
    if not path.exists():
        return {}
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: sorted(database.execute(f"SELECT * FROM {name}"), key=repr) for name in names}
    finally:
        database.close()


def assert_same(before: Holdings, after: Holdings) -> None:
    """Say which part of a home changed; a whole home is too long to read."""
    changed = [name for name in before.keys() | after.keys() if before.get(name) != after.get(name)]
    assert changed == [], {name: (before.get(name), after.get(name)) for name in changed}
