"""Turns what was said and done in a session into the messages of the model library.

A tool call becomes a call and its result, one pair after another, in the order in which they ran. Notes, summaries and
the word on how a turn ended are this program's words: they go to the model as a person's message does, marked as what
they are.
"""

from collections.abc import Callable, Iterator, Sequence

from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)

from gateway.agents.model.tools import shown
from gateway.blotting import blotted
from gateway.state.messages import Message, Role
from gateway.state.sent import SentFile
from gateway.turns.endings import parted
from gateway.turns.receipts import without_receipt

NOTE = "[Note from the program that runs you] {}"
ENDED = "This turn ended here. People were told: {}"
SUMMARY = "[Summary of the conversation so far, made by the program that runs you]\n{}"
FILES = "\n\n(Sent along: {})"
CUT_OFF = "There is no result: the call was cut off, and may have been done in part."
NOTHING_SAID = "(no answer)"


def history_messages(messages: Sequence[Message], blot: Callable[[str], str] = blotted) -> list[ModelMessage]:
    """The conversation so far, results without what ``blot`` takes out; neighbours of one side are one message."""
    built: list[ModelMessage] = []
    for message in messages:
        for part in _parts(message, blot):
            _append(built, part)
    return built


def asked(history: Sequence[ModelMessage], content: str | Sequence[UserContent]) -> list[ModelMessage]:
    """The conversation with what is asked now at its end."""
    built = [*history]
    _append(built, UserPromptPart(content))
    return built


def with_images(text: str, images: Sequence[tuple[SentFile, bytes]]) -> str | list[UserContent]:
    """What is asked, with pictures that came along."""
    if not images:
        return text
    return [text, *(BinaryContent(content, media_type=file.media_type) for file, content in images)]


def with_files(text: str, files: Sequence[SentFile]) -> str:
    """A person's words, and where the files are that came with them."""
    if not files:
        return text
    listed = ", ".join(f"{file.path} ({file.media_type}, {file.size_bytes} bytes)" for file in files)
    return text + FILES.format(listed)


def _parts(message: Message, blot: Callable[[str], str]) -> Iterator[ModelRequestPart | ModelResponsePart]:
    match message.role:
        case Role.USER:
            yield UserPromptPart(with_files(message.content, message.files), timestamp=message.created_at)
        case Role.ASSISTANT:
            # A receipt is not the model's, and it would learn to imitate it; nor is the word on how a turn ended.
            said, ending = parted(without_receipt(message.content))
            if said or not ending:
                yield TextPart(said or NOTHING_SAID)
            if ending:
                yield UserPromptPart(NOTE.format(ENDED.format(ending)), timestamp=message.created_at)
        case Role.NOTE:
            yield UserPromptPart(NOTE.format(message.content), timestamp=message.created_at)
        case Role.SUMMARY:
            yield UserPromptPart(SUMMARY.format(message.content), timestamp=message.created_at)
        case Role.TOOL:
            name, call_id = message.tool_name or "", f"call_{message.id}"
            yield ToolCallPart(name, dict(message.arguments or {}), tool_call_id=call_id)
            text = CUT_OFF if message.ok is None else shown(message.content, blot)
            yield tool_return(name, call_id, text, ok=bool(message.ok))


def tool_return(name: str, call_id: str, text: str, *, ok: bool) -> ToolReturnPart:
    """The result of a call; the library marks one that failed as each API wants it."""
    return ToolReturnPart(name, text, tool_call_id=call_id, outcome="success" if ok else "failed")


def _append(built: list[ModelMessage], part: ModelRequestPart | ModelResponsePart) -> None:
    last = built[-1] if built else None
    if isinstance(part, (TextPart, ToolCallPart)):
        if isinstance(last, ModelResponse):
            built[-1] = ModelResponse([*last.parts, part])
        else:
            built.append(ModelResponse([part]))
    elif isinstance(part, (UserPromptPart, ToolReturnPart)):
        if isinstance(last, ModelRequest):
            built[-1] = ModelRequest([*last.parts, part])
        else:
            built.append(ModelRequest([part]))
