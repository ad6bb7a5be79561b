"""The project's own files: what is locked, what is declared, what is tracked, and what must stand in none of them."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
PACKAGES = ("gateway", "engine", "adapters")
LOCKS = ("requirements.lock", "requirements-dev.lock", "requirements-model.lock")
MODEL_AGENT = ROOT / "gateway" / "agents" / "model"
MODEL_EXTRAS = {"anthropic", "google", "model", "openai"}
SCRIPTS = ("deploy/run", "deploy/test", "deploy/lock", "deploy/environment.sh")
STARTED_BY_NAME = ("deploy/run", "deploy/test", "deploy/lock", ".ci/run")
TOP_LEVEL = {
    *PACKAGES,
    *LOCKS,
    *("pyproject.toml", "tests", "deploy", "README.md", "LICENSE", "CHANGELOG.md", ".ci", ".gitignore"),
}
# Each is spelled in two halves, so that this file does not hold it.
REGISTRIES = [a + b for a, b in [("pypi", ".org"), ("python", "hosted.org"), ("npm", "js.org"), ("deb.", "debian.org")]]
DEVELOPERS_PLACES = [a + b for a, b in [("/wo", "rk/"), ("/tmp/", "plan"), (".py", "env/"), ("file", ":///opt")]]
UNFINISHED = [
    a + b
    for a, b in [
        *[("# TO", "DO"), ("# FIX", "ME"), ("no ", "cover"), ("xf", "ail("), ("mark.", "skip"), ("pytest.", "skip")],
        *[("importor", "skip"), ("NotImpl", "ementedError")],
    ]
]


def pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def declared(*groups: str) -> list[Requirement]:
    """What pyproject.toml asks for: the program's dependencies, or those of the named groups and extras."""
    table = pyproject()
    named = {**table["dependency-groups"], **table["project"]["optional-dependencies"]}
    listed = [name for group in groups for name in named[group]]
    return [Requirement(line) for line in listed or table["project"]["dependencies"]]


def locked(name: str) -> dict[str, str]:
    """A lock file's releases by name."""
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    pins = [line.removesuffix("\\").partition(";")[0].strip().split("==") for line in lines if re.match(r"\w", line)]
    return {canonicalize_name(package): version for package, version in pins}


def tracked() -> list[str]:
    """The files that git knows or would take in."""
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    return [name for name in os.fsdecode(listed).split("\0") if name and (ROOT / name).is_file()]


@pytest.mark.parametrize(
    ("lock", "groups"),
    [
        ("requirements.lock", ()),
        ("requirements.lock", ("build",)),
        ("requirements-model.lock", ("build", "anthropic", "google", "model", "openai")),
        ("requirements-dev.lock", ("dev",)),
        ("requirements-dev.lock", ("daytona", "modal", "vercel")),
        ("requirements-dev.lock", ("anthropic", "google", "model", "openai")),
    ],
)
def test_the_lock_holds_a_fitting_release_of_all_that_is_declared(lock: str, groups: tuple[str, ...]) -> None:
    pins = locked(lock)

    unmet = [
        str(wanted)
        for wanted in declared(*groups)
        if not wanted.specifier.contains(pins.get(canonicalize_name(wanted.name), "0"), prereleases=True)
    ]

    assert unmet == [], "run: sh deploy/lock"


def test_the_tests_run_on_the_releases_that_the_program_runs_on() -> None:
    program, tests, model = map(locked, LOCKS)

    assert {name: model.get(name) for name in program} == program
    assert {name: tests.get(name) for name in model} == model


