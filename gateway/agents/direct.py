"""The agent without a model: one message is one tool call, exactly as the person wrote it."""

import re
from collections.abc import Awaitable, Callable, Mapping

from adapters.contract import Attachment, Part, Style
from engine.model import ToolResult
from gateway.agents.base import Answer, Tools, TurnContext
from gateway.render import Reply, output, say
from gateway.turns.receipts import receipt

KIND = "direct"
"""The agent's name in the configuration."""

COMMAND_WORDS = ("run", "write", "read", "patch")
"""Messages that begin with a slash and one of these are turns of this agent, not commands of the chat."""

UNDERSTOOD = """\
  $ COMMAND      run a command (also /run COMMAND; /run --full COMMAND sends all of its output)
  /read PATH     show a file
  /write PATH    write a file: its content follows from the next line on, exactly
  /patch         change files: a unified diff or a search/replace edit follows from the next line on
"""
"""What this agent understands, a line each."""

# A dollar sign needs its space: "$HOME is full" is no command.
_SHELL = re.compile(r"\s*\$[ \t]+(?P<command>\S.*)", re.DOTALL)
# Phones turn two hyphens into one long dash.
_WHOLE = re.compile(r"(?:--|—)full(?:\s+(?P<command>\S.*)?)?", re.DOTALL)
_WORD = re.compile(r"\s*/(?P<word>[A-Za-z]+)(?:@\w+)?(?P<rest>(?:\s.*)?)", re.DOTALL)

_Act = Callable[[Tools], Awaitable[ToolResult]]


class NotUnderstood(Exception):
    """A message that names a tool but not what it needs; the message says what is missing."""


class DirectAgent:
    """Turns a message into one tool call and shows what came of it."""

    kind = KIND
    own_word = True

    async def answer(self, context: TurnContext) -> Answer:
        """Answer one turn."""
        try:
            act = parse(context.text)
        except NotUnderstood as error:
            return Answer((say(str(error)),), failed=True)
        if act is None:
            return Answer((_introduction(),))
        result = await act(context.tools)
        whole = await context.tools.whole_output(result)
        return Answer((_shown(context.turn_id, result, whole),), failed=not result.ok)


def parse(text: str) -> _Act | None:
    """Find the tool call a message asks for, ``None`` when it asks for none.

    Raises:
        NotUnderstood: the tool is named but not what it needs.
    """
    shell = _SHELL.fullmatch(text)
    if shell is not None:
        return _terminal(shell["command"])
    match = _WORD.fullmatch(text)
    if match is None or match["word"].lower() not in _TOOLS:
        return None
    return _TOOLS[match["word"].lower()](match["rest"])


def _terminal(command: str) -> _Act:
    if not command.strip():
        raise NotUnderstood("No command was given. Write it after /run or $, as in: $ ls")
    command = command.lstrip()
    whole = _WHOLE.fullmatch(command)
    if whole is None:
        return lambda tools: tools.terminal(command)
    if not whole["command"]:
        raise NotUnderstood("No command was given. Write it after /run --full, as in: /run --full make test")
    return lambda tools: tools.terminal(whole["command"], whole_output=True)


def _read(rest: str) -> _Act:
    path, body = _first_line(rest)
    if not path:
        raise NotUnderstood("No file was named. Write /read and its path, as in: /read notes.md")
    if body is not None and body.strip():
        raise NotUnderstood("/read takes one path and nothing below it. To write a file: /write PATH")
    return lambda tools: tools.read_file(path)


def _write(rest: str) -> _Act:
    path, body = _first_line(rest)
    if not path:
        raise NotUnderstood("No file was named. Write /write and its path; the content begins on the next line.")
    if body is None:
        raise NotUnderstood(
            "The content is missing: it begins on the line after /write PATH. "
            "For an empty file, send the path and a line break."
        )
    try:
        content = body.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise NotUnderstood("The content is not valid text, so nothing was written.") from None
    return lambda tools: tools.write_file(path, content)


def _patch(rest: str) -> _Act:
    path, body = _first_line(rest)
    if path.strip():
        raise NotUnderstood("/patch takes no path: the edit on the lines below it names its files.")
    if body is None or not body.strip():
        raise NotUnderstood(
            "The edit is missing: a unified diff or a search/replace edit, from the line after /patch on."
        )
    return lambda tools: tools.patch(body)


def _first_line(rest: str) -> tuple[str, str | None]:
    """Part the rest of the first line from everything below it, which is ``None`` without a line break.

    A trailing space stays: a file's name may end with one, and there is no other way to say so.
    """
    line, newline, body = rest.partition("\n")
    return line.lstrip(), body if newline else None


_TOOLS: Mapping[str, Callable[[str], _Act]] = dict(zip(COMMAND_WORDS, (_terminal, _write, _read, _patch), strict=True))


def _introduction() -> Reply:
    return Reply(
        (
            Part("This chat has no model: it runs your tools directly. It understands:\n\n"),
            Part(UNDERSTOOD, Style.BLOCK),
            Part("\n/help lists the commands of the chat. To connect a model, name it in config.yaml:\n\n"),
            Part('agent: {kind: model, model: "openai:…"}\n', Style.BLOCK),
        )
    )


def _shown(turn_id: int, result: ToolResult, whole: bytes | None) -> Reply:
    parts, files = output(result.text, "output.txt")
    if whole is not None:
        files = (Attachment("output.txt", whole),)
    end, buttons = receipt(turn_id, [result])
    return Reply((*parts, *end), files, buttons)
