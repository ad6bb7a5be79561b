"""Values that cross the engine's border: plain, frozen, and made of what JSON can hold.

Paths below a workspace root are ``str`` in the file system encoding with ``surrogateescape``, so that names of any
bytes survive; ``/`` separates their parts and none is absolute. Times are UTC.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class EntryKind(StrEnum):
    """What stands at a path."""

    FILE = "file"
    SYMLINK = "symlink"
    DIRECTORY = "directory"
    REPOSITORY = "repository"


@dataclass(frozen=True, slots=True)
class Entry:
    """What a capture knows of one path.

    ``mode`` holds the permission bits (``0o7777``). ``oid`` is the git blob id of a file's bytes or a symlink's
    target, the commit of a nested repository, ``None`` for a directory.
    """

    kind: EntryKind
    mode: int
    oid: str | None


class GapReason(StrEnum):
    """Why a checkpoint did not capture something."""

    NESTED_REPOSITORY = "nested git repository"
    TOO_LARGE = "too large"
    UNREADABLE = "unreadable"
    SECRET = "looks like a secret"  # noqa: S105 - a reason, not a password
    SPECIAL = "not a regular file"
    CHANGING = "changed while it was read"
    EXCLUDED = "excluded"
    STORE = "Takeback's own store"


@dataclass(frozen=True, slots=True)
class Gap:
    """Something a checkpoint did not capture.

    ``older`` says that the checkpoint still holds the content captured last, which is not the content at that time.
    """

    path: str
    reason: GapReason
    detail: str = ""
    older: bool = False


@dataclass(frozen=True, slots=True)
class TurnRef:
    """Who asked: a chat, its session, and the turn within it, as the caller names them."""

    chat: str
    session: str
    turn: str


def session_hash(session: str) -> str:
    """The name that the store knows a session by, as in `PrunePolicy.ended_sessions`."""
    return hashlib.sha256(session.encode("utf-8", "surrogateescape")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Limits:
    """What a workspace allows; a size is in bytes."""

    max_snapshots: int = 20
    max_file_size_bytes: int = 10 * 1024 * 1024
    max_source_files: int = 50_000
    large_checkpoint_bytes: int = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Workspace:
    """A guarded directory tree.

    ``root`` is the real path the store knows it by, ``cwd`` the real path where commands run (``root`` or below),
    ``hash`` names it in the store.
    """

    root: str
    cwd: str
    hash: str
    limits: Limits = Limits()


@dataclass(frozen=True, slots=True)
class ChangeStats:
    """How much changed; binary files count as files without lines."""

    files: int
    insertions: int
    deletions: int


class CheckpointKind(StrEnum):
    """What a checkpoint was taken for."""

    TURN = "turn"
    SAFETY = "safety"
    MANUAL = "manual"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A durable, named capture; ``id`` (40 hex digits) never changes.

    ``sequence`` orders the checkpoints of one workspace. ``stats`` is what the turn changed after it, as far as known.
    ``replaced_head`` is the caller's note on a safety checkpoint: the conversation head at that moment.
    ``imported_from`` is the store of other software that it was taken over from.
    """

    id: str
    sequence: int
    kind: CheckpointKind
    reason: str
    taken_at: datetime
    turn: TurnRef | None = None
    stats: ChangeStats | None = None
    gaps: tuple[Gap, ...] = ()
    restore_token: str | None = None
    replaced_head: str | None = None
    imported_from: str | None = None

    @property
    def nested_repositories(self) -> list[str]:
        """Where nested repositories stood, of which it holds nothing."""
        return [gap.path for gap in self.gaps if gap.reason is GapReason.NESTED_REPOSITORY]


@dataclass(frozen=True, slots=True)
class CheckpointResult:
    """The checkpoint that covers the moment, whether it is new, and what has to be said.

    ``checkpoint`` is ``None`` only where none could be taken; ``notes`` then says why.
    """

    checkpoint: Checkpoint | None
    created: bool
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """One path as it was and as it is; ``None`` where nothing stands."""

    path: str
    before: Entry | None
    after: Entry | None


class Verdict(StrEnum):
    """What a command does to files, as far as its text can tell."""

    READ_ONLY = "read-only"
    DESTRUCTIVE = "destructive"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Understanding:
    """What a command would do if it ran.

    ``paths`` are the paths it names, as the program would see them: quotes gone, relative ones left relative, a glob
    left as its pattern. ``outside`` are those of them that lie outside the workspace, and, unless the command is
    read-only, the text of each word that is used as a path but cannot be known before the command runs. ``confined``
    says of a destructive command that it changes nothing but those paths and what is below them.
    """

    verdict: Verdict
    reason: str
    paths: tuple[str, ...]
    outside: tuple[str, ...]
    background: bool
    confined: bool = False


