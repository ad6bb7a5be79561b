"""What happens around a tool: a capture before, the tool, a capture after, and the ledger in between.

A checkpoint never stands in a tool's way: when one cannot be taken, the reason becomes a note and the tool goes on.
"""

import logging
import os
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from engine.changes import NO_WRITES, compare_rows, only_at, without_others, written_as_planned
from engine.checkpoints.capture import Captured, capture
from engine.checkpoints.feed import Feed, WorkspaceFeed
from engine.checkpoints.history import (
    Held,
    Purpose,
    covering,
    damage_notes,
    drop_after,
    gap_notes,
    list_held,
    take,
)
from engine.checkpoints.manifest import covers
from engine.checkpoints.recapture import recapture
from engine.checkpoints.source import is_secret_name
from engine.checkpoints.unreached import (
    Identities,
    gone_since,
    identities,
    lost_note,
    moved_in,
    new_gaps,
    out_of_reach,
    uncaptured_before,
    vanished,
)
from engine.errors import EngineError, GitFailed
from engine.host.files import Tree
from engine.host.leftovers import remove_leftovers
from engine.model import (
    Change,
    ChangeStats,
    Checkpoint,
    CheckpointKind,
    Entry,
    Gap,
    GapReason,
    ToolCall,
    TurnRef,
    Workspace,
)
from engine.noting import Tooled, note_changes
from engine.restore.place import enter_place
from engine.restore.restores import OwnDirectories, Restores
from engine.store.journal import INSTANCE, RunningNote, clear_running, is_alive, read_running, write_running
from engine.store.objects import find_tree
from engine.store.opened import Store
from engine.store.rows import Rows

_LOG = logging.getLogger(__name__)

# A git that hung once is not waited for again before every tool.
PAUSE_S = 60.0

# A program that writes all the time is not waited for.
_MOST_CATCHING_UP = 3


@dataclass(frozen=True, slots=True)
class Before:
    """The state before a tool: its capture, the checkpoint that covers it so far, what to say, how long that took.

    ``gaps`` are to be said too, unless what is missing there turns out to have gone with the tool, which says more.
    ``number`` is the ledger's last record then, ``running`` where the tool is noted to be under way. ``anew`` says that
    the tool may change anything, so that everything is looked at. ``missed`` is what no capture holds.
    """

    captured: Captured | None
    checkpoint: Held | None
    reason: str
    notes: tuple[str, ...] = ()
    took_s: float = 0.0
    number: int = 0
    running: str = ""
    anew: bool = False
    gaps: tuple[Gap, ...] = ()
    missed: Identities = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class After:
    """What a tool changed; ``took_s`` is how long guarding it took, before and after."""

    changes: tuple[Change, ...] = ()
    checkpoint: Checkpoint | None = None
    stats: ChangeStats | None = None
    notes: tuple[str, ...] = ()
    took_s: float = 0.0


