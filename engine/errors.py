"""Everything the engine raises, one class per way a caller can react.

::

    EngineError
    ├── GitUnavailable        git is missing or does not start; checkpoints are off, tools go on
    ├── GitFailed             a git command failed or ran out of time
    ├── StoreDamaged          the store lacks or cannot read what it should hold
    ├── StorageFailed         the system refused a step on the store's files: no room, no permission, a broken disk
    ├── StoreBusy             another process holds the lock past the bounded wait
    ├── WorkspaceRefused      a directory that is never guarded, or does not exist
    ├── ImportRefused         a foreign store that cannot be read, or not safely
    ├── CaptureFailed         a capture could not be taken; nothing half-captured is kept
    ├── UnknownCheckpoint     no checkpoint, or several, by that id
    ├── RestoreRefused        refused with nothing changed
    │   ├── NestedRepositoryRefused
    │   ├── BadSelection
    │   └── SafetyFailed
    └── ToolRefused           a tool's input cannot be accepted; nothing was changed
"""

from collections.abc import Sequence


class EngineError(Exception):
    """Base of all; its message is a sentence for people."""


class GitUnavailable(EngineError):
    """Git is missing or cannot be started."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"git cannot be used: {reason}. Install git 2.30 or newer, then try again.")


class GitFailed(EngineError):
    """A git command failed; ``timed_out`` says that it was killed with its group."""

    def __init__(self, command: str, detail: str, *, timed_out: bool = False) -> None:
        self.command = command
        self.detail = detail
        self.timed_out = timed_out
        what = "ran out of time and was stopped" if timed_out else "failed"
        super().__init__(f"git {command} {what}: {detail}" if detail else f"git {command} {what}")


class StoreDamaged(EngineError):
    """The store cannot give back what it lists."""

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(
            f"the checkpoint store is damaged: {what}. Nothing was changed. Run: gateway checkpoints verify"
        )


class StorageFailed(EngineError):
    """A step on the store's own files, or on the workspace's directory as a whole, was refused by the system."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(
            f"{path}: {reason}. What was complete is kept, what was begun is finished or undone by the next step. "
            "Remove the cause, then try again."
        )


class StoreBusy(EngineError):
    """A lock was not free within the bounded wait."""

    def __init__(self, lock: str, holder: str, waited_s: float) -> None:
        self.lock = lock
        self.holder = holder
        self.waited_s = waited_s
        super().__init__(f"busy: {lock} is held by {holder} (waited {waited_s:.0f} s). Try again in a moment.")


class WorkspaceRefused(EngineError):
    """A directory that cannot be a workspace."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path} cannot be guarded: {reason}. Choose a project directory.")


class ImportRefused(EngineError):
    """A foreign store that is not taken over."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path} cannot be imported: {reason}. Nothing was changed.")


class CaptureFailed(EngineError):
    """A capture could not be taken."""

    def __init__(self, root: str, reason: str) -> None:
        self.root = root
        self.reason = reason
        super().__init__(f"no checkpoint of {root}: {reason}")


class UnknownCheckpoint(EngineError):
    """No single checkpoint answers to an id."""

    def __init__(self, wanted: str, reason: str) -> None:
        self.wanted = wanted
        self.reason = reason
        super().__init__(f"{wanted!r} names no checkpoint: {reason}. See the list with /rollback.")


class RestoreRefused(EngineError):
    """A restore was refused before anything changed."""


class NestedRepositoryRefused(RestoreRefused):
    """A full restore, or a selection, would reach a nested repository that no checkpoint holds."""

    def __init__(self, repositories: Sequence[str]) -> None:
        self.repositories = tuple(repositories)
        names = ", ".join(self.repositories)
        super().__init__(
            f"this checkpoint does not hold the nested git repositories: {names}. Nothing was changed. "
            "Restore single files outside them: /rollback <N> <file>"
        )


class BadSelection(RestoreRefused):
    """A selection that cannot be used or matches nothing."""

    def __init__(self, selection: str, reason: str) -> None:
        self.selection = selection
        self.reason = reason
        super().__init__(f"{selection!r}: {reason}. Nothing was changed.")


class SafetyFailed(RestoreRefused):
    """The safety checkpoint could not be taken, so nothing was restored."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"the safety checkpoint could not be taken ({reason}). Nothing was restored.")


class ToolRefused(EngineError):
    """A tool's input cannot be accepted."""

    def __init__(self, subject: str, reason: str) -> None:
        self.subject = subject
        self.reason = reason
        super().__init__(f"{subject}: {reason}")


class LargeCheckpointWarning(UserWarning):
    """One checkpoint added more than the threshold; a class of its own, so that it can be silenced alone."""
