"""``gateway init`` writes a configuration that holds, and never over one that is there."""

import os
import re
import stat

import pytest
import yaml

from gateway.cli.exits import Exit
from gateway.config import keys, load_configuration
from gateway.config.backend import OPTIONS_OF
from gateway.config.example import render
from gateway.home import Home
from tests.gateway.cli.screens import Screen

EXAMPLE = os.path.join(os.path.dirname(__file__), "..", "..", "..", "deploy", "config.example.yaml")


def uncommented(text: str) -> str:
    """The file with every default made live."""
    return re.sub(r"^( *)#(?=[^ #\n])", r"\1", text, flags=re.MULTILINE)


def test_what_is_written_is_valid_commented_and_private(gateway, workspace):
    result = gateway("init", "--workspace", str(workspace), "--checkpoints")

    assert (result.returncode, result.stderr) == (Exit.OK, "")
    path = os.path.join(gateway.home, "config.yaml")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    settings = load_configuration(Home(gateway.home), {}).settings
    assert settings.default_workspace == "project"
    assert settings.workspaces["project"].path == str(workspace)
    assert settings.checkpoints.enabled is True
    with open(path) as file:
        assert "# Checkpoints kept per workspace" in file.read()


def test_a_configuration_that_is_there_stays(gateway, workspace):
    os.makedirs(gateway.home)
    path = os.path.join(gateway.home, "config.yaml")
    with open(path, "w") as file:
        file.write("approvals: all\n")

    refused = gateway("init", "--workspace", str(workspace))
    with open(path) as file:
        assert file.read() == "approvals: all\n"
    forced = gateway("init", "--workspace", str(workspace), "--force", "--name", "mine", "--no-checkpoints")

    assert refused.returncode == Exit.ERROR
    assert "is there already and was left as it is" in refused.stderr
    assert forced.returncode == Exit.OK
    with open(f"{path}.before") as file:
        assert file.read() == "approvals: all\n"
    settings = load_configuration(Home(gateway.home), {}).settings
    assert (settings.default_workspace, settings.checkpoints.enabled) == ("mine", False)


def test_a_choice_that_is_not_valid_writes_nothing(gateway, workspace):
    result = gateway("init", "--workspace", str(workspace), "--name", "a/b")

    assert result.returncode == Exit.USAGE
    assert "is no name for a workspace" in result.stderr
    assert not os.path.exists(os.path.join(gateway.home, "config.yaml"))


def test_in_a_terminal_it_asks_for_what_is_not_given(gateway, workspace):
    screen = Screen(gateway.line("init"), env=gateway.environment, cwd=str(workspace))
    screen.shows(f"Directory that chats work in [{workspace}]:")
    screen.press("\r")
    screen.shows("Its name [project]:")
    screen.press("mine\r")
    screen.shows("Take checkpoints")
    screen.press("n\r")

    assert screen.ends() == Exit.OK
    settings = load_configuration(Home(gateway.home), {}).settings
    assert settings.workspaces["mine"].path == str(workspace)
    assert settings.checkpoints.enabled is False


def test_without_a_terminal_the_workspace_has_to_be_given(gateway):
    result = gateway("init")

    assert result.returncode == Exit.USAGE
    assert "--workspace is needed where nobody can be asked" in result.stderr


def test_the_example_in_deploy_is_what_the_settings_say():
    with open(EXAMPLE, encoding="utf-8") as file:
        assert file.read() == render()


@pytest.mark.parametrize("backend", [None, *OPTIONS_OF])
def test_the_example_is_valid_as_it_is_and_with_every_key_live(tmp_path, monkeypatch, backend):
    monkeypatch.setenv("HOME", str(tmp_path))
    home = Home(str(tmp_path / "home"))
    home.ensure()
    with open(home.config, "w", encoding="utf-8") as file:
        file.write(render() if backend is None else every_key_live(backend))

    assert load_configuration(home, {}).warnings == ()


def every_key_live(backend):
    """The example with all of its keys; those of a backend are never all for one kind."""
    tree = yaml.safe_load(uncommented(render()))
    section = tree["workspaces"]["app"]["backend"]
    tree["workspaces"]["app"]["backend"] = {name: section[name] for name in OPTIONS_OF[backend]} | {"kind": backend}
    return yaml.safe_dump(tree)


def test_the_example_shows_every_key():
    tree = yaml.safe_load(uncommented(render()))

    missing = [keys.dotted(path) for path in keys.all_paths() if not _shown(tree, path)]

    # A workspace's own sections take the keys of the common ones, which are shown in full.
    assert [path for path in missing if not path.startswith(("workspaces.*.checkpoints.", "workspaces.*.agent."))] == []


def _shown(tree: object, path: tuple[str, ...]) -> bool:
    for name in path:
        if not isinstance(tree, dict):
            return False
        name = next(iter(tree)) if name == "*" else name  # noqa: PLW2901
        if name not in tree:
            return False
        tree = tree[name]
    return True
