"""How a session's messages become those of the model library."""

from datetime import UTC, datetime

from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart

from gateway.agents.model.conversion import CUT_OFF, NOTE, NOTHING_SAID, SUMMARY, history_messages
from gateway.blotting import blotted
from gateway.state.messages import Message, Role

NOW = datetime(2026, 3, 16, tzinfo=UTC)


def message(role: Role, content: str = "", number: int = 1, **more: object) -> Message:
    return Message(id=number, turn_id=1, role=role, content=content, created_at=NOW, **more)


def called(number: int, content: str, *, ok: bool | None) -> Message:
    return message(Role.TOOL, content, number, tool_name="terminal", arguments={"command": "ls"}, ok=ok)


def test_calls_are_pairs_in_order_and_one_that_was_cut_off_has_a_result_that_says_so() -> None:
    built = history_messages(
        [
            message(Role.SUMMARY, "before"),
            message(Role.USER, "go"),
            called(7, "a b", ok=True),
            called(8, "no", ok=False),
            called(9, "", ok=None),
            message(Role.NOTE, "taken back"),
            message(Role.USER, "on"),
        ]
    )

    call = [ToolCallPart("terminal", {"command": "ls"}, tool_call_id=f"call_{number}") for number in (7, 8, 9)]
    assert [type(each) for each in built] == [
        *(ModelRequest, ModelResponse, ModelRequest, ModelResponse, ModelRequest, ModelResponse, ModelRequest)
    ]
    assert [part.content for part in built[0].parts if isinstance(part, UserPromptPart)] == [
        SUMMARY.format("before"),
        "go",
    ]
    assert [part for each in built[1::2] for part in each.parts] == call
    returned = [part for each in built for part in each.parts if isinstance(part, ToolReturnPart)]
    assert [(part.tool_call_id, part.content, part.outcome) for part in returned] == [
        ("call_7", "a b", "success"),
        ("call_8", "no", "failed"),
        ("call_9", CUT_OFF, "failed"),
    ]
    assert [part.content for part in built[-1].parts[1:] if isinstance(part, UserPromptPart)] == [
        NOTE.format("taken back"),
        "on",
    ]


def test_receipts_and_secrets_are_left_out() -> None:
    receipt = "✎ 1 file, +1/-0: a (new) · checkpoint 1234567\nΣ 1 request · 1 tokens in, 1 out\n"
    built = history_messages(
        [
            message(Role.USER, "go"),
            called(7, "key=hidden-1", ok=True),
            message(Role.ASSISTANT, f"Done.\n\n{receipt}"),
            message(Role.USER, "and?"),
            message(Role.ASSISTANT, receipt),
        ],
        lambda text: blotted(text, ["hidden-1"]),
    )

    assert [part.content for each in built for part in each.parts if isinstance(part, TextPart)] == [
        "Done.",
        NOTHING_SAID,
    ]
    assert "hidden-1" not in str(built)
