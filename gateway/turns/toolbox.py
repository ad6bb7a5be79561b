"""The tools of one turn: each call is recorded before it runs and with its result, and shown while it runs.

What a person has to be asked about waits for the answer first; a call that is not let through is recorded as well, and
the agent is told why. A call that a stop overtakes is recorded all the same; no call begins once the turn has ended.
"""

import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from functools import partial

import anyio
import anyio.lowlevel

from engine.errors import EngineError
from engine.model import Lines, ToolCall, ToolResult, Wanted
from gateway.blotting import blotted
from gateway.offload import Offload
from gateway.operation.measures import Note, ToolGuarded, unnoted
from gateway.render import one_line
from gateway.state.messages import Messages
from gateway.state.patience import until_stored
from gateway.turns.approvals import Gate
from gateway.turns.showing import SHOWN_CHARACTERS, Latest, Output, Reading

RECORDED_CHARACTERS = 100_000
"""How much of one argument or result is kept; the files themselves are in the checkpoints."""


READING = frozenset({"read_file", "list_files", "search"})
"""Tools that change nothing."""


_NAMED_FILE = re.compile(r"^(?:\+\+\+ (?:b/)?(?P<diff>[^\t\n]+)|(?P<block>[^\n]+)\n<<<<<<< SEARCH)", re.MULTILINE)


class TurnOver(Exception):
    """A tool was called after its turn had ended; nothing was done."""

    def __init__(self, tool: str) -> None:
        self.tool = tool
        super().__init__(f"{tool} was called after its turn had ended. Nothing was done.")


