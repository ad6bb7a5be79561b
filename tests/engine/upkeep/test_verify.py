"""Verification finds every kind of damage, names what it touches, and changes nothing."""

import errno
import json
import os
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.errors import StoreBusy
from engine.model import Entry, EntryKind, Workspace
from engine.store.journal import JournalItem, RestoreJournal, write_restore
from engine.upkeep.findings import Severity
from engine.upkeep.progress import Step
from engine.upkeep.prune import prune
from engine.upkeep.rehearsal import rehearse
from engine.upkeep.retention import PrunePolicy
from engine.upkeep.verify import VerifyReport, verify
from tests.engine.upkeep.kit import Kit


def fill(kit: Kit) -> tuple[Workspace, Workspace]:
    app, other = kit.workspace("app"), kit.workspace("other")
    for workspace in (app, other):
        kit.write(workspace, "dir/kept.txt", workspace.root.encode())
        for checkpoint in kit.turns(workspace, 3):
            kit.note_turn(workspace, checkpoint, "dir/kept.txt")
    return app, other


def object_path(kit: Kit, name: str) -> Path:
    oid = kit.store.git.run(["rev-parse", name]).decode().strip()
    return Path(kit.store.layout.store, "objects", oid[:2], oid[2:])


def errors(report: VerifyReport) -> list[str]:
    return [finding.what for finding in report.findings if finding.severity is Severity.ERROR]


def test_healthy_store_is_proved_whole(kit: Kit):
    app, other = fill(kit)
    kit.begin_session(app, "s1")

    report = verify(kit.store)

    assert report.healthy
    assert report.findings == ()
    assert (report.workspaces, report.checkpoints, report.rehearsed) == (2, 6, 2)
    assert report.objects == kit.objects() - unnamed(kit)
    assert len(kit.ids(other)) == 3


def unnamed(kit: Kit) -> int:
    out = kit.store.git.run(["rev-list", "--objects", "--all"])
    return kit.objects() - len(out.splitlines())


def test_packed_store_is_proved_too(kit: Kit):
    fill(kit)
    prune(kit.store, PrunePolicy())

    report = verify(kit.store)

    assert report.healthy
    assert report.objects == kit.objects()


def test_no_store_is_healthy_and_none_is_made(kit: Kit):
    assert verify(kit.store).healthy
    assert not (kit.home / "takeback").exists()


def test_checkpoint_that_a_chat_drops_meanwhile_is_no_damage(kit: Kit):
    app, _other = fill(kit)
    pattern = f"refs/takeback/{app.hash}/checkpoints"
    oldest = kit.store.git.run(["for-each-ref", "--count=1", "--format=%(refname)", pattern]).decode().strip()

    def drop(_step: Step) -> None:
        kit.store.git.run(["update-ref", "-d", oldest])

    report = verify(kit.store, progress=drop)

    assert report.healthy
    assert report.findings == ()
    assert len(kit.ids(app)) == 2


def test_verification_changes_nothing(kit: Kit):
    fill(kit)
    before = snapshot(kit)

    verify(kit.store)

    assert snapshot(kit) == before


def snapshot(kit: Kit) -> dict[str, bytes]:
    base = Path(kit.store.layout.base)
    return {str(path): path.read_bytes() for path in base.rglob("*") if path.is_file() and path.suffix != ".lock"}


def remove(path: Path) -> None:
    path.unlink()


def truncate(path: Path) -> None:
    path.chmod(0o600)
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path) -> None:
    path.chmod(0o600)
    os.truncate(path, 0)


def flip(path: Path) -> None:
    path.chmod(0o600)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


@pytest.mark.parametrize("harm", [remove, truncate, empty, flip])
@pytest.mark.parametrize("name", ["", "^{tree}", ":dir", ":dir/kept.txt", ":noise.bin"])
def test_damaged_object_is_found_and_its_checkpoint_named(kit: Kit, harm: Callable[[Path], None], name: str):
    app, _other = fill(kit)
    newest = kit.ids(app)[-1]
    harm(object_path(kit, newest + name))

    report = verify(kit.store)

    assert not report.healthy
    touched = [finding for finding in report.findings if finding.severity is Severity.ERROR]
    assert newest in {finding.checkpoint for finding in touched}
    assert {finding.workspace for finding in touched} == {app.hash}
    assert any(app.root in finding.what for finding in touched)
    assert all(finding.next_step for finding in touched)