@dataclass(frozen=True, slots=True)
class BackendChoice:
    """Where a workspace's tools run: the kind of backend, and the options that kind takes, as plain values."""

    kind: str = "local"
    options: Mapping[str, object] = field(default_factory=dict, repr=False)  # a service's key may be among them


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What every tool needs to know: where, for whom, whether checkpoints are on, and the id ``Engine.stop`` takes.

    ``secret_files`` is whether files may be read that look like secrets. ``shown`` is how a command is named in what is
    kept of it, where that is not the command itself.
    """

    workspace: Workspace
    turn: TurnRef
    guarded: bool
    operation: str
    backend: BackendChoice = BackendChoice()
    secret_files: bool = True
    shown: str | None = None


@dataclass(frozen=True, slots=True)
class Lines:
    """A part of a text: the lines from ``first`` to ``last``, counted from 1, both included; ``None`` for no bound."""

    first: int | None = None
    last: int | None = None


WHOLE = Lines()
"""All of a text."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Lines to look for: those that a regular expression fits, or that hold a ``literal`` text.

    ``files`` is a pattern, as in ``.gitignore``, for the names or paths of files; all are searched without it.
    """

    pattern: str
    files: str = ""
    ignore_case: bool = False
    literal: bool = False


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool did.

    ``text`` is for the agent. ``notes`` are sentences that people must see too (gaps, warnings). ``checkpoint`` covers
    the turn, if there is one. ``changes`` are the captured paths the tool changed; ``stats`` adds up what the turn
    changed so far. ``exit_code`` is negative for a signal, ``None`` for tools that run no process. ``guarded_s`` is how
    long the captures and the checkpoint took. ``output_file`` names the file of a command's whole output, where that
    was asked for.
    """

    ok: bool
    text: str
    notes: tuple[str, ...] = ()
    checkpoint: Checkpoint | None = None
    changes: tuple[Change, ...] = ()
    stats: ChangeStats | None = None
    exit_code: int | None = None
    guarded_s: float = 0.0
    output_file: str | None = None


@dataclass(frozen=True, slots=True)
class DiffResult:
    """A comparison: totals, a line per file (``git diff --stat``), and the patch text.

    ``stat_text`` is for people. ``patch`` is the patch itself, for people and git: what cannot be printed stands as it
    is, bytes that are no UTF-8 as surrogates. ``unreached`` is what was captured before and is out of reach since.
    """

    title: str
    stats: ChangeStats
    stat_text: str
    patch: str
    gaps: tuple[Gap, ...] = ()
    unreached: tuple[Gap, ...] = ()


class Action(StrEnum):
    """What a restore does with one path."""

    RESTORE = "restore"
    DELETE = "delete"
    MERGE = "merge"
    KEEP_HAND_EDIT = "keep hand-edit"
    KEEP_OTHER_CHAT = "keep another chat's change"
    KEEP_COPY = "keep the copy"
    NOT_CAPTURED = "not captured"


EFFECTIVE = (Action.RESTORE, Action.DELETE, Action.MERGE)
"""The actions that change a file."""


@dataclass(frozen=True, slots=True)
class PlanItem:
    """One path of a plan: what stands there now, what will stand there, what will be done and why.

    ``target`` is what the checkpoint holds; of a merge, whose content is in no checkpoint, it is the result.
    """

    path: str
    action: Action
    now: Entry | None
    target: Entry | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """What a restore would do, path by path; a value to print, then to hand to ``apply_restore``.

    ``full`` is true where hand-edits go too: asked for with ``everything``, or because the ledger is empty
    (``ledger_empty``). ``selection`` holds the pathspecs of a partial restore. ``turns`` limits it to what these turns
    wrote. ``chat`` is who asks; what another chat wrote stays. ``token`` names the restore for good.
    """

    workspace: Workspace
    target: Checkpoint
    token: str
    items: tuple[PlanItem, ...]
    selection: tuple[str, ...] = ()
    turns: tuple[str, ...] = ()
    everything: bool = False
    ledger_empty: bool = False
    chat: str | None = None

    @property
    def full(self) -> bool:
        """Whether hand-edits are restored too."""
        return self.everything or self.ledger_empty

    @property
    def effective(self) -> tuple[PlanItem, ...]:
        """The items that change a file."""
        return tuple(item for item in self.items if item.action in EFFECTIVE)


@dataclass(frozen=True, slots=True)
class PathNote:
    """A path and what there is to say of it."""

    path: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """What a restore did, every path named; ``failed`` paths still hold what they held.

    ``replanned`` are paths that changed between plan and restore, so that something else was done than was shown.
    From ``merged`` paths only the changes that were to go are gone; what others changed there since is kept. ``copies``
    would have gone, had what they hold come back where it was.
    """

    target: Checkpoint
    safety: Checkpoint | None
    token: str
    restored: tuple[PathNote, ...] = ()
    deleted: tuple[PathNote, ...] = ()
    kept: tuple[PathNote, ...] = ()
    other_chats: tuple[PathNote, ...] = ()
    not_captured: tuple[PathNote, ...] = ()
    failed: tuple[PathNote, ...] = ()
    replanned: tuple[str, ...] = ()
    everything: bool = False
    ledger_empty: bool = False
    resumed: bool = False
    merged: tuple[PathNote, ...] = ()
    copies: tuple[PathNote, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether nothing that should have been restored failed."""
        return not self.failed
