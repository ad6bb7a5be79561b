"""The store read again, some at a time: what rots in silence is found, and mended while it still can be."""

import os
from pathlib import Path

import pytest

from engine.checkpoints.reading import blob_oid
from engine.upkeep import sampling
from tests.engine.lab import Lab

PRECIOUS = "precious\n" * 40


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    lab = Lab(tmp_path)
    lab.edit("p", PRECIOUS)
    for number in range(3):
        lab.write("warm", f"{number}\n")
    return lab


def rot(path: Path) -> None:
    """Flip a bit."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.chmod(0o600)
    path.write_bytes(content)


def precious(lab: Lab) -> Path:
    oid = blob_oid(PRECIOUS.encode())
    return lab.store / "objects" / oid[:2] / oid[2:]


def test_what_rotted_is_said_once_and_mended_before_the_next_command(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    path = precious(lab)
    # The kernel stamps what is done to a file, as it does not when a disk rots: no stamp ever moves here.
    monkeypatch.setattr("engine.store.object_files._file_stamp", lambda _objects, _path: (1, 2, 3, 4))
    lab.write("warm", "again\n")
    rot(path)

    first, second = lab.engine.upkeep.sample(), lab.engine.upkeep.sample()
    lab.run("rm p")
    lab.undo_turn(lab.turn, lab.checkpoints()[0])

    assert first.broken == (f"{path.parent.name}/{path.name}",)
    assert second.broken == ()
    assert lab.read("p") == PRECIOUS
    assert lab.engine.upkeep.sample().broken == ()


def test_each_look_goes_on_where_the_last_one_ended(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    rot(precious(lab))
    monkeypatch.setattr(sampling, "MOST_FILES", 2)
    count = sum(len(files) for _directory, _names, files in os.walk(lab.store / "objects"))

    samples = [lab.engine.upkeep.sample() for _turn in range(count // 2 + 1)]

    assert {sample.files for sample in samples} == {2}
    assert sum(len(sample.broken) for sample in samples) == 1


def test_where_there_is_no_store_none_is_made(tmp_path: Path) -> None:
    lab = Lab(tmp_path)

    assert lab.engine.upkeep.sample().files == 0
    assert not lab.store.exists()
