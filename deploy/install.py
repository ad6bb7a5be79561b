"""Makes one virtual environment hold what a lock file says; deploy/environment.sh starts it when stamps differ.

``python -I deploy/install.py CHECKOUT ENVIRONMENT LOCKFILE``

An environment is built from scratch and stamped last. The one it replaces stands aside meanwhile and comes back
under its own name if the build fails, or at the next start if it was killed. Only the project's own entry is
renewed in place, which needs no network. A directory of that name that was not made here is never touched. One
process at a time works on an environment; the kernel lets go of the lock when it ends, however it ends.
Standard library only.
"""

import fcntl
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

# One small file of Python that is released as source alone. Every other package is a wheel: nothing is compiled.
SOURCE_ONLY = frozenset({"forbiddenfruit"})
LINES_SHOWN = 20
ADVICE = """
takeback: what was installed before is kept as it was. The first start, and one after the lock file changed,
takeback: needs the network (a proxy or a mirror is taken from pip's own settings) and a Python from 3.11 to
takeback: 3.14 (PYTHON=/path/to/python3.13 names one). Then run the same command again."""


class InstallFailed(Exception):
    """The environment could not be made; the message says why and what to do next."""


@dataclass(frozen=True, slots=True)
class Environment:
    """Where an environment stands and what its stamps have to say."""

    checkout: Path
    path: Path
    lockfile: Path

    @property
    def former(self) -> Path:
        """The environment that is being replaced."""
        return self.path.with_name(f"{self.path.name}.former")

    @property
    def unfinished(self) -> Path:
        """Marks a directory as ours until the stamps do."""
        return self.path / "takeback-unfinished"

    @property
    def packages_stamp(self) -> Path:
        """A copy of the lock file that was installed."""
        return self.path / "takeback-packages"

    @property
    def project_stamp(self) -> Path:
        """Where the checkout stood, and its pyproject.toml, when the project's entry was made."""
        return self.path / "takeback-project"

    @property
    def project(self) -> bytes:
        """What `project_stamp` holds when it is up to date; environment.sh compares the same bytes."""
        return os.fsencode(self.checkout) + b"\n" + (self.checkout / "pyproject.toml").read_bytes()

    def has_packages(self) -> bool:
        """Whether the packages of the lock file are installed."""
        return holds(self.packages_stamp, self.lockfile.read_bytes()) and (self.path / "bin/python").exists()

    def has_project(self) -> bool:
        """Whether the project's entry is up to date."""
        return holds(self.project_stamp, self.project) and (self.path / "bin/gateway").exists()


def main(arguments: Sequence[str]) -> int:
    """Bring the environment up to date and return the exit code."""
    checkout, path, lockfile = map(Path, arguments)
    environment = Environment(checkout, path, lockfile)
    started = time.monotonic()
    try:
        with alone(environment):
            recover(environment)
            changed = update(environment)
    except InstallFailed as failure:
        say(str(failure))
        return 1
    except OSError as error:
        say(f"{error.filename or path}: {error.strerror or error}")
        say(f"the first start writes into {checkout}: give it space and the right to write, then try again")
        return 1
    except KeyboardInterrupt:
        say("interrupted; the next start begins again")
        return 130
    if changed:
        say(f"ready after {time.monotonic() - started:.0f} s")
    return 0


