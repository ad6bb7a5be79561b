"""What opening the store repairs by itself: a checkpoint is taken and restored as if nothing had been wrong."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.upkeep.retention import PrunePolicy
from tests.engine.lab import Lab


def lose_refs(store: Path) -> None:
    """What a copy without empty directories lacks once all names are packed."""
    shutil.rmtree(store / "refs")


def lose_head(store: Path) -> None:
    (store / "HEAD").unlink()


def spoil_head(store: Path) -> None:
    (store / "HEAD").write_bytes(b"\0" * 40)


def lose_config(store: Path) -> None:
    (store / "config").unlink()


def lose_empty_directories(store: Path) -> None:
    for path in sorted(store.rglob("*"), reverse=True):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()


def freeze_exclude(store: Path) -> None:
    """An older version's rules, which nobody may write to."""
    (store / "info/exclude").write_text("*.txt\n")
    (store / "info/exclude").chmod(0o400)
    (store / "info/attributes").write_text("*.txt text eol=crlf\n")


def tear_project(store: Path) -> None:
    [path] = (store / "projects").glob("*.json")
    path.write_bytes(path.read_bytes()[:10])


def spoil_index(store: Path) -> None:
    [path] = (path for path in (store / "indexes").iterdir() if "-" not in path.name)
    path.write_bytes(b"SQLite format 3\0" + b"x" * 5000)


def lose_index(store: Path) -> None:
    shutil.rmtree(store / "indexes")


@pytest.mark.parametrize(
    "harm",
    [
        lose_refs,
        lose_head,
        spoil_head,
        lose_config,
        lose_empty_directories,
        freeze_exclude,
        tear_project,
        spoil_index,
        lose_index,
    ],
)
def test_store_is_as_good_as_before_after_its_next_use(tmp_path: Path, harm: Callable[[Path], None]):
    lab = Lab(tmp_path)
    lab.write("a.txt", "one\r\n")
    lab.write("a.txt", "two\r\n")
    lab.engine.upkeep.prune(PrunePolicy())  # packs all names, so that refs/ holds none
    harm(lab.store)
    lab.engine = lab.open_engine()

    result = lab.write("a.txt", "three\r\n")
    listed = len(lab.checkpoints())
    lab.rollback(2)

    assert (result.ok, result.notes, listed) == (True, (), 3)
    assert lab.read("a.txt") == "one\n"
    assert lab.engine.upkeep.verify().findings == ()
    [project] = (lab.store / "projects").glob("*.json")
    assert json.loads(project.read_text())["workdir"] == str(lab.root)
    [index] = (path for path in (lab.store / "indexes").iterdir() if "-" not in path.name)
    connection = sqlite3.connect(index)
    assert connection.execute("SELECT count(*) FROM directories").fetchone()[0] > 0
    connection.close()
