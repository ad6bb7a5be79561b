"""Whatever a workspace is made of, nothing outside it and the store is ever opened for writing, moved or removed."""

import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.engine.faults.watched import can_watch, changed_paths, run_watched
from tests.engine.lab import Lab, snapshot

ROOT = Path(__file__).resolve().parents[3]
SPELLINGS = (".git", ".GIT", ".Git", ".gIt")
DEEP = "deep/" * 200 + "file"


def build(base: Path) -> Lab:
    """A workspace with whatever leads out of it, beside a tree that must stay as it is."""
    outside = base / "outside"
    (outside / "inner").mkdir(parents=True)
    for name in ("file", "inner/file", "program", "linked"):
        (outside / name).write_text(f"outside {name}\n")
    (outside / "program").chmod(0o755)
    lab = Lab(base)
    for path in ("swap/inner/file", "removed", "README", "plain", "mode", "hard", "becomes-link/file", DEEP):
        lab.edit(path, "one\n")
    (lab.root / "leads-out").symlink_to(outside)
    (lab.root / "leads-out-too").symlink_to(outside / "file")
    os.mkfifo(lab.root / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        os.chdir(lab.root)  # the name of a socket is short
        listening.bind("socket")
        os.chdir(ROOT)
    if os.geteuid() == 0:
        os.mknod(lab.root / "device", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    for spelling in SPELLINGS:
        lab.edit(f"odd{SPELLINGS.index(spelling)}/{spelling}/config", "[core]\n\tfsmonitor = touch marker\n")
    lab.nested("nested")
    return lab


def stats(directory: Path) -> dict[str, tuple[object, ...]]:
    """Everything that would show a touch; a file with a name in the workspace has lost that name, which is no touch."""
    found: dict[str, tuple[object, ...]] = {}
    for path in [directory, *directory.rglob("*")]:
        status = path.lstat()
        shared = path.name == "linked"
        names = () if shared else (status.st_ctime_ns, status.st_nlink)
        found[str(path)] = (status.st_mode, status.st_size, status.st_mtime_ns, status.st_ino, status.st_uid, *names)
    return found


def test_nothing_outside_is_touched(tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    lab = build(tmp_path)
    outside = tmp_path / "outside"
    before = snapshot(outside), stats(outside)
    command = [sys.executable, "-B", "-m", "tests.engine.faults.hostile", str(tmp_path)]
    watched = can_watch()

    if watched:
        done = run_watched(command, tmp_path / "notes", cwd=ROOT)
    else:
        done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:2] == ["[]", "[]"]
    assert "swap/inner/file" in done.stdout.splitlines()[2]
    assert (snapshot(outside), stats(outside)) == before
    assert (lab.read("swap/inner/file"), lab.read("hard"), lab.read("README")) == ("one\n", "one\n", "one\n")
    assert not list(lab.root.rglob("marker"))
    if watched:
        told = strays(tmp_path / "notes", [lab.root, lab.home / ".takeback"])
        assert told == []
        record_property("told", "a hostile workspace: every call of every process was watched, none left the workspace")


def strays(notes: Path, allowed: list[Path]) -> list[str]:
    """The calls about anything else than what is allowed; pipes and the null device are nobody's."""
    seen = [*changed_paths(notes)]
    assert len(seen) > 100, "nothing was watched"
    roots = [os.path.realpath(path) for path in allowed]
    return [
        line
        for line, path in seen
        if not any(path == root or path.startswith(f"{root}/") for root in roots)
        and not path.startswith((os.devnull, "pipe:", "/dev/tty"))
    ]
