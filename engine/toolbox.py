"""The tools as the engine offers them: each is understood first, then guarded, then run, then accounted for.

A mistake of the agent (a missing file, a patch that does not fit, a path outside) comes back as a result that is not
ok; nothing is raised for it.
"""

import codecs
import os
import stat
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from engine.backends.base import Sandbox, StopSignal
from engine.backends.held import Backends
from engine.checkpoints.finding import Finding
from engine.checkpoints.reading import blob_oid
from engine.checkpoints.source import is_secret_name
from engine.errors import ToolRefused
from engine.guard import After, Before, Guard
from engine.host.files import ContentChanged, Fault, Tree
from engine.host.leftovers import remove_old_beside
from engine.host.paths import PathUnsafe, display, resolve_inside
from engine.model import (
    WHOLE,
    BackendChoice,
    Entry,
    EntryKind,
    Lines,
    ToolCall,
    ToolResult,
    Understanding,
    Verdict,
    Wanted,
    Workspace,
)
from engine.tools.edits import Edit, FileEdit, apply_edits, edited_paths, follow_link
from engine.tools.files import prepare_write, read_file
from engine.tools.filetree import FileTree
from engine.tools.outputs import OutputFile, Outputs
from engine.tools.outside import Stamps, changed_outside, outside_stamps
from engine.tools.patch import prepare_patch
from engine.tools.sandbox import SandboxTree
from engine.tools.sent import is_sent
from engine.tools.shell import understand
from engine.tools.terminal import describe

DEFAULT_TIMEOUT_S = 600.0

_MISTAKES = (ToolRefused, PathUnsafe, ContentChanged, OSError)
_LEFT = "what was left running is not watched: files that it changes from now on count as edited by hand"
_WILDCARDS = frozenset("*?[]{}")


