"""Where keys may be: in the header of a request, and nowhere else."""

from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from gateway.app import make_agents, make_engine
from gateway.config import Configuration, load_configuration
from gateway.home import Home
from gateway.logs import logging_to
from tests.gateway.agents.model.server import KEY, Breaks, Call, Fails, ModelServer, Says
from tests.gateway.commands.kit import running_gateway

USUAL = {
    "OPENAI_API_KEY": "sk-usual-openai-4711",
    "ANTHROPIC_API_KEY": "sk-usual-anthropic-4711",
    "GOOGLE_API_KEY": "usual-google-4711",
}


@pytest.fixture
def configuration(server: ModelServer, tmp_path: Path, app: Path) -> Configuration:
    """A configuration whose key stands in a file, in an environment that has others."""
    home = Home(str(tmp_path / "home"))
    home.ensure()
    (tmp_path / "key").write_text(f"{KEY}\n")
    environment = {
        "PATH": "/usr/bin:/bin",
        "TAKEBACK_AGENT__KIND": "model",
        "TAKEBACK_AGENT__MODEL": server.model,
        "TAKEBACK_AGENT__BASE_URL": server.base_url,
        "TAKEBACK_AGENT__API_KEY_FILE": str(tmp_path / "key"),
        "TAKEBACK_WORKSPACES__APP__PATH": str(app),
        "TAKEBACK_DEFAULT_WORKSPACE": "app",
        "TAKEBACK_CHECKPOINTS__ENABLED": "1",
        "TAKEBACK_APPROVALS": "off",
        **USUAL,
    }
    return load_configuration(home, environment)


@pytest.fixture
def log(configuration: Configuration, tmp_path: Path) -> Iterator[Path]:
    """The log of all that a test does, debug lines included."""
    path = tmp_path / "gateway.log"
    with logging_to(str(path), level="debug", secrets=configuration.secrets()):
        yield path


async def test_no_key_is_in_a_log_an_error_a_command_the_database_a_file_or_what_the_model_sees(
    server: ModelServer, configuration: Configuration, log: Path, app: Path, tmp_path: Path
) -> None:
    key = tmp_path / "key"
    # The second stands where a quotation is cut.
    echo = {"error": {"message": f"You sent {KEY}{'.' * 150}{USUAL['OPENAI_API_KEY']}", "type": "x"}}
    server.will(
        Says(calls=[Call("terminal", {"command": f"env; cat /proc/self/environ; set; cat '{key}'; exit 1"})]),
        Says("That was all."),
        Fails(401, echo),
        Fails(400, echo),
        Breaks(),
        Fails(404, echo),
    )

    async with running_gateway(
        Path(configuration.home.path),
        configuration.settings,
        agents=make_agents(configuration),
        make_engine=lambda _home, _user: make_engine(configuration),
        secrets=configuration.secrets(),
    ) as gateway:
        for words in ("show the environment", "again", "once more", "and again"):
            await gateway.chat().say(words)
        said = [message.plain_text for message in gateway.platform.sent] + gateway.platform.shown

    assert set(server.keys) == {KEY}
    paths = [anyio.Path(log), *await files_below(configuration.home.path, str(app))]
    everything = {
        "what was said": "\n".join(said).encode(),
        "what the model saw": str(server.requests).encode(),
        **{str(path): await path.read_bytes() for path in paths},
    }
    assert "PATH=" in server.heard(1)[-1][1]
    assert [
        (secret, place)
        for place, content in everything.items()
        for secret in (KEY, *USUAL.values(), KEY[:10], USUAL["OPENAI_API_KEY"][:10])
        if secret.encode() in content
    ] == []
    assert len(said) > 8


async def files_below(*roots: str) -> list[anyio.Path]:
    return [path for root in roots async for path in anyio.Path(root).rglob("*") if await path.is_file()]
