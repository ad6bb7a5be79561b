"""The two commands on a fresh machine: the real scripts, Python, pip and environments, on a small project of its own.

Nothing is fetched: the one package it needs lies in a directory, and pip is told to look nowhere else.
"""

import base64
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

PYPROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""
# The least that pip takes for an editable build: a line that leads to the checkout, and a command.
BACKEND = """
import os, zipfile

def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    name = "small-1-py3-none-any.whl"
    files = {
        "small.pth": os.getcwd(),
        "small-1.dist-info/METADATA": "Metadata-Version: 2.1\\nName: small\\nVersion: 1\\n",
        "small-1.dist-info/WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
        "small-1.dist-info/entry_points.txt": "[console_scripts]\\ngateway = gateway:main\\n",
    }
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
        wheel.writestr("small-1.dist-info/RECORD", "".join(f"{path},,\\n" for path in files))
    return name
"""
GATEWAY = """
import json, os, sys
from importlib.metadata import version

def main():
    typed = sys.stdin.read()
    print(json.dumps({"args": sys.argv[1:], "cwd": os.getcwd(), "needed": version("needed"), "typed": typed}))
"""


@dataclass(frozen=True)
class Checkout:
    """A clone of the small project, with the real scripts in it."""

    path: Path
    shelf: Path

    def command(self, *arguments: str) -> list[str]:
        return ["sh", str(self.path / "deploy/run"), *arguments]

    def environment(self, **variables: str) -> dict[str, str]:
        """What the scripts see: a Python to find, a shelf instead of a network, no home."""
        offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.shelf), "PIP_CONFIG_FILE": os.devnull}
        return {"PATH": os.defpath, "PYTHON": sys.executable, **offline, **variables}

    def run(
        self, *arguments: str, env: Mapping[str, str] | None = None, cwd: Path | None = None, typed: str = ""
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments),
            env=self.environment() if env is None else env,
            cwd=cwd or self.path,
            input=typed,
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )

    def lock(self, version: int, digest: str | None = None, *, name: str = "requirements.lock") -> None:
        """Pin a release of the package that the project needs."""
        digest = digest or hashlib.sha256(wheel_on(self.shelf, version).read_bytes()).hexdigest()
        text = f"# said by nobody\nneeded=={version} \\\n    --hash=sha256:{digest}\n    # via small\n"
        (self.path / name).write_text(text, encoding="utf-8")


def wheel_on(shelf: Path, version: int) -> Path:
    return shelf / f"needed-{version}-py3-none-any.whl"


