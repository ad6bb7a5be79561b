"""The tools as a model sees them: what each takes, what it is for, and running one call of it.

Whatever is wrong with a call goes back to the model as its result: a tool that does not exist, arguments that do not
fit, a mistake of the tool, a refusal of the engine or of a person.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engine.errors import EngineError
from engine.model import ToolResult
from gateway.agents.base import Tools
from gateway.blotting import MARK
from gateway.render import one_line

RESULT_CHARACTERS = 30_000
"""How much of a result a model is shown: the beginning and the end of it."""

_HEAD_SHARE = 3
"""Of what is shown of a long result, all but one part in so many is its beginning."""


_WRITING = frozenset({"write_file", "patch", "terminal"})

BLOTTED = (
    f"Nothing was done: what you wrote holds {MARK}, which stands for a secret that you were not shown; written so, it "
    "would replace the secret. Change only the lines around it with patch, or ask the person to do it."
)
"""What a model is told that takes the mark for the text."""


class Call(Protocol):
    """The arguments of one call, which knows how to run itself."""

    async def run(self, tools: Tools) -> ToolResult:
        """Run it.

        Raises:
            EngineError: the engine refused.
        """
        ...

    def model_dump_json(self) -> str:
        """Give the arguments as JSON."""
        ...


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class ReadFile(_Arguments):
    """Read a text file, or the lines from first to last of it. Of a directory, its names."""

    path: str = Field(min_length=1)
    first: int | None = Field(default=None, description="The first line, counted from 1.", ge=1)
    last: int | None = Field(default=None, description="The last line.", ge=1)

    async def run(self, tools: Tools) -> ToolResult:
        """Run it."""
        return await tools.read_file(self.path, first=self.first, last=self.last)


class ListFiles(_Arguments):
    """List the source files below a directory."""

    path: str = "."
    pattern: str = Field(default="", description="Only files that fit this, such as *.py or src/**/*.ts.")

    async def run(self, tools: Tools) -> ToolResult:
        """Run it."""
        return await tools.list_files(self.path, self.pattern)


class Search(_Arguments):
    """Find lines of source files by a regular expression. Each line of the result is path:number:text."""

    pattern: str = Field(min_length=1)
    path: str = "."
    files: str = Field(default="", description="Only in files that fit this, such as *.py.")
    ignore_case: bool = False
    literal: bool = Field(default=False, description="Take the pattern as plain text.")

    async def run(self, tools: Tools) -> ToolResult:
        """Run it."""
        return await tools.search(
            self.pattern, self.path, files=self.files, ignore_case=self.ignore_case, literal=self.literal
        )


class WriteFile(_Arguments):
    """Write a file: its whole content, exactly. Missing directories are made."""

    path: str = Field(min_length=1)
    content: str

    async def run(self, tools: Tools) -> ToolResult:
        """Run it."""
        return await tools.write_file(self.path, self.content.encode("utf-8", "surrogatepass"))


class Patch(_Arguments):
    """Change parts of files, all or nothing: a unified diff, or search/replace edits.

    A search/replace edit is a line with the path, then <<<<<<< SEARCH, the lines as they are in the file, =======, the
    lines to stand there instead, >>>>>>> REPLACE; each mark on a line of its own. The lines to be replaced must stand
    in the file exactly once.
    """

    text: str = Field(min_length=1, description="The diff, or the edits one after another.")

    async def run(self, tools: Tools) -> ToolResult:
        """Run it."""
        return await tools.patch(self.text)


class Terminal(_Arguments):
    """Run a shell command in the workspace and read what it wrote. It cannot ask for input."""

    command: str = Field(min_length=1)

    async def run(self, tools: Tools) -> ToolResult:
        """Run it."""
        return await tools.terminal(self.command)


TOOLS: Mapping[str, type[ReadFile | ListFiles | Search | WriteFile | Patch | Terminal]] = {
    "read_file": ReadFile,
    "list_files": ListFiles,
    "search": Search,
    "write_file": WriteFile,
    "patch": Patch,
    "terminal": Terminal,
}
"""Every tool by its name."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a model is told of a call; with ``mistaken`` the call itself made no sense and nothing was run."""

    text: str
    ok: bool = False
    mistaken: bool = False


async def run_call(
    tools: Tools, name: str, arguments: Mapping[str, Any] | str | None, blot: Callable[[str], str]
) -> Result:
    """Run one call as a model wrote it, and give what it is to be told, without what ``blot`` takes out."""
    try:
        call = parse_call(name, arguments)
    except ValueError as error:
        return Result(str(error), mistaken=True)
    if name in _WRITING and MARK in call.model_dump_json():
        return Result(BLOTTED)
    try:
        result = await call.run(tools)
    except EngineError as error:
        return Result(blot(str(error)))
    notes = "".join(f"\n(Note: {note})" for note in result.notes)
    return Result(shown(result.text, blot) + notes, result.ok)


def shown(text: str, blot: Callable[[str], str]) -> str:
    """A result as a model gets it: without secrets, and in part where it is long."""
    return shortened(blot(text), RESULT_CHARACTERS)


def parse_call(name: str, arguments: Mapping[str, Any] | str | None) -> Call:
    """Read a call as a model wrote it.

    Raises:
        ValueError: there is no such tool, or the arguments do not fit; the message is for the model.
    """
    if name not in TOOLS:
        raise ValueError(f"There is no tool {one_line(name, 60)}. There are: {', '.join(TOOLS)}.")
    if isinstance(arguments, str):
        arguments = _read(name, arguments)
    try:
        return TOOLS[name].model_validate(arguments or {})
    except ValidationError as invalid:
        findings = "; ".join(
            f"{'.'.join(map(str, error['loc'])) or 'arguments'}: {error['msg']}"
            for error in invalid.errors(include_url=False)
        )
        raise ValueError(f"The arguments of {name} do not fit: {findings}. Nothing was done.") from None


def _read(name: str, text: str) -> Mapping[str, Any]:
    try:
        arguments = json.loads(text) if text.strip() else {}
    except ValueError as error:
        raise ValueError(f"The arguments of {name} are not valid JSON ({error}). Nothing was done.") from None
    if not isinstance(arguments, dict):
        raise ValueError(f"The arguments of {name} must be a JSON object. Nothing was done.")  # noqa: TRY004 - as above
    return arguments


def shortened(text: str, characters: int) -> str:
    """A text in at most about so many characters, the beginning and the end of it, with a word on what is missing."""
    left = len(text) - characters
    if left <= 0:
        return text
    tail = characters // _HEAD_SHARE
    return f"{text[: characters - tail]}\n[… {left} characters left out …]\n{text[-tail:]}"


def schema(arguments: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of a tool's arguments, without titles, which say nothing."""
    plain: dict[str, Any] = arguments.model_json_schema()
    plain.pop("title", None)
    plain.pop("description", None)
    for prop in plain.get("properties", {}).values():
        prop.pop("title", None)
    return plain
