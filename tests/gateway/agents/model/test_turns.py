"""A turn of the agent with a model: what is asked of the server, what is run, and what is said in the end."""

from pathlib import Path

from tests.gateway.agents.model.desk import chat_with
from tests.gateway.agents.model.server import KEY, Call, ModelServer, Says


async def test_an_answer_without_tools_is_said(server: ModelServer, home: Path, app: Path) -> None:
    server.will(Says("Hello to you."))

    async with chat_with(server, home, app) as chat:
        answer = await chat.say("hello")

    assert answer.lines[0] == "Hello to you."
    assert server.heard() == [("user", "hello")]
    assert server.keys == [KEY]
    assert server.instructions().startswith("You are a coding agent.")


async def test_tools_run_in_order_and_their_results_go_back(server: ModelServer, home: Path, app: Path) -> None:
    server.will(
        Says("Let me look.", [Call("read_file", {"path": "src/a.py"}), Call("list_files", {"pattern": "*.py"})]),
        Says(calls=[Call("write_file", {"path": "src/a.py", "content": "a = 2\n"})]),
        Says("Done: a is 2."),
    )

    async with chat_with(server, home, app) as chat:
        answer = await chat.say("make a two")

    assert (app / "src" / "a.py").read_text() == "a = 2\n"
    assert answer.lines[0] == "Done: a is 2."
    assert server.heard(1) == [
        ("user", "make a two"),
        ("assistant", "Let me look."),
        ("call", "read_file", '{"path":"src/a.py"}'),
        ("call", "list_files", '{"pattern":"*.py"}'),
        ("result", "a = 1\n"),
        ("result", "src/a.py (6 bytes)\nsrc/b.py (6 bytes)\nsrc/c.py (6 bytes)\n"),
    ]