def test_damage_names_the_file(kit: Kit):
    app, _other = fill(kit)
    object_path(kit, f"{kit.ids(app)[0]}:dir/kept.txt").unlink()

    (first, *_others) = errors(verify(kit.store))

    assert "lacks dir/kept.txt (it is missing)" in first


def test_damaged_pack_is_found(kit: Kit):
    fill(kit)
    prune(kit.store, PrunePolicy())
    flip(next(Path(kit.store.layout.store, "objects", "pack").glob("*.pack")))

    assert not verify(kit.store).healthy


def test_content_that_is_not_what_its_id_says_is_found(kit: Kit):
    app, other = fill(kit)
    mine = object_path(kit, f"{kit.ids(app)[0]}:dir/kept.txt")
    mine.chmod(0o600)
    mine.write_bytes(object_path(kit, f"{kit.ids(other)[0]}:dir/kept.txt").read_bytes())

    report = verify(kit.store)

    assert not report.healthy
    assert {finding.workspace for finding in report.findings} == {app.hash}


def test_pack_that_hands_out_other_content_under_an_id_is_found(kit: Kit):
    """git believes the index of a pack; only hashing what it hands out tells."""
    app, other = fill(kit)
    packs = Path(kit.store.layout.store, "objects", "pack")
    mine = object_path(kit, f"{kit.ids(app)[0]}:dir/kept.txt")
    foreign = object_path(kit, f"{kit.ids(other)[0]}:dir/kept.txt")
    oid, foreign_oid = (bytes.fromhex(path.parent.name + path.name) for path in (mine, foreign))
    kit.store.git.run(["pack-objects", "-q", str(packs / "pack")], stdin=f"{foreign_oid.hex()}\n".encode())
    index = next(packs.glob("*.idx"))
    content = bytearray(index.read_bytes())
    for byte in range(256):  # how many ids begin with this byte or a lower one
        content[8 + 4 * byte : 12 + 4 * byte] = (1 if byte >= oid[0] else 0).to_bytes(4, "big")
    content[1032:1052] = oid
    index.chmod(0o600)
    index.write_bytes(content)
    mine.unlink()

    report = verify(kit.store)

    assert any("dir/kept.txt (its content is not what its id stands for)" in what for what in errors(report))
    assert {finding.workspace for finding in report.findings} == {app.hash}


@pytest.mark.parametrize("content", [b"", b"ref", b"0" * 39 + b"\n", b"\0" * 41])
def test_torn_name_is_found(kit: Kit, content: bytes):
    app, _other = fill(kit)
    path = Path(kit.store.layout.store, "refs", "takeback", app.hash, "checkpoints", "00000002")
    path.write_bytes(content)

    report = verify(kit.store)

    assert not report.healthy
    assert any("checkpoints/00000002 is torn" in what for what in errors(report))


def test_name_that_leads_nowhere_is_found(kit: Kit):
    app, _other = fill(kit)
    path = Path(kit.store.layout.store, "refs", "takeback", app.hash, "checkpoints", "00000002")
    path.write_text("1" * 40 + "\n")

    report = verify(kit.store)

    assert any("checkpoints/00000002" in what and "it is missing" in what for what in errors(report))


def test_names_that_cannot_be_read_at_all_are_an_error(kit: Kit):
    fill(kit)
    Path(kit.store.layout.store, "packed-refs").write_bytes(b"\xff\xff garbage\n")

    report = verify(kit.store)

    assert any("the names cannot be read" in what for what in errors(report))


def test_damaged_ledger_is_found_and_a_torn_last_line_is_none(kit: Kit):
    app, _other = fill(kit)
    ledger = Path(kit.store.layout.ledger(app.hash))
    whole = ledger.read_bytes()
    ledger.write_bytes(whole + b'{"n": 99, "ty')
    assert verify(kit.open_again()).healthy

    ledger.write_bytes(b'{"n": 1}\n' + whole)
    report = verify(kit.open_again())

    assert any(str(ledger) in what for what in errors(report))
    assert any("go back with --all" in finding.next_step for finding in report.findings)


