"""One chat sentence for each way the engine can refuse or fail, and why checkpoints are not to be had."""

from collections.abc import Callable

from engine.errors import (
    BadSelection,
    CaptureFailed,
    EngineError,
    GitFailed,
    GitUnavailable,
    ImportRefused,
    NestedRepositoryRefused,
    RestoreRefused,
    SafetyFailed,
    StorageFailed,
    StoreBusy,
    StoreDamaged,
    ToolRefused,
    UnknownCheckpoint,
    WorkspaceRefused,
)
from engine.model import PathNote
from gateway.render import name, names, one_line

DETAIL_CHARACTERS = 300
"""Characters of a program's own message inside a sentence."""

_VERIFY = "run on the gateway's machine: gateway checkpoints verify"

REFUSED = "Refused, nothing was changed: "

HOW_TO_TURN_ON = """\
Checkpoints are off here, so nothing can be taken back. Turn them on with one of these:

  /checkpoints on             for this session
  checkpoints.enabled: true   for every chat, in config.yaml
  gateway chat --checkpoints  for the chat in the terminal
"""
"""What to say where checkpoints are off."""


def sentence(error: EngineError) -> str:
    """Return what a chat says of an error: what happened, what was not changed, what to do next."""
    for kind in type(error).__mro__:
        if kind in SENTENCES:
            return SENTENCES[kind](error)
    return _detail(str(error))


def container_reason(backend: str) -> str:
    """Return why there are no checkpoints where commands run in a container."""
    return (
        f"This workspace's commands run in a container ({backend}): its files belong to the sandbox, "
        "so no checkpoint covers them and nothing can be compared or restored. Nothing was changed."
    )


def git_reason(reason: str) -> str:
    """Return why there are no checkpoints where git cannot be used."""
    return (
        f"There are no checkpoints because git cannot be used: {_detail(reason).rstrip('.')}. "
        "Install git 2.30 or newer, then try again; the agent works without it."
    )


def _detail(text: str) -> str:
    return one_line(text, DETAIL_CHARACTERS)


def _git_failed(error: GitFailed) -> str:
    what = "took too long and was stopped" if error.timed_out else "failed"
    said = f": {_detail(error.detail).rstrip('.')}" if error.detail else ""
    return (
        f"The checkpoint store did not answer: git {_detail(error.command)} {what}{said}. Try again; if it stays so, "
        f"{_VERIFY}"
    )


def _store_damaged(error: StoreDamaged) -> str:
    return (
        f"The checkpoint store is damaged: {_detail(error.what)}. Nothing was changed. "
        f"{_VERIFY[0].upper()}{_VERIFY[1:]}"
    )


def _storage_failed(error: StorageFailed) -> str:
    return (
        f"The checkpoint store could not be used: {name(error.path)}: {_detail(error.reason)}. What was complete is "
        "kept, what was begun is finished or undone by the next command. Remove the cause, then try again."
    )


def _store_busy(error: StoreBusy) -> str:
    return (
        f"The checkpoint store is busy: {_detail(error.holder)} has held it for more than "
        f"{error.waited_s:.0f} s. Nothing was changed. Try again in a moment."
    )


def _workspace_refused(error: WorkspaceRefused) -> str:
    return f"{name(error.path)} cannot be a workspace: {_detail(error.reason)}. Choose another: /workspace"


def _capture_failed(error: CaptureFailed) -> str:
    return f"No checkpoint of {name(error.root)} could be taken: {_detail(error.reason)}. Nothing was changed."


def _unknown_checkpoint(error: UnknownCheckpoint) -> str:
    return f"{name(error.wanted)} names no checkpoint: {_detail(error.reason)}. /rollback shows the list."


def _nested(error: NestedRepositoryRefused) -> str:
    nested = names([PathNote(path) for path in error.repositories])
    return (
        f"{REFUSED}the checkpoint does not hold the nested git repositories {nested}. "
        "Restore files outside them by name: /rollback <N> <file>"
    )


def _bad_selection(error: BadSelection) -> str:
    return f"{name(error.selection)}: {_detail(error.reason)}. Nothing was changed."


def _safety_failed(error: SafetyFailed) -> str:
    return (
        f"Nothing was restored: the safety checkpoint that makes it undoable could not be taken "
        f"({_detail(error.reason)}). Remove the cause, then try again."
    )


def _tool_refused(error: ToolRefused) -> str:
    return f"{_detail(error.subject)}: {_detail(error.reason)}. Nothing was changed."


SENTENCES: dict[type[EngineError], Callable[..., str]] = {
    GitUnavailable: lambda error: git_reason(error.reason),
    GitFailed: _git_failed,
    StoreDamaged: _store_damaged,
    StorageFailed: _storage_failed,
    StoreBusy: _store_busy,
    WorkspaceRefused: _workspace_refused,
    ImportRefused: lambda error: f"{_detail(error.path)} cannot be imported: {_detail(error.reason)}.",
    CaptureFailed: _capture_failed,
    UnknownCheckpoint: _unknown_checkpoint,
    RestoreRefused: lambda error: f"{REFUSED}{_detail(str(error))}",
    NestedRepositoryRefused: _nested,
    BadSelection: _bad_selection,
    SafetyFailed: _safety_failed,
    ToolRefused: _tool_refused,
}
"""The table; each function takes an error of its class."""
