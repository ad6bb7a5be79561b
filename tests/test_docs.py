"""What the README shows is what the program does."""

import json
import os
import re
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest
import yaml
from anyio import to_thread

from gateway.commands.table import COMMANDS
from gateway.config import load_configuration
from gateway.config.providers import PROVIDERS, problem_of
from gateway.config.settings import Settings
from gateway.home import Home
from tests.gateway.agents.model.server import Call, Says, model_server

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(name: str) -> str:
    """Return the fenced block, or the table, that follows a marker."""
    after = README.split(f"<!-- {name} -->\n", 1)[1]
    if after.startswith("```"):
        return after.split("\n", 1)[1].split("\n```", 1)[0] + "\n"
    return after.split("\n\n", 1)[0]


def neutral(text: str, workspace: str = "/home/you/code/app") -> str:
    """Return text with ids, times and the workspace's path made the same."""
    text = re.sub(r"\b[0-9a-f]{7,8}\b", "ID", text.replace(workspace, "/home/you/code/app"))
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d", "TIME", text)
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def gateway(
    *arguments: str, home: Path, stdin: str | None = None, variables: dict[str, str] | None = None
) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-m", "gateway", *arguments],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONUNBUFFERED": "1", **(variables or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    if stdin is not None:
        process.stdin.write(stdin)
    return process


def test_session_is_what_the_program_answers(tmp_path: Path) -> None:
    app = tmp_path / "code" / "app"
    (app / "docs").mkdir(parents=True)
    (app / "greet.py").write_text('def greet(name):\n    return f"Hello, {name}!"\n')
    (app / "notes.md").write_text("# Notes\n")
    (app / "docs" / "guide.md").write_text("guide\n")
    shown = block("session")

    heard = play(shown, app, tmp_path, {}, edits_after=1)

    assert neutral(heard, str(app)) == neutral(shown)


def play(shown: str, app: Path, home: Path, variables: dict[str, str], edits_after: int = 2) -> str:
    """Type what a session shows and return what is heard; somebody edits notes.md after so many messages."""
    heard = ""
    arguments = ("chat", "--workspace", str(app), "--checkpoints")
    with gateway(*arguments, home=home, variables=variables) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number, step in enumerate(re.split(r"^> ", shown, flags=re.MULTILINE)[1:], start=1):
            message, _newline, answer = step.partition("\n")
            process.stdin.write(message + "\n")
            process.stdin.flush()
            lines = "".join(process.stdout.readline() for _line in answer.splitlines())
            heard += f"> {message}\n{lines}"
            if number == edits_after:
                with (app / "notes.md").open("a") as notes:
                    notes.write("- ship it\n")
        return heard + process.communicate()[0]


async def test_a_session_with_a_model_is_what_the_program_answers(tmp_path: Path) -> None:
    app = tmp_path / "code" / "app"
    (app / "docs").mkdir(parents=True)
    (app / "greet.py").write_text('def greet(name):\n    return f"Hello, {name}!"\n')
    (app / "notes.md").write_text("# Notes\n")
    (app / "docs" / "guide.md").write_text("guide\n")
    shown = block("model-session")
    answers = [line for line in shown.splitlines() if line.startswith(("Done:", "Yes,"))]
    change = ['    return f"Hello, {name}!"', "=======", '    return f"Goodbye, {name}!"']
    diff = "\n".join(["greet.py", "<<<<<<< SEARCH", *change, ">>>>>>> REPLACE", ""])

    async with model_server("openai") as server:
        server.will(
            Says(calls=[Call("patch", {"text": diff})]),
            Says(calls=[Call("terminal", {"command": "rm -r docs"})]),
            Says(answers[0]),
            Says(calls=[Call("read_file", {"path": "notes.md"})]),
            Says(answers[1]),
        )
        variables = {
            "TAKEBACK_AGENT__KIND": "model",
            "TAKEBACK_AGENT__MODEL": server.model,
            "TAKEBACK_AGENT__BASE_URL": server.base_url,
        }
        heard = await to_thread.run_sync(play, shown, app, tmp_path, variables)

    assert neutral(heard, str(app)) == neutral(shown)


def test_a_model_is_set_up_as_the_program_takes_it() -> None:
    install, key, start = block("model").splitlines()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    named = re.findall(r"\w+", install.partition("TAKEBACK_EXTRAS=")[2].partition(":")[0])
    variables = dict(word.split("=", 1) for word in start.split() if "=" in word)

    assert install.startswith("export TAKEBACK_EXTRAS=")
    assert set(named) & set(extras) == {"openai", "anthropic", "google", "model"}
    usual = {variable for provider in PROVIDERS.values() for variable in provider.variables}
    assert set(re.findall(r"[A-Z_]+_API_KEY", key)) <= usual
    settings = load_configuration(Home("/nonexistent"), variables).settings
    assert problem_of(settings.agent.choice(None)) is None


def test_jsonl_example_is_what_the_program_answers(tmp_path: Path) -> None:
    lines = block("jsonl").splitlines()
    match = re.fullmatch(r"\$ echo '(.*)' \| sh deploy/run --jsonl", lines[0])
    assert match is not None

    with gateway("chat", "--jsonl", home=tmp_path, stdin=match[1] + "\n") as process:
        out, err = process.communicate()

    assert [json.loads(line) for line in out.splitlines()] == [json.loads(line) for line in lines[1:]], err


def test_command_table_is_the_routers() -> None:
    rows = [re.fullmatch(r"\| `([^`]+)` \| (.+) \|", line) for line in block("commands").splitlines()[2:]]

    shown = [(row[1], row[2]) for row in rows if row is not None]
    assert shown == [(usage.form, usage.does) for command in COMMANDS for usage in command.usages]


def test_configuration_example_is_valid() -> None:
    Settings.model_validate(yaml.safe_load(block("config")))


def test_library_example_restores_what_its_block_changed(tmp_path: Path) -> None:
    app = tmp_path / "code" / "app"
    app.mkdir(parents=True)
    (app / "a.py").write_text("one\n")

    def rename_everything() -> None:
        (app / "a.py").rename(app / "b.py")
        raise ZeroDivisionError

    code = block("library").replace("/home/you", str(tmp_path)).replace("/usr/bin:/bin", os.environ["PATH"])
    with pytest.raises(ZeroDivisionError):
        exec(textwrap.dedent(code), {"rename_everything": rename_everything})

    assert (app / "a.py").read_text() == "one\n"
    assert not (app / "b.py").exists()


def test_readme_names_every_subcommand() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gateway", "--help"], cwd=ROOT, check=True, capture_output=True, text=True
    )

    commands = re.findall(r"^  (\w+)  +[A-Z]", done.stdout.split("Commands:")[1], flags=re.MULTILINE)
    assert commands
    for command in commands:
        assert f"gateway {command}" in README, command
    codes = re.findall(r"^    (\d+)  +", done.stdout.split("Exit codes:")[1], flags=re.MULTILINE)
    assert codes
    for code in codes:
        assert re.search(rf"\b{code} ", README.split("Exit codes:")[1]), code


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
