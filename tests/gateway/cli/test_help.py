"""Help, versions and mistakes on the command line."""

import json
import shlex
import subprocess
import sys
import time

import pytest

from engine.errors import StoreBusy, WorkspaceRefused
from gateway.cli import COMMANDS, cli
from gateway.cli.exits import Exit, cause_of, code_of, sentence_of
from gateway.config import ConfigInvalid, Problem
from gateway.home import HomeUnusable
from gateway.state.errors import DatabaseUnusable


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_every_command_has_help_with_examples_and_exit_codes(gateway, name):
    result = gateway(*([name] if name else []), "--help")

    assert result.returncode == Exit.OK
    assert "Examples:" in result.stdout
    assert "Exit codes:" in result.stdout
    for code in Exit:
        assert f"  {code.value} " in result.stdout


def test_the_list_of_commands_says_what_each_command_says_of_itself():
    for name in COMMANDS:
        command = cli.get_command(None, name)
        assert command.get_short_help_str(limit=200) == COMMANDS[name]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nope"], "No such command 'nope'."),
        (["docter"], "No such command 'docter'. Did you mean 'doctor'?"),
        (["."], "No such command '.'. To work in a directory: gateway chat --workspace ."),
        (["/nonexistent/app"], "To work in a directory: gateway chat --workspace /nonexistent/app"),
        (["chat", "--workspace", "/nonexistent"], "'/nonexistent' does not exist"),
        (["chat", "--chat", ""], "a chat's name has 1 to 200 characters"),
        (["prune", "--retention-days", "-1"], "--retention-days"),
    ],
)
def test_a_mistake_on_the_command_line_is_said_and_exits_with_2(gateway, arguments, said):
    result = gateway(*arguments)

    assert result.returncode == Exit.USAGE
    assert said in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("arguments", [["version"], ["--version"]])
def test_the_version_is_one_line(gateway, arguments):
    result = gateway(*arguments)

    assert result.returncode == Exit.OK
    assert result.stdout.startswith("takeback ")
    assert result.stdout.count("\n") == 1


@pytest.mark.parametrize("arguments", [["--help"], ["version"], ["chat", "--help"], ["checkpoints", "--help"]])
def test_help_and_version_import_nothing_heavy(gateway, arguments):
    script = (
        "import sys\nfrom gateway.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "heavy = {'pydantic', 'yaml', 'anyio', 'asyncio', 'prompt_toolkit', 'aiosqlite', 'git', 'engine.api'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, env=gateway.environment, check=True
    )

    assert result.stderr == "[]\n"


def test_a_reader_that_has_seen_enough_ends_it_quietly(gateway):
    process = gateway.start("--help", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()

    _, said = process.communicate(timeout=30)

    assert said == b""


def test_closed_standard_streams_are_no_accident_waiting_to_happen(gateway, workspace):
    line = shlex.join(gateway.line("chat", "--workspace", str(workspace)))

    result = subprocess.run(
        ["sh", "-c", f"{line} <&- >&- 2>&-"], env=gateway.environment, check=False, capture_output=True, timeout=60
    )

    assert result.returncode == Exit.OK
    assert json.loads(gateway("doctor", "--json").stdout)["healthy"] is True


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (StoreBusy("the store", "gateway 5", 10), Exit.BUSY, "busy: the store is held by gateway 5 (waited 10 s)."),
        (WorkspaceRefused("/", "it is /"), Exit.ERROR, "/ cannot be guarded: it is /."),
        (DatabaseUnusable("/x", "disk full"), Exit.ERROR, "the database /x cannot be used: disk full."),
        (HomeUnusable("/x", "why"), Exit.ERROR, "/x cannot be the gateway's home: why."),
        (ConfigInvalid([Problem("/x:1", "wrong")]), Exit.USAGE, "/x:1: wrong"),
        (PermissionError(13, "Permission denied", "/x"), Exit.ERROR, "/x: Permission denied"),
        (ExceptionGroup("", [ExceptionGroup("", [HomeUnusable("/x", "why")])]), Exit.ERROR, "/x cannot be"),
        (ValueError("a defect"), None, "a defect"),
        (OSError(5, "an error without a file"), None, ""),
    ],
)
def test_each_error_has_its_exit_code_and_sentence(error, code, sentence):
    cause = cause_of(error)

    assert code_of(cause) == code
    assert sentence_of(cause).startswith(sentence)


@pytest.mark.bench
def test_help_answers_at_once(gateway):
    gateway("--help")
    began = time.perf_counter()
    gateway("--help")

    assert time.perf_counter() - began < 0.3