class Guard:
    """Guards tool calls of one store.

    Args:
        store: the store.
        own: Takeback's own directories.
        restores: finishes an interrupted restore before anything else is captured.
        feed: what tells of changes between captures.
    """

    def __init__(self, store: Store, own: OwnDirectories, restores: Restores, feed: Feed | None = None) -> None:
        self._store = store
        self._own = own
        self._restores = restores
        self._feed = feed
        self._retry_at = 0.0
        self._said: dict[str, tuple[str, str]] = {}
        self._damage: dict[str, tuple[str, ...]] = {}
        self._unsettled: set[str] = set()

    def before(
        self,
        call: ToolCall,
        reason: str,
        named: Sequence[str],
        *,
        checkpoint: bool,
        anew: bool = False,
        writes: Mapping[str, Entry | None] = NO_WRITES,
    ) -> Before:
        """Capture the state before a tool.

        Args:
            call: the tool call.
            reason: what the checkpoint is for, as in "before write_file: app.py".
            named: paths below the root that the tool names; captured even where rules hide them.
            checkpoint: take the turn's checkpoint now; otherwise only if the tool turns out to change something.
            anew: look at everything, whatever the feed says, because the tool may change anything.
            writes: what the tool is about to put where, as far as that is known.
        """
        if not call.guarded or time.monotonic() < self._retry_at:
            return Before(None, None, reason)
        began = time.monotonic()
        try:
            with self._store.use(call.workspace, "a checkpoint"):
                before = self._before(call, reason, named, writes, checkpoint=checkpoint, anew=anew)
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not stand in the tool's way
            notes = self._say_failure(call, error)
            return Before(None, None, reason, notes, time.monotonic() - began)
        self._said.pop(call.turn.chat, None)
        return replace(before, took_s=time.monotonic() - began)

    def _say_failure(self, call: ToolCall, error: Exception) -> tuple[str, ...]:
        """Log why no checkpoint was taken and say it to the chat, once in each turn while it stays the same."""
        _LOG.warning("no checkpoint before a tool: %s", error, exc_info=not _is_expected(error))
        pause = ""
        if isinstance(error, GitFailed) and error.timed_out:
            self._retry_at = time.monotonic() + PAUSE_S
            pause = f" Tools go on without checkpoints; the next try is in {PAUSE_S:.0f} s."
        note = f"no checkpoint was taken: {_said(error)}{pause}"
        if self._said.get(call.turn.chat) == (call.turn.turn, note):
            return ()
        self._said[call.turn.chat] = call.turn.turn, note
        return (note,)

    def _say_damage(self, workspace: Workspace) -> tuple[str, ...]:
        """Say what is wrong with a workspace's checkpoints, once for as long as it stays the same."""
        notes = damage_notes(self._store, workspace)
        said = self._damage.get(workspace.hash)
        self._damage[workspace.hash] = notes
        return () if notes == said else notes

    def _before(
        self,
        call: ToolCall,
        reason: str,
        named: Sequence[str],
        writes: Mapping[str, Entry | None],
        *,
        checkpoint: bool,
        anew: bool,
    ) -> Before:
        workspace = call.workspace
        notes = self.settle(workspace)
        captured = self._catch_up(workspace, self.capture(workspace, named, anew=anew), named)
        held = list_held(self._store, workspace)
        notes += self._say_damage(workspace)
        notes += enter_place(self._store, workspace, held[0]) if held else ()
        found = covering(held, captured, call.turn)
        gaps = _newly_named(captured, named) if checkpoint else ()
        if found is None and checkpoint:
            found = self._take(workspace, captured, Purpose(CheckpointKind.TURN, reason, call.turn), held)
            notes += captured.notes
            gaps = captured.gaps
        captured = self._catch_up(workspace, captured, named)
        note = RunningNote(
            call.turn, reason, os.getpid(), INSTANCE, captured.commit, writes, captured.gaps, captured.excluded
        )
        running = write_running(self._store.layout, workspace, note)
        number = self._store.ledger(workspace).number
        missed = {} if writes else identities(workspace, captured)
        return Before(captured, found, reason, notes, 0.0, number, running, anew, gaps, missed)

    def _catch_up(self, workspace: Workspace, captured: Captured, named: Sequence[str]) -> Captured:
        """Capture again what a person saved while the workspace was being looked at: the tool may take it away."""
        feed = self._feed_of(workspace)
        for _attempt in range(_MOST_CATCHING_UP):
            if feed is None or not feed.has_heard(captured.commit):
                break
            captured = self.capture(workspace, named)
        return captured

    def after(self, call: ToolCall, before: Before, named: Sequence[str], *, only_named: bool = False) -> After:
        """Capture the state after a tool and note what it changed; ``only_named`` says that it touched nothing else."""
        if before.captured is None:
            return After(notes=before.notes, took_s=before.took_s)
        began = time.monotonic()
        try:
            with self._store.use(call.workspace, "a checkpoint"):
                after = self._after(call, before, before.captured, named, only_named=only_named)
        except Exception as error:  # noqa: BLE001 - the tool has run, and its answer is not to be lost
            _LOG.warning("what a tool changed could not be noted: %s", error, exc_info=not _is_expected(error))
            self._unsettled.add(before.running)
            note = f"what this changed could not be noted, so it counts as edited by hand: {_said(error)}"
            taken = before.checkpoint.checkpoint if before.checkpoint else None
            after = After(checkpoint=taken, notes=(*before.notes, *gap_notes(before.gaps), note))
        return replace(after, took_s=before.took_s + time.monotonic() - began)

    def _after(
        self, call: ToolCall, before: Before, state: Captured, named: Sequence[str], *, only_named: bool
    ) -> After:
        workspace = call.workspace
        feed = self._feed_of(workspace)
        captured = recapture(self._store, workspace, state, named, feed=feed) if only_named else None
        if captured is None:
            captured = self.capture(workspace, named, anew=before.anew)
        changes = compare_rows(state.rows, captured.rows, captured.gaps, captured.differing(state.rows))
        if only_named:
            changes = only_at(changes, named)
        changes = without_others(changes, self._store.ledger(workspace).put_after(before.number))
        notes, gaps = before.notes, before.gaps
        found = before.checkpoint
        gone = vanished(workspace, state, captured)
        changed = bool(changes or gone) or out_of_reach(state, captured)
        if changed and found is None:
            held = list_held(self._store, workspace)
            found = self._take(workspace, state, Purpose(CheckpointKind.TURN, before.reason, call.turn), held)
            notes, gaps = notes + state.notes, state.gaps
        missed = {gap.path for gap in gone}
        notes += gap_notes(gap for gap in gaps if gap.path not in missed)
        notes += gap_notes(new_gaps(state, captured))
        notes += gap_notes(gone)
        uncaptured = gone_since(gone) | uncaptured_before(state, changes)
        uncaptured |= moved_in(workspace, before.missed, captured, changes)
        stats, lost = note_changes(
            self._store, workspace, call.turn, found, Tooled(changes, state, captured, uncaptured)
        )
        notes += lost_note(lost)
        clear_running(before.running)
        return After(changes, found.checkpoint if found and changed else _taken(before), stats, notes)

    @contextmanager
    def noting_failure(self, workspace: Workspace, reason: str) -> Iterator[None]:
        """Note what a block changed as a tool's doing if it raises; what no checkpoint holds of it is a note there."""
        turn = TurnRef("", "", f"a block {secrets.token_hex(8)}")
        call = ToolCall(workspace, turn, guarded=True, operation="")
        before = self.before(call, reason, (), checkpoint=False, anew=True)
        try:
            yield
        except BaseException as failure:
            for note in self.after(call, before, ()).notes:
                failure.add_note(note)
            raise
        if before.running:
            clear_running(before.running)

    def settle(self, workspace: Workspace) -> tuple[str, ...]:
        """Finish what a crash left under way; return what to say of it. The caller holds ``store.use``."""
        report = self._restores.resume(workspace)
        notes: tuple[str, ...] = ()
        if report is not None:
            notes = (f"an interrupted restore to checkpoint {report.target.id[:8]} was finished",)
        for path, running in read_running(self._store.layout, workspace).items():
            if path in self._unsettled or not is_alive(running):
                notes += self._settle_tool(workspace, running)
                clear_running(path)
                self._unsettled.discard(path)
        return notes

    def _settle_tool(self, workspace: Workspace, running: RunningNote) -> tuple[str, ...]:
        """Account for a tool that a crash ended: the state before it is a checkpoint, what it wrote is the agent's.

        Only what stands exactly as the tool was to write it is taken for the agent's; whatever else differs may be a
        person's doing since, and is theirs.
        """
        before = self._store.index(workspace)
        tree = running.commit and find_tree(self._store.git, running.commit)
        if running.commit is None or tree is None:
            return ()
        rows = before.rows if before.base == running.commit else Rows()
        state = Captured(running.commit, tree, Rows(), rows, frozenset(), running.gaps, running.excluded)
        held = list_held(self._store, workspace)
        found = covering(held, state, running.turn)
        if found is None:
            found = self._take(workspace, state, Purpose(CheckpointKind.TURN, running.reason, running.turn), held)
        if not self._store.ledger(workspace).knows_checkpoint(found.checkpoint.id):
            drop_after(self._store, workspace, found.checkpoint.sequence)  # the end came before what it names was noted
        lost: tuple[str, ...] = ()
        if rows and running.writes:
            with Tree.open(workspace.root) as files:
                remove_leftovers(files, running.writes)
            captured = self.capture(workspace, running.writes)
            changes = compare_rows(rows, captured.rows, captured.gaps, captured.differing(rows))
            changes = written_as_planned(changes, running.writes)
            tooled = Tooled(changes, state, captured)
            lost = lost_note(note_changes(self._store, workspace, running.turn, found, tooled)[1])
        why = "the service ended during a tool" if not is_alive(running) else "what a tool changed was not noted"
        return (f"{why}; the state {running.reason} is checkpoint {found.checkpoint.id[:8]}", *lost)

    def capture(self, workspace: Workspace, named: Iterable[str] = (), *, anew: bool = False) -> Captured:
        """Capture a workspace and note what was named and could not be captured. The caller holds ``store.use``."""
        named = tuple(named)
        forced = [path for path in named if not is_secret_name(path.rpartition("/")[2])]
        forced += self._store.ledger(workspace).present()
        feed = self._feed_of(workspace)
        captured = capture(self._store, workspace, self._own(), forced, feed=feed, named=named, anew=anew)
        hidden = [_hidden_gap(path) for path in named if _is_hidden(workspace, captured, path)]
        return replace(captured, gaps=(*captured.gaps, *hidden)) if hidden else captured

    def _feed_of(self, workspace: Workspace) -> WorkspaceFeed | None:
        return None if self._feed is None else self._feed.of(workspace)

    def _take(self, workspace: Workspace, captured: Captured, purpose: Purpose, held: Sequence[Held]) -> Held:
        number = self._store.ledger(workspace).number
        taken = take(self._store, workspace, captured, purpose, held)
        return Held(taken, captured.tree, captured.excluded, number)

    def take_checkpoint(
        self, workspace: Workspace, purpose: Purpose, named: Sequence[str] = ()
    ) -> tuple[Checkpoint, bool, tuple[str, ...]]:
        """Take a checkpoint unless one covers this moment; return it, whether it is new, and what to say.

        Raises:
            EngineError: none could be taken.
        """
        with self._store.use(workspace, "a checkpoint"):
            notes = self.settle(workspace)
            captured = self.capture(workspace, named, anew=True)
            held = list_held(self._store, workspace)
            notes += self._say_damage(workspace)
            found = covering(held, captured, purpose.turn)
            if found is not None:
                return found.checkpoint, False, notes
            taken = self._take(workspace, captured, purpose, held)
            return taken.checkpoint, True, notes + captured.notes + gap_notes(captured.gaps)


def _is_expected(error: Exception) -> bool:
    """Whether it is one of the ways in which a capture may fail, whose message is for people."""
    return isinstance(error, EngineError | OSError | ValueError)


def _said(error: Exception) -> str:
    return str(error) if _is_expected(error) else f"an error inside Takeback ({type(error).__name__}); the log has it"


def _taken(before: Before) -> Checkpoint | None:
    return before.checkpoint.checkpoint if before.checkpoint else None


def _newly_named(captured: Captured, named: Sequence[str]) -> tuple[Gap, ...]:
    """Return the gaps of what this tool names; the others were said when the checkpoint was taken."""
    return tuple(gap for gap in captured.gaps if gap.path in named)


def _is_hidden(workspace: Workspace, captured: Captured, path: str) -> bool:
    """Whether rules hide what stands at a path, so that no row and no gap speaks of it."""
    if path in captured.rows or not covers(captured.excluded, path):
        return False
    return os.path.lexists(os.path.join(workspace.root, path))


def _hidden_gap(path: str) -> Gap:
    secret = is_secret_name(path.rpartition("/")[2])
    return Gap(path, GapReason.SECRET if secret else GapReason.EXCLUDED)
