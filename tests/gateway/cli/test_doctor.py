"""``gateway doctor`` says what is wrong and what to do about it."""

import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys

import pytest

from engine.api import Engine
from engine.host.watching import WatchingImpossible
from gateway.cli.exits import Exit
from gateway.home import Home
from gateway.installation.credentials import SLACK_SCOPES
from gateway.installation.examination import examine
from gateway.installation.findings import Finding, Level, Patient
from gateway.installation.surroundings import CHECKS, UNITS
from tests.gateway.cli.platform_server import SLACK_APP, SLACK_BOT, TELEGRAM


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
    assert named["store"][0]["detail"].endswith(", 1 workspace")
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
        file.write("telegram: {token: '1:SECRET', api_base: 'http://127.0.0.1:1'}\n")
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


def test_tokens_and_backends_are_well_or_problems_with_remedies(gateway, platforms, workspace):
    good = {
        "TAKEBACK_TELEGRAM__TOKEN": TELEGRAM,
        "TAKEBACK_TELEGRAM__API_BASE": platforms.address,
        "TAKEBACK_SLACK__BOT_TOKEN": SLACK_BOT,
        "TAKEBACK_SLACK__APP_TOKEN": SLACK_APP,
        "TAKEBACK_SLACK__API_BASE": platforms.address,
    }
    bad = {
        "TAKEBACK_TELEGRAM__TOKEN": "12:bad",
        "TAKEBACK_SLACK__BOT_TOKEN": "xoxb-bad",
        "TAKEBACK_WORKSPACES__BOX__PATH": str(workspace),
        "TAKEBACK_WORKSPACES__BOX__BACKEND": '{"kind": "docker", "cli": "no-such-program", "image": "dev"}',
    }

    well, named = findings(gateway, **good)
    ill, bad_named = findings(gateway, **(good | bad))

    assert well == Exit.OK
    assert [named[name][0]["detail"] for name in ("telegram", "slack", "slack app")] == [
        *("@some_bot", "takeback in Some Team", "the token is good")
    ]
    assert ill == Exit.ERROR
    assert bad_named["telegram"][0]["detail"] == "Telegram refuses the token: Unauthorized"
    assert "@BotFather" in bad_named["telegram"][0]["remedy"]
    assert bad_named["slack"][0]["detail"] == "Slack refuses the token: invalid_auth"
    assert "12:bad" not in json.dumps(bad_named)
    assert bad_named["backend of box"][0]["remedy"] == "Install no-such-program, or correct workspaces.box.backend."


@pytest.mark.parametrize("lacks", [[], ["chat:write", "files:read"]])
def test_scopes_that_the_slack_app_lacks_are_a_problem(gateway, platforms, lacks):
    platforms.scopes = ",".join(SLACK_SCOPES - {*lacks})
    tokens = {
        "TAKEBACK_SLACK__BOT_TOKEN": SLACK_BOT,
        "TAKEBACK_SLACK__APP_TOKEN": SLACK_APP,
        "TAKEBACK_SLACK__API_BASE": platforms.address,
    }

    code, named = findings(gateway, **tokens)

    assert code == (Exit.ERROR if lacks else Exit.OK)
    found = [(finding["detail"], finding["remedy"]) for finding in named.get("slack scopes", ())]
    assert [detail for detail, _ in found] == (["the app lacks chat:write, files:read"] if lacks else [])
    assert all("deploy/slack/manifest.yaml" in remedy for _, remedy in found)


def test_a_clock_that_stands_before_what_was_stored_is_a_problem(gateway, workspace):
    gateway("chat", "--workspace", str(workspace), stdin="$ true\n")
    with sqlite3.connect(os.path.join(gateway.home, "gateway.db")) as database:
        database.execute("UPDATE turns SET started_at = '2999-01-01T00:00:00.000000Z'")
    database.close()

    code, named = findings(gateway)

    assert code == Exit.ERROR
    assert "something was stored at 2999-01-01" in named["clock"][0]["detail"]
    assert "timedatectl" in named["clock"][0]["remedy"]


def test_a_running_service_is_asked_how_it_is(gateway):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    environment = {**gateway.environment, "TAKEBACK_HTTP__PORT": port}
    process = gateway.start("run", stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
    assert any(b" started " in line for line in process.stderr)
    present = findings(gateway, TAKEBACK_HTTP__PORT=port)[1]["service"][0]
    process.terminate()
    process.communicate(timeout=20)

    assert present["level"] == "ok"
    assert present["detail"].startswith("ready at http://127.0.0.1:")


@pytest.mark.parametrize(("wanted", "said"), [("true", True), ("false", False)])
def test_a_workspace_whose_changes_cannot_be_heard_is_named_with_the_reason(tmp_path, workspace, wanted, said):
    def refuse():
        raise WatchingImpossible("the machine's limit of watchers is reached")

    home = Home(str(tmp_path / "home"))
    engine = Engine(home.checkpoints, user_home=str(tmp_path), search_path=os.environ["PATH"])
    engine._feed.make_watcher = refuse
    environment = {"TAKEBACK_WORKSPACES__APP__PATH": str(workspace), "TAKEBACK_CHECKPOINTS__CHANGE_FEED": wanted}

    found = {finding.name: finding for finding in examine(home, environment, engine)}

    assert found["workspace app"].level is Level.OK
    assert ("limit of watchers" in found["workspace app"].detail) is said


def test_an_installed_unit_that_is_not_this_versions_is_a_warning(tmp_path):
    deploy = os.path.join(os.path.dirname(__file__), "..", "..", "..", "deploy", "systemd")
    for name in UNITS[:2]:
        shutil.copy(os.path.join(deploy, name), tmp_path / name)
    with open(tmp_path / UNITS[0], "a") as file:
        file.write("# mine\n")
    engine = Engine(str(tmp_path / "checkpoints"), user_home=str(tmp_path))
    patient = Patient(Home(str(tmp_path / "home")), engine, None, None, units=str(tmp_path))

    found: dict[str, Finding] = {finding.name: finding for check in CHECKS for finding in check(patient)}

    assert found["unit takeback.service"].level is Level.WARNING
    assert "systemctl edit takeback.service" in found["unit takeback.service"].remedy
    assert found["unit takeback-prune.service"].level is Level.OK
    assert "unit takeback-prune.timer" not in found


MODELS = {
    "TAKEBACK_AGENT__KIND": "model",
    "TAKEBACK_AGENT__MODEL": "openai:gpt-5",
    "TAKEBACK_AGENT__MODELS": '{"local": {"model": "openai:qwen3", "base_url": "http://127.0.0.1:9/v1"}}',
}


def test_a_model_without_its_key_is_a_problem_and_one_with_its_own_server_is_not(gateway):
    code, named = findings(gateway, **MODELS)

    assert code == Exit.ERROR
    assert named["model default"][0]["detail"].startswith("default has no key; set OPENAI_API_KEY, or agent.api_key")
    assert named["model local"][0]["level"] == "ok"


def test_a_model_whose_library_is_missing_is_a_problem_with_the_command_that_installs_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pydantic_ai", None)
    home = Home(str(tmp_path / "home"))
    home.ensure()

    engine = Engine(home.checkpoints, user_home=str(tmp_path), search_path=os.environ["PATH"])
    found = {finding.name: finding for finding in examine(home, MODELS, engine)}

    assert found["model default"].level is Level.PROBLEM
    assert "pip install 'takeback[openai]'" in found["model default"].detail
