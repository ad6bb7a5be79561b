"""A prune that is killed anywhere loses nothing, blocks nobody, and is gone on with by the next one."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.errors import StoreBusy
from engine.upkeep.debris import sweep
from engine.upkeep.prune import Outcome, prune
from engine.upkeep.verify import verify
from tests.engine.upkeep.kit import NOW, Kit, make_old
from tests.engine.upkeep.pruner import POLICY

GIT = shutil.which("git") or "git"
ROOT = Path(__file__).resolve().parents[3]


def start_pruner(kit: Kit, git: str = GIT, dies_at: int = 0) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "tests.engine.upkeep.pruner", kit.store.layout.base, kit.store.lock_path, git]
    return subprocess.Popen(
        [*command, str(dies_at)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PATH": "/usr/bin:/bin"},
    )


def end(process: "subprocess.Popen[bytes]") -> tuple[int, bytes]:
    out, complaint = process.communicate(timeout=120)
    assert process.returncode in {0, -signal.SIGKILL}, complaint.decode()
    return process.returncode, out


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for something another process does."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen"
        time.sleep(0.002)  # leave the processor to the process that is waited for


def fill(kit: Kit) -> dict[str, bytes]:
    """Make a store that POLICY drops something from by every rule; return what its checkpoints must hold."""
    app, old = kit.workspace("app"), kit.workspace("old")
    kit.turns(old, 3)
    kit.age(old, 30)
    contents = {}
    for _number in range(10):
        content = os.urandom(40_000)
        kit.write(app, "noise.bin", content)
        contents[kit.checkpoint(app).id] = content
    kit.archive("legacy-20260101-000000")
    return contents


def assert_readable(kit: Kit, contents: dict[str, bytes]) -> None:
    """Every listed checkpoint can be given back."""
    listed = kit.ids(kit.workspace("app"))
    assert listed
    for found in listed:
        assert kit.content(found, "noise.bin") == contents[found]


def assert_whole(kit: Kit, contents: dict[str, bytes]) -> None:
    """Every listed checkpoint can be given back, and verification agrees."""
    assert_readable(kit, contents)
    report = verify(kit.open_again())
    assert report.healthy, report.findings


def test_prune_killed_before_any_git_command_loses_nothing(kit: Kit, tmp_path: Path):
    contents = fill(kit)
    saved = tmp_path / "saved"
    shutil.copytree(tmp_path / "takeback", saved)
    code, out = end(start_pruner(kit))
    commands, outcome, dropped = int(out.split()[0]), out.split()[1], int(out.split()[2])
    assert (code, outcome) == (0, b"done")
    final = kit.ids(kit.workspace("app"))
    assert commands >= 8

    for dies_at in range(1, commands + 1):
        shutil.rmtree(tmp_path / "takeback")
        shutil.copytree(saved, tmp_path / "takeback")
        assert end(start_pruner(kit, dies_at=dies_at))[0] == -signal.SIGKILL
        assert_readable(kit, contents)

        report = prune(kit.open_again(lock_wait_s=10), POLICY, now=NOW)

        assert report.outcome is Outcome.DONE
        assert len(report.decisions) <= dropped
        assert kit.ids(kit.workspace("app")) == final
        assert kit.refs(kit.workspace("old")) == []
        assert not os.path.exists(kit.store.layout.project(kit.workspace("old").hash))
        assert_whole(kit, contents)


@contextlib.contextmanager
def git_that_says_its_pid(directory: Path) -> Iterator[tuple[str, Path]]:
    """A git whose gc notes which process it is, so that a test can end it as a power cut would."""
    note = directory / "gc-pid"
    script = directory / "git-noting"
    script.write_text(
        f'#!/bin/sh\nfor word; do if [ "$word" = gc ]; then echo $$ > {note}.new; mv {note}.new {note}; fi; done\n'
        f'exec {GIT} "$@"\n'
    )
    script.chmod(0o755)
    yield str(script), note


def test_gc_killed_five_times_loses_nothing_and_its_debris_goes_only_when_old(kit: Kit, tmp_path: Path):
    app = kit.workspace("app")
    contents = {}
    for _number in range(12):
        content = os.urandom(1_500_000)
        kit.write(app, "noise.bin", content)
        contents[kit.checkpoint(app).id] = content
    packs = Path(kit.store.layout.store, "objects", "pack")

    with git_that_says_its_pid(tmp_path) as (git, note):
        for _time in range(5):
            for path in packs.glob("*tmp*"):
                path.unlink()
            note.unlink(missing_ok=True)
            process = start_pruner(kit, git)
            until(lambda: note.exists() and any(packs.glob("*tmp*pack*")), "a pack being written")
            os.killpg(int(note.read_text()), signal.SIGKILL)
            process.kill()
            end(process)
            assert_readable(kit, contents)

    debris = [*packs.glob("*tmp*")]
    assert debris
    with kit.open_again(lock_wait_s=10).alone("a test"):
        assert sweep(kit.store.layout) in ([], ["store/gc.pid"])
        for path in debris:
            make_old(path)
        assert sweep(kit.store.layout) == sorted(os.path.relpath(path, kit.store.layout.base) for path in debris)
    assert prune(kit.store, POLICY, now=NOW).outcome is Outcome.DONE
    assert_whole(kit, contents)


def test_gc_that_outlives_its_process_keeps_the_store_to_itself(kit: Kit, tmp_path: Path):
    """A capture beside such a gc could lose what it has written and not named yet."""
    contents = fill(kit)
    started, go = tmp_path / "started", tmp_path / "go"
    os.mkfifo(go)
    script = tmp_path / "git-waiting"
    script.write_text(
        f'#!/bin/sh\nfor word; do if [ "$word" = gc ]; then : > {started}; read line < {go}; fi; done\n'
        f'exec {GIT} "$@"\n'
    )
    script.chmod(0o755)
    process = start_pruner(kit, str(script))
    until(started.exists, "the gc")
    process.kill()
    end(process)

    app = kit.workspace("app")
    with pytest.raises(StoreBusy, match="a prune"), kit.open_again().use(app, "a capture"):
        pass
    go.write_text("go\n")

    with kit.open_again(lock_wait_s=60).use(app, "a capture"):
        assert not os.path.exists(Path(kit.store.layout.store, "gc.pid"))
    assert_whole(kit, contents)


def test_two_prunes_at_once_do_the_work_once(kit: Kit):
    contents = fill(kit)

    both = [start_pruner(kit), start_pruner(kit)]
    dropped = [int(end(process)[1].split()[2]) for process in both]

    assert min(dropped) == 0
    assert max(dropped) > 0
    assert_whole(kit, contents)


def test_captures_beside_prunes_lose_nothing(kit: Kit):
    app = kit.workspace("app")
    other = kit.open_again(lock_wait_s=60)
    kit.store.lock_wait_s = 60
    taken = {}
    pruning = [start_pruner(kit)]
    for number in range(12):
        kit.write(app, "noise.bin", os.urandom(30_000))
        taken[kit.checkpoint(app).id] = Path(app.root, "noise.bin").read_bytes()
        if pruning[-1].poll() is not None and number < 10:
            pruning.append(start_pruner(kit))
    for process in pruning:
        assert end(process)[0] == 0

    listed = kit.ids(app)
    assert listed == list(taken)[-len(listed) :]
    assert_whole(kit, taken)
    assert prune(other, POLICY).outcome is Outcome.DONE