def journal(kit: Kit, workspace: Workspace, target: str, safety: str) -> None:
    items = (JournalItem("a", "restore", None, Entry(EntryKind.FILE, 0o644, "0" * 40), ""),)
    write_restore(kit.store.layout, workspace, RestoreJournal("token", target, safety, False, False, (), items))


def test_interrupted_restore_is_a_warning_with_what_to_do(kit: Kit):
    app, _other = fill(kit)
    oldest, _middle, newest = kit.ids(app)
    journal(kit, app, oldest, newest)

    report = verify(kit.store)

    assert report.healthy
    (finding,) = report.findings
    assert finding.severity is Severity.WARNING
    assert finding.checkpoint == oldest
    assert finding.next_step == "Start the gateway; it finishes the restore."


def test_interrupted_restore_of_a_checkpoint_that_is_gone_is_an_error(kit: Kit):
    app, _other = fill(kit)
    journal(kit, app, "1" * 40, kit.ids(app)[0])

    assert any("names a checkpoint that is gone" in what for what in errors(verify(kit.store)))


@pytest.mark.parametrize("content", ["{", "[]", "{}"])
def test_damaged_journal_is_an_error(kit: Kit, content: str):
    app, _other = fill(kit)
    Path(kit.store.layout.journal(app.hash)).write_text(content)

    assert any("journal" in what for what in errors(verify(kit.store)))


@pytest.mark.parametrize("content", [None, "", "{", "[]", '{"created_at": 1}'])
def test_missing_or_torn_project_file_is_a_warning(kit: Kit, content: str | None):
    app, _other = fill(kit)
    path = Path(kit.store.layout.project(app.hash))
    path.unlink() if content is None else path.write_text(content)

    report = verify(kit.store)

    assert report.healthy
    assert [(finding.severity, finding.workspace) for finding in report.findings] == [(Severity.WARNING, app.hash)]


def test_project_file_of_another_directory_is_a_warning(kit: Kit):
    app, other = fill(kit)
    path = Path(kit.store.layout.project(app.hash))
    path.write_text(json.dumps({**json.loads(path.read_text()), "workdir": other.root}))

    (finding,) = verify(kit.store).findings

    assert finding.severity is Severity.WARNING
    assert other.root in finding.what


def replace(path: Path) -> None:
    path.write_bytes(b"not a database" * 100)


@pytest.mark.parametrize("harm", [truncate, replace])
def test_damaged_index_mends_itself(kit: Kit, harm: Callable[[Path], None]):
    app, _other = fill(kit)
    harm(Path(kit.store.layout.index(app.hash)))

    report = verify(kit.open_again())

    assert report.healthy
    assert [(finding.severity, finding.workspace) for finding in report.findings] == [(Severity.INFO, app.hash)]


