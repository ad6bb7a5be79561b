"""Files that look like secrets, and what looks like a key: how much of them goes to a model."""

from pathlib import Path

import pytest

from gateway.blotting import MARK
from tests.gateway.agents.model.desk import chat_with
from tests.gateway.agents.model.server import Call, ModelServer, Says

KEY = "sk-" + "a1B2c3D4" * 5


@pytest.fixture
def app(app: Path) -> Path:
    """A workspace with a secret or two."""
    (app / ".env").write_text(f"OPENAI_API_KEY={KEY}\n")
    (app / "config.py").write_text('password = "hunter2-2"\nport = 1\n')
    return app


async def test_a_model_is_shown_no_file_of_secrets_and_no_key(server: ModelServer, home: Path, app: Path) -> None:
    looks = [
        Call("read_file", {"path": ".env"}),
        Call("terminal", {"command": "cat .env"}),
        Call("read_file", {"path": "config.py"}),
        Call("search", {"pattern": "API_KEY"}),
    ]
    server.will(Says(calls=looks), Says(f"It is {KEY}."), Says("Again."))

    async with chat_with(server, home, app) as chat:
        answered = await chat.say("which key?")
        await chat.say("again?")

    refused, shown, config, found = (words for words in server.heard(1) if words[0] in {"error", "result"})
    assert refused[0] == "error"
    assert refused[1] == "read_file: .env: looks like a file of secrets, so it is not read: ask the person"
    assert shown[1] == f"OPENAI_API_KEY={MARK}\n"
    assert config[1] == f'password = "{MARK}"\nport = 1\n'
    assert KEY not in str(server.requests)
    assert "hunter2" not in str(server.requests)
    assert "OPENAI" not in found[1]
    assert answered.lines[0] == f"It is {MARK}."


async def test_the_mark_of_a_secret_is_never_written_in_its_place(openai: ModelServer, home: Path, app: Path) -> None:
    text = f'password = "{MARK}"\nport = 2\n'
    edit = "config.py\n<<<<<<< SEARCH\nport = 1\n=======\nport = 2\n>>>>>>> REPLACE\n"
    openai.will(
        Says(calls=[Call("write_file", {"path": "config.py", "content": text}), Call("patch", {"text": edit})]),
        Says("Done."),
    )

    async with chat_with(openai, home, app) as chat:
        await chat.say("port two")

    refused = openai.heard()[-2]
    assert f"holds {MARK}, which stands for a secret that you were not shown" in str(refused)
    assert (app / "config.py").read_text() == 'password = "hunter2-2"\nport = 2\n'


async def test_the_configuration_may_let_a_model_see_them(openai: ModelServer, home: Path, app: Path) -> None:
    openai.will(
        Says(calls=[Call("read_file", {"path": ".env"}), Call("read_file", {"path": "config.py"})]), Says("Seen.")
    )

    async with chat_with(openai, home, app, secret_files=True) as chat:
        await chat.say("which key?")

    assert KEY in str(openai.requests[1])
    assert "hunter2-2" in str(openai.requests[1])
