"""The product in memory: a workspace, its checkpoints and ledger, and the conversations of several chats.

It says what DESIGN promises, not how it is done: what a step leaves in the workspace, which checkpoints there are, what
counts as a hand-edit, and where each conversation stands.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.model.restoring import (
    Act,
    Done,
    Fate,
    Item,
    Known,
    Ledger,
    Mark,
    Plan,
    Wish,
    chosen,
    ledger_after,
    perform,
    plan,
)
from tests.model.source import REPOSITORY, Capture, capture
from tests.model.trees import Node, Tree, parents


@dataclass(eq=False, slots=True)
class Turn:
    """One message and what was done for it; ``number`` is the product's own, known afterwards."""

    text: str
    parent: "Turn | None"
    began: int
    checkpoint: "Checkpoint | None" = None
    cut_off: bool = False
    number: int = 0


@dataclass(eq=False, slots=True)
class Restore:
    """One restore of a session, to be undone by a redo; ``turns`` is how many turns the session had by then."""

    old_head: Turn | None
    safety: "Checkpoint | None"
    turns: int
    touched: tuple[str, ...] = ()
    stands: bool = True


@dataclass(eq=False, slots=True)
class Session:
    """One conversation."""

    chat: str
    head: Turn | None = None
    guarded: bool = True
    begun: bool = False
    turns: list[Turn] = field(default_factory=list)
    restores: list[Restore] = field(default_factory=list)

    def chain(self, head: Turn | None) -> list[Turn]:
        """The turns up to a head, newest first."""
        found = []
        while head is not None:
            found.append(head)
            head = head.parent
        return found

    @property
    def active(self) -> list[Turn]:
        return self.chain(self.head)


@dataclass(eq=False, slots=True)
class Checkpoint:
    """A moment that can be gone back to; ``id`` is the product's own, known afterwards."""

    sequence: int
    taken: int
    reason: str
    capture: Capture
    ledger: Ledger
    acts: int
    turn: Turn | None
    session: Session
    safety: bool = False
    replaced_head: Turn | None = None
    id: str = ""


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore is predicted to do and to say."""

    plan: Plan
    failed: tuple[str, ...] = ()
    effective: bool = False

    def paths(self, fate: Fate) -> list[str]:
        """The paths with one fate, those that failed left out."""
        return sorted(path for path, item in self.plan.items() if item.fate is fate and path not in self.failed)

    @property
    def shared(self) -> bool:
        """Whether there is a path that may go one way or another."""
        return any(item.shared for item in self.plan.values())


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the product did: the tree it left, and whether it took a checkpoint. Asked of shared paths alone."""

    tree: Tree
    taken: bool


class Refused(Exception):
    """A request that changes nothing; the message is a piece of what is said."""


Changes = dict[str, tuple[Node | None, Node | None]]