def test_index_that_somebody_writes_is_no_finding(kit: Kit):
    app, _other = fill(kit)
    connection = sqlite3.connect(kit.store.layout.index(app.hash), isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("DELETE FROM directories")

    report = verify(kit.store)

    assert report.findings == ()
    connection.close()


def test_progress_counts_checkpoints_and_rehearsals(kit: Kit):
    fill(kit)
    steps: list[Step] = []

    report = verify(kit.store, progress=steps.append)

    proving = [step for step in steps if step.what == "proving checkpoints"]
    assert [step.done for step in proving] == list(range(1, len(proving) + 1))
    assert {step.total for step in proving} == {len(proving)}
    assert proving[-1].size_bytes == report.size_bytes
    assert [(step.done, step.total) for step in steps if step.what == "rehearsing restores"] == [(1, 2), (2, 2)]


@pytest.mark.parametrize("steps", [0, 1, 15])
def test_cancelled_verification_claims_nothing(kit: Kit, steps: int):
    fill(kit)
    asked = 0

    def cancelled() -> bool:
        nonlocal asked
        asked += 1
        return asked > steps

    report = verify(kit.store, cancelled=cancelled)

    assert report.cancelled
    assert not report.healthy
    assert os.listdir(kit.store.layout.base) == ["store"]


def test_verification_waits_for_a_prune_and_is_then_busy(kit: Kit):
    fill(kit)

    with kit.open_again().alone("a prune"), pytest.raises(StoreBusy, match="a prune"):
        verify(kit.store)


def test_verification_stops_no_capture(kit: Kit):
    app, _other = fill(kit)
    taken = []

    def progress(step: Step) -> None:
        if step.done == 1:
            kit.write(app, "noise.bin", os.urandom(10))
            taken.append(kit.checkpoint(app).id)

    report = verify(kit.open_again(), progress=progress)

    assert report.healthy
    assert len(taken) == 2


# --- rehearsal


def test_everything_a_checkpoint_can_hold_is_rehearsed(kit: Kit):
    app = kit.workspace("app")
    root = Path(app.root)
    names = [b"plain", b"-dash", b"caf\xe9", b"new\nline", b"[1]", b"back\\slash", b":colon", "漢字".encode()]
    for name in names:
        Path(os.fsdecode(os.fsencode(app.root) + b"/" + name)).write_bytes(name)
    kit.write(app, "bin/tool", b"#!/bin/sh\n")
    (root / "bin/tool").chmod(0o4751)
    kit.write(app, "secret", b"mine")
    (root / "secret").chmod(0o000)
    (root / "link").symlink_to("nowhere")
    (root / "empty/deep").mkdir(parents=True)
    kit.write(app, "/".join(["deep"] * 60) + "/file", b"down here")
    (root / "empty").chmod(0o1711)
    (root / "bin").chmod(0o500)
    taken = kit.checkpoint(app)

    result = rehearse(kit.store, taken.id)

    assert result.problems == []
    assert result.files == len(names) + 4
    assert os.listdir(kit.store.layout.base) == ["store"]
    (root / "bin").chmod(0o755)


def test_nested_repository_is_not_part_of_a_rehearsal(kit: Kit):
    app = kit.workspace("app")
    kit.write(app, "a.txt", b"a")
    Path(app.root, "vendor/lib/.git").mkdir(parents=True)
    Path(app.root, "vendor/lib/.git/HEAD").write_text("ref: refs/heads/main\n")
    taken = kit.checkpoint(app)

    assert rehearse(kit.store, taken.id).problems == []


def test_bytes_and_permission_bits_that_come_out_different_are_found(kit: Kit, monkeypatch: pytest.MonkeyPatch):
    app = kit.workspace("app")
    kit.write(app, "a.txt", b"a")
    Path(app.root, "a.txt").chmod(0o640)
    taken = kit.checkpoint(app)
    real = os.fchmod
    monkeypatch.setattr(os, "fchmod", lambda descriptor, mode: real(descriptor, mode & ~stat.S_IRGRP))

    result = rehearse(kit.store, taken.id)

    assert result.problems == ["a.txt: its permission bits are 600, not 640"]


def path_of(descriptor: int) -> Path:
    return Path(f"/proc/self/fd/{descriptor}").readlink()


@pytest.mark.parametrize(
    ("harm", "problem"),
    [
        (lambda descriptor: os.pwrite(descriptor, b"b", 0), "a.txt: its bytes came out different"),
        (lambda descriptor: path_of(descriptor).unlink(), "a.txt: it is missing"),
        (lambda descriptor: path_of(descriptor).with_name("b.txt").touch(), "b.txt: it should not be there"),
    ],
)
def test_file_system_that_does_something_else_is_found(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, harm: Callable[[int], object], problem: str
):
    app = kit.workspace("app")
    kit.write(app, "a.txt", b"a")
    taken = kit.checkpoint(app)
    real = os.fchmod

    def fchmod(descriptor: int, mode: int) -> None:
        real(descriptor, mode)
        harm(descriptor)

    monkeypatch.setattr(os, "fchmod", fchmod)

    assert rehearse(kit.store, taken.id).problems == [problem]


def test_scratch_that_is_full_is_a_warning_and_leaves_nothing(kit: Kit, monkeypatch: pytest.MonkeyPatch):
    fill(kit)

    def full(*_arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fchmod", full)

    report = verify(kit.store)

    assert report.healthy
    assert report.rehearsed == 0
    assert {finding.severity for finding in report.findings} == {Severity.WARNING}
    assert all("No space left" in finding.what for finding in report.findings)
    assert os.listdir(kit.store.layout.base) == ["store"]
