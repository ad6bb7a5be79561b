"""What the agent without a model makes of a message."""

from dataclasses import dataclass, field, replace

import pytest

from engine.model import ToolResult
from gateway.agents.base import TurnContext
from gateway.agents.direct import DirectAgent


@dataclass
class RecordingTools:
    """Stands at the border of the agent and notes what it is asked for."""

    calls: list[tuple[object, ...]] = field(default_factory=list)

    async def read_file(self, path: str, *, first: int | None = None, last: int | None = None) -> ToolResult:
        assert (first, last) == (None, None)
        return self._note("read_file", path)

    async def list_files(self, path: str = ".", pattern: str = "") -> ToolResult:
        return self._note("list_files", path, pattern)

    async def search(
        self, pattern: str, path: str = ".", *, files: str = "", ignore_case: bool = False, literal: bool = False
    ) -> ToolResult:
        return self._note("search", pattern, path, files, ignore_case, literal)

    async def write_file(self, path: str, content: bytes) -> ToolResult:
        return self._note("write_file", path, content)

    async def patch(self, text: str) -> ToolResult:
        return self._note("patch", text)

    async def terminal(self, command: str, *, whole_output: bool = False) -> ToolResult:
        result = self._note("terminal", command)
        return replace(result, output_file="output-1.txt") if whole_output else result

    async def whole_output(self, result: ToolResult) -> bytes | None:
        return None if result.output_file is None else b"all of it"

    def _note(self, *call: object) -> ToolResult:
        self.calls.append(call)
        return ToolResult(ok=True, text="done\n")


async def asked(text: str) -> tuple[list[tuple[object, ...]], str, bool]:
    tools = RecordingTools()
    answer = await DirectAgent().answer(TurnContext(7, text, tools, guarded=True))
    return tools.calls, "".join(reply.plain_text for reply in answer.replies), answer.failed


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("$ ls -la", ("terminal", "ls -la")),
        ("  $ ls", ("terminal", "ls")),
        ("$\tls", ("terminal", "ls")),
        ("/run make all", ("terminal", "make all")),
        ("/RUN make", ("terminal", "make")),
        ("/run@bot make", ("terminal", "make")),
        ("$ cat > a <<'EOF'\n  x\nEOF\n", ("terminal", "cat > a <<'EOF'\n  x\nEOF\n")),
        ("$ echo a\\ ", ("terminal", "echo a\\ ")),
        ("/read notes.md", ("read_file", "notes.md")),
        ("/read my notes.md\n", ("read_file", "my notes.md")),
        ("/write a.txt\nhello", ("write_file", "a.txt", b"hello")),
        ("/write a.txt\nhello\n", ("write_file", "a.txt", b"hello\n")),
        ("/write a.txt\n\n  hello \r\n\n", ("write_file", "a.txt", b"\n  hello \r\n\n")),
        ("/write a.txt\n", ("write_file", "a.txt", b"")),
        ("/write my file.txt\nx", ("write_file", "my file.txt", b"x")),
        ("/write ends in a space \nx", ("write_file", "ends in a space ", b"x")),
        ("/write -rf\nx", ("write_file", "-rf", b"x")),
        ("/write a\n日本\U0001f600", ("write_file", "a", "日本\U0001f600".encode())),
        ("/write a\n\udcff", ("write_file", "a", b"\xff")),
        ("/write a\n/rollback 1\n$ rm", ("write_file", "a", b"/rollback 1\n$ rm")),
        ("/patch\n--- a/x\n+++ b/x\n", ("patch", "--- a/x\n+++ b/x\n")),
    ],
)
async def test_message_is_one_tool_call_exactly_as_written(text: str, call: tuple[object, ...]) -> None:
    calls, said, failed = await asked(text)

    assert calls == [call]
    assert (said, failed) == ("done\n", False)


@pytest.mark.parametrize(
    "text", ["hello", "$HOME is full", "$5 is too much", "what is /read?", "/ read a", "/reading a"]
)
async def test_anything_else_is_answered_with_what_it_understands(text: str) -> None:
    calls, said, failed = await asked(text)

    assert (calls, failed) == ([], False)
    assert "/write PATH" in said
    assert "$ COMMAND" in said
    assert 'agent: {kind: model, model: "openai:…"}' in said
    assert "config.yaml" in said


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("/run", "No command was given"),
        ("/run  \n ", "No command was given"),
        ("/read", "No file was named"),
        ("/read a\nb", "/read takes one path"),
        ("/write", "No file was named"),
        ("/write \nx", "No file was named"),
        ("/write a.txt", "The content is missing"),
        ("/write a\n\ud800", "not valid text"),
        ("/patch", "The edit is missing"),
        ("/patch\n \n", "The edit is missing"),
        ("/patch a.txt\n--- a", "/patch takes no path"),
    ],
)
async def test_missing_part_is_named_and_no_tool_runs(text: str, says: str) -> None:
    calls, said, failed = await asked(text)

    assert (calls, failed) == ([], True)
    assert says in said


@pytest.mark.parametrize("text", ["/run --full make test", "/run —full make test", "$ --full make test"])
async def test_the_whole_output_is_sent_as_a_file_when_asked_for(text: str) -> None:
    tools = RecordingTools()

    answer = await DirectAgent().answer(TurnContext(7, text, tools, guarded=True))

    assert tools.calls == [("terminal", "make test")]
    assert [(file.name, file.content) for reply in answer.replies for file in reply.files] == [
        ("output.txt", b"all of it")
    ]


async def test_the_whole_output_of_nothing_is_a_mistake() -> None:
    calls, said, failed = await asked("/run --full")

    assert (calls, failed) == ([], True)
    assert "/run --full make test" in said
