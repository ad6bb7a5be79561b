"""What was called read-only changes nothing when real shells run it.

Commands are built from names that exist only in a scratch directory, and run there with both shells an agent's
command may meet. A command that is not called read-only is not run at all.
"""

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.tools.shell import Verdict, understand
from tests.engine.shell.tables import reading, wrapping
from tests.engine.shell.tables.hostile import HOSTILE
from tests.engine.shell.tables.places import INSIDE, NEVER_READ_ONLY

FILES = {
    "a": b"b\na\n-o\nz\n",
    "b": b"x=1\n",
    "x": b"x y\n",
    "file": b"a[$(touch new)]\n",
    "d/e": b"e\n",
    "-o": b"q\n",
    "w out": b"",
    "--output=c": b"r\n",
}
OLD = 1_000_000_000

SHELLS = [shell for shell in ("bash", "sh") if shutil.which(shell)]

Tree = dict[str, tuple[int, int, int, bytes | None]]


@dataclass(frozen=True)
class Scratch:
    """A directory whose every change shows."""

    path: Path

    def fill(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        for name, content in FILES.items():
            file = self.path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
            os.utime(file, (OLD, OLD))

    def tree(self) -> Tree:
        """Every name with its mode, and a file's size, time and bytes."""
        found: Tree = {}
        for entry in sorted(self.path.rglob("*")):
            status = entry.lstat()
            file = entry.is_file() and not entry.is_symlink()
            times = (status.st_size, status.st_mtime_ns) if file else (0, 0)
            found[str(entry.relative_to(self.path))] = (status.st_mode, *times, entry.read_bytes() if file else None)
        return found

    def run(self, shell: str, command: str) -> None:
        """Run a command for at most a second, and end whatever it started."""
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.path), "LC_ALL": "C.UTF-8"}
        process = subprocess.Popen(
            [shell, "-c", command],
            cwd=self.path,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        with contextlib.suppress(subprocess.TimeoutExpired):  # one that waits is ended with its group
            process.wait(timeout=1)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scratch]:
    place = Scratch(tmp_path_factory.mktemp("shell") / "scratch")
    place.fill()
    yield place
    shutil.rmtree(place.path, ignore_errors=True)


def check(scratch: Scratch, command: str) -> None:
    understood = understand(command, cwd=str(scratch.path), root=str(scratch.path), home=str(scratch.path))
    if understood.verdict is not Verdict.READ_ONLY:
        return
    before = scratch.tree()
    for shell in SHELLS:
        scratch.run(shell, command)
        after = scratch.tree()
        if after != before:
            scratch.fill()
        assert after == before, f"{shell} changed something"


PAYLOADS = [
    "rm a",
    "touch new",
    "sort -o a b",
    "> a",
    "tee a < b",
    "cp a b",
    "uniq a b",
    "find . -delete",
    "sed -i d a",
    "ls",
    "cat a",
    "echo hi",
    "sort a",
    "wc -l a",
    "true",
    "test -f a",
    "sed -n p a",
    "find . -name a",
    "grep a a",
    "uniq a",
    "read v",
    "awk 1 a",
    "cat *",
    "sort *",
    "xargs cat < a",
    "[ a = b ]",
    "[[ a ]]",
    "x=1",
]

