"""What an operator installs: units, images and schedules that hold what they say, and notes that can be followed."""

import http.server
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.cli import COMMANDS
from gateway.cli.exits import Exit
from gateway.config import load_configuration
from gateway.home import Home

DEPLOY = Path(__file__).parent.parent / "deploy"
ROOT = DEPLOY.parent
PROGRAM = "/opt/takeback/.venv/bin/gateway"
UNITS = ("takeback.service", "takeback-prune.service", "takeback-prune.timer")
# systemd's own measure of how much of the machine a service can reach, from 0 to 10: its "OK" ends at 4.
MOST_EXPOSED = {"takeback.service": 2.0, "takeback-prune.service": 1.5}
DOCKERFILE = DEPLOY / "container" / "Dockerfile"


def run(*command: str | os.PathLike[str], **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, **options)


@pytest.fixture
def installed(tmp_path) -> Path:
    """The units as they would be installed, with a program that is there."""
    for name in UNITS:
        text = (DEPLOY / "systemd" / name).read_text()
        (tmp_path / name).write_text(text.replace(PROGRAM, "/bin/true"))
    return tmp_path


class Unit:
    """A unit file's settings; one that may stand twice is a list."""

    def __init__(self, name: str) -> None:
        self.settings: dict[str, list[str]] = {}
        for line in (DEPLOY / "systemd" / name).read_text().splitlines():
            key, separator, value = line.partition("=")
            if separator and not line.startswith("#"):
                self.settings.setdefault(key, []).append(value)

    def __getitem__(self, key: str) -> str:
        (value,) = self.settings[key]
        return value

    @property
    def environment(self) -> dict[str, str]:
        return dict(word.split("=", 1) for line in self.settings["Environment"] for word in line.split())


def test_the_units_are_what_systemd_understands(installed):
    verified = run("systemd-analyze", "verify", "--man=no", *(installed / name for name in UNITS))

    assert (verified.returncode, verified.stderr) == (0, "")


@pytest.mark.parametrize("name", MOST_EXPOSED)
def test_a_service_reaches_little_of_the_machine(installed, name):
    threshold = str(int(MOST_EXPOSED[name] * 10))

    judged = run("systemd-analyze", "security", "--offline=yes", "--no-pager", f"--threshold={threshold}",
                 installed / name)  # fmt: skip

    assert judged.returncode == 0, judged.stdout[-300:] + judged.stderr


@pytest.mark.parametrize("name", MOST_EXPOSED)
def test_a_unit_starts_a_command_that_there_is_and_knows_its_exit_codes(name):
    unit = Unit(name)
    program, command = unit["ExecStart"].split()

    assert (program, command in COMMANDS) == (PROGRAM, True)
    if name == "takeback.service":
        assert int(unit["RestartPreventExitStatus"]) == Exit.USAGE
    else:
        assert int(unit["SuccessExitStatus"]) == Exit.BUSY


def test_the_service_writes_its_home_and_the_workspaces_alone():
    unit = Unit("takeback.service")

    assert unit["ProtectSystem"] == "strict"
    assert unit["ReadWritePaths"] == "-/srv/takeback"
    assert f"/var/lib/{unit['StateDirectory']}" == unit.environment["TAKEBACK_HOME"]
    assert unit["User"] == "takeback"