class Toolbox:
    """Runs tools for one engine; thread-safe.

    Args:
        guard: takes the checkpoints and keeps the ledger.
        user_home: what ``~`` means in a command.
        command_env: the environment of commands, and all of it.
        backends: where tools run.
        outputs: where the whole output of a command goes that is asked for.
        finding: lists files and searches them.
        fault: called before each operation that changes a workspace file (fault injection).
    """

    def __init__(  # noqa: PLR0917 - what tools work with
        self,
        guard: Guard,
        user_home: str,
        command_env: Mapping[str, str],
        backends: Backends,
        outputs: Outputs,
        finding: Finding,
        fault: Fault | None,
    ) -> None:
        self._outputs = outputs
        self._finding = finding
        self._guard = guard
        self._backends = backends
        self._user_home = user_home
        self._command_env = command_env
        self._fault = fault
        self._signals: dict[str, StopSignal] = {}
        self._lock = threading.Lock()

    def read_file(self, call: ToolCall, path: str, lines: Lines = WHOLE) -> ToolResult:
        """Return a file's text, or some lines of it."""
        try:
            with self.files(call) as tree:
                inside = tree.resolve(_below(call.workspace), path)
                if not call.secret_files:
                    _refuse_secret(tree, inside)
                return ToolResult(ok=True, text=read_file(tree, inside, lines).text)
        except _MISTAKES as error:
            return _mistake("read_file", path, error)

    def list_files(self, call: ToolCall, path: str, pattern: str) -> ToolResult:
        """List the source files below a directory; with a pattern only those whose name or path fits it."""
        try:
            with self.files(call) as tree:
                return ToolResult(ok=True, text=self._finding.list_files(tree, _below(call.workspace), path, pattern))
        except _MISTAKES as error:
            return _mistake("list_files", path, error)

    def search(self, call: ToolCall, wanted: Wanted, path: str) -> ToolResult:
        """Find lines of source files; see ``tools.search``."""
        try:
            with self._running(call) as signal, self.files(call) as tree:
                text = self._finding.search(tree, _below(call.workspace), path, wanted, signal)
                return ToolResult(ok=True, text=text)
        except _MISTAKES as error:
            return _mistake("search", wanted.pattern, error)

    def write_file(self, call: ToolCall, path: str, content: bytes) -> ToolResult:
        """Write a file exactly, taking the turn's checkpoint first."""

        def prepare(tree: FileTree) -> Sequence[Edit]:
            return [prepare_write(tree, tree.resolve(_below(call.workspace), path), content)]

        return self._change(call, "write_file", path, prepare)

    def patch(self, call: ToolCall, text: str) -> ToolResult:
        """Apply a unified diff or search/replace edits, all or nothing, taking the turn's checkpoint first."""

        def prepare(tree: FileTree) -> Sequence[Edit]:
            return prepare_patch(tree, text, lambda named: tree.resolve(_below(call.workspace), named))

        return self._change(call, "patch", "", prepare)

    def _change(
        self, call: ToolCall, tool: str, subject: str, prepare: Callable[[FileTree], Sequence[Edit]]
    ) -> ToolResult:
        try:
            with self._running(call) as signal, self.files(call) as tree:
                edits = prepare(tree)
                named = edited_paths(edits)
                subject = _several(named)
                reason = f"before {tool}: {subject}"
                before = Before(None, None, reason)
                if isinstance(tree, Tree):  # what a sandbox holds, no checkpoint covers
                    before = self._guard.before(call, reason, named, checkpoint=True, writes=_planned(edits))
                try:
                    _refuse_stopped(signal, tool)
                    apply_edits(tree, edits)
                    if isinstance(tree, Tree) and not call.guarded:  # no capture sweeps what a killed write left
                        remove_old_beside(tree, named)
                finally:
                    after = self._guard.after(call, before, named, only_named=True)
        except _MISTAKES as error:
            return _mistake(tool, subject, error)
        return _result(after, ok=True, text=f"{tool}: {subject} written")

    def understand(self, workspace: Workspace, command: str) -> Understanding:
        """Say what a command would do, without running anything; links are followed to where they lead now."""
        return understand(
            command, cwd=workspace.cwd, root=workspace.root, home=self._user_home, resolve=_where_it_leads
        )

    def terminal(
        self,
        call: ToolCall,
        command: str,
        *,
        on_output: Callable[[str], None] | None = None,
        timeout_s: float | None = None,
        whole_output: bool = False,
    ) -> ToolResult:
        """Run a shell command; what is not plainly read-only is captured before and after."""
        heard = _Heard(on_output)
        try:
            backend = self._backends.get(call.backend, call.workspace)
            with self._running(call) as signal, heard.into(self._outputs if whole_output else None):
                understood = self.understand(call.workspace, command)
                before, named = self._before_command(call, command, understood, sandboxed=backend.is_container)
                outside = _outside(call, understood)
                try:
                    ended = backend.run(
                        command,
                        call.workspace.cwd,
                        self._command_env,
                        timeout_s or DEFAULT_TIMEOUT_S,
                        heard,
                        signal,
                        keep_background=understood.background,
                    )
                finally:
                    after = self._guard.after(call, before, named)
        except _MISTAKES as error:
            return _mistake("terminal", call.shown or command, error)
        if ended.detached and before.captured is not None:
            after = replace(after, notes=(*after.notes, _LEFT))
        after = replace(after, notes=after.notes + changed_outside(outside))
        said = describe(ended)
        result = _result(after, ok=said.ok, text=said.text, exit_code=said.exit_code)
        return heard.noted(result)

    def _before_command(
        self, call: ToolCall, command: str, understood: Understanding, *, sandboxed: bool
    ) -> tuple[Before, Sequence[str]]:
        """Capture what a command can change, unless that lies in a sandbox; return also what it names."""
        reason = f"before terminal: {' '.join((call.shown or command).split())}"
        if sandboxed:
            return Before(None, None, reason), ()
        named = _named_files(call.workspace, understood)
        if understood.verdict is Verdict.READ_ONLY:
            return Before(None, None, reason), named
        checkpoint = understood.verdict is Verdict.DESTRUCTIVE
        anew = not _is_confined(call.workspace, understood)
        return self._guard.before(call, reason, named, checkpoint=checkpoint, anew=anew), named

    def stop(self, operation: str) -> bool:
        """End what runs under an operation id and refuse whatever it would still write; whether it was running."""
        with self._lock:
            running = operation in self._signals
            signal = self._signals.setdefault(operation, StopSignal())
        signal.stop()
        return running

    @contextmanager
    def open_tree(self, workspace: Workspace) -> Iterator[Tree]:
        """Open the workspace's root."""
        tree = Tree.open(workspace.root) if self._fault is None else Tree.open(workspace.root, self._fault)
        with tree:
            yield tree

    @contextmanager
    def files(self, call: ToolCall) -> Iterator[FileTree]:
        """Open the files that a call means: the workspace's on the host, or those in its sandbox."""
        backend = self._backends.get(call.backend, call.workspace)
        if not backend.is_container:
            with self.open_tree(call.workspace) as tree:
                yield tree
        elif isinstance(backend, Sandbox):
            yield SandboxTree(backend)
        else:
            raise ToolRefused(f"backend {backend.kind!r}", "cannot read or write files; use a command in the terminal")

    @contextmanager
    def _running(self, call: ToolCall) -> Iterator[StopSignal]:
        """Be stoppable by the call's operation id; a stopped operation stays stopped."""
        with self._lock:
            signal = self._signals.setdefault(call.operation, StopSignal())
        _refuse_stopped(signal, "the tool")
        try:
            yield signal
        finally:
            with self._lock:
                if not signal.stopped:
                    self._signals.pop(call.operation, None)