class Toolbox:
    """The tools an agent gets; ``results`` holds what they did so far, in order; ``call`` is whose they are.

    Without a ``gate`` each call is a person's own word, which nobody is asked about. What is recorded and shown of a
    call holds none of ``secrets`` and nothing that looks like a key, whatever file or command had them.
    """

    def __init__(
        self,
        messages: Messages,
        offload: Offload,
        call: ToolCall,
        *,
        turn_id: int,
        show: Callable[[str], None],
        gate: Gate | None = None,
        note: Note = unnoted,
        secrets: Collection[str] = (),
    ) -> None:
        self._note = note
        self._secrets = secrets
        self.results: list[ToolResult] = []
        self._messages = messages
        self._offload = offload
        self.call = call
        self._turn_id = turn_id
        self._show: Callable[[str], None] = lambda text: show(blotted(text, secrets))
        self._gate = gate
        self._session_begun = not call.guarded
        self._open = True
        self._one_at_a_time = anyio.Lock()

    async def read_file(self, path: str, *, first: int | None = None, last: int | None = None) -> ToolResult:
        """Read a file, or some lines of it."""
        arguments = _given(path=path, first=first, last=last)
        lines = Lines(first, last)
        return await self._run("read_file", arguments, lambda: self._offload.read_file(self.call, path, lines))

    async def list_files(self, path: str = ".", pattern: str = "") -> ToolResult:
        """List the source files below a directory."""
        arguments = _given(path=path, pattern=pattern)
        return await self._run("list_files", arguments, lambda: self._offload.list_files(self.call, path, pattern))

    async def search(
        self, pattern: str, path: str = ".", *, files: str = "", ignore_case: bool = False, literal: bool = False
    ) -> ToolResult:
        """Find the lines of source files that a pattern fits."""
        wanted = Wanted(pattern, files, ignore_case, literal)
        arguments = _given(pattern=pattern, path=path, files=files, ignore_case=ignore_case, literal=literal)
        return await self._run("search", arguments, lambda: self._offload.search(self.call, wanted, path))

    async def write_file(self, path: str, content: bytes) -> ToolResult:
        """Write a file exactly."""
        arguments = {"path": path, "content": content.decode("utf-8", "surrogateescape")}
        return await self._run("write_file", arguments, lambda: self._offload.write_file(self.call, path, content))

    async def patch(self, text: str) -> ToolResult:
        """Apply a unified diff or a search/replace edit, all or nothing."""
        return await self._run("patch", {"text": text}, lambda: self._offload.patch(self.call, text))

    async def terminal(self, command: str, *, whole_output: bool = False) -> ToolResult:
        """Run a command; its output goes to the chat's progress while it runs."""
        output = Output(Latest(self._show, _title("terminal", {"command": command})))
        call = replace(self.call, shown=blotted(command, self._secrets))
        return await self._run(
            "terminal",
            {"command": command},
            lambda: self._offload.terminal(call, command, on_output=output.feed, whole_output=whole_output),
        )

    async def look(self, path: str) -> ToolResult:
        """Read a file without a trace of it in the turn."""
        await self._still_open("read_file")
        return await self._offload.read_file(self.call, path)

    async def whole_output(self, result: ToolResult) -> bytes | None:
        """Read what a command wrote, if that was asked for."""
        return None if result.output_file is None else await self._offload.output(result.output_file)

    def close(self) -> None:
        """End the turn's use of tools."""
        self._open = False

    async def _run(
        self, tool: str, arguments: Mapping[str, str], work: Callable[[], Awaitable[ToolResult]]
    ) -> ToolResult:
        # In the order in which they were called, also where an agent calls several at once: what a person is asked
        # about comes one by one, and each call finds what those before it have done.
        async with self._one_at_a_time:
            return await self._next(tool, arguments, work)

    async def _next(
        self, tool: str, arguments: Mapping[str, str], work: Callable[[], Awaitable[ToolResult]]
    ) -> ToolResult:
        await self._still_open(tool)
        self._show(_title(tool, arguments))
        refusal = await self._gate.admit(tool, arguments) if self._gate is not None else None
        await self._still_open(tool)
        if refusal is not None:
            work = partial(_refused, refusal)
        # Shielded as a whole: the engine ends a stopped call by itself, and what it did by then is written down.
        with anyio.CancelScope(shield=True):
            result = await self._recorded(tool, arguments, work, changes=refusal is None and tool not in READING)
        await anyio.lowlevel.checkpoint_if_cancelled()
        return result

    async def _still_open(self, tool: str) -> None:
        await anyio.lowlevel.checkpoint_if_cancelled()
        if not self._open:
            raise TurnOver(tool)

    async def _recorded(
        self, tool: str, arguments: Mapping[str, str], work: Callable[[], Awaitable[ToolResult]], *, changes: bool
    ) -> ToolResult:
        kept = {name: self._kept(value) for name, value in arguments.items()}
        message_id = await self._messages.begin_call(self._turn_id, tool, kept)
        try:
            reading = Reading(Latest(self._show, _title(tool, arguments)))
            with self._offload.heard(self.call.workspace, reading.hear):
                notes = await self._begin_session() if changes else ()
                result = await work()
        except Exception as error:
            said = self._kept(str(error)) if isinstance(error, EngineError) else type(error).__name__
            await until_stored(lambda: self._messages.finish_call(message_id, said, ok=False))
            raise
        result = replace(result, notes=(*notes, *result.notes))
        self.results.append(result)
        if result.guarded_s:
            self._note(ToolGuarded(result.guarded_s))
        checkpoint_id = result.checkpoint.id if result.checkpoint is not None else None
        await until_stored(
            lambda: self._messages.finish_call(
                message_id, self._kept(result.text), ok=result.ok, checkpoint_id=checkpoint_id
            )
        )
        return result

    def _kept(self, text: str) -> str:
        return _bounded(blotted(text, self._secrets))

    async def _begin_session(self) -> tuple[str, ...]:
        """Record where the session's changes begin, before the first tool that can change anything."""
        if self._session_begun:
            return ()
        self._session_begun = True
        try:
            await self._offload.begin_session(self.call.workspace, self.call.turn.session)
        except EngineError as error:
            return (f"/diff session will not cover what follows: {error}",)
        return ()


async def _refused(words: str) -> ToolResult:
    return ToolResult(ok=False, text=words)


def _title(tool: str, arguments: Mapping[str, str]) -> str:
    path = arguments.get("path", "").removeprefix("./")
    where = " in ".join(filter(None, (arguments.get("pattern"), path if path != "." else "")))
    named = arguments.get("command") or where or _first_file(arguments.get("text", ""))
    return one_line(f"{tool}: {named}" if named else tool, SHOWN_CHARACTERS)


def _given(**arguments: object) -> dict[str, str]:
    """The arguments of a call as they are recorded: those that say something."""
    return {name: str(value) for name, value in arguments.items() if value is not False and value not in (None, "")}


def _first_file(patch: str) -> str:
    """The first file that a patch names, as far as that can be told at a glance."""
    found = _NAMED_FILE.search(patch)
    return "" if found is None else (found["diff"] or found["block"]).strip()


def _bounded(text: str) -> str:
    left = len(text) - RECORDED_CHARACTERS
    return text if left <= 0 else f"{text[:RECORDED_CHARACTERS]}… ({left} characters not kept)"