DRESSES = [
    "{}",
    "'{}'",
    '"{}"',
    "# {}\n",
    "\\{}",
    "$({})",
    "`{}`",
    '"$({})"',
    '"`{}`"',
    "$'{}'",
    "cat <<E\n{}\nE\n",
    "cat <<'E'\n{}\nE\n",
    "cat <<-E\n\t{}\n\tE\n",
    "cat <<A <<B\n{}\nA\nB\n",
    "{{ {}; }}",
    "({})",
    "x={}",
    "x='{}'",
    "${{x:-{}}}",
    '"${{x:-{}}}"',
    "${{x/{}/}}",
    "$(( {} ))",
    "[ {} ]",
    "[[ {} ]]",
    "(( {} ))",
    "\\\n{}",
    "#{}",
    "echo {}",
    'echo "{}"',
    '"\\"{}"',
    "'\\''{}''",
    "{} \\\n",
    "<( {} )",
    "<<< '{}'",
    "case {} in *) ;; esac",
    "case a in *) {};; esac",
    "f() {{ {}; }}",
    "if {}; then :; fi",
    "for i in {}; do ls; done",
    "while {}; do break; done",
    "time {}",
    "! {}",
    "eval '{}'",
    'eval "{}"',
    "sh -c '{}'",
    "trap '{}' EXIT",
    "env {}",
    "nice {}",
    "command {}",
    "find . -exec {} \\;",
    "xargs {}",
    "a[{}]=1",
    "a=({})",
    "{},b",
    "{} &",
]

SEPARATORS = ["; ", "\n", " && ", " || ", " | ", " ", " & ", "", "\t", " ;\n"]

LEXEMES = [
    *"' \" \\ $ ` ; # ( ) { } | & = a E ! ~ * [ ] $' \"$ '' \"\" x= $( $(( )) ${ ${x:- }} <( <<<".split(" "),  # noqa: SIM905
    " ",
    "\n",
    "\t",
    "\\\n",
    "touch new",
    "\ntouch new\n",
    "; touch new",
    "echo a",
    "<<E\n",
    "\nE\n",
    "<<-E\n",
    "[[ ",
    " ]]",
    "[ ",
    "a) ",
    "if ",
    "; fi",
    "; then ",
    "case a in ",
    ";; esac",
]


@st.composite
def built_commands(draw: st.DrawFn) -> str:
    """Payloads, each dressed up a few times over, one after another."""
    parts: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        part = draw(st.sampled_from(PAYLOADS))
        for dress in draw(st.lists(st.sampled_from(DRESSES), max_size=3)):
            part = dress.replace("{}", part).replace("{{", "{").replace("}}", "}")
        parts += [part, draw(st.sampled_from(SEPARATORS))]
    return "".join(parts)


lexeme_soup = st.lists(st.sampled_from(LEXEMES), min_size=1, max_size=10).map(lambda parts: "echo " + "".join(parts))


@settings(
    max_examples=400, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(command=st.one_of(built_commands(), lexeme_soup))
def test_a_built_command_called_read_only_changes_nothing(scratch, command):
    check(scratch, command)


# Those that follow a file, wait for a terminal or sleep would only cost their second.
ENDLESS = ("tail -f", "watch", "sleep", "man", "yes")

PROGRAMS = [command for command in [*reading.READ_ONLY, *wrapping.READ_ONLY] if not command.startswith(ENDLESS)]

PLACES = [place.format("ls") for place in INSIDE if place not in NEVER_READ_ONLY and "while" not in place]


# Not what would set the clock, talk to a network or leave the scratch directory.
DISGUISES = [
    command
    for group in HOSTILE.values()
    for command in group
    if "\0" not in command and not any(part in command for part in ("date", "/tcp/", "cd /", "watch", "\udcff"))
]


def changing(scratch: Scratch, commands: list[str], shells: list[str]) -> list[str]:
    """Those of the commands that change something when these shells run them."""
    before = scratch.tree()
    found: list[str] = []
    for command in commands:
        for shell in shells:
            scratch.run(shell, command)
        if scratch.tree() != before:
            found.append(command)
            scratch.fill()
    return found


def test_reading_programs_change_nothing(scratch):
    assert changing(scratch, PROGRAMS, SHELLS[:1]) == []


def test_reading_changes_nothing_wherever_a_script_puts_it(scratch):
    assert changing(scratch, PLACES, SHELLS) == []


def test_many_disguises_really_change_something(scratch):
    """The hostile table is no invention, and the scratch directory shows what happens in it."""
    assert len(changing(scratch, DISGUISES, SHELLS)) > 100