def make_wheel(shelf: Path, version: int) -> None:
    """Put a release of the package on the shelf."""
    info = f"needed-{version}.dist-info"
    files = {
        "needed.py": b"",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: needed\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(wheel_on(shelf, version), "w") as wheel:
        record = ""
        for name, content in files.items():
            wheel.writestr(name, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record += f"{name},sha256={digest},{len(content)}\n"
        wheel.writestr(f"{info}/RECORD", f"{record}{info}/RECORD,,\n")


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("shelf")
    for version in (1, 2):
        make_wheel(made, version)
    return made


def clone(directory: Path, shelf: Path) -> Checkout:
    """A clean clone, in a directory whose name has a space and a quote."""
    path = directory / "a 'check' out"
    shutil.copytree(ROOT / "deploy", path / "deploy")
    for name, text in {"pyproject.toml": PYPROJECT, "backend.py": BACKEND, "gateway.py": GATEWAY}.items():
        (path / name).write_text(text, encoding="utf-8")
    checkout = Checkout(path, shelf)
    checkout.lock(1)
    return checkout


@pytest.fixture
def fresh(tmp_path: Path, shelf: Path) -> Checkout:
    return clone(tmp_path, shelf)


@pytest.fixture(scope="module")
def first_start(
    tmp_path_factory: pytest.TempPathFactory, shelf: Path
) -> tuple[Checkout, subprocess.CompletedProcess[str]]:
    """A first start from another directory, without a home, with words for the program."""
    checkout = clone(tmp_path_factory.mktemp("clone"), shelf)
    return checkout, checkout.run("--jsonl", "two words", cwd=Path("/"), typed="hello\n")


@pytest.fixture
def started(first_start: tuple[Checkout, subprocess.CompletedProcess[str]], tmp_path: Path) -> Checkout:
    """A checkout that has been started once, and was moved since."""
    path = tmp_path / "moved"
    shutil.copytree(first_start[0].path, path, symlinks=True)
    return Checkout(path, first_start[0].shelf)


def said(output: str) -> dict[str, object]:
    """What the program wrote; nothing else may stand on stdout."""
    answer = json.loads(output)
    assert isinstance(answer, dict)
    return answer


def test_the_first_start_makes_the_environment_and_hands_everything_to_the_program(
    first_start: tuple[Checkout, subprocess.CompletedProcess[str]],
) -> None:
    _, finished = first_start

    assert finished.returncode == 0, finished.stderr
    assert said(finished.stdout) == {
        "args": ["chat", "--jsonl", "two words"],
        "cwd": "/",
        "needed": "1",
        "typed": "hello\n",
    }
    assert "first start: making" in finished.stderr
    assert "ready after" in finished.stderr


def test_the_second_start_says_nothing_and_needs_neither_python_nor_packages(
    first_start: tuple[Checkout, subprocess.CompletedProcess[str]],
) -> None:
    checkout, _ = first_start
    env = checkout.environment(PYTHON="/nowhere/python3", PIP_FIND_LINKS="/nowhere", HOME="/dev/null/home")

    finished = checkout.run(env=env)

    assert (finished.returncode, finished.stderr) == (0, "")
    assert said(finished.stdout)["args"] == ["chat"]


@pytest.mark.parametrize(
    ("typed", "started_with"),
    [
        ([], ["chat"]),
        (["--checkpoints", "--workspace", "x"], ["chat", "--checkpoints", "--workspace", "x"]),
        (["doctor", "--json"], ["doctor", "--json"]),
        (["chat", "--help"], ["chat", "--help"]),
        (["--help"], ["--help"]),
        (["-h"], ["-h"]),
        (["--version"], ["--version"]),
    ],
)
def test_options_mean_chat_and_a_word_means_a_command(
    first_start: tuple[Checkout, subprocess.CompletedProcess[str]], typed: Sequence[str], started_with: Sequence[str]
) -> None:
    assert said(first_start[0].run(*typed).stdout)["args"] == started_with


def test_a_stray_python_path_does_not_reach_the_program(
    first_start: tuple[Checkout, subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('astray')", encoding="utf-8")
    checkout, _ = first_start

    assert checkout.run(env=checkout.environment(PYTHONPATH=str(tmp_path))).returncode == 0


def test_a_moved_checkout_works_without_fetching_anything(started: Checkout) -> None:
    finished = started.run(env=started.environment(PIP_FIND_LINKS="/nowhere"))

    assert finished.returncode == 0, finished.stderr
    assert str(started.path) in (started.path / ".venv/bin/gateway").read_text(encoding="utf-8")


def test_a_changed_project_file_is_entered_without_fetching_anything(started: Checkout) -> None:
    with (started.path / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write("# another word\n")

    assert started.run(env=started.environment(PIP_FIND_LINKS="/nowhere")).returncode == 0
    assert started.run().stderr == ""


def test_a_changed_lock_file_renews_the_environment(started: Checkout) -> None:
    started.lock(2)

    finished = started.run()

    assert "renewing" in finished.stderr
    assert said(finished.stdout)["needed"] == "2"
    assert {path.name for path in started.path.glob(".venv*")} == {".venv", ".venv.lock"}


def test_what_reaches_models_is_installed_where_it_is_asked_for_and_stays(started: Checkout) -> None:
    started.lock(2, name="requirements-model.lock")

    asked = started.run(env=started.environment(TAKEBACK_EXTRAS="openai,google"))
    later = started.run()
    unknown = started.run(env=started.environment(TAKEBACK_EXTRAS="openai,opanai"))

    assert [said(finished.stdout)["needed"] for finished in (asked, later)] == ["2", "2"]
    assert "renewing" in asked.stderr
    assert later.stderr == ""
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert "opanai is none of openai, anthropic, google, model, none" in unknown.stderr


def test_a_renewal_that_fails_says_why_and_leaves_what_was_there(started: Checkout) -> None:
    former = (started.path / "requirements.lock").read_bytes()
    started.lock(2, digest="0" * 64)

    failed = started.run()
    (started.path / "requirements.lock").write_bytes(former)
    finished = started.run(env=started.environment(PIP_FIND_LINKS="/nowhere"))

    assert (failed.returncode, failed.stdout) == (1, "")
    assert "DO NOT MATCH" in failed.stderr
    assert "kept as it was" in failed.stderr
    assert said(finished.stdout)["needed"] == "1"


def kill_while_installing(checkout: Checkout) -> None:
    with subprocess.Popen(
        checkout.command(), env=checkout.environment(), stderr=subprocess.PIPE, start_new_session=True
    ) as killed:
        assert killed.stderr
        while b"installing" not in killed.stderr.readline():
            assert killed.poll() is None
        os.killpg(killed.pid, signal.SIGKILL)


def test_a_first_start_that_was_killed_is_made_good_by_the_next(fresh: Checkout) -> None:
    kill_while_installing(fresh)

    finished = fresh.run()

    assert finished.returncode == 0, finished.stderr
    assert said(finished.stdout)["needed"] == "1"


def test_a_renewal_that_was_killed_leaves_what_was_there(started: Checkout) -> None:
    started.lock(2)
    kill_while_installing(started)
    started.lock(1)

    finished = started.run(env=started.environment(PIP_FIND_LINKS="/nowhere"))

    assert finished.returncode == 0, finished.stderr
    assert said(finished.stdout)["needed"] == "1"
    assert {path.name for path in started.path.glob(".venv*")} == {".venv", ".venv.lock"}


def test_two_first_starts_at_once_make_one_environment(fresh: Checkout) -> None:
    both = [
        subprocess.Popen(
            fresh.command(str(number)),
            env=fresh.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in (1, 2)
    ]
    outputs = [process.communicate(timeout=240) for process in both]

    assert [process.returncode for process in both] == [0, 0], outputs
    assert [said(out)["args"] for out, _ in outputs] == [["1"], ["2"]]
    assert sum("first start: making" in err for _, err in outputs) == 1
    assert sum("waiting for it" in err for _, err in outputs) == 1


def test_an_environment_that_somebody_else_made_is_left_alone(fresh: Checkout) -> None:
    theirs = fresh.path / ".venv/bin/python"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("theirs", encoding="utf-8")

    finished = fresh.run()

    assert finished.returncode == 1
    assert "was not made by this script" in finished.stderr
    assert theirs.read_text(encoding="utf-8") == "theirs"


PRETENDED = {
    "without venv": ("sys.modules['ensurepip'] = None", "cannot make virtual environments", "apt install python3."),
    "too old": ("sys.version_info = (3, 9, 2)", "is older than 3.11", "apt install python3 python3-venv"),
    "without ssl": ("sys.modules['ssl'] = None", "without its ssl or sqlite3 module", "brew install python"),
    "a shim": ("sys.exit(127)", "is needed and was not found\n", "PYTHON=/path/to/python3.11"),
}


@pytest.mark.parametrize(("pretence", "reason", "advice"), PRETENDED.values(), ids=PRETENDED)
def test_a_machine_without_a_usable_python_is_told_what_to_install(
    fresh: Checkout, tmp_path: Path, pretence: str, reason: str, advice: str
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("sh", "dirname", "cmp", "cat"):
        (tools / name).symlink_to(shutil.which(name) or name)
    # The script's own probe, in a real Python that lacks what is pretended.
    python = tools / "python3"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -c "import sys; {pretence}\n$3"\n', encoding="utf-8")
    python.chmod(0o755)
    env = {name: value for name, value in fresh.environment(PATH=str(tools)).items() if name != "PYTHON"}

    finished = fresh.run(env=env)

    assert (finished.returncode, finished.stdout) == (1, "")
    assert reason in finished.stderr
    assert advice in finished.stderr
    assert not (fresh.path / ".venv").exists()


def test_a_python_that_was_named_and_does_not_start_is_named(fresh: Checkout) -> None:
    finished = fresh.run(env=fresh.environment(PYTHON="/nowhere/python3.13"))

    assert finished.returncode == 1
    assert "/nowhere/python3.13 (from the variable PYTHON) does not start as Python 3" in finished.stderr
