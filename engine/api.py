"""The engine's one face: blocking, thread-safe, plain values in and out.

An `Engine` guards workspaces with checkpoints kept in one store. It reads no environment, prints nothing and knows no
chat; who calls it decides what is shown to whom.

    >>> engine = Engine("/home/me/.takeback/checkpoints", user_home="/home/me")      # doctest: +SKIP
    >>> project = engine.open_workspace("/home/me/code/app")                          # doctest: +SKIP
    >>> with engine.transaction(project, "rename the package"):                       # doctest: +SKIP
    ...     rename_everything()   # an exception in here brings every file back
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType

from engine.backends.held import Backends
from engine.checkpoints.baselines import has_baseline, record_baseline
from engine.checkpoints.feed import Feed
from engine.checkpoints.finding import Finding
from engine.checkpoints.history import Purpose, damage_notes, get_held, list_held
from engine.checkpoints.roots import find_root, refuse_own
from engine.checkpoints.unreached import MOVED
from engine.comparisons import Comparisons
from engine.errors import EngineError, GitUnavailable, NestedRepositoryRefused, UnknownCheckpoint
from engine.guard import Guard
from engine.host.files import Fault
from engine.host.git import Before as BeforeGit
from engine.host.git import Git
from engine.model import (
    Checkpoint,
    CheckpointKind,
    CheckpointResult,
    DiffResult,
    Limits,
    Lines,
    RestorePlan,
    RestoreReport,
    ToolCall,
    ToolResult,
    TurnRef,
    Understanding,
    Wanted,
    Workspace,
)
from engine.restore.restores import OwnDirectories, Restores
from engine.restore.scope import Request
from engine.store.claims import Claims
from engine.store.journal import running_paths
from engine.store.layout import Layout, real_base, workspace_hash
from engine.store.opened import Store
from engine.toolbox import Toolbox
from engine.tools.outputs import Outputs
from engine.tools.sent import SentFiles
from engine.upkeep.accounting import Accounting
from engine.upkeep.clear import ClearPreview, ClearReport
from engine.upkeep.importing import ImportReport
from engine.upkeep.keeper import Keeper
from engine.upkeep.orphans import OrphanPreview
from engine.upkeep.progress import Step
from engine.upkeep.report import PruneReport
from engine.upkeep.retention import Decision, PrunePolicy, WorkspaceRule
from engine.upkeep.status import ProjectStatus, StoreStatus
from engine.upkeep.verify import VerifyReport

__all__ = [
    "Accounting",
    "ClearPreview",
    "ClearReport",
    "Decision",
    "Engine",
    "ImportReport",
    "OrphanPreview",
    "ProjectStatus",
    "PrunePolicy",
    "PruneReport",
    "Step",
    "StoreStatus",
    "VerifyReport",
    "WorkspaceRule",
]

_NO_ENVIRONMENT: Mapping[str, str] = MappingProxyType({})


class Engine:
    """Checkpoints, restores and tools over one store.

    Args:
        base: the directory that holds the store; made when first needed.
        user_home: the person's home directory, which is never a workspace.
        lock_path: the lock file that coordinates processes; beside ``base`` unless given.
        git: path of git; looked up in ``search_path`` unless given.
        search_path: where programs are, as in ``PATH``.
        command_env: the environment of the commands that the terminal tool runs, and all of it.
        client_env: the environment of what backends call (ssh, docker), and all of it; that of commands unless given.
        lock_wait_s: longest wait for a lock in seconds.
        git_timeout_s: how long git may do nothing before it is killed, in seconds.
        change_feed: hear of changes between captures instead of looking for them, where that can be trusted.
        before_git: called with the arguments before each git process (fault injection).
        file_fault: called before each operation that changes a workspace file (fault injection).

    ``upkeep`` looks after the store, ``outputs`` keeps whole outputs of commands, ``sent`` keeps files that people
    send, ``claims`` keep whole turns apart, ``readings`` tell how far a long capture has come.
    """

    def __init__(  # noqa: PLR0913 - what it must not find out for itself
        self,
        base: str,
        *,
        user_home: str,
        lock_path: str | None = None,
        git: str | None = None,
        search_path: str = os.defpath,
        command_env: Mapping[str, str] = _NO_ENVIRONMENT,
        client_env: Mapping[str, str] = _NO_ENVIRONMENT,
        lock_wait_s: float = 10.0,
        git_timeout_s: float = 30.0,
        change_feed: bool = True,
        before_git: BeforeGit | None = None,
        file_fault: Fault | None = None,
    ) -> None:
        self._user_home = user_home
        layout = Layout(real_base(base))
        runner = Git(layout.store, executable=git, search_path=search_path, timeout_s=git_timeout_s, before=before_git)
        lock = lock_path or os.path.join(os.path.dirname(layout.base), ".checkpoints.lock")
        self._store = Store(layout, runner, lock, lock_wait_s)
        self._own = own = OwnDirectories([os.path.dirname(lock) if lock_path is None else layout.base, layout.base])
        self._feed = Feed(enabled=change_feed)
        self._restores = Restores(self._store, own, file_fault, self._feed)
        self._guard = Guard(self._store, own, self._restores, self._feed)
        self.upkeep = Keeper(self._store)
        self._backends = Backends(os.path.join(os.path.dirname(lock), "backends"), client_env or command_env)
        self.outputs = Outputs(os.path.join(os.path.dirname(lock), "outputs"))
        self.readings = self._store.readings
        self.claims = Claims(os.path.join(os.path.dirname(lock), "writers"))
        self._toolbox = Toolbox(
            self._guard, user_home, command_env, self._backends, self.outputs, Finding(runner, search_path), file_fault
        )
        self.sent = SentFiles(self._toolbox.files)
        self._comparisons = Comparisons(self._store, self._guard, self._toolbox.open_tree)

    def close(self) -> None:
        """Write what is only remembered, and give back what is held: watched directories, connections, containers."""
        self._feed.close()
        self._store.close()
        self._backends.close()

    # --- workspaces

    def open_workspace(self, path: str, limits: Limits = Limits()) -> Workspace:  # noqa: B008 - a frozen value
        """Return the workspace a directory belongs to.

        Raises:
            WorkspaceRefused: there is none, or it is Takeback's own, ``/``, the home directory or above it.
        """
        root, cwd = find_root(path, self._user_home, self._store.knows)
        for directory in (root, cwd):
            refuse_own(directory, self._store.layout.base, self._own())
        return Workspace(root, cwd, workspace_hash(root), limits)

    def availability(self) -> str | None:
        """Return why checkpoints cannot be taken on this machine, ``None`` if they can."""
        try:
            self._store.git.executable()
        except GitUnavailable as error:
            return str(error)
        return None

    def unheard(self, workspace: Workspace) -> str | None:
        """Return why changes in a workspace have to be looked for, which takes longer; ``None`` if they are heard."""
        return self._feed.hindrance(workspace.root)

    # --- tools

    def read_file(self, call: ToolCall, path: str, lines: Lines = Lines()) -> ToolResult:  # noqa: B008 - a frozen value
        """Return a file's text, or some lines of it."""
        return self._toolbox.read_file(call, path, lines)

    def list_files(self, call: ToolCall, path: str, pattern: str = "") -> ToolResult:
        """List the source files below a directory; with a pattern only those whose name or path fits it."""
        return self._toolbox.list_files(call, path, pattern)

    def search(self, call: ToolCall, wanted: Wanted, path: str) -> ToolResult:
        """Find lines of the source files below a directory, or of one file."""
        return self._toolbox.search(call, wanted, path)

    def write_file(self, call: ToolCall, path: str, content: bytes) -> ToolResult:
        """Write a file exactly, taking the turn's checkpoint first."""
        return self._toolbox.write_file(call, path, content)

    def patch(self, call: ToolCall, text: str) -> ToolResult:
        """Apply a unified diff or search/replace edits, all or nothing, taking the turn's checkpoint first."""
        return self._toolbox.patch(call, text)

    def terminal(
        self,
        call: ToolCall,
        command: str,
        *,
        on_output: Callable[[str], None] | None = None,
        timeout_s: float | None = None,
        whole_output: bool = False,
    ) -> ToolResult:
        """Run a shell command, for ``timeout_s`` at most; what is not plainly read-only is captured before and after.

        ``on_output`` gets pieces of output as they come; ``whole_output`` keeps all in a file that ``outputs`` reads.
        """
        return self._toolbox.terminal(
            call, command, on_output=on_output, timeout_s=timeout_s, whole_output=whole_output
        )

    def understand(self, workspace: Workspace, command: str) -> Understanding:
        """Say what a command would do, without running anything; links are followed to where they lead now."""
        return self._toolbox.understand(workspace, command)

    def stop(self, operation: str) -> bool:
        """End what runs under an operation id and refuse whatever it would still write; whether it was running."""
        return self._toolbox.stop(operation)

    # --- checkpoints

    def checkpoint(
        self, workspace: Workspace, reason: str, *, turn: TurnRef | None = None, paths: Sequence[str] = ()
    ) -> CheckpointResult:
        """Take a checkpoint unless one covers this moment already.

        Args:
            workspace: what to capture.
            reason: a line for the list.
            turn: whose turn it belongs to; at most one is taken per turn.
            paths: files to capture even where ``.gitignore`` hides them.

        Raises:
            EngineError: none could be taken; nothing half-captured is kept.
        """
        kind = CheckpointKind.MANUAL if turn is None else CheckpointKind.TURN
        taken, created, notes = self._guard.take_checkpoint(workspace, Purpose(kind, reason, turn), paths)
        return CheckpointResult(taken, created, notes)

    def settle(self, workspace: Workspace) -> tuple[str, ...]:
        """Make checkpoints of the states before tools whose end was not noted, and return what to say of it."""
        if not running_paths(self._store.layout, workspace):
            return ()
        with self._store.use(workspace, "what a tool left"):
            return self._guard.settle(workspace)

    def begin_session(self, workspace: Workspace, session: str) -> None:
        """Record the workspace as it is as the baseline of a session; the first call counts.

        Raises:
            EngineError: it could not be captured.
        """
        with self._store.use(workspace, "a session's baseline"):
            if not has_baseline(self._store, workspace, session):
                record_baseline(self._store, workspace, session, self._guard.capture(workspace))

    def checkpoints(self, workspace: Workspace) -> list[Checkpoint]:
        """Return the checkpoints, newest first."""
        return [item.checkpoint for item in list_held(self._store, workspace)]

    def damage(self, workspace: Workspace) -> tuple[str, ...]:
        """Return what to say of checkpoints that the last list had to leave out, because they are damaged."""
        return damage_notes(self._store, workspace)

    def find_checkpoint(self, workspace: Workspace, prefix: str) -> Checkpoint:
        """Return the one checkpoint whose id begins so.

        Raises:
            UnknownCheckpoint: none or several do.
            StoreDamaged: it is, or may be, one that is damaged.
        """
        return get_held(self._store, workspace, list_held(self._store, workspace), prefix).checkpoint

    def diff(self, workspace: Workspace, checkpoint_id: str, selection: Sequence[str] = ()) -> DiffResult:
        """Compare a checkpoint with the workspace as it is now.

        Raises:
            UnknownCheckpoint: there is none by that id.
            BadSelection: a pathspec cannot be used.
            EngineError: the workspace or the store could not be read.
        """
        return self._comparisons.with_now(workspace, checkpoint_id, selection)

    def turn_diff(self, workspace: Workspace, turn: str) -> DiffResult | None:
        """Return what a turn's tools changed, ``None`` if they changed nothing or it is no longer known.

        Raises:
            EngineError: the store could not be read.
        """
        return self._comparisons.of_turn(workspace, turn)

    def session_diff(self, workspace: Workspace, session: str) -> DiffResult | None:
        """Return everything that changed since a session began, ``None`` if its beginning was not recorded.

        Raises:
            EngineError: the workspace or the store could not be read.
        """
        return self._comparisons.since_session(workspace, session)

    # --- restore

    def plan_restore(
        self,
        workspace: Workspace,
        checkpoint_id: str,
        *,
        selection: Sequence[str] = (),
        everything: bool = False,
        turns: Sequence[str] = (),
        chat: str | None = None,
        token: str | None = None,
    ) -> RestorePlan:
        """Plan a restore without changing a file.

        Args:
            workspace: where.
            checkpoint_id: an id or a prefix of four or more characters.
            selection: pathspecs to limit it to.
            everything: restore hand-edits too.
            turns: limit it to what these turns wrote.
            chat: who asks, as in `TurnRef.chat`; what other chats wrote stays, in a shared file by a merge.
            token: a name for this restore that survives a crash; made up unless given.

        Raises:
            UnknownCheckpoint: there is none by that id.
            RestoreRefused: it would reach a nested repository, or the selection cannot be used.
            StoreDamaged: the checkpoint cannot be read.
            EngineError: the workspace could not be captured.
        """
        request = Request(checkpoint_id, tuple(selection), everything, tuple(turns), chat, token)
        with self._store.use(workspace, "a restore's plan"):
            self._guard.settle(workspace)
            return self._restores.plan(workspace, request).plan

    def apply_restore(
        self, plan: RestorePlan, *, turn: TurnRef | None = None, replaced_head: str | None = None
    ) -> RestoreReport:
        """Do what a plan says, after a safety checkpoint.

        What changed in the workspace since the plan was made is planned anew and named in the report.

        Args:
            plan: from `plan_restore`.
            turn: noted on the safety checkpoint.
            replaced_head: the conversation's head now, noted on the safety checkpoint.

        Raises:
            RestoreRefused: nothing was changed.
            StoreDamaged: nothing was changed.
        """
        with self._store.use(plan.workspace, "a restore"):
            self._guard.settle(plan.workspace)
            return self._restores.apply(plan, turn, replaced_head)

    def resume_restores(self, workspace: Workspace) -> list[RestoreReport]:
        """Finish the restore that a crash interrupted, if there is one.

        Raises:
            StoreDamaged: it cannot be finished; the message says why and nothing more was changed.
        """
        if not self._store.knows(workspace.hash):
            return []
        with self._store.use(workspace, "an interrupted restore"):
            report = self._restores.resume(workspace)
            return [] if report is None else [report]

    def restore_outcome(self, workspace: Workspace, token: str) -> RestoreReport | None:
        """Return what became of a restore by its token, ``None`` if it never changed anything."""
        if not self._store.knows(workspace.hash):
            return None
        with self._store.use(workspace, "a restore's outcome"):
            return self._restores.outcome(workspace, token)

    @contextmanager
    def transaction(self, workspace: Workspace, reason: str) -> Iterator[Checkpoint]:
        """Restore every file to what it was if the block raises; the exception goes on, with notes of what stays.

        Raises:
            NestedRepositoryRefused: before the block, because a nested repository could not be restored.
            EngineError: before the block, because no checkpoint could be taken.
        """
        checkpoint = self.checkpoint(workspace, reason).checkpoint
        if checkpoint is None:
            raise UnknownCheckpoint(reason, "none could be taken")
        if checkpoint.nested_repositories:
            raise NestedRepositoryRefused(checkpoint.nested_repositories)
        try:
            with self._guard.noting_failure(workspace, reason):
                yield checkpoint
        except BaseException as failure:
            try:
                report = self.apply_restore(self.plan_restore(workspace, checkpoint.id, everything=True))
            except EngineError as error:
                failure.add_note(f"The workspace could not be restored: {error}")
            else:
                left = (note for note in report.not_captured if note.why.startswith(MOVED))
                for note in (*report.failed, *left):
                    failure.add_note(f"Not restored: {note.path} ({note.why})")
            raise
