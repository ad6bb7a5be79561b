"""The whole service with a model: it edits and runs, a person edits by hand, takes it back, and goes on."""

from pathlib import Path

from anyio import Path as AsyncPath

from gateway.agents.model.agent import ModelAgent
from gateway.config import Settings
from gateway.workspaces import Workspaces
from tests.gateway.agents.model.server import Call, ModelServer, Says
from tests.gateway.service_kit import Phone, make_service, serving

NOTE = (
    "[Note from the program that runs you] The user restored the workspace to an earlier checkpoint. "
    "1 turn before this point was taken back. Restored: src/a.py, src/c.py. Kept as edited by the user: src/b.py."
)
SED = "sed -i s/2/4/ src/a.py src/b.py src/c.py"


def edit(name: str) -> Call:
    return Call("write_file", {"path": f"src/{name}.py", "content": f"{name} = 2\n"})


async def test_the_request_after_a_rollback_is_as_it_has_to_be_message_by_message(
    server: ModelServer, tmp_path: Path, app: Path
) -> None:
    server.will(
        Says("I look.", [Call("read_file", {"path": "src/a.py"})]),
        Says("a is one."),
        Says("First the files.", [edit("a"), edit("b"), edit("c")]),
        Says(calls=[Call("terminal", {"command": SED})]),
        Says("All three are changed."),
        Says("Going on."),
    )
    phone = Phone()
    settings = (
        Settings.model_validate({"agent": server.settings()}).with_workspace("app", str(app)).with_checkpoints(on=True)
    )
    service = await make_service(
        tmp_path,
        phone,
        agents={"model": ModelAgent(settings.agent)},
        open_workspaces=lambda offload: Workspaces(settings, offload, "app"),
    )

    async with serving(service):
        await phone.ask("what is a?")
        changed = await phone.ask("set all three to two, then run sed")
        after = [await AsyncPath(app / "src" / f"{name}.py").read_text() for name in "abc"]
        await AsyncPath(app / "src" / "b.py").write_text("b = 'mine'\n")
        back = await phone.ask("/rollback 1")
        last = await phone.ask("continue")

    assert after == ["a = 4\n", "b = 4\n", "c = 4\n"]
    assert "✎ 3 files, +3/-3: src/a.py, src/b.py, src/c.py · checkpoint" in changed[-1]
    assert "Kept your hand-edits: src/b.py" in back[-1]
    assert "Undid 1 turn" in back[-1]
    assert last[-1].startswith("Going on.")
    assert [(app / "src" / f"{name}.py").read_text() for name in "abc"] == ["a = 1\n", "b = 'mine'\n", "c = 1\n"]
    # In full, so that nothing more is in it than this.
    assert server.requests[-1]["messages"] == (OPENAI if server.wire == "openai" else ANTHROPIC)(server)


def OPENAI(server: ModelServer) -> list[object]:  # noqa: N802 - a table in the form of a function
    call_id = server.requests[-1]["messages"][2]["tool_calls"][0]["id"]
    function = {"name": "read_file", "arguments": '{"path":"src/a.py"}'}
    return [
        {"role": "system", "content": server.instructions()},
        {"role": "user", "content": "what is a?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": call_id, "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": call_id, "content": "a = 1\n"},
        {"role": "assistant", "content": "a is one."},
        {"role": "user", "content": NOTE},
        {"role": "user", "content": "continue"},
    ]


def ANTHROPIC(server: ModelServer) -> list[object]:  # noqa: N802 - as above
    call_id = server.requests[-1]["messages"][1]["content"][0]["id"]
    return [
        {"role": "user", "content": [{"type": "text", "text": "what is a?"}]},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": call_id, "name": "read_file", "input": {"path": "src/a.py"}}],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": call_id,
                    "content": [{"type": "text", "text": "a = 1\n"}],
                    "is_error": False,
                }
            ],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "a is one."}]},
        {
            "role": "user",
            "content": [{"type": "text", "text": NOTE}, {"type": "text", "text": "continue"}],
        },
    ]
