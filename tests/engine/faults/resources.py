"""What a machine can run out of, for real: ``python -m tests.engine.faults.resources SCENE DIRECTORY``.

A process of its own, in a mount namespace of its own: what it mounts goes with it. Each scene asserts what must hold.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from engine.errors import EngineError
from engine.model import Limits, RestoreReport
from tests.engine.lab import Lab, snapshot

# As the system says it, git's fast-import, SQLite.
NO_ROOM = re.compile("No space left on device|Out of diskspace|disk is full")
NOT_ALLOWED = "Permission denied"
NOBODY = 65534

Picture = dict[str, tuple[object, ...]]


class Wrong(AssertionError):
    """Something does not hold."""


def require(condition: object, what: object) -> None:
    """Fail with what is wrong; nobody rewrites assertions here."""
    if not condition:
        raise Wrong(what)


def mount_small(directory: Path, size_kb: int) -> None:
    """Put a file system of so much room at a directory."""
    directory.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size_kb}k,mode=0755", "tmpfs", str(directory)], check=True)


def fill(filler: Path, *, but_kb: int) -> None:
    """Leave so much room and no more on the file system of a file."""
    room = os.statvfs(filler.parent)
    filler.write_bytes(b"x" * max(room.f_bavail * room.f_frsize - but_kb * 1024, 0))


def picture(lab: Lab) -> Picture:
    """What stands in the workspace, but for what fills it."""
    return {path: state for path, state in snapshot(lab.root).items() if path != "filler.log"}


def restore(lab: Lab, target: str) -> RestoreReport:
    """Restore everything to a checkpoint."""
    return lab.engine.apply_restore(lab.engine.plan_restore(lab.workspace, target, everything=True))


def full_workspace(base: Path) -> None:
    """A restore without room for all files: none is torn, each that failed is named, and it works with room."""
    mount_small(base / "home" / "ws", 1024)
    lab = Lab(base)
    for number in range(8):
        lab.edit(f"data/{number}", bytes([65 + number]) * 60_000)
    before = picture(lab)
    lab.run("cd data; for f in 0 1 2 3 4; do echo small > $f; done; rm 5 6 7; echo new > new")
    after = picture(lab)
    target = lab.checkpoints()[0].id
    for room_kb in (0, 8, 64, 200):
        fill(lab.root / "filler.log", but_kb=room_kb)

        report = restore(lab, target)

        now = picture(lab)
        require(report.failed, f"nothing failed with {room_kb} KB")
        require(all(NO_ROOM.search(note.why) for note in report.failed), report.failed)
        wrong = {path for path in before.keys() | now.keys() if before.get(path) != now.get(path)}
        require(wrong == {note.path for note in report.failed}, (wrong, report.failed))
        require(all(now[path] == after.get(path) for path in wrong & now.keys()), "a file is torn")
        (lab.root / "filler.log").unlink()
        require(restore(lab, target).complete, "not complete with room")
        require(picture(lab) == before, "not restored with room")
        require(report.safety is not None and restore(lab, report.safety.id).complete, "not undone")
        require(picture(lab) == after, "not undone")


def full_store(base: Path) -> None:
    """Less and less room in the store: a tool goes on and says so, a restore is refused, nothing is lost."""
    store = base / "home" / ".takeback"
    mount_small(store, 2048)
    lab = Lab(base)
    lab.limits = Limits(max_snapshots=1000)
    filler = store / "filler"
    lab.edit("a", "one\n")
    lab.edit("b", b"b" * 20_000)
    lab.write("a", "two\n")
    first = lab.checkpoints()[-1].id
    said: set[bool] = set()
    for room_kb in (0, 4, 8, 12, 16, 20, 28, 40, 64):
        content = f"{room_kb}\n" * 500
        lab.engine = lab.open_engine()
        listed = [item.id for item in lab.checkpoints()]
        fill(filler, but_kb=room_kb)

        written = lab.write("a", content)
        before = picture(lab)
        refused = attempt(lambda: restore(lab, first))

        require(written.ok and lab.read("a") in (content, "one\n"), written)
        require(all(NO_ROOM.search(note) for note in written.notes), written.notes)
        require(refused is None or NO_ROOM.search(refused), refused)
        if refused is not None:
            lab.engine.resume_restores(lab.workspace)
        require(refused is None or picture(lab) == before, "refused, yet changed")
        require(set(listed) <= {item.id for item in lab.checkpoints()}, "a checkpoint is gone")
        said.add(bool(written.notes))
        filler.unlink()
        lab.engine = lab.open_engine()
        safe = lab.engine.checkpoint(lab.workspace, "with room")
        require(safe.checkpoint is not None and restore(lab, first).complete, "not with room either")
        require(lab.read("a") == "one\n", "not restored with room")
    require(said == {True, False}, said)
    whole = lab.engine.upkeep.verify()
    require(whole.healthy, whole.findings)


def full_while_the_tool_runs(base: Path) -> None:
    """What the agent changed cannot be noted: it says so, and the state before can still be brought back."""
    store = base / "home" / ".takeback"
    mount_small(store, 2048)
    lab = Lab(base)
    lab.edit("a", "one\n")
    lab.write("b", "bee\n")

    result = lab.run(f"echo two > a; dd if=/dev/zero of={store}/filler bs=1k; true")

    require(any("could not be noted" in note and NO_ROOM.search(note) for note in result.notes), result.notes)
    (store / "filler").unlink()
    lab.engine = lab.open_engine()
    require(lab.write("c", "see\n").ok, "no tool after it")
    oldest = lab.checkpoints()
    require(restore(lab, oldest[-2].id).complete and lab.read("a") == "one\n", oldest)
    require(lab.engine.upkeep.verify().healthy, "not healthy")


def become_nobody(lab: Lab) -> None:
    """Give root away: from now on modes count."""
    warm = Lab(lab.home.parent / "warm")  # what is imported late is imported now
    warm.edit("a", "1\n")
    warm.run("rm a")
    warm.rollback()
    if os.geteuid() == 0:
        for directory, names, files in os.walk(lab.home):
            for path in [directory, *(os.path.join(directory, name) for name in [*names, *files])]:
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)


def read_only_store(base: Path) -> None:
    """A store that may only be read: the list is shown, tools go on and say so, a restore is refused."""
    lab = Lab(base)
    lab.edit("a", "one\n")
    lab.write("a", "two\n")
    become_nobody(lab)
    modes = {path: path.stat().st_mode for path in [lab.store, *lab.store.rglob("*")]}
    for path, mode in modes.items():
        path.chmod(mode & ~0o222)
    lab.engine = lab.open_engine()
    before = picture(lab)

    listed = lab.checkpoints()
    refused = attempt(lambda: restore(lab, listed[0].id))
    same = picture(lab) == before
    result = lab.write("a", "three\n")

    require(len(listed) == 1, listed)
    require(refused is not None and NOT_ALLOWED in refused and same, refused)
    require(result.ok and any(NOT_ALLOWED in note for note in result.notes), result)
    for path, mode in modes.items():
        path.chmod(mode)
    lab.engine = lab.open_engine()
    require(restore(lab, listed[0].id).complete and lab.read("a") == "one\n", "not when it may be written again")


def read_only_directory(base: Path) -> None:
    """A directory that may not be written: what lies in it is named, the rest is restored, and it works later."""
    lab = Lab(base)
    for path in ("shut/a", "open/a", "shut/gone"):
        lab.edit(path, "one\n")
    (lab.root / "shut").chmod(0o555)  # which does not keep root from writing
    before = picture(lab)
    lab.run("echo two > shut/a; echo two > open/a; rm shut/gone; echo new > shut/new")
    target = lab.checkpoints()[0].id
    become_nobody(lab)
    lab.engine = lab.open_engine()

    report = restore(lab, target)

    failed = {note.path: note.why for note in report.failed}
    require(set(failed) == {"shut/a", "shut/gone", "shut/new"}, failed)
    require(set(failed.values()) == {NOT_ALLOWED}, failed)
    require((lab.read("shut/a"), lab.read("open/a")) == ("two\n", "one\n"), "half done")
    (lab.root / "shut").chmod(0o755)
    require(restore(lab, target).complete and picture(lab) == before, "not when it may be written again")


def shut_directories(base: Path) -> None:
    """What a turn made unreadable or read-only is opened by its undo, and comes back with what was removed in it."""
    lab = Lab(base)
    for path in ("one/a", "two/a", "two/b", "three/a", "three/b"):
        lab.edit(path, "kept\n")
    become_nobody(lab)
    lab.engine = lab.open_engine()
    before = picture(lab)

    lab.run("chmod 000 one")
    made = picture(lab)
    report = undo(lab)
    require([note.path for note in report.restored] == ["one"] and picture(lab) == before, report)
    require(lab.undo_restore(report).complete and picture(lab) == made, "not done again")
    require(undo(lab).complete and picture(lab) == before, "not undone again")

    lab.run("rm two/a; chmod 555 two; mkdir new; echo x > new/x; chmod 555 new")
    made = picture(lab)
    report = undo(lab)
    require(report.complete and picture(lab) == before, report)
    require(lab.undo_restore(report).complete and picture(lab) == made, "not done again")
    require(undo(lab).complete and picture(lab) == before, "not undone again")

    result = lab.run("rm three/a; echo agent > three/b; chmod 300 three")
    require(any("three (Permission denied; 2 files in it captured until now)" in note for note in result.notes), result)
    report = undo(lab)
    said = [note.why for note in report.restored]
    require(len(said) == 1 and "restore it again with --all" in said[0], report)
    require(lab.rollback(2, "three", everything=True).complete, lab.checkpoints())
    require(lab.read("three/a") == lab.read("three/b") == "kept\n", "not all of it")


def undo(lab: Lab) -> RestoreReport:
    """Take back the last turn."""
    checkpoint = next(c for c in lab.checkpoints() if c.turn is not None and c.turn.turn == str(lab.turn))
    return lab.undo_turn(lab.turn, checkpoint)


def attempt(work: Callable[[], object]) -> str | None:
    """Do something and return the sentence that refuses it, if one does."""
    try:
        work()
    except EngineError as error:
        return str(error)
    return None


SCENES = {
    scene.__name__: scene
    for scene in (
        full_workspace,
        full_store,
        full_while_the_tool_runs,
        read_only_store,
        read_only_directory,
        shut_directories,
    )
}

if __name__ == "__main__":
    SCENES[sys.argv[1]](Path(sys.argv[2]))