@pytest.mark.parametrize("lock", LOCKS)
def test_every_locked_release_is_pinned_by_hash(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8")
    releases = re.findall(r"^\w.*(?:\n +--hash=sha256:[0-9a-f]{64}.*)+", text, re.MULTILINE)

    assert len(releases) == len(re.findall(r"^\w", text, re.MULTILINE)) >= len(locked(lock))


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_file_says_how_to_renew_it_and_names_no_place_to_fetch_from(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8")

    assert "sh deploy/lock" in text.splitlines()[1]
    assert re.findall(r"\S*(?:://|-url|find-links|-host)\S*", text) == []


def test_what_is_installed_fits_together() -> None:
    checked = subprocess.run([sys.executable, "-I", "-m", "pip", "check"], capture_output=True, text=True, check=False)

    assert checked.returncode == 0, checked.stdout


def test_the_code_imports_what_is_declared_and_nothing_is_declared_in_vain() -> None:
    always, only_there = distributions_of(MODEL_AGENT)

    assert always == {canonicalize_name(wanted.name) for wanted in declared()}
    for extra in MODEL_EXTRAS:
        assert only_there - always == {canonicalize_name(wanted.name) for wanted in declared(extra)}


def distributions_of(special: Path) -> tuple[set[str], set[str]]:
    """What the code imports of others outside a directory, and inside it."""
    owners = packages_distributions()
    found: tuple[set[str], set[str]] = (set(), set())
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            for name in (module.partition(".")[0] for module in imports_of(path)):
                if name not in sys.stdlib_module_names and name not in PACKAGES:
                    found[special in path.parents].add(canonicalize_name(owners[name][0]))
    return found


def test_an_extra_holds_what_its_backend_loads_and_nothing_is_in_one_in_vain() -> None:
    owners = packages_distributions()
    extras = set(pyproject()["project"]["optional-dependencies"]) - MODEL_EXTRAS
    declared_by = {extra: {canonicalize_name(wanted.name) for wanted in declared(extra)} for extra in extras}
    loaded: dict[str, set[str]] = {extra: set() for extra in extras}

    for path in (ROOT / "engine" / "backends").glob("*.py"):
        for extra, module in loads_in(path):
            possible = {canonicalize_name(name) for name in owners[module.partition(".")[0]]}
            loaded[extra] |= possible & declared_by[extra] or {module}

    assert loaded == declared_by


def loads_in(path: Path) -> Iterator[tuple[str, str]]:
    """The libraries that a backend loads by name, each with the extra that its file belongs to."""
    calls = [node for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, ast.Call)]
    for call in calls:
        words = [word.value for word in call.args if isinstance(word, ast.Constant)]
        if isinstance(call.func, ast.Name) and call.func.id in {"import_module", "load_library"} and words:
            named = words[1] if call.func.id == "load_library" else words[0]
            yield path.stem.partition("_")[0], named


def imports_of(path: Path) -> set[str]:
    """The modules that a file imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def test_the_command_is_there_to_be_called() -> None:
    module, _, function = pyproject()["project"]["scripts"]["gateway"].partition(":")

    assert callable(getattr(__import__(module, fromlist=[function]), function))


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("shell", [found for found in map(shutil.which, ("sh", "dash", "bash")) if found])
def test_the_scripts_are_shell(shell: str, script: str) -> None:
    assert subprocess.run([shell, "-n", ROOT / script], check=False).returncode == 0


@pytest.mark.parametrize("script", STARTED_BY_NAME)
def test_what_is_started_by_name_is_executable(script: str) -> None:
    assert os.access(ROOT / script, os.X_OK)


def test_the_top_level_holds_what_it_should_and_nothing_else() -> None:
    assert {name.partition("/")[0] for name in tracked()} == TOP_LEVEL


@pytest.mark.parametrize("words", [REGISTRIES, DEVELOPERS_PLACES, UNFINISHED], ids=["hosts", "places", "unfinished"])
def test_no_file_holds_what_belongs_to_one_machine_or_is_unfinished(words: list[str]) -> None:
    texts = {name: (ROOT / name).read_bytes().decode("utf-8", "replace") for name in tracked()}

    assert [f"{name}: {word}" for name, text in texts.items() for word in words if word in text] == []