@contextmanager
def alone(environment: Environment) -> Iterator[None]:
    """Hold the environment's lock. Its file is never removed: a removed one could be locked twice."""
    lock = os.open(environment.path.with_name(f"{environment.path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say(f"another start is making {environment.path.name}; waiting for it")
        fcntl.flock(lock, fcntl.LOCK_EX)
    except OSError as error:
        say(f"going on without a lock ({error.strerror}): do not start twice at once")
    try:
        yield
    finally:
        os.close(lock)


def recover(environment: Environment) -> None:
    """Clear away what an unfinished build left behind, and put the environment it was replacing back."""
    if environment.packages_stamp.exists():
        remove(environment.former)
    elif environment.former.exists():
        remove(environment.path)
        environment.former.rename(environment.path)
    elif environment.path.exists():
        if any(environment.path.iterdir()) and not environment.unfinished.exists():
            message = "was not made by this script, which leaves it alone. Move it away, then try again."
            raise InstallFailed(f"{environment.path} {message}")
        remove(environment.path)


def update(environment: Environment) -> bool:
    """Do what the stamps ask for; whether that was anything."""
    if environment.has_packages():
        if environment.has_project():
            return False
        install_project(environment)
        return True
    replaces = environment.path.exists()
    what = "renewing" if replaces else "first start: making"
    say(f"{what} {environment.path} with Python {platform.python_version()} (once, about half a minute)")
    if replaces:
        environment.path.rename(environment.former)
    try:
        build(environment)
    except BaseException:
        recover(environment)
        raise
    remove(environment.former)
    return True


def build(environment: Environment) -> None:
    """Make the environment from nothing: the stamp that says so comes last."""
    environment.path.mkdir()
    environment.unfinished.touch()
    run("make the environment", [lasting_python(), "-I", "-m", "venv", str(environment.path)])
    wheels, sources = split(environment.lockfile.read_text(encoding="utf-8"))
    say(f"installing {len(wheels) + len(sources)} packages of {environment.lockfile.name}")
    install(environment, "wheels", wheels, "--only-binary", ":all:")
    # After the wheels, which hold what builds it: no unpinned builder is fetched.
    install(environment, "sources", sources, "--no-build-isolation")
    install_project(environment)
    write(environment.path / "takeback-lock", environment.lockfile.name.encode() + b"\n")
    write(environment.packages_stamp, environment.lockfile.read_bytes())
    environment.unfinished.unlink()


def install(environment: Environment, name: str, requirements: Sequence[str], *options: str) -> None:
    """Install pinned releases whose hashes match, and nothing else."""
    if not requirements:
        return
    listed = environment.path / f"takeback-{name}.txt"
    listed.write_text("\n".join(requirements), encoding="utf-8")
    pip(environment, "install", "--require-hashes", "--no-deps", *options, "--requirement", str(listed))


def install_project(environment: Environment) -> None:
    """Enter the checkout itself, so that its code runs from where it stands."""
    environment.project_stamp.unlink(missing_ok=True)
    offline = ("--no-deps", "--no-index", "--no-build-isolation")
    pip(environment, "install", *offline, "--editable", str(environment.checkout))
    write(environment.project_stamp, environment.project)


def pip(environment: Environment, *arguments: str) -> None:
    """Run the environment's own pip."""
    python = str(environment.path / "bin/python")
    run(f"install into {environment.path.name}", [python, "-I", "-u", "-m", "pip", *arguments])


def run(goal: str, command: Sequence[str]) -> None:
    """Run a command and show how far it is; `InstallFailed` carries its last lines."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=own_environment(),
    )
    last: deque[str] = deque(maxlen=LINES_SHOWN)
    with process, Progress() as progress:
        for line in process.stdout or ():
            last.append(line.rstrip())
            progress.show(line)
    if process.returncode != 0:
        raise InstallFailed("\n  ".join([f"could not {goal}:", *last]) + ADVICE)


class Progress:
    """One line that changes in place, for a person at a terminal; nothing anywhere else."""

    def __init__(self) -> None:
        self._shown = False

    def __enter__(self) -> Self:
        return self

    def show(self, line: str) -> None:
        """Tell what one line of pip's output says."""
        step = re.match(r"Collecting (\S+?)==|(Installing) collected", line)
        if step and sys.stderr.isatty():
            self._put(f"  fetching {step[1]}" if step[1] else "  unpacking")
            self._shown = True

    def __exit__(self, *_: object) -> None:
        if self._shown:
            self._put("")

    @staticmethod
    def _put(text: str) -> None:
        sys.stderr.write(f"\r\033[K{text}")
        sys.stderr.flush()


def own_environment() -> dict[str, str]:
    """Return the caller's variables, which may name a proxy or a mirror, without those that lead elsewhere."""
    led_astray = {"PYTHONPATH", "PYTHONHOME", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_REQUIRE_HASHES"}
    kept = {name: value for name, value in os.environ.items() if name not in led_astray}
    return kept | dict.fromkeys(("PIP_NO_INPUT", "PIP_DISABLE_PIP_VERSION_CHECK"), "1") | {"PIP_USER": "0"}


def lasting_python() -> str:
    """Return this Python by the name that goes away with its version: an upgrade is then seen, not stumbled over."""
    versioned = Path(sys.executable).with_name(f"python{sys.version_info.major}.{sys.version_info.minor}")
    return str(versioned if versioned.exists() else sys.executable)


def split(lock: str) -> tuple[list[str], list[str]]:
    """Part a lock file's requirements, each with its hashes, into wheels and releases of source alone."""
    wheels: list[str] = []
    sources: list[str] = []
    for requirement in re.findall(r"^[A-Za-z0-9].*(?:\n[ ]+--hash.*)*", lock, re.MULTILINE):
        name = requirement.partition("==")[0]
        (sources if name in SOURCE_ONLY else wheels).append(requirement)
    return wheels, sources


def holds(file: Path, content: bytes) -> bool:
    """Whether a file is there with exactly this content."""
    try:
        return file.read_bytes() == content
    except FileNotFoundError:
        return False


def write(file: Path, content: bytes) -> None:
    """Write a stamp whole or not at all."""
    half = file.with_suffix(".half")
    half.write_bytes(content)
    half.replace(file)


def remove(directory: Path) -> None:
    """Remove a directory tree, if it is there."""
    if directory.exists():
        shutil.rmtree(directory)


def say(text: str) -> None:
    """Tell the person who waits."""
    sys.stderr.write(f"takeback: {text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
