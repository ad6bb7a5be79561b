"""The whole output of a command, in a private file of Takeback's own, for a while."""

import os
from pathlib import Path

import pytest

from engine.errors import ToolRefused
from engine.tools.outputs import KEPT_S, Outputs
from tests.engine.lab import Lab

MUCH = "head -c 3000000 /dev/zero | tr '\\0' x; echo; echo end"


def test_it_holds_what_a_result_only_shows_the_ends_of(lab: Lab) -> None:
    lab.next_turn()

    result = lab.engine.terminal(lab.call(), MUCH, timeout_s=60, whole_output=True)

    assert "[cut: " in result.text
    assert result.output_file is not None
    assert lab.engine.outputs.read(result.output_file) == b"x" * 3_000_000 + b"\nend\n"
    (path,) = (lab.home / ".takeback" / "outputs").iterdir()
    assert (path.name, path.stat().st_mode & 0o777) == (result.output_file, 0o600)
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_nothing_is_kept_unless_it_is_asked_for(lab: Lab) -> None:
    result = lab.run("echo one")

    assert result.output_file is None
    assert not (lab.home / ".takeback" / "outputs").exists()


def test_bytes_that_are_no_text_are_in_it_as_they_are(lab: Lab) -> None:
    lab.next_turn()

    result = lab.engine.terminal(lab.call(), r"printf '\0\377\033[1m'", timeout_s=60, whole_output=True)

    assert lab.engine.outputs.read(result.output_file or "") == b"\0\xff\x1b[1m"


def test_it_is_bounded_and_counts_what_it_had_no_room_for(tmp_path: Path) -> None:
    outputs = Outputs(str(tmp_path / "outputs"), limit_bytes=10)

    with outputs.new() as file:
        for _ in range(3):
            file.write(b"1234567")

    assert (outputs.read(file.name), file.cut_bytes) == (b"1234567123", 11)


def test_a_command_that_could_not_run_leaves_none(lab: Lab) -> None:
    lab.next_turn()

    result = lab.engine.terminal(lab.call(), "a\0b", timeout_s=60, whole_output=True)

    assert (result.ok, result.output_file) == (False, None)
    assert list((lab.home / ".takeback" / "outputs").iterdir()) == []


def test_only_what_is_old_expires(tmp_path: Path) -> None:
    outputs = Outputs(str(tmp_path))
    with outputs.new() as old, outputs.new() as new:
        old.write(b"old")
        new.write(b"new")
    (tmp_path / "somebody-elses.txt").write_text("kept")
    for name in (old.name, "somebody-elses.txt"):
        os.utime(tmp_path / name, (0, 0))

    assert outputs.expire(KEPT_S) == 1
    assert outputs.read(new.name) == b"new"
    assert sorted(os.listdir(tmp_path)) == sorted([new.name, "somebody-elses.txt"])
    with pytest.raises(ToolRefused, match="is not kept any more; run the command again"):
        outputs.read(old.name)


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "output-1.txt/../x", "", "output-0123456789abcdef.txt"])
def test_no_other_file_is_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "secret").write_text("secret")

    with pytest.raises(ToolRefused):
        Outputs(str(tmp_path / "outputs")).read(name)