class World:
    """Everything there is. ``limit`` is how many checkpoints are kept."""

    def __init__(self, tree: Tree, chats: Sequence[str], limit: int) -> None:
        self.tree = tree
        self.limit = limit
        self.tracked: frozenset[str] = frozenset()
        self.known: frozenset[str] = frozenset()
        self.ledger: dict[str, Mark] = {}
        self.acts: dict[str, list[Act]] = {}
        self.acted = 0
        self.wrote = False
        self.unsure: set[str] = set()
        self.outcome: Outcome | None = None
        self.checkpoints: list[Checkpoint] = []  # oldest first
        self.sessions = {chat: Session(chat) for chat in chats}
        self.shown: dict[str, list[Checkpoint]] = {}
        self.clock = 0
        self.sequence = 0

    def tick(self) -> int:
        self.clock += 1
        return self.clock

    # --- capturing

    def capture(self, named: Sequence[str] = ()) -> Capture:
        """Capture the workspace; what it held is known from now on."""
        found = capture(self.tree, self.known, {*named, *self._written()}, self.tracked)
        hidden = found.gaps - set(found.nested)
        self.known = frozenset(found.rows)
        # Only what this tool names is a gap of its own; what the agent wrote earlier is not named again.
        return Capture(found.rows, found.excluded, found.gaps - (hidden - set(named)))

    def take(self, session: Session, captured: Capture, reason: str, turn: Turn | None) -> Checkpoint:
        """Take a checkpoint of a moment."""
        self.sequence += 1
        taken = Checkpoint(self.sequence, self.tick(), reason, captured, dict(self.ledger), self.acted, turn, session)
        self.checkpoints.append(taken)
        return taken

    def covering(self, captured: Capture) -> Checkpoint | None:
        """The checkpoint that holds this moment already: a turn has none but its own or the last one."""
        last = self.checkpoints[-1] if self.checkpoints else None
        return last if last is not None and not last.safety and last.capture.same_as(captured) else None

    # --- turns

    def begin_session(self, chat: str) -> None:
        """Begin the next session of a chat, which keeps its switch."""
        session = self.sessions[chat] = Session(chat, guarded=self.sessions[chat].guarded)
        self.begin_tools(session)

    def begin_turn(self, session: Session, text: str) -> Turn:
        """Begin a turn at the session's head."""
        turn = Turn(text, session.head, self.tick())
        session.turns.append(turn)
        session.head = turn
        return turn

    def begin_tools(self, session: Session) -> None:
        """Note where the session begins, before its first tool that can change anything."""
        if session.guarded and not session.begun:
            session.begun = True
            self.capture()

    def run_tool(
        self,
        session: Session,
        turn: Turn,
        reason: str,
        effect: Callable[[Tree], None],
        *,
        named: Sequence[str] = (),
        destructive: bool,
    ) -> None:
        """Let a tool change the workspace, guarded or not."""
        if not session.guarded:
            effect(self.tree)
            return
        before = self.capture(named)
        covered = self.covering(before)
        if covered is None and destructive:
            covered = self.take(session, before, reason, turn)
        effect(self.tree)
        after = self.capture(named)
        changed = self.changes(before, after)
        if changed and covered is None:
            covered = self.take(session, before, reason, turn)
        turn.checkpoint = covered
        if changed:
            self.note_writes(session.chat, turn, changed)

    def note_writes(self, chat: str, turn: Turn, changed: Changes) -> None:
        """Write into the ledger what the agent changed."""
        self.wrote = True
        self.ledger.update({path: Mark(after, chat) for path, (_, after) in changed.items()})
        self.unsure -= changed.keys()
        self._note_acts(chat, turn, changed)

    def _note_acts(self, chat: str, turn: Turn | None, changed: Changes) -> None:
        self.acted += 1
        for path, (before, after) in changed.items():
            self.acts.setdefault(path, []).append(Act(self.acted, chat, turn, before, after))

    @staticmethod
    def changes(before: Capture, after: Capture) -> Changes:
        """What a tool changed, as far as both captures can tell."""
        changed: Changes = {}
        for path in before.rows.keys() | after.rows.keys():
            old, new = before.rows.get(path), after.rows.get(path)
            unknown = path in after.gaps or any(parent in after.gaps for parent in parents(path))
            if old != new and not unknown and REPOSITORY not in (old, new):
                changed[path] = (old, new)
        return changed

    # --- going back

    def find(self, chat: str, number: int) -> Checkpoint:
        """What a number means: a place in the list last shown in the chat, or counted from the newest."""
        listed = self.shown.get(chat) or self.checkpoints[::-1]
        if not 1 <= number <= len(listed):
            raise Refused("There is no checkpoint")
        if listed[number - 1] not in self.checkpoints:
            raise Refused("was pruned since")
        return listed[number - 1]

    def plan(
        self,
        session: Session,
        target: Checkpoint,
        *,
        everything: bool = False,
        path: str | None = None,
        turn: Turn | None = None,
        beside: Sequence[str] | None = None,
    ) -> Plan:
        """Plan a restore for a chat; ``beside`` are the only paths a redo may touch beside nested repositories."""
        self._refuse_nested(target, path, turn, beside)
        if path is not None and not self._is_there(target, path):
            raise Refused("matches no file")
        now = self.capture()
        scope = None
        if turn is not None:
            scope = {path for path, acts in self.acts.items() if any(self._is_of(act, turn, target) for act in acts)}
        if path is not None:
            scope = chosen([path], target.capture, now)
        if beside is not None:
            scope = chosen(beside, target.capture, now)
        full = everything or (turn is None and not self.wrote)
        chats = {session.chat, target.session.chat}
        wish = Wish(target.sequence, target.acts, full, chats, turn, scope)
        outcome = self.outcome.tree if self.outcome else None
        return plan(Known(self.tree, target.capture, now, self.ledger, self.acts, self.unsure, outcome), wish)

    @staticmethod
    def _is_of(act: Act, turn: Turn, target: Checkpoint) -> bool:
        return act.turn is turn and act.number > target.acts

    def _is_there(self, target: Checkpoint, path: str) -> bool:
        found = (*target.capture.rows, *self.preview().rows)
        return any(other == path or other.startswith(f"{path}/") for other in found)

    def preview(self) -> Capture:
        """What a capture would hold now; nothing is known from it."""
        return capture(self.tree, self.known, self._written(), self.tracked)

    def _written(self) -> list[str]:
        return [path for path, mark in self.ledger.items() if mark.node is not None]

    @staticmethod
    def _refuse_nested(target: Checkpoint, path: str | None, turn: Turn | None, beside: Sequence[str] | None) -> None:
        nested = target.capture.nested
        if not nested or turn is not None or beside is not None:
            return
        reached = [at for at in nested if path is None or f"{at}/".startswith(f"{path}/") or path.startswith(f"{at}/")]
        if reached:
            raise Refused("nested git repositor")

    def restore(
        self, session: Session, target: Checkpoint, made: Plan, new_head: Turn | None, *, undoes: Restore | None = None
    ) -> Restored:
        """Carry out a plan and move the conversation with it."""
        shared = [path for path, item in made.items() if item.shared]
        effective = any(item.fate.changes for item in made.values())
        if shared and self.outcome is not None:
            effective = effective or self.outcome.taken
        if not effective and new_head is session.head:
            return Restored(made)
        safety, done = None, Done()
        if effective:
            safety = self.take(session, self.capture(), f"before rollback to {target.id[:8]}", session.head)
            safety.safety, safety.replaced_head = True, session.head
            done = perform(self.tree, made)
            self.ledger = ledger_after(done, made, self.ledger, target.ledger, target.sequence)
            self._note_acts(session.chat, None, {path: (made[path].now, made[path].target) for path in done.done})
            self.unsure -= set(done.done)
            self.unsure |= {path for path in shared if _is_unsure(made[path])}
        self.move(session, new_head, safety, undoes=undoes, done=done)
        return Restored(made, tuple(done.failed), effective)

    @staticmethod
    def move(
        session: Session,
        new_head: Turn | None,
        safety: Checkpoint | None,
        *,
        undoes: Restore | None = None,
        done: Done | None = None,
    ) -> None:
        """Move a conversation, and remember how it can be undone."""
        done = done or Done()
        if undoes is None:
            session.restores.append(Restore(session.head, safety, len(session.turns), tuple(done.done)))
        elif not done.failed:
            undoes.stands = False
        if not done.failed:
            session.head = new_head

    def head_for(self, session: Session, target: Checkpoint) -> Turn | None:
        """Where a conversation stands after a restore of a checkpoint."""
        if target.session is session and target.safety:
            return target.replaced_head
        if target.session is session and target.turn is not None:
            return target.turn.parent
        return next((turn for turn in session.active if turn.began < target.taken), None)

    def redoable(self, session: Session) -> Restore:
        """The restore that a redo takes back."""
        last = next((restore for restore in reversed(session.restores) if restore.stands), None)
        if last is None:
            raise Refused("There is nothing to redo")
        if last.turns < len(session.turns):
            raise Refused("Nothing was redone: you have gone on")
        return last


def _is_unsure(item: Item) -> bool:
    """Whether it cannot be told what the ledger says of a shared path: of a merge, and of a directory that stayed."""
    stayed = item.fate is Fate.OTHER and item.now is not None and item.now.is_directory
    return item.fate is Fate.MERGE or stayed