class _Heard:
    """Hands a command's output on as text, and into a file where the whole of it is wanted."""

    def __init__(self, on_output: Callable[[str], None] | None) -> None:
        self._on_output = on_output
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._file: OutputFile | None = None

    def __call__(self, piece: bytes) -> None:
        if self._file is not None:
            self._file.write(piece)
        if self._on_output is not None:
            self._on_output(self._decode(piece))

    @contextmanager
    def into(self, outputs: Outputs | None) -> Iterator[None]:
        """Keep what is heard in a new file, unless there is nowhere."""
        if outputs is None:
            yield
            return
        with outputs.new() as self._file:
            yield

    def noted(self, result: ToolResult) -> ToolResult:
        """Say in a result which file holds all of it."""
        if self._file is None:
            return result
        notes = result.notes
        if self._file.cut_bytes:
            notes += (
                f"the output was longer than a file of it may be; the last {self._file.cut_bytes} bytes are lost",
            )
        return replace(result, notes=notes, output_file=self._file.name)


def _refuse_secret(tree: FileTree, path: str) -> None:
    """Refuse a file that looks like a secret, also by the name of what it leads to; not one that a person sent."""
    target = follow_link(tree, path)
    if is_sent(target) or not any(is_secret_name(name.rpartition("/")[2]) for name in (path, target)):
        return
    found = tree.signature(target)
    if found is not None and found.is_file:
        raise ToolRefused(display(path), "looks like a file of secrets, so it is not read: ask the person")


def _refuse_stopped(signal: StopSignal, tool: str) -> None:
    if signal.stopped:
        raise ToolRefused(tool, "the turn was stopped; nothing more is changed")


def _below(workspace: Workspace) -> str:
    """Return the directory that names are seen from, relative to the root."""
    below = os.path.relpath(workspace.cwd, workspace.root)
    return "" if below == "." else below


def _resolve(workspace: Workspace, named: str) -> str:
    return resolve_inside(workspace.root, workspace.cwd, named)


def _where_it_leads(path: str) -> str:
    try:
        return os.path.realpath(path)
    except ValueError:
        # No file can have such a name: compared as text.
        return path


def _named_files(workspace: Workspace, understood: Understanding) -> list[str]:
    """Return the paths below the root that a command names plainly, patterns left out."""
    found = []
    for named in understood.paths:
        if _WILDCARDS & set(named):
            continue
        try:
            path = _resolve(workspace, named)
        except PathUnsafe:
            continue
        if path:
            found.append(path)
    return found


def _outside(call: ToolCall, understood: Understanding) -> Stamps:
    """Look at what a command could change beyond the workspace, on this host."""
    if not call.guarded or call.backend.kind != BackendChoice().kind or understood.verdict is Verdict.READ_ONLY:
        return {}
    return outside_stamps(call.workspace, understood.outside)


def _is_confined(workspace: Workspace, understood: Understanding) -> bool:
    """Whether a command changes nothing but single files that it names, each under its only name."""
    if not understood.confined or not understood.paths:
        return False
    return all(not _WILDCARDS & set(named) and _is_single(workspace, named) for named in understood.paths)


def _is_single(workspace: Workspace, named: str) -> bool:
    try:
        path = os.path.join(workspace.root, _resolve(workspace, named))
        if os.path.realpath(path) != path:
            return False
        status = os.lstat(path)
    except FileNotFoundError:
        return True
    except (OSError, PathUnsafe, ValueError):
        return False
    return not stat.S_ISDIR(status.st_mode) and status.st_nlink == 1


def _planned(edits: Sequence[Edit]) -> dict[str, Entry | None]:
    return {
        edit.path: Entry(EntryKind.FILE, edit.mode, blob_oid(edit.content)) if isinstance(edit, FileEdit) else None
        for edit in edits
    }


def _several(paths: Sequence[str]) -> str:
    shown = ", ".join(display(path) for path in paths[:3])
    return f"{shown} (+{len(paths) - 3})" if len(paths) > 3 else shown  # noqa: PLR2004 - three names, as in the lists


def _mistake(tool: str, subject: str, error: Exception) -> ToolResult:
    if isinstance(error, OSError) and not isinstance(error, (ToolRefused, PathUnsafe)):
        return ToolResult(ok=False, text=f"{tool}: {display(subject)}: {error.strerror or error}")
    return ToolResult(ok=False, text=f"{tool}: {error}")


def _result(after: After, *, ok: bool, text: str, exit_code: int | None = None) -> ToolResult:
    return ToolResult(ok, text, after.notes, after.checkpoint, after.changes, after.stats, exit_code, after.took_s)
