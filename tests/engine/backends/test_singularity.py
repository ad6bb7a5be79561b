"""Instances of Singularity and Apptainer: what they are asked, whose they are, what is said."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.backends.container import this_owner
from engine.errors import ToolRefused
from tests.apptainer import Apptainer
from tests.engine.backends.conftest import Elsewhere

NAME = "takeback-0123456789ab"


@pytest.fixture
def opened(apptainer: Apptainer) -> Iterator[list[Elsewhere]]:
    """The places that a test made; closed at its end, and no instance is left."""
    made: list[Elsewhere] = []
    yield made
    for run in made:
        run.backend.close()
    for name in apptainer.names():
        apptainer("instance", "stop", name)


def place(opened: list[Elsewhere], base: Path, apptainer: Apptainer, **options: object) -> Elsewhere:
    opened.append(Elsewhere(base, "singularity", apptainer.options(**options)))
    return opened[-1]


def test_an_instance_holds_nothing_of_the_host_and_goes_with_the_backend(
    tmp_path: Path, apptainer: Apptainer, opened: list[Elsewhere]
) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "here").write_text("the host's\n")
    run = place(opened, tmp_path, apptainer, cpus=2, memory_mb=512, pids=64)

    assert run("ls -A; pwd").output.decode() == f"{tmp_path / 'ws'}\n"
    asked = (apptainer.state / NAME / "arguments").read_text().split()
    run.backend.close()

    flags = ["--containall", "--writable-tmpfs", "--net", "--network=none"]
    assert asked == [*flags, "--cpus=2", "--memory=512M", "--pids-limit=64", apptainer.image, NAME]
    assert apptainer.names() == []
    assert os.listdir(tmp_path / "private" / "singularity") == []


def test_the_hosts_directory_is_there_when_it_is_mounted(
    tmp_path: Path, apptainer: Apptainer, opened: list[Elsewhere]
) -> None:
    run = place(opened, tmp_path, apptainer, mount=True, path="/work")

    assert run("pwd; echo seen > made").output == b"/work\n"
    assert (run.workspace / "made").read_text() == "seen\n"


def test_one_that_somebody_else_started_is_used_and_left_alone(
    tmp_path: Path, apptainer: Apptainer, opened: list[Elsewhere]
) -> None:
    apptainer("instance", "start", apptainer.image, "theirs")
    run = place(opened, tmp_path, apptainer, name="theirs", path="/tmp")

    assert run("pwd").output == b"/tmp\n"
    run.backend.close()
    assert apptainer.names() == ["theirs"]


def test_what_a_dead_process_left_behind_goes_at_the_next_start(
    tmp_path: Path, apptainer: Apptainer, opened: list[Elsewhere]
) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    notes = tmp_path / "private" / "singularity"
    notes.mkdir(parents=True)
    for name, owner in ((NAME, f"{dead.pid}.1"), ("old", f"{dead.pid}.1"), ("living", this_owner())):
        apptainer("instance", "start", apptainer.image, name)
        (notes / name).write_text(owner)

    assert place(opened, tmp_path, apptainer)("echo mine").output == b"mine\n"

    assert apptainer.names() == ["living", NAME]
    assert (notes / NAME).read_text() == this_owner()


def test_an_instance_that_vanishes_is_said_and_the_next_command_has_another(
    tmp_path: Path, apptainer: Apptainer, opened: list[Elsewhere]
) -> None:
    run = place(opened, tmp_path, apptainer)
    run("touch made")
    apptainer("instance", "stop", NAME)

    with pytest.raises(ToolRefused, match=f"the container '{NAME}' is gone or was stopped meanwhile"):
        run("ls")
    assert run("ls -A").output == b""


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"cli": "/no/such/apptainer"}, "the program '/no/such/apptainer' is not installed here"),
        ({"image": "/no/such.sif"}, "the image '/no/such.sif' is not on this machine; build it first: apptainer build"),
        ({"image": None, "name": "none"}, "no instance 'none' runs, and no image is configured"),
        ({"args": ["--odd"]}, "no instance could be started: FATAL:   unknown flag: --odd"),
    ],
)
def test_without_the_program_or_the_image_it_is_said(
    tmp_path: Path, apptainer: Apptainer, opened: list[Elsewhere], options: dict[str, object], reason: str
) -> None:
    with pytest.raises(ToolRefused, match=reason):
        place(opened, tmp_path, apptainer, **options)("true")
    assert apptainer.names() == []
