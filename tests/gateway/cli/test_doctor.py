"""``gateway doctor`` says what is wrong and what to do about it."""

import json
import os
import shutil

import pytest

from gateway.cli.exits import Exit


def findings(gateway, **environment) -> tuple[int, dict[str, list[dict]]]:
    result = gateway("doctor", "--json", **environment)
    report = json.loads(result.stdout)
    named: dict[str, list[dict]] = {}
    for finding in report["findings"]:
        named.setdefault(finding["name"], []).append(finding)
    assert report["healthy"] is (result.returncode == Exit.OK)
    return result.returncode, named


def test_a_fresh_machine_is_well_and_nothing_is_made(gateway):
    result = gateway("doctor")

    assert result.returncode == Exit.OK
    assert "Everything is well." in result.stdout
    assert not os.path.exists(gateway.home)


def test_a_used_installation_is_well(gateway, workspace):
    gateway("chat", "--checkpoints", "--workspace", str(workspace), stdin="$ rm notes.md\n")

    code, named = findings(gateway)

    assert code == Exit.OK
    assert named["store"][0]["detail"].endswith("1 workspaces")
    assert {finding["level"] for found in named.values() for finding in found} == {"ok"}


def test_a_missing_git_is_a_problem_with_a_remedy(gateway, tmp_path):
    code, named = findings(gateway, PATH=str(tmp_path))

    assert code == Exit.ERROR
    assert named["git"][0]["level"] == "problem"
    assert "Install git" in named["git"][0]["remedy"]


def test_every_mistake_in_the_configuration_is_a_problem(gateway):
    code, named = findings(gateway, TAKEBACK_APPROVALS="some", TAKEBACK_LOGS__LEVEL="loud")

    assert code == Exit.ERROR
    assert [finding["level"] for finding in named["configuration"]] == ["problem", "problem"]


def test_a_home_or_a_configuration_that_others_may_read_is_a_warning(gateway):
    os.makedirs(gateway.home, mode=0o755)
    os.chmod(gateway.home, 0o755)
    path = os.path.join(gateway.home, "config.yaml")
    with open(path, "w") as file:
        file.write("telegram: {token: SECRET}\n")
    os.chmod(path, 0o644)

    code, named = findings(gateway)

    assert code == Exit.OK
    assert named["home"][0]["remedy"] == f"chmod 700 '{gateway.home}'"
    assert named["configuration"][0]["remedy"] == f"chmod 600 '{path}'"
    assert "SECRET" not in json.dumps(named)


@pytest.mark.parametrize("path", ["/nonexistent", "/"])
def test_a_workspace_that_cannot_be_guarded_is_a_problem(gateway, path):
    code, named = findings(gateway, TAKEBACK_WORKSPACES__APP__PATH=path)

    assert code == Exit.ERROR
    assert named["workspace app"][0]["level"] == "problem"


def test_a_damaged_database_is_a_problem(gateway):
    os.makedirs(gateway.home, mode=0o700)
    with open(os.path.join(gateway.home, "gateway.db"), "wb") as file:
        file.write(b"nonsense" * 1000)

    code, named = findings(gateway)

    assert code == Exit.ERROR
    assert "is damaged" in named["database"][0]["detail"]


def test_a_damaged_store_is_a_problem(gateway, workspace):
    gateway("chat", "--checkpoints", "--workspace", str(workspace), stdin="$ rm notes.md\n")
    with open(os.path.join(gateway.home, "checkpoints", "store", "HEAD"), "w") as file:
        file.write("nonsense")
    shutil.rmtree(os.path.join(gateway.home, "checkpoints", "store", "objects"))

    code, named = findings(gateway)

    assert code == Exit.ERROR
    assert "gateway checkpoints verify" in named["store"][0]["remedy"]
