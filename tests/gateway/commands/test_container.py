"""Chats whose workspace is in a sandbox: what they are told, and that a plugin's sandbox counts as one."""

import sys
from pathlib import Path

import pytest

from gateway.config import ConfigInvalid, Settings, load_configuration
from gateway.home import Home
from tests.gateway.commands.kit import running_gateway, settings_for, tree_of

PLUGIN = """
from engine.backends.base import Executed, ProcessResult

class Pod:
    kind = "pod"
    is_container = True
    files = {}

    def __init__(self, options, site):
        self.workdir = site.root
        self.size = options["size"]

    def run(self, command, cwd, env, timeout_s, on_output, stop, *, keep_background=False):
        return ProcessResult(0, None, head=f"{self.size} ran {command}\\n".encode())

    def execute(self, arguments, stdin=b""):
        return Executed(95, b"", b"")

    def close(self):
        pass
"""


@pytest.fixture
def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed distribution that registers a sandbox."""
    place = tmp_path / "installed"
    info = place / "takeback_test_pod-1.0.dist-info"
    info.mkdir(parents=True)
    (place / "takeback_test_pod.py").write_text(PLUGIN)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: takeback-test-pod\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[takeback.backends]\npod = takeback_test_pod:Pod\n")
    monkeypatch.syspath_prepend(place)
    monkeypatch.delitem(sys.modules, "takeback_test_pod", raising=False)


@pytest.fixture
def boxed(pod: None, app: Path) -> Settings:
    """Settings whose one workspace is in such a sandbox; read before the event loop runs, as in a start."""
    backend = {"kind": "pod", "options": {"size": "large"}}
    return settings_for(app, workspaces={"box": {"path": str(app), "backend": backend}}, default_workspace="box")


async def test_a_plugins_sandbox_runs_commands_and_gets_the_refusals(boxed: Settings, home: Path, app: Path) -> None:
    before = tree_of(app)

    async with running_gateway(home, boxed) as gateway:
        chat = gateway.chat()
        ran = (await chat.say("$ make")).text
        written = (await chat.say("/write app.py\nagent\n")).text
        refused = {(await chat.say(text)).text for text in ("/rollback 1", "/diff session", "/checkpoints on")}
        undone = (await chat.say("/undo")).text

    assert ran == "large ran make\n"
    assert "does not exist in the sandbox" in written
    (reason,) = refused
    assert "run in a container (pod)" in reason
    assert f"Only the conversation moved: {reason.rstrip()}" in undone
    assert tree_of(app) == before


@pytest.mark.parametrize(
    ("backend", "finding"),
    [
        ("{kind: dokcer}", "'dokcer' is no kind of backend; did you mean 'docker'?"),
        ("{kind: docker}", "needs the key image when its kind is docker, or name"),
        ("{kind: ssh}", "needs the key host when its kind is ssh"),
        ("{kind: ssh, host: h, image: x}", "has no use for image when its kind is ssh; it takes args, env, host"),
        ("{host: build}", "has no use for host when its kind is local; it takes no other keys"),
        ("{kind: docker, image: x, memory_mb: 0}", "memory_mb must be greater than 0"),
    ],
)
def test_a_backend_that_cannot_work_is_found_when_the_configuration_is_read(
    home: Path, backend: str, finding: str
) -> None:
    place = Home(str(home))
    place.ensure()
    Path(place.config).write_text(f"workspaces:\n  box: {{path: /srv/box, backend: {backend}}}\n")

    with pytest.raises(ConfigInvalid) as invalid:
        load_configuration(place, {})
    assert finding in str(invalid.value)


def test_a_plugins_kind_is_accepted_and_its_options_reach_the_engine(pod: None, home: Path) -> None:
    place = Home(str(home))
    place.ensure()
    Path(place.config).write_text(
        "workspaces:\n  box: {path: /srv/box, backend: {kind: pod, options: {size: large}}}\n"
        "  far: {path: /srv/far, backend: {kind: ssh, host: h, port: 2222, env: {CI: '1'}}}\n"
    )

    settings = load_configuration(place, {}).settings

    box, far = settings.backend_of("box"), settings.backend_of("far")
    assert (box.is_container, box.choice().options) == (True, {"size": "large"})
    assert (far.is_container, dict(far.choice().options)) == (False, {"host": "h", "port": 2222, "env": {"CI": "1"}})