def image() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile, each on one line."""
    lines = [line for line in DOCKERFILE.read_text().splitlines() if not line.startswith("#")]
    text = "\n".join(lines).replace("\\\n", " ")
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in text.splitlines() if line)]


def image_environment() -> dict[str, str]:
    return {
        name: value
        for word, rest in image()
        if word == "ENV"
        for name, _, value in (setting.partition("=") for setting in shlex.split(rest))
    }


def compose() -> dict[str, Any]:
    return yaml.safe_load((DEPLOY / "container" / "compose.yaml").read_text())


@pytest.mark.parametrize(
    "environment",
    [
        pytest.param(lambda: Unit("takeback.service").environment, id="unit"),
        pytest.param(image_environment, id="image"),
        pytest.param(lambda: image_environment() | compose()["services"]["takeback"]["environment"], id="compose"),
    ],
)
def test_the_variables_are_keys_that_there_are(tmp_path, environment):
    settings = load_configuration(Home(str(tmp_path)), environment()).settings

    assert settings.http.port == 9471


def test_the_image_is_what_a_linter_of_its_trade_calls_clean():
    linted = run(Path(sys.executable).with_name("hadolint"), DOCKERFILE)

    assert (linted.returncode, linted.stdout) == (0, "")


def test_what_the_image_copies_is_all_that_the_program_needs(tmp_path):
    for word, rest in image():
        if word == "COPY" and not rest.startswith("--from"):
            *sources, _ = rest.split()
            for source in sources:
                path = ROOT / source
                shutil.copytree(path, tmp_path / source) if path.is_dir() else shutil.copy(path, tmp_path / source)

    started = run(sys.executable, "-m", "gateway", "doctor", "--help", cwd=tmp_path, env={"PATH": os.defpath})
    project = (ROOT / "pyproject.toml").read_text()

    assert started.returncode == 0, started.stderr
    assert all((tmp_path / name).exists() for name in re.findall(r'"(README.md|LICENSE|requirements\.lock)"', project))
    assert (tmp_path / "deploy" / "install.py").exists()


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1)])
def test_the_images_health_check_asks_the_service(status, code):
    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    asked: list[str] = []
    with http.server.HTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        (check,) = [rest for word, rest in image() if word == "HEALTHCHECK"]
        _, *words = json.loads(check[check.index("CMD ") + 4 :])
        port = image_environment()["TAKEBACK_HTTP__PORT"]
        checked = run(sys.executable, *(word.replace(f":{port}/", f":{server.server_port}/") for word in words))
        server.shutdown()
        thread.join()

    assert (checked.returncode, asked) == (code, ["/healthz"])


def test_the_containers_run_as_nobody_special_and_change_nothing_but_their_volumes():
    (user,) = [rest for word, rest in image() if word == "USER"]
    service = compose()["services"]["takeback"]
    job = yaml.safe_load((DEPLOY / "container" / "prune-cronjob.yaml").read_text())
    pod = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]

    assert user == f"{pod['securityContext']['runAsUser']}:{pod['securityContext']['runAsGroup']}"
    assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
    assert (ROOT / "deploy" / "container" / service["build"]["context"]).resolve() == ROOT
    assert (ROOT / service["build"]["dockerfile"]) == DOCKERFILE
    assert (job["spec"]["concurrencyPolicy"], container["args"]) == ("Forbid", ["prune"])
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}


def test_the_cron_line_has_a_time_a_user_and_the_command_of_the_units():
    *variables, line = [
        line for line in (DEPLOY / "takeback.cron").read_text().splitlines() if not line.startswith("#")
    ]
    *times, user, _nice, _n, _10, program, command = line.split()

    assert variables == [f"TAKEBACK_HOME={Unit('takeback-prune.service').environment['TAKEBACK_HOME']}"]
    assert all(re.fullmatch(r"\*|\d+", field) for field in times)
    assert (len(times), user) == (5, "takeback")
    assert f"{program} {command}" == Unit("takeback-prune.service")["ExecStart"]


def notes() -> str:
    return (DEPLOY / "OPERATIONS.md").read_text()


def test_the_notes_name_every_file_that_an_operator_installs():
    named = [
        path.relative_to(DEPLOY) for path in DEPLOY.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    ]

    missing = [str(path) for path in named if path.parts[0] + "/" not in notes() and path.name not in notes()]

    assert missing == ["OPERATIONS.md"]


def test_a_backup_made_by_the_notes_while_the_service_runs_brings_everything_back(tmp_path):
    home, copy, restored, project = (tmp_path / name for name in ("home", "copy", "restored", "project"))
    project.mkdir()
    (project / "file").write_text("before\n")
    home.mkdir()
    (home / "config.yaml").write_text(f"checkpoints: {{enabled: true}}\nworkspaces: {{app: {{path: {project}}}}}\n")
    gateway = (sys.executable, "-m", "gateway")

    def follow(mark: str, at: Path) -> None:
        block = re.search(rf"<!-- {mark} -->\n```sh\n(.*?)```", notes(), re.DOTALL)
        assert block is not None
        script = block[1].replace("/var/lib/takeback", str(at)).replace("/var/backups/takeback", str(copy))
        done = run("sh", "-eu", "-c", script)
        assert (done.returncode, done.stderr) == (0, "")

    with subprocess.Popen(
        (*gateway, "run"),
        cwd=ROOT,
        env={**os.environ, "TAKEBACK_HOME": str(home)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as service:
        service.stdin.write(b"$ echo after > file\n")
        service.stdin.flush()
        assert any(b"checkpoint" in line for line in service.stdout), "it ended at once"
        follow("backup", home)
        service.terminate()
        service.communicate(timeout=20)
    follow("restore", restored)
    back = run(
        *(*gateway, "chat", "--workspace", project),
        cwd=ROOT,
        env={**os.environ, "TAKEBACK_HOME": str(restored)},
        input="/rollback 1 --all\n",
    )

    assert "Restored" in back.stdout, back.stderr
    assert (project / "file").read_text() == "before\n"
