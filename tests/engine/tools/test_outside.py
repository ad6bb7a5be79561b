"""What a command changed beyond the workspace is said: no checkpoint reaches it."""

from pathlib import Path

import pytest

from engine.tools.outside import outside_stamps
from tests.engine.lab import Lab


@pytest.fixture
def elsewhere(lab: Lab, tmp_path: Path) -> Path:
    place = tmp_path / "elsewhere"
    place.mkdir()
    (place / "f").write_text("old\n")
    (place / "g").write_text("old\n")
    lab.edit("x", "x\n")
    (lab.root / "lnk").symlink_to(place)
    (lab.root / "lf").symlink_to(place / "f")
    return place


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("rm lnk/g", "lnk/g"),
        ("echo K > lnk/f", "lnk/f"),
        ("echo K > lf", "lf"),
        ("rm -rf lnk/", "lnk/"),
        ("cp x {place}/f", "{place}/f"),
        ("cp x {place}/new", "{place}/new"),
        ("chmod 600 {place}/f", "{place}/f"),
        ("rm {place}/*", "{place}/f, {place}/g"),
    ],
)
def test_change_outside_is_named(lab: Lab, elsewhere: Path, command: str, said: str) -> None:
    result = lab.run(command.format(place=elsewhere))

    wanted = f"changed outside the workspace, where no checkpoint reaches: {said.format(place=elsewhere)}"
    assert wanted in result.notes


@pytest.mark.parametrize("command", ["cp {place}/f copy", "cat {place}/f > here", "echo x > x", "cat lf", "rm lf"])
def test_what_is_only_read_or_lies_inside_is_not(lab: Lab, elsewhere: Path, command: str) -> None:
    result = lab.run(command.format(place=elsewhere))

    assert not [note for note in result.notes if "outside" in note]
    assert (elsewhere / "f").read_text() == "old\n"


def test_pattern_that_would_take_long_to_look_for_is_left_alone(lab: Lab, elsewhere: Path) -> None:
    few, many = f"{elsewhere.parent}/*/*", f"{elsewhere.parent}/*/*/*"
    (elsewhere / "deep").mkdir()
    (elsewhere / "deep" / "h").write_text("old\n")

    assert [name for name in outside_stamps(lab.workspace, [few]) if name != few]
    assert list(outside_stamps(lab.workspace, [many])) == [many]
