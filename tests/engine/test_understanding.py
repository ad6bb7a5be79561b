"""What a command would do, seen from a workspace on this machine: links lead where they lead now."""

import pytest

from engine.model import Verdict
from tests.engine.lab import Lab


@pytest.mark.parametrize(
    ("command", "verdict", "outside"),
    [
        ("rm out/f", Verdict.DESTRUCTIVE, ("out/f",)),
        ("echo x > out/../f", Verdict.DESTRUCTIVE, ("out/../f",)),
        ("./build out/", Verdict.UNKNOWN, ("out/",)),
        ("cat out/f", Verdict.READ_ONLY, ("out/f",)),
        ("rm in/f", Verdict.DESTRUCTIVE, ()),
        ("rm in/../f", Verdict.DESTRUCTIVE, ()),
        ("rm ../ws/f", Verdict.DESTRUCTIVE, ()),
        ("rm ~/ws/f", Verdict.DESTRUCTIVE, ()),
        ("echo x > /dev/null", Verdict.READ_ONLY, ()),
    ],
)
def test_a_path_is_outside_where_its_links_lead_outside(
    lab: Lab, command: str, verdict: Verdict, outside: tuple[str, ...]
) -> None:
    (lab.home / "elsewhere" / "deep").mkdir(parents=True)
    (lab.root / "sub").mkdir()
    (lab.root / "out").symlink_to(lab.home / "elsewhere" / "deep")
    (lab.root / "in").symlink_to("sub")

    understood = lab.engine.understand(lab.workspace, command)

    assert understood.verdict is verdict
    assert understood.outside == outside


def test_a_root_behind_a_link_is_the_directory_it_leads_to(lab: Lab) -> None:
    (lab.home / "way").symlink_to(lab.root)
    workspace = lab.engine.open_workspace(str(lab.home / "way"))

    assert lab.engine.understand(workspace, f"rm {lab.home}/way/f {lab.root}/g").outside == ()


@pytest.mark.parametrize("name", ["\udcff", "a\0b", "x" * 5000])
def test_a_name_that_no_file_can_have_is_understood_all_the_same(lab: Lab, name: str) -> None:
    assert lab.engine.understand(lab.workspace, f"rm '{name}'").verdict is not Verdict.READ_ONLY


@pytest.mark.parametrize("command", ["echo $((", "echo 'a\x01b' > f", "true; " * 20_000 + "rm /etc/f"])
def test_what_cannot_be_read_to_its_end_may_name_any_path(lab: Lab, command: str) -> None:
    understood = lab.engine.understand(lab.workspace, command)

    assert understood.verdict is not Verdict.READ_ONLY
    assert any(command.startswith(outside[:5]) for outside in understood.outside)


def test_a_home_is_the_persons(lab: Lab) -> None:
    assert lab.engine.understand(lab.workspace, "rm ~/f ~/ws/f").outside == (f"{lab.home}/f",)
